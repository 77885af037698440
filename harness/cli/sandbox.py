"""`harness sandbox`: the boxes on the engine."""

from __future__ import annotations

import asyncio
import json
import sys

import typer

from harness.cli import options

sandbox = typer.Typer(help="The boxes on the engine.", no_args_is_help=True)

_ID = 12


@sandbox.command("list")
def list_(as_json: options.Json = False) -> None:
    """Boxes of every harness on this engine, started or not."""
    import time
    from dataclasses import asdict

    from harness.library import list_boxes

    rows = asyncio.run(list_boxes())
    if as_json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    if not rows:
        print("no boxes", file=sys.stderr)
        return
    from harness.cli.table import print_table
    from harness.cli.words import moment

    now = time.time()
    print_table(
        ("container", "session", "state", "owner", "ends by", "image"),
        [
            (
                row.container[:_ID],
                row.run,
                row.abandoned(now) or ("in use" if row.leased else row.state),
                row.life.value,
                moment(row.deadline) if row.deadline is not None else "unknown",
                row.image,
            )
            for row in rows
        ],
    )


@sandbox.command()
def reap(as_json: options.Json = False) -> None:
    """Remove boxes whose owner is dead or whose time is over. Exit code 1 if one stays."""
    from dataclasses import asdict

    from harness.approvers.escape import visible
    from harness.library import reap_boxes

    done = asyncio.run(reap_boxes())
    if as_json:
        print(json.dumps([asdict(each) for each in done]))
    elif not done:
        print("nothing to remove", file=sys.stderr)
    else:
        for each in done:
            end = "removed" if each.gone else "still there"
            print(f"{end}  {each.row.container[:_ID]}  {visible(each.reason)}")
    if not all(each.gone for each in done):
        raise typer.Exit(1)
