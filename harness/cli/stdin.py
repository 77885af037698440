"""What is piped into `harness exec`, as it comes."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress

_PIECE = 64 * 1024
_AHEAD = 16
"""Pieces that are read before the command has taken them."""


def standard_input() -> AsyncGenerator[bytes, None] | None:
    """Standard input in pieces; None for a terminal, or where there is none."""
    try:
        if sys.stdin is None or sys.stdin.isatty():
            return None
        number = sys.stdin.fileno()
        os.fstat(number)
    except (OSError, ValueError):
        return None
    return _pieces(number)


async def _pieces(number: int) -> AsyncGenerator[bytes, None]:
    """Read in a thread of its own: a read that never returns must hold up nothing else."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_AHEAD)

    def read() -> None:
        data = b"x"
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            while data:
                room.acquire()
                data = _read(number)
                loop.call_soon_threadsafe(arrived.put_nowait, data)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while data := await arrived.get():
        yield data
        room.release()


def _read(number: int) -> bytes:
    with suppress(OSError):
        return os.read(number, _PIECE)
    return b""
