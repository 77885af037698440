"""What passes between the loop and a model's wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from harness.values.calls import Call
from harness.values.items import Item, ToolSpec
from harness.values.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class Prompt:
    """All that a request is made of. Equal prompts give equal request bytes."""

    system: str
    tools: tuple[ToolSpec, ...]
    items: tuple[Item, ...]
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """The exact bytes of one request, and their SHA-256 in hex."""

    body: bytes
    digest: str


class Branch(StrEnum):
    """What kind of reply it is. Only `tool_calls` runs anything."""

    FINAL = "final"
    TOOL_CALLS = "tool_calls"
    TRUNCATED = "truncated"
    PAUSED = "paused"
    REFUSED = "refused"
    EMPTY = "empty"
    OUT_OF_TIME = "out_of_time"


@dataclass(frozen=True, slots=True)
class Delta:
    """Provisional text of an attempt; void when the attempt is."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply, after its terminal event. `stop` is the provider's own word for the end.

    Calls in it carry the provider's ids; the loop gives them its own.
    """

    branch: Branch
    text: str = ""
    calls: tuple[Call, ...] = ()
    stop: str = ""
    usage: TokenUsage = field(default_factory=TokenUsage)


WireEvent: TypeAlias = Delta | Reply
