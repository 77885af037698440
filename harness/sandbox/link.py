"""The controller's end of a supervisor: frames in, frames out, channels between.

Sans-IO: whoever owns the transport calls `feed` with what comes and `lost` when it ends, and
gives a `Pipe` for what goes out. Nothing here waits for a consumer.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterable
from dataclasses import dataclass
from typing import Protocol

from harness.errors import SandboxError, SandboxLost
from harness.sandbox.frames import (
    CHANNEL_WINDOW,
    HEADER,
    INPUT_WINDOW,
    MAX_PAYLOAD,
    TOTAL_WINDOW,
    FrameDecoder,
    FrameType,
    frame,
)
from harness.sandbox.messages import Hello, lease, read_hello

__all__ = ["Channel", "Hello", "Link", "Pipe"]

PROTOCOL_VERSION = 1
_OUTPUT = frozenset({FrameType.OUT, FrameType.ERR})
_MISSED_PINGS = 4


class Pipe(Protocol):
    """Where frames go out. `write` never blocks; `drain` waits until little is buffered.

    After a failure `write` and `drain` may do nothing, but the owner then calls `Link.lost`.
    """

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    def close(self) -> None: ...


class Channel(Protocol):
    """One command or file operation; the link calls these, in the order of arrival."""

    def received(self, kind: FrameType, payload: bytes) -> None:
        """A frame of this channel. May raise `SandboxLost` for a broken message."""
        ...

    def lost(self, error: SandboxError) -> None:
        """Nothing more will come."""
        ...


@dataclass(slots=True)
class _Open:
    channel: Channel
    input_room: int = INPUT_WINDOW
    waiter: asyncio.Future[None] | None = None
    unacknowledged: int = 0
    held: int = 0

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class Link:
    """One supervisor. Use: `link = Link(pipe)`, connect the reader to `link.feed`, then `open`."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._decoder = FrameDecoder()
        self._open: dict[int, _Open] = {}
        self._last_channel = 0
        self._unacknowledged = 0
        self._error: SandboxError | None = None
        self._greeting: asyncio.Future[Hello] | None = None
        self._nonce = b""
        self._hello: Hello | None = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._missed = 0
        self.closed = asyncio.Event()
        """Set when the link is lost or closed."""

    async def open(
        self, *, token: bytes, orphan_seconds: float = 15.0, timeout: float = 10.0
    ) -> Hello:
        """Take the lease. `token` is 32 secret bytes, the same for the life of the box.

        Starts the heartbeat (a ping at a third of `orphan_seconds`). Raises `SandboxLost` when
        no HELLO comes in `timeout` seconds.
        """
        if len(token) != 32:
            raise ValueError("a token is 32 bytes")
        self._nonce = secrets.token_bytes(16)
        self._greeting = asyncio.get_running_loop().create_future()
        self._decoder.expect(self._nonce)
        self._send(FrameType.LEASE, 0, lease(token, self._nonce, orphan_seconds))
        try:
            async with asyncio.timeout(timeout):
                self._hello = await self._greeting
        except TimeoutError:
            self.lost(f"the supervisor did not answer in {timeout:g} seconds")
            raise self._failure() from None
        if self._hello.version != PROTOCOL_VERSION:
            self.lost(f"the supervisor speaks version {self._hello.version} of the protocol")
            raise self._failure()
        self._heartbeat = asyncio.create_task(self._beat(orphan_seconds / 3))
        return self._hello

    @property
    def hello(self) -> Hello:
        """What `open` got."""
        if self._hello is None:
            raise SandboxError("the box is not open yet")
        return self._hello

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Bytes of the supervisor's stdout, cut anywhere. Never raises, never blocks."""
        if self._error is not None:
            return
        self._missed = 0
        try:
            for kind, channel, payload in self._decoder.feed(data):
                self._dispatch(kind, channel, payload)
        except SandboxLost as error:
            self._fail(error)

    def lost(self, reason: str, evidence: tuple[str, ...] = ()) -> None:
        """The transport or the box is gone: everything that waits raises `SandboxLost`.

        The first call counts; later ones are ignored. `evidence` is what the host saw.
        """
        self._fail(SandboxLost(reason, evidence=evidence))

    async def close(self) -> None:
        """Ask the supervisor to end, close the pipe. May be called twice."""
        if self._error is None:
            self._send(FrameType.SHUTDOWN, 0)
            self._fail(SandboxError("the box is closed"))
        if self._heartbeat is not None:
            self._heartbeat.cancel()

    def attach(self, channel: Channel) -> int:
        """A new channel's number. Raises what the link ended with, if it has."""
        if self._error is not None:
            raise self._failure()
        self._last_channel = self._last_channel % 0xFFFFFFFE + 1
        self._open[self._last_channel] = _Open(channel)
        return self._last_channel

    def detach(self, number: int) -> None:
        """Forget a channel; frames that still come for it are dropped."""
        entry = self._open.pop(number, None)
        if entry is not None:
            entry.wake()

    def request(self, kind: FrameType, number: int, body: bytes) -> None:
        """Send a request, in parts where it is longer than a frame."""
        while len(body) > MAX_PAYLOAD:
            self._send(FrameType.PART, number, body[:MAX_PAYLOAD])
            body = body[MAX_PAYLOAD:]
        self._send(kind, number, body)

    def cancel(self, number: int, reason: int) -> None:
        """End a channel's command or operation; its last message still comes."""
        self._send(FrameType.CANCEL, number, bytes((reason,)))

    def consumed(self, number: int, size: int) -> None:
        """A channel's consumer has taken `size` bytes of frames: as many more may come."""
        entry = self._open.get(number)
        if entry is None:
            return
        entry.held -= size
        entry.unacknowledged += size
        if entry.unacknowledged >= CHANNEL_WINDOW // 4:
            self._credit(number, entry.unacknowledged)
            entry.unacknowledged = 0

    async def send_input(self, number: int, data: AsyncIterable[bytes]) -> None:
        """Stream input, at most a frame a piece, as the supervisor can take it; then its end.

        Returns early when the channel ends first.
        """
        async for piece in data:
            while (entry := self._open.get(number)) is not None and entry.input_room < len(piece):
                entry.waiter = asyncio.get_running_loop().create_future()
                await entry.waiter
            if entry is None:
                return
            entry.input_room -= len(piece)
            self._send(FrameType.DATA, number, piece)
            await self._pipe.drain()
        if number in self._open:
            self._send(FrameType.END, number)

    def _dispatch(self, kind: FrameType, number: int, payload: bytes) -> None:
        size = len(payload) + HEADER.size
        if kind in _OUTPUT:
            self._unacknowledged += size
            if self._unacknowledged >= TOTAL_WINDOW // 4:
                self._credit(0, self._unacknowledged)
                self._unacknowledged = 0
        if number == 0:
            self._greeted(kind, payload)
            return
        entry = self._open.get(number)
        if entry is None:
            return
        if kind is FrameType.CREDIT:
            self._input_credit(entry, payload)
            return
        if kind in _OUTPUT:
            entry.held += size
            if entry.held > CHANNEL_WINDOW:
                raise SandboxLost("the supervisor sent more output than it was allowed to")
        entry.channel.received(kind, payload)

    def _greeted(self, kind: FrameType, payload: bytes) -> None:
        if kind is FrameType.HELLO and self._greeting is not None and not self._greeting.done():
            self._greeting.set_result(read_hello(payload, self._nonce))

    def _input_credit(self, entry: _Open, payload: bytes) -> None:
        if len(payload) != 4:
            raise SandboxLost("the supervisor's credit is malformed")
        entry.input_room = min(entry.input_room + int.from_bytes(payload, "little"), INPUT_WINDOW)
        entry.wake()

    def _credit(self, number: int, amount: int) -> None:
        self._send(FrameType.CREDIT, number, amount.to_bytes(4, "little"))

    def _send(self, kind: FrameType, number: int, payload: bytes = b"") -> None:
        if self._error is None:
            self._pipe.write(frame(kind, number, payload))

    def _failure(self) -> SandboxError:
        """A fresh error for each who asks: one object raised in many tasks mixes tracebacks."""
        error = self._error
        if isinstance(error, SandboxLost):
            return SandboxLost(str(error), evidence=error.evidence)
        return SandboxError(str(error))

    def _fail(self, error: SandboxError) -> None:
        if self._error is not None:
            return
        self._error = error
        self.closed.set()
        if self._greeting is not None and not self._greeting.done():
            self._greeting.set_exception(self._failure())
        entries = list(self._open.values())
        self._open.clear()
        for entry in entries:
            entry.wake()
            entry.channel.lost(self._failure())
        if self._heartbeat is not None and isinstance(error, SandboxLost):
            self._heartbeat.cancel()
        self._pipe.close()

    async def _beat(self, interval: float) -> None:
        """Ping; an answer, or anything else, shows that the supervisor lives."""
        count = 0
        while self._error is None:
            if self._missed >= _MISSED_PINGS:
                self.lost("the supervisor no longer answers")
                return
            self._missed += 1
            count += 1
            self._send(FrameType.PING, 0, count.to_bytes(8, "little"))
            await asyncio.sleep(interval)
