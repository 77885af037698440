"""All commands. Each imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from harness import __version__
from harness.cli.apply import apply
from harness.cli.diff import diff
from harness.cli.doctor import doctor
from harness.cli.exec import exec_
from harness.cli.policy import policy
from harness.cli.run import run
from harness.cli.sandbox import sandbox
from harness.cli.sessions import sessions

app = typer.Typer(
    name="harness",
    help="Run AI agents on code nobody vouches for: judged, boxed, recorded, reviewed.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)


def _version(value: bool) -> None:
    if value:
        print(f"harness {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    del version


app.command(short_help="An agent on a task, in a box; a patch at the end.")(run)
app.command(
    "exec",
    short_help="One command in a box, without a model.",
    context_settings={"allow_interspersed_args": False},
)(exec_)
app.command(short_help="What a session changed.")(diff)
app.command(short_help="A session's changes onto the repository.")(apply)
app.add_typer(sessions, name="sessions")
app.add_typer(policy, name="policy")
app.add_typer(sandbox, name="sandbox")
app.command(short_help="What works here, and what each setting is.")(doctor)
