"""A byte stream as a link wants it, whatever carries it."""

from __future__ import annotations

import asyncio

BUFFER = 256 * 1024
HIGH_WATER = 1 << 20
"""Bytes on their way out before `drain` waits."""


class Stream(asyncio.BufferedProtocol):
    """Reads into one buffer as fast as bytes come and never waits for a consumer.

    A subclass says in `taken` what to do with bytes, and in `ended` with the end. `drain` waits
    while much is on its way out.
    """

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(BUFFER))
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.closed = asyncio.Event()

    def taken(self, data: memoryview) -> None:
        """Must copy what it keeps: the buffer is used again."""
        raise NotImplementedError

    def ended(self, exc: Exception | None) -> None:
        """Called once. `exc` is what broke the stream, None for an ordinary end."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.taken(self._buffer[:nbytes])

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended(exc)
        self._writable.set()
        self.closed.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        await self._writable.wait()

    def close(self) -> None:
        """Drop the connection at once: what is queued for a box that ends is of no use."""
        if self._transport is not None:
            self._transport.abort()
