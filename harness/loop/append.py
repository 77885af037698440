"""Results into the log."""

from __future__ import annotations

from collections.abc import Sequence

from harness.loop.parts import Parts
from harness.values.events import ToolCompleted


async def append(results: Sequence[ToolCompleted], parts: Parts) -> None:
    """Log results in the order their calls were made."""
    for result in results:
        await parts.session.append(result)
