"""`harness doctor`: what works here, and what each setting is."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options

if TYPE_CHECKING:
    from harness.library import Config
    from harness.sandbox.doctor import Finding

_STYLES = {"ok": "", "warn": "yellow", "bad": "bold red", "unverified": "dim"}
_STATE = len("unverified")
_SIZES = {f"limits.{name}" for name in ("memory", "disk", "scratch", "shm", "output")}
_SPANS = {"timeout", "limits.wall", "budgets.duration"}


def doctor(
    context: typer.Context,
    repo: options.Repo = options.HERE,  # noqa: ARG001 - `configured` reads it
    config: Annotated[
        bool, typer.Option("--config", help="Every setting with its value and origin instead.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Hold this machine's engine against what a box needs. Exit code 1 if something is broken."""
    if config:
        _config(options.configured(context), as_json=as_json)
        return
    from harness.library import doctor as examine

    rows = asyncio.run(examine())
    if as_json:
        print(json.dumps([_plain(row.name, row.value, row.state, row.hint) for row in rows]))
    else:
        _show(rows)
    if any(row.state.value == "bad" for row in rows):
        raise typer.Exit(1)


def _show(rows: Sequence[Finding]) -> None:
    """One line a finding with its state, and below it the next step where there is one."""
    from harness.cli.screen import make_console, terminal_width
    from harness.cli.wrapping import paragraph

    console = make_console()
    room = max(len(row.name) for row in rows)
    width = terminal_width()
    for row in rows:
        style = _STYLES.get(row.state.value, "")
        line = f"{row.state.value:<{_STATE}}  {row.name:<{room}}  {row.value}"
        console.print(paragraph(line, 0, width, style))
        if row.hint:
            console.print(paragraph(row.hint, _STATE + 2, width, style or "dim"))


def _plain(name: str, value: str, state: str, hint: str) -> dict[str, str]:
    return {"name": name, "value": value, "state": str(state), "hint": hint}


def _config(config: Config, *, as_json: bool) -> None:
    values = settings(config)
    if as_json:
        rows = {n: {"value": v, "origin": o} for n, (v, o) in values.items()}
        json.dump(rows, sys.stdout)
        print()
        return
    from harness.cli.table import print_table

    print_table(("setting", "value", "from"), [(n, v, o) for n, (v, o) in values.items()])


def settings(config: Config) -> Mapping[str, tuple[str, str]]:
    """Every setting by its dotted name: its value as text, and where it was written."""
    from harness.library import SETTINGS

    found: dict[str, tuple[str, str]] = {}
    for name in SETTINGS:
        group, _, field = name.rpartition(".")
        value: object = getattr(getattr(config, group) if group else config, field)
        found[name] = (_shown(name, value), config.origins.get(name, "default"))
    return found


def _shown(name: str, value: object) -> str:
    from harness.cli.words import duration, size

    if value in (None, ""):
        return "none"
    if name in _SIZES and isinstance(value, int):
        return size(value)
    if name in _SPANS and isinstance(value, int | float):
        return duration(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
