"""Frames between controller and supervisor: `u32 length | u8 type | u32 channel | payload`.

All numbers are little-endian; `length` counts the payload alone and is at most 64 KiB. The
messages are described in `docs/sandbox-protocol.md`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

from harness.errors import SandboxLost

HEADER = struct.Struct("<IBI")
MAX_PAYLOAD = 64 * 1024

CHANNEL_WINDOW = 256 * 1024
"""Output bytes the supervisor may send on one channel before a credit."""

TOTAL_WINDOW = 768 * 1024
"""The same over all channels: what Docker may have to hold, far below the 1.4 MB that stall it."""

INPUT_WINDOW = 128 * 1024
"""Input bytes the controller may send on one channel before a credit."""


class FrameType(IntEnum):
    """Message types. Below 64 the controller speaks, from 64 on the supervisor; CREDIT is both."""

    LEASE = 1
    PING = 2
    PART = 3
    EXEC = 4
    CANCEL = 5
    DATA = 6
    END = 7
    CREDIT = 8
    FILE = 9
    SHUTDOWN = 10
    QUIET = 11
    HELLO = 65
    PONG = 66
    STARTED = 67
    OUT = 68
    ERR = 69
    EXIT = 70
    REPLY = 71
    REFUSED = 72


FROM_SUPERVISOR = frozenset(kind for kind in FrameType if kind >= 64) | {FrameType.CREDIT}


def frame(kind: FrameType, channel: int, payload: bytes | bytearray | memoryview = b"") -> bytes:
    """One frame as bytes. The payload is at most `MAX_PAYLOAD`."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError("a frame's payload is at most 64 KiB")
    return HEADER.pack(len(payload), kind, channel) + payload


class FrameDecoder:
    """Bytes in, whole frames out. Before `expect` is satisfied, everything else is skipped.

    Holds at most one frame's bytes besides what it was just given. Raises `SandboxLost` for
    what cannot be a frame; after that the stream is of no use.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._marker: bytes | None = None

    def expect(self, nonce: bytes) -> None:
        """Skip bytes until a HELLO that starts with `nonce` comes."""
        self._marker = nonce

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[tuple[FrameType, int, bytes]]:
        """Take bytes, give each frame that is complete: type, channel, payload."""
        self._buffer += data
        if self._marker is not None and not self._synchronise(self._marker):
            return
        start = 0
        try:
            while (end := self._end_of_frame(start)) is not None:
                _, kind, channel = HEADER.unpack_from(self._buffer, start)
                payload = bytes(memoryview(self._buffer)[start + HEADER.size : end])
                start = end
                yield FrameType(kind), channel, payload
        finally:
            del self._buffer[:start]

    def _end_of_frame(self, start: int) -> int | None:
        if len(self._buffer) - start < HEADER.size:
            return None
        length, kind, _ = HEADER.unpack_from(self._buffer, start)
        if length > MAX_PAYLOAD:
            raise SandboxLost(f"the supervisor sent a frame of {length} bytes")
        if kind not in FROM_SUPERVISOR:
            raise SandboxLost(f"the supervisor sent a frame of unknown type {kind}")
        end = start + HEADER.size + int(length)
        return end if end <= len(self._buffer) else None

    def _synchronise(self, nonce: bytes) -> bool:
        """Cut the buffer to the HELLO that echoes `nonce`; False while it has not come."""
        search = 0
        while (at := self._buffer.find(nonce, search)) >= 0:
            begin = at - HEADER.size
            if begin >= 0:
                length, kind, channel = HEADER.unpack_from(self._buffer, begin)
                if kind == FrameType.HELLO and channel == 0 and length <= MAX_PAYLOAD:
                    del self._buffer[:begin]
                    self._marker = None
                    return True
            search = at + 1
        keep = len(nonce) + HEADER.size
        del self._buffer[:-keep]
        return False
