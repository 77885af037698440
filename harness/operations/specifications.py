"""Command specifications: what each option and operand of a program reads, writes, runs.

`specification_files` reads them from YAML; their format is described in `docs/policy.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from harness.values.operations import Op

InText: TypeAlias = Op | Literal["operands"]
"""The class a name adds to text that cannot be read; `operands`: judge what follows it."""


class Does(StrEnum):
    """What becomes of an operand or of an option's value."""

    DATA = "data"
    READS = "reads"
    WRITES = "writes"
    DELETES = "deletes"
    URL = "url"
    HOST = "host"
    CODE = "code"
    REVISION = "revision"
    """A revision of git, a path, or both as `REVISION:PATH`: what may be a path is read."""
    GOAL = "goal"
    """Data, unless it assigns or expands something: then it is code."""


class Takes(StrEnum):
    """Whether an option has a value: `optional` means only when it is attached."""

    NOTHING = "nothing"
    OPTIONAL = "optional"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Operands:
    """`first` are the leading operands one by one, `last` the final one if there are more,
    `rest` all others (None: no other operand is allowed). `default` stands where none is
    given, `op` is added when any is."""

    first: tuple[Does, ...] = ()
    rest: Does | None = None
    last: Does | None = None
    default: str | None = None
    op: Op | None = None
    tree: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """An option with all its spellings."""

    spellings: frozenset[str]
    takes: Takes
    does: Does
    op: Op | None
    tree: bool
    replaces: Does | None
    fills: bool


@dataclass(frozen=True, slots=True)
class Command:
    """One program or subcommand, compiled. `long` are its long spellings, sorted, which may be
    abbreviated while no other begins alike."""

    op: Op
    words: bool
    options: Mapping[str, Option]
    long: tuple[str, ...]
    operands: Operands
    subcommands: Mapping[str, Command]
    lists: bool
    stops: bool
    unread: bool
    in_text: InText | None


def spellings(command: Command, flag: str) -> frozenset[str]:
    """All spellings of an option anywhere in a command or its subcommands, itself included."""
    option = command.options.get(flag)
    found = option.spellings if option is not None else frozenset({flag})
    for sub in command.subcommands.values():
        found |= spellings(sub, flag)
    return found


@dataclass(frozen=True, slots=True)
class Commands:
    """All specifications, by program name. `in_text` are those whose name alone adds a class
    to text that cannot be read: program words (with subcommand) to the class."""

    by_name: Mapping[str, Command] = field(default_factory=lambda: dict[str, Command]())
    in_text: Mapping[str, tuple[tuple[tuple[str, ...], InText], ...]] = field(
        default_factory=lambda: dict[str, tuple[tuple[tuple[str, ...], InText], ...]]()
    )
