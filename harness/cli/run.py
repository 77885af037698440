# ruff: noqa: ARG001 - typer makes options of parameters; `configured` reads them all
"""`harness run`: an agent works on a task in a box."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.cli.watching import Watch
    from harness.library import Harness


def run(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="What is to be done.")],
    repo: options.Repo = options.HERE,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="provider/model, or scripted:FILE; else HARNESS_MODEL."),
    ] = None,
    policy: options.Policy = None,
    mode: options.Mode = None,
    approve: Annotated[
        str | None,
        typer.Option(
            metavar="ask|deny",
            help="Who answers what must be asked; a person if there is a terminal.",
        ),
    ] = None,
    max_turns: Annotated[
        str | None, typer.Option(metavar="N", help="Replies of the model.")
    ] = None,
    max_output_tokens: Annotated[
        str | None, typer.Option(metavar="N", help="Tokens the model writes, in all.")
    ] = None,
    max_turn_tokens: Annotated[
        str | None, typer.Option(metavar="N", help="Tokens the model writes in one reply.")
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option("--timeout", metavar="TIME", help="Of the whole run, such as 30m."),
    ] = None,
    env: options.Env = None,
    image: options.Image = None,
    runtime: options.Runtime = None,
    backend: options.Backend = None,
    cpus: options.Cpus = None,
    memory: options.Memory = None,
    pids: options.Pids = None,
    disk: options.Disk = None,
    as_json: options.Json = False,
) -> None:
    """Let an agent work on a task, in a box of its own; at the end there is a patch to review.

    Exit code: 0 completed, 3 stopped by a limit or a refusal, 1 broken, 2 wrong usage,
    130 or 143 stopped by a signal after settling.
    """
    from harness.cli.asking import approver, attended
    from harness.cli.outlet import outlet
    from harness.cli.watching import watched
    from harness.library import Harness

    person = attended(approve)
    config = options.configured(context, attended=person)
    with (
        outlet() as out,
        approver(out, person=person) as answers,
        watched(out, as_json=as_json) as watch,
    ):
        harness = Harness(config, approver=answers, observer=watch.observe, progress=out.note)
        code = _until_stopped(harness, task, watch)
    raise typer.Exit(code)


def _until_stopped(harness: Harness, task: str, watch: Watch) -> int:
    from harness.cli.signals import Stopped, run_until_stopped

    try:
        return run_until_stopped(lambda: harness.run(task)).outcome.exit_code
    except Stopped as stopped:
        return stopped.code
    except HarnessError as fault:
        if watch.told():
            return fault.exit_code
        raise
