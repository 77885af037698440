"""Channels of a link: a running command, a file operation."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from harness.errors import SandboxError, SandboxLost
from harness.ports import OutputSink
from harness.sandbox.capture import Capture
from harness.sandbox.frames import HEADER, FrameType
from harness.sandbox.link import Link
from harness.sandbox.messages import REASONS, Exit, Reply, read_exit, read_reply
from harness.values.commands import Captured, ExecRequest, ExecResult, ExitReason

CANCELLED = REASONS.index(ExitReason.CANCELLED)
OUTPUT_LIMIT = REASONS.index(ExitReason.OUTPUT_LIMIT)

PATIENCE = 15.0
"""Seconds the supervisor gets beyond a deadline and its grace before it counts as lost."""


NO_ROOM = "the box has no room for another process; stop background processes"
"""What a command's stderr says, and a file operation's fault. A keeper says the same."""
_NO_ROOM_CODE = 2


class NoRoom(SandboxError):
    """What runs in the box already leaves no room: the workload's doing, not the box's."""


def refusal(payload: bytes) -> SandboxError:
    """What a REFUSED says, bounded and printable."""
    if payload[:1] == bytes((_NO_ROOM_CODE,)):
        return NoRoom(NO_ROOM)
    text = payload[1:200].decode("ascii", "replace")
    words = "".join(char if char.isprintable() else "?" for char in text)
    return SandboxError(f"the box cannot start this: {words.lower()}")


class Command:
    """One EXEC: gathers output, counts it against a limit, waits for EXIT."""

    def __init__(
        self, link: Link, request: ExecRequest, limit: int | None, sink: OutputSink | None
    ) -> None:
        self._link = link
        self._limit = limit
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._captures = {
            FrameType.OUT: ("stdout", Capture(request.head, request.tail)),
            FrameType.ERR: ("stderr", Capture(request.head, request.tail)),
        }
        self._total = 0
        self._grace = request.grace
        self._overdue: asyncio.TimerHandle | None = None
        self.exit: asyncio.Future[Exit] = self._loop.create_future()
        self.number = link.attach(self)

    def received(self, kind: FrameType, payload: bytes) -> None:
        if kind in self._captures:
            self._output(kind, payload)
        elif kind is FrameType.EXIT:
            self._end(read_exit(payload))
        elif kind is FrameType.REFUSED:
            self.lost(refusal(payload))
        elif kind is not FrameType.STARTED:
            raise SandboxLost("the supervisor sent a message out of place")

    def lost(self, error: SandboxError) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
        if not self.exit.done():
            self.exit.set_exception(error)
            self.exit.exception()  # whoever waits gets it; nobody waiting is no leak

    def result(self, end: Exit) -> ExecResult:
        return ExecResult(
            code=end.code,
            signal=end.signal,
            reason=end.reason,
            stdout=self._captured(FrameType.OUT),
            stderr=self._captured(FrameType.ERR),
            usage=end.usage,
            left_running=end.left_running,
        )

    def _captured(self, kind: FrameType) -> Captured:
        return self._captures[kind][1].captured()

    def _output(self, kind: FrameType, payload: bytes) -> None:
        name, capture = self._captures[kind]
        over = self._limit is not None and self._total > self._limit
        if not over:
            # beyond the limit it gets no more credit: what still comes is bounded by the window
            self._link.consumed(self.number, len(payload) + HEADER.size)
        if self.exit.done() or not payload:
            return
        capture.add(payload)
        self._total += len(payload)
        if self._limit is not None and self._total > self._limit and not over:
            self._link.cancel(self.number, OUTPUT_LIMIT)
            self._overdue = self._loop.call_later(self._grace + PATIENCE, self._not_ended)
        if self._sink is not None and not over:
            # In the loop's own turn, in order: what a sink raises must not break the link.
            self._loop.call_soon(self._sink, name, payload)

    def _not_ended(self) -> None:
        self._link.lost("the supervisor did not end a command that printed too much")

    def _end(self, end: Exit) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
        if not self.exit.done():
            self.exit.set_result(end)


class FileCall:
    """One FILE request: gathers at most `room` bytes of data, waits for REPLY.

    With `bounded`, more than `room` is an honest answer that is too large: `overflowed` is set,
    the operation ended and its data dropped. Else it breaks the protocol.
    """

    def __init__(self, link: Link, room: int, *, bounded: bool = False) -> None:
        self._link = link
        self._room = room
        self._bounded = bounded
        self._data = bytearray()
        self.overflowed = False
        self.late = False
        self._timer: asyncio.TimerHandle | None = None
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.number = link.attach(self)

    @property
    def data(self) -> bytes:
        return bytes(self._data)

    def received(self, kind: FrameType, payload: bytes) -> None:
        if kind is FrameType.OUT:
            self._output(payload)
        elif kind is FrameType.REPLY:
            if not self.reply.done():
                self.reply.set_result(read_reply(payload))
        elif kind is FrameType.REFUSED:
            self.lost(refusal(payload))
        else:
            raise SandboxLost("the supervisor sent a message out of place")

    def allow(self, seconds: float) -> None:
        """End it when it takes longer: sets `late`. A supervisor that then says nothing is lost."""
        self._timer = asyncio.get_running_loop().call_later(seconds, self._too_late)

    def stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _too_late(self) -> None:
        self.late = True
        self._link.cancel(self.number, CANCELLED)
        words = "the supervisor did not end a file operation"
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._link.lost, words)

    def _output(self, payload: bytes) -> None:
        if self.overflowed:
            return  # without a credit, so the window bounds what still comes
        self._link.consumed(self.number, len(payload) + HEADER.size)
        if len(self._data) + len(payload) <= self._room:
            self._data += payload
            return
        if not self._bounded:
            raise SandboxLost("the supervisor sent more data than was asked for")
        self.overflowed = True
        self._data.clear()
        self._link.cancel(self.number, CANCELLED)

    def lost(self, error: SandboxError) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)
            self.reply.exception()


FILE_SECONDS = 120.0
"""Seconds one file operation may take, and"""
FILE_RATE = 1 << 20
"""one more for each so many bytes that go in."""


async def settle(future: asyncio.Future[Exit] | asyncio.Future[Reply], seconds: float) -> bool:
    """Wait for a future through any number of cancellations; False when time runs out."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while not future.done() and (left := until - loop.time()) > 0:
        try:
            await asyncio.wait((future,), timeout=left)
        except asyncio.CancelledError:
            continue
    return future.done()


def expiry(wall: float, expire: Callable[[], None]) -> asyncio.TimerHandle | None:
    """The end of a box's time, in seconds from now; none for an infinite one."""
    return None if wall == math.inf else asyncio.get_running_loop().call_later(wall, expire)


def watchdog(seconds: float | None, expire: Callable[[], None]) -> asyncio.TimerHandle | None:
    """The host's own deadline behind the one the supervisor was told."""
    if seconds is None:
        return None
    return asyncio.get_running_loop().call_later(seconds, expire)
