"""Clocks: the machine's, and one that stands still until told."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class FixedClock:
    """Time that moves only by `advance`; both clocks start at `start` seconds."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._at = start

    def now(self) -> float:
        return self._at

    def monotonic(self) -> float:
        return self._at

    def advance(self, seconds: float) -> None:
        self._at += seconds
