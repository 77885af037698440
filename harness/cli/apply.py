"""`harness apply`: a session's patch onto the repository."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import options
from harness.cli.diff import Session


def apply(
    context: typer.Context,
    session: Session = None,
    repo: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to apply it; where the session came from."),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="A held-back file, or all below a folder, all the same."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check that it fits; change nothing.")
    ] = False,
) -> None:
    """Apply a session's patch, all of it or nothing; a trial comes first in any case.

    Hooks, CI files, compiled code, links that lead out and their like are held back unless they
    are named with --include, now or in a second `harness apply`: what is there already is left
    as it is. A target that has moved on since the session is refused.
    """
    from harness.approvers.escape import visible
    from harness.cli.newest import newest
    from harness.cli.words import many
    from harness.library import History

    history = History(options.configured(context).state)
    name = session or newest(history, repo or options.HERE)
    target = repo if repo and session else history.repo(name)
    wanted = frozenset(include or [])
    report = history.apply(name, target, include=wanted, dry_run=True)
    if report.applied and not dry_run:
        report = history.apply(name, target, include=wanted, dry_run=False)
    if report.refused:
        _listed("refused; nothing was applied:", report.refused)
        raise typer.Exit(1)
    done = "would change" if dry_run else "changed"
    print(f"{done} {many(len(report.applied), 'file')} in {visible(str(target))}")
    for path in report.applied:
        print(f"  {visible(path)}")
    if report.already:
        print(f"already as the patch leaves them: {many(len(report.already), 'file')}")
    if report.held:
        _listed("held back (`--include PATH` applies one all the same):", report.held)


def _listed(head: str, paths: Sequence[tuple[str, str]]) -> None:
    from harness.approvers.escape import visible

    print(head)
    for path, reason in paths:
        print(f"  {visible(path)}: {visible(reason)}")
