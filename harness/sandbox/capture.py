"""Keeping the first and the last bytes of a stream, at a cost that does not grow with it."""

from __future__ import annotations

from harness.values.commands import Captured


class Capture:
    """Takes a stream's pieces, of any size and number; holds at most `head` + 2 × `tail` bytes."""

    def __init__(self, head: int, tail: int) -> None:
        self._head_room = max(head, 0)
        self._tail_size = max(tail, 0)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        if self._head_room:
            first = data[: self._head_room]
            self._head += first
            self._head_room -= len(first)
            data = data[len(first) :]
        if not data or not self._tail_size:
            return
        if len(self._tail) + len(data) > 2 * self._tail_size:
            del self._tail[: -self._tail_size]
            data = data[-self._tail_size :]
        self._tail += data

    def captured(self) -> Captured:
        """What was kept so far."""
        return Captured(
            head=bytes(self._head),
            tail=bytes(self._tail[-self._tail_size :]) if self._tail_size else b"",
            total=self.total,
        )
