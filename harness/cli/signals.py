"""One `asyncio.run` for a command, that settles when it is asked to stop."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

_ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    """The work was cancelled by a signal and has settled. `code` is 128 and the signal."""

    def __init__(self, code: int) -> None:
        super().__init__(f"stopped by signal {code - 128}")
        self.code = code


def run_until_stopped(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run to the end, or until a signal; raises `Stopped` after settling.

    The first INT, TERM or HUP cancels the work, which ends its command, keeps its patch and
    closes its log. A second INT ends this process at once; the box then ends by itself.
    """
    stop: list[int] = []

    async def watched() -> T:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work())

        def asked(number: signal.Signals) -> None:
            if not stop:
                stop.append(number)
                task.cancel()
                _settle(number, loop)

        for number in _ASKED:
            loop.add_signal_handler(number, asked, number)
        return await task

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        if not stop:
            raise
        raise Stopped(128 + stop[0]) from None


def _settle(number: signal.Signals, loop: asyncio.AbstractEventLoop) -> None:
    """Say so, and let the next INT end the process even when the loop hangs."""
    loop.remove_signal_handler(signal.SIGINT)
    signal.signal(signal.SIGINT, _abort)
    # the interpreter resets handlers while it ends, and a late INT would then change the code
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    again = "; press again to stop at once" if number is signal.SIGINT else ""
    words = f"\nharness: stopping, and keeping the patch{again}\n"
    with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
        os.write(sys.stderr.fileno(), words.encode())


def _abort(number: int, frame: FrameType | None) -> None:
    del frame
    os._exit(128 + number)
