"""`harness diff`: the patch of a session."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options

if TYPE_CHECKING:
    from rich.text import Text

Session = Annotated[
    str | None,
    typer.Argument(help="A session, or a part of its name; the latest of the repository."),
]

_STYLES = (("+++", "bold"), ("---", "bold"), ("+", "green"), ("-", "red"), ("@@", "cyan"))


def diff(
    context: typer.Context,
    session: Session = None,
    repo: options.Repo = options.HERE,
    stat: Annotated[bool, typer.Option("--stat", help="Names and counts, not the patch.")] = False,
) -> None:
    """Show what a session changed, with a word beside each file to look at twice.

    On a terminal, characters that cannot be seen or that steer it are shown as <U+XXXX>; piped,
    it is the patch byte for byte.
    """
    from harness.approvers.escape import visible
    from harness.cli.card import changed_files, left_out
    from harness.cli.newest import newest
    from harness.cli.screen import make_console, terminal_width
    from harness.cli.unread import unread_in
    from harness.library import History

    history = History(options.configured(context).state)
    name = session or newest(history, repo)
    if words := unread_in(history.records(name)):
        print(f"harness: {visible(words)}", file=sys.stderr)
    changed, patch = history.changes(name)
    if not stat and not sys.stdout.isatty():
        sys.stdout.buffer.write(patch)
        sys.stdout.flush()
        return
    console = make_console()
    for row in changed_files(changed.files):
        console.print(row)
    for row in left_out(changed, terminal_width()):
        console.print(row)
    if not stat:
        console.print()
        for line in patch.decode("utf-8", "replace").split("\n")[:-1]:
            console.print(_line(line))


def _line(line: str) -> Text:
    from rich.text import Text

    from harness.approvers.escape import visible

    indent, tabs = line[:1], line[1:].replace("\t", "    ")
    style = next((style for start, style in _STYLES if line.startswith(start)), "")
    if line.startswith("diff --git"):
        style = "bold"
    return Text(visible(indent + tabs), style)
