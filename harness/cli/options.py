"""Options that several commands take, and what they say to the configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from harness.errors import ConfigError

if TYPE_CHECKING:
    from harness.library import Config

Repo: TypeAlias = Annotated[
    Path, typer.Option(metavar="DIR", help="The repository; it is copied, never changed.")
]
Policy: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="read-only, ask-before-write, full-auto, bench, or a file. If not given: "
        "ask-before-write where a person is asked, else full-auto.",
    ),
]
Mode: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="The policy's table; its own name if not given.")
]
Image: TypeAlias = Annotated[
    str | None, typer.Option(metavar="REF", help="Image of the box; the built-in one if not given.")
]
Runtime: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="The engine's runtime, such as runc or runsc.")
]
Backend: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="docker, or local: no isolation at all.")
]
Env: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A variable that enters the box; recorded by name only."),
]
Cpus: TypeAlias = Annotated[str | None, typer.Option(metavar="N", help="Processors of the box.")]
Memory: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Of processes, such as 2GiB. The workspace, /tmp and other files of the box are "
        "kept in memory on top of it; `harness doctor --config` shows each.",
    ),
]
Pids: TypeAlias = Annotated[str | None, typer.Option(metavar="N", help="Processes at once.")]
Disk: TypeAlias = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Room for the workspace.")
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="For programs: JSON on stdout, and nothing else there.")
]

HERE = Path()
"""The default repository: the folder the command was typed in."""

_SETTINGS: Mapping[str, str] = {
    "policy": "policy",
    "mode": "mode",
    "model": "model",
    "image": "image",
    "runtime": "runtime",
    "backend": "backend",
    "cpus": "limits.cpus",
    "memory": "limits.memory",
    "pids": "limits.pids",
    "disk": "limits.disk",
    "max_turns": "budgets.turns",
    "max_output_tokens": "budgets.output_tokens",
    "max_turn_tokens": "budgets.turn_tokens",
    "duration": "budgets.duration",
    "command_timeout": "timeout",
}
"""Names of parameters to names of settings."""

_SPELLED = {"duration": "timeout", "command_timeout": "timeout"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")


def configured(context: typer.Context, *, attended: bool = False) -> Config:
    """The configuration of a command, from its parameters and everything below them.

    Raises `ConfigError` that names the option as it was typed.
    """
    from harness.library import load_config

    given = context.params
    options = {
        setting: _checked(name, setting, given[name])
        for name, setting in _SETTINGS.items()
        if given.get(name) is not None
    }
    repo = Path(given.get("repo") or ".")
    env = _environment(given.get("env") or [])
    return load_config(repo, options, os.environ, attended=attended, env=env)


def _checked(name: str, setting: str, value: object) -> object:
    from harness.library import SETTINGS

    option = "--" + _SPELLED.get(name, name).replace("_", "-")
    try:
        SETTINGS[setting](value)
    except ValueError as fault:
        raise ConfigError(f"`{option}`: {fault}") from None
    return value


def _environment(names: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        if not _NAME.fullmatch(name):
            shown = name.partition("=")[0]
            raise ConfigError(
                f"`--env {shown}` takes a name alone; export the variable and give its name"
            )
        if name not in os.environ:
            raise ConfigError(f"`--env {name}`: this variable is not set")
        found[name] = os.environ[name]
    return found
