"""The next request, from the log and nothing else."""

from __future__ import annotations

from harness.loop.parts import Parts
from harness.values.wire import Prompt, Request


def assemble(parts: Parts) -> Request:
    """Pure: the same log, tools and system text give the same bytes."""
    return parts.wire.encode(
        Prompt(
            system=parts.system,
            tools=tuple(tool.spec for tool in parts.tools.values()),
            items=tuple(parts.session.state.items),
            max_tokens=parts.budgets.turn_tokens,
        )
    )
