"""Keeping the first and the last bytes of a stream, at a cost that does not grow with it."""

from __future__ import annotations

from collections import deque

from harness.values.commands import Captured


class Capture:
    """Takes a stream's pieces; holds at most `head` + `tail` bytes and one piece."""

    def __init__(self, head: int, tail: int) -> None:
        self._head_room = max(head, 0)
        self._tail_size = max(tail, 0)
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_held = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        if self._head_room:
            first = data[: self._head_room]
            self._head.append(first)
            self._head_room -= len(first)
            data = data[len(first) :]
        if not data or not self._tail_size:
            return
        self._tail.append(data)
        self._tail_held += len(data)
        while self._tail_held - len(self._tail[0]) >= self._tail_size:
            self._tail_held -= len(self._tail.popleft())

    def captured(self) -> Captured:
        tail = b"".join(self._tail)
        return Captured(
            head=b"".join(self._head),
            tail=tail[max(len(tail) - self._tail_size, 0) :],
            total=self.total,
        )
