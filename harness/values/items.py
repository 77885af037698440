"""What a model sees of a session, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.values.calls import Args, Call, Result


@dataclass(frozen=True, slots=True)
class UserText:
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """Words of the harness itself. `origin`: budget, memory, hook, stuck, steer."""

    origin: str
    text: str


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """One finished reply: its text and its calls, which the following results answer."""

    text: str
    calls: tuple[Call, ...] = ()


Item: TypeAlias = UserText | Note | AssistantTurn | Result


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it: `schema` is JSON Schema 2020-12 of its arguments."""

    name: str
    description: str
    schema: Args
