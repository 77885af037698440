"""One measured figure, and what it is held against."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Row:
    """`ours` and `peers` are in `unit`, lower is better. `target` is in words.

    `ratio` is ours over the first peer. `met` is None where the target cannot be judged yet.
    """

    name: str
    ours: float
    unit: str
    target: str
    met: bool | None
    peers: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def ratio(self) -> float | None:
        first = next(iter(self.peers.values()), None)
        return round(self.ours / first, 4) if first else None

    def record(self, machine: str, at: str) -> dict[str, object]:
        return {
            "name": self.name,
            "ours": round(self.ours, 4),
            "peers": {name: round(value, 4) for name, value in self.peers.items()},
            "unit": self.unit,
            "ratio": self.ratio,
            "target": self.target,
            "met": self.met,
            "machine": machine,
            "at": at,
        }


def median(seconds: Sequence[float], per: float = 1e3) -> float:
    """In milliseconds unless `per` says otherwise."""
    return statistics.median(seconds) * per


def percentile(seconds: Sequence[float], share: float, per: float = 1e3) -> float:
    """By nearest rank."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * per


class Watch:
    """Collects the seconds spent in its `with` blocks."""

    def __init__(self) -> None:
        self.laps: list[float] = []

    def __enter__(self) -> None:
        self._from = time.perf_counter()

    def __exit__(self, *fault: object) -> None:
        self.laps.append(time.perf_counter() - self._from)


def machine(engine: str) -> str:
    cores = len(os.sched_getaffinity(0))
    system = f"Linux {platform.release()}, Python {platform.python_version()}"
    return f"{cores} cores, {platform.machine()}, {system}, {engine}"
