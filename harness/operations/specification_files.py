"""Specification files: YAML validated by pydantic, compiled once into `Commands`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, TypeAlias

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from harness.errors import PolicyError
from harness.operations.specifications import (
    Command,
    Commands,
    Does,
    InText,
    Operands,
    Option,
    Takes,
)
from harness.values.operations import Op


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _option(value: object) -> object:
    if value == "flag":
        return {}
    if value == "optional":
        return {"takes": "optional"}
    if isinstance(value, str):
        return {"takes": "value", "does": value}
    return value


class OptionModel(_Model):
    """`flag`, `optional`, or a word of `Does` as a short form; else these keys."""

    takes: Takes = Takes.NOTHING
    does: Does = Does.DATA
    op: Op | None = None
    tree: bool = False
    replaces: Does | None = None
    """Operands are treated so instead while this option is given."""
    fills: bool = False
    """The option stands for the first operand (`grep -e PATTERN`)."""


class OperandsModel(_Model):
    """`first` are the leading operands one by one, `last` the final one if there are more,
    `rest` all others (None: no other operand is allowed). `op` is added when any is given."""

    first: tuple[Does, ...] = ()
    rest: Does | None = None
    last: Does | None = None
    default: str | None = None
    op: Op | None = None
    tree: bool = False


def _operands(value: object) -> object:
    if value == "none":
        return {}
    return {"rest": value} if isinstance(value, str) else value


class CommandModel(_Model):
    op: Op = Op.INSPECT
    style: Literal["gnu", "words"] = "gnu"
    options: Mapping[str, Annotated[OptionModel, BeforeValidator(_option)]] = Field(
        default_factory=dict
    )
    operands: Annotated[OperandsModel, BeforeValidator(_operands)] = OperandsModel()
    subcommands: Mapping[str, CommandModel] = Field(default_factory=dict)
    lists: bool = False
    """Without a subcommand it only shows something; else a missing one is not understood."""
    stops: bool = False
    """Options end at the first operand; what follows belongs to another program."""
    unread: bool = False
    """The program runs others or is a language: what it does is opaque."""
    in_text: InText | None = None
    """The class its name adds to a text nobody could read; `operands`: judge what follows."""


class _Named(CommandModel):
    names: tuple[str, ...]


class _File(_Model):
    version: Literal[1]
    commands: tuple[_Named, ...]


SpecSource: TypeAlias = tuple[str, str]
"""File name and text of one specification file."""


def load_commands(sources: Iterable[SpecSource]) -> Commands:
    """Validate and compile. Raises `PolicyError` with the file and what is wrong."""
    by_name: dict[str, Command] = {}
    in_text: dict[str, tuple[tuple[tuple[str, ...], InText], ...]] = {}
    for file, text in sources:
        for named in _read(file, text).commands:
            compiled = _compile(named)
            words = tuple(_text_classes(compiled, ()))
            for name in named.names:
                if name in by_name:
                    raise PolicyError(f"`{name}` is specified twice", file=file)
                by_name[name] = compiled
                if words:
                    in_text[name] = words
    return Commands(by_name, in_text)


def _read(file: str, text: str) -> _File:
    try:
        return _File.model_validate(yaml.load(text, Loader=yaml.CSafeLoader))  # a safe loader, in C
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise PolicyError(f"no YAML: {error.problem}", file=file, line=line) from None
    except yaml.YAMLError as error:
        raise PolicyError(f"no YAML: {error}", file=file) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise PolicyError(f"{first['msg'].lower()} at `{place}`", file=file) from None


def _compile(model: CommandModel) -> Command:
    options: dict[str, Option] = {}
    for spelled, shape in model.options.items():
        spellings = frozenset(spelled.split())
        option = Option(
            spellings, shape.takes, shape.does, shape.op, shape.tree, shape.replaces, shape.fills
        )
        options.update(dict.fromkeys(spellings, option))
    return Command(
        op=model.op,
        words=model.style == "words",
        options=options,
        long=tuple(sorted(name for name in options if name.startswith("--"))),
        operands=Operands(**model.operands.model_dump()),
        subcommands={name: _compile(sub) for name, sub in model.subcommands.items()},
        lists=model.lists,
        stops=model.stops,
        unread=model.unread,
        in_text=model.in_text,
    )


def _text_classes(
    command: Command, path: tuple[str, ...]
) -> Iterable[tuple[tuple[str, ...], InText]]:
    if command.in_text is not None:
        yield path, command.in_text
    for name, sub in command.subcommands.items():
        yield from _text_classes(sub, (*path, *name.split()))
