"""The verdict on a call, with every reason for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from harness.values.operations import Operation, Risk


class Effect(IntEnum):
    """Verdicts, ordered; they combine by `max`."""

    ALLOW = 0
    ASK = 1
    DENY = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Match:
    """One reason.

    `source` is `floor|rule|grant:<layer>/<id>`, `table:<mode>/<key>`, `ceiling:<level>`,
    `refused:<reason>` or `person:<answer>`; `file` and `line` say where it is written.
    """

    effect: Effect
    source: str
    why: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to happen to a call.

    `matches` are all reasons, the deciding ones first. `advice` says what would change the
    verdict and what may be done instead, in words for a model or a person.
    """

    effect: Effect
    matches: tuple[Match, ...]
    operations: tuple[Operation, ...]
    advice: str = ""

    @property
    def risk(self) -> Risk:
        return max((o.risk for o in self.operations), default=Risk.NONE)
