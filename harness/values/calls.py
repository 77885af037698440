"""What a model asks for and what it gets back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = object
"""Any JSON value. `object` makes every reader look before it uses one."""

Args: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call.

    `id` is ours and unique in a session; `wire_id` is the provider's, kept for the reply.
    `args` is None when `raw`, the text as the provider sent it, is not a JSON object.
    """

    id: str
    tool: str
    args: Args | None
    raw: str = ""
    wire_id: str = ""


class Status(StrEnum):
    """How a call ended. Only a person's or a rule's decision is `denied`."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    INVALID = "invalid"
    NOT_STARTED = "not_started"
    INTERRUPTED = "interrupted"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool hands back: text for the model, and facts for the record.

    `text` is bounded by the tool. `facts` is JSON-able (exit code, usage, byte counts).
    """

    status: Status
    text: str
    facts: Args


@dataclass(frozen=True, slots=True)
class Result:
    """The one result of a call, on whatever path it ended."""

    call_id: str
    tool: str
    status: Status
    text: str
