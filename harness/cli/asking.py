"""Who answers on a command line: a person at the terminal, or nobody."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING

from harness.errors import ConfigError

if TYPE_CHECKING:
    from harness.cli.outlet import Outlet
    from harness.ports import Approval, Approver
    from harness.values.calls import Call
    from harness.values.decisions import Decision

_TERMINAL = "/dev/tty"


def attended(approve: str | None) -> bool:
    """Whether a person is asked: `ask`, `deny`, or None for whether one sits at a terminal.

    Raises `ConfigError` for another word, and for `ask` where there is no terminal.
    """
    match approve:
        case None:
            return sys.stdin.isatty() and sys.stderr.isatty() and _reachable()
        case "deny":
            return False
        case "ask":
            if _reachable():
                return True
            raise ConfigError("`--approve ask` needs a terminal, and there is none; use `deny`")
        case "pause":
            raise ConfigError("`--approve pause` is not built yet; there are `ask` and `deny`")
        case _:
            raise ConfigError(f"`--approve {approve}` is unknown; there are `ask` and `deny`")


def _reachable() -> bool:
    try:
        os.close(os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


class AfterOutput:
    """An approver that lets everything already handed to the terminal appear first."""

    def __init__(self, inner: Approver, out: Outlet) -> None:
        self._inner = inner
        self._out = out

    async def ask(self, call: Call, decision: Decision) -> Approval:
        import asyncio

        await asyncio.to_thread(self._out.drain)
        return await self._inner.ask(call, decision)


@contextlib.contextmanager
def approver(out: Outlet, *, person: bool) -> Generator[Approver | None]:
    """A person at the controlling terminal, whatever stdin and stdout are; or None."""
    if not person:
        yield None
        return
    from harness.approvers import TerminalApprover

    with (
        open(_TERMINAL, encoding="utf-8") as answers,  # noqa: PTH123 - a device
        open(_TERMINAL, "w", encoding="utf-8") as screen,  # noqa: PTH123 - a device
    ):
        yield AfterOutput(TerminalApprover(answers, screen), out)
