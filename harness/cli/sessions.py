"""`harness sessions`: what was run here, and whether its record is whole."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from harness.cli import options

sessions = typer.Typer(help="What was run, and its record.", no_args_is_help=True)

_Named = Annotated[str, typer.Argument(metavar="SESSION", help="Its name, or a part of it.")]


@sessions.command("list")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, newest first.")] = 20,
    as_json: options.Json = False,
) -> None:
    """The newest sessions first."""
    from dataclasses import asdict

    from harness.library import History

    found = History(options.configured(context).state).summaries(limit)
    if as_json:
        print(json.dumps([asdict(each) for each in found], ensure_ascii=True))
        return
    if not found:
        print("no sessions yet; `harness run` or `harness exec` makes one", file=sys.stderr)
        return
    from harness.cli.table import print_table
    from harness.cli.words import moment

    print_table(
        ("session", "started", "end", "turns", "files", "task"),
        [
            (
                each.session,
                moment(each.started) if each.started else "",
                each.fault or each.end,
                str(each.turns),
                str(each.changed),
                each.task.split("\n")[0][:200],
            )
            for each in found
        ],
    )


@sessions.command()
def show(context: typer.Context, session: _Named, as_json: options.Json = False) -> None:
    """Everything a session recorded, as it looked while it ran, or as JSON Lines."""
    from harness.cli.outlet import outlet
    from harness.cli.watching import watched
    from harness.library import History

    records = History(options.configured(context).state).records(session)
    with outlet() as out, watched(out, as_json=as_json) as watch:
        for record in records:
            watch.observe(record)


@sessions.command()
def verify(context: typer.Context, session: _Named, as_json: options.Json = False) -> None:
    """Check a session's chain of records and its stored patches. Exit code 1 for a fault.

    The chain shows accidents and edits by others; its owner could make a new one.
    """
    from harness.approvers.escape import visible
    from harness.library import History

    faults = History(options.configured(context).state).verify(session)
    if as_json:
        print(json.dumps({"session": session, "whole": not faults, "faults": list(faults)}))
    elif not faults:
        print("whole: every record follows from the one before, and every patch is there")
    else:
        for fault in faults:
            print(visible(fault))
    if faults:
        raise typer.Exit(1)
