"""Token counts in five disjoint buckets. None is unknown and never zero."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one request."""

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_long: int | None = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over a run. Token sums are lower bounds when `unknown_requests` is not zero."""

    turns: int = 0
    requests: int = 0
    unknown_requests: int = 0
    input: int = 0
    output: int = 0
    seconds: float = 0.0
    tool_calls: int = 0
    denied: int = 0
