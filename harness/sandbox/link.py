"""The controller's end of a supervisor: frames in, frames out, channels between.

Sans-IO: whoever owns the transport calls `feed` with what comes and `lost` when it ends, and
gives a `Pipe` for what goes out. Nothing here waits for a consumer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from harness.sandbox.frames import FrameType


class Pipe(Protocol):
    """Where frames go out. `write` never blocks; `drain` waits until little is buffered."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Hello:
    """What a supervisor says of itself. `features`: `tree_kill`, `oom`, `users`, ... (see docs)."""

    version: int
    boot_id: bytes
    features: Mapping[str, str]


class Channel(Protocol):
    """One command or file operation; the link calls these, in the order of arrival."""

    def received(self, kind: FrameType, payload: bytes) -> None: ...

    def lost(self, error: Exception) -> None: ...


class Link:
    """One supervisor. Use: `link = Link(pipe)`, connect the reader to `link.feed`, then `open`."""

    def __init__(self, pipe: Pipe) -> None: ...

    async def open(
        self, *, token: bytes, orphan_seconds: float = 15.0, timeout: float = 10.0
    ) -> Hello:
        """Take the lease. `token` is 32 secret bytes, the same for the life of the box.

        Starts the heartbeat (a ping at a third of `orphan_seconds`). Raises `SandboxLost` when
        no HELLO comes in `timeout` seconds.
        """
        raise NotImplementedError

    @property
    def hello(self) -> Hello:
        """What `open` got."""
        raise NotImplementedError

    @property
    def closed(self) -> asyncio.Event:
        """Set when the link is lost or closed."""
        raise NotImplementedError

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Bytes of the supervisor's stdout, cut anywhere. Never raises, never blocks."""

    def lost(self, reason: str, evidence: tuple[str, ...] = ()) -> None:
        """The transport or the box is gone: everything that waits raises `SandboxLost`.

        The first call counts; later ones are ignored. `evidence` is what the host saw.
        """

    async def close(self) -> None:
        """Ask the supervisor to end, close the pipe. May be called twice."""
