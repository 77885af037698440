# ruff: noqa: ARG001 - typer makes options of parameters; `configured` reads them all
"""`harness exec`: one command in a box on a repository; no model."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.cli.stdin import standard_input
from harness.errors import HarnessError, UserError

if TYPE_CHECKING:
    from harness.cli.outlet import Outlet
    from harness.library import Harness, Observer
    from harness.values.commands import ExecResult, Input
    from harness.values.events import Record, ToolResolved, WorkspaceChanged

TIMED_OUT, REFUSED = 124, 126


def exec_(
    context: typer.Context,
    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="What to run.")],
    repo: options.Repo = options.HERE,
    policy: options.Policy = None,
    mode: options.Mode = None,
    command_timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="TIME", help="Such as 90s; then it is killed."),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Let everything through to the terminal, titles included.")
    ] = False,
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
    """Run one command in a box on a copy of the repository, judged by policy and recorded.

    What is piped in becomes its standard input. Exit code: the command's own; 124 killed at the
    time limit, 125 the box failed, 126 refused by policy, 128 and the signal, 2 wrong usage.
    """
    from harness.approvers.escape import visible
    from harness.cli.outlet import outlet
    from harness.cli.watching import json_lines
    from harness.library import Harness

    config = options.configured(context)
    stdin = standard_input()
    with outlet(raw=raw) as out:
        seen = _Seen(json_lines(out) if as_json else _notes(out))
        sink = None if as_json else out.sink
        harness = Harness(config, observer=seen.observe, sink=sink, progress=out.note)
        code = _until_stopped(harness, tuple(command), stdin, seen, out)
        if seen.unread:
            out.drain()
            print(f"harness: {visible(seen.unread)}", file=sys.stderr)
    raise typer.Exit(code)


class _Seen:
    """An observer that remembers what a person is told at the end, and passes everything on."""

    def __init__(self, further: Observer | None) -> None:
        self._further = further
        self.resolved: ToolResolved | None = None
        self.changed: WorkspaceChanged | None = None
        self.unread = ""
        self.session = ""
        self.limit = 0

    def observe(self, record: Record) -> None:
        from harness.cli.unread import unread
        from harness.values.events import RunStarted, ToolResolved, Warned, WorkspaceChanged

        self.session = record.session
        match record.event:
            case RunStarted(limits=limits):
                output = limits.get("output")
                self.limit = output if isinstance(output, int) else 0
            case ToolResolved() as resolved:
                self.resolved = resolved
            case WorkspaceChanged() as changed:
                self.changed = changed
            case Warned() as warning:
                self.unread = self.unread or unread(warning)
            case _:
                pass
        if self._further is not None:
            self._further(record)


def _notes(out: Outlet) -> Observer:
    """What a person should know beside the command's output: always what is wrong with the
    policy, and on a terminal what was left out of the box."""

    def observe(record: Record) -> None:
        from harness.cli.unread import unread
        from harness.values.events import Warned, WorkspaceLoaded

        match record.event:
            case Warned() as warning if not unread(warning):  # that is told at the end
                out.note(warning.text)
            case WorkspaceLoaded(notes=notes) if sys.stderr.isatty():
                for note in notes:
                    out.note(note)
            case _:
                pass

    return observe


def _refused(event: ToolResolved | None) -> None:
    from harness.cli.refusal import refusal
    from harness.cli.screen import make_console

    console = make_console(stderr=True)
    console.print("harness: refused by policy; nothing ran", style="bold red")
    for line in refusal(event, 2, max(console.width, 40)) if event else ():
        console.print(line)


def _until_stopped(
    harness: Harness, argv: tuple[str, ...], stdin: Input | None, seen: _Seen, out: Outlet
) -> int:
    from harness.cli.faults import EXEC_FAILED, tell
    from harness.cli.signals import Stopped, run_until_stopped

    try:
        report = run_until_stopped(lambda: harness.exec(argv, stdin))
    except Stopped as stopped:
        out.drain()
        _next(seen)
        return stopped.code
    except UserError:
        raise
    except HarnessError as fault:
        out.drain()
        tell(fault)
        return EXEC_FAILED
    out.drain()
    if report.refused is not None or report.result is None:
        _refused(seen.resolved)
        return REFUSED
    code, words = ending(report.result, seen.limit)
    if words:
        print(f"harness: {words}", file=sys.stderr)
    if sys.stderr.isatty():
        _next(seen)
    return code


def _next(seen: _Seen) -> None:
    """Which command shows what was changed."""
    from harness.cli.words import many

    if seen.changed and seen.changed.files:
        count = many(len(seen.changed.files), "file")
        print(f"harness: {count} changed: harness diff {seen.session}", file=sys.stderr)


def ending(result: ExecResult, limit: int) -> tuple[int, str]:
    """The exit code of a command that ran, and words where the code alone would mislead.

    `limit` is how much it was allowed to print, in bytes.
    """
    from harness.cli.faults import EXEC_FAILED
    from harness.cli.words import duration, many, size
    from harness.values.commands import ExitReason

    code = 128 + result.signal if result.signal is not None else (result.code or 0)
    match result.reason:
        case ExitReason.TIMEOUT:
            return TIMED_OUT, f"killed at the time limit, after {duration(result.usage.wall)}"
        case ExitReason.KEEPER_LOST:
            return EXEC_FAILED, "the command was killed with its supervisor; its code is not known"
        case ExitReason.OOM:
            return code or 128 + signal.SIGKILL, "killed: out of memory (see `--memory`)"
        case ExitReason.OUTPUT_LIMIT:
            return code or 128 + signal.SIGKILL, (
                f"killed: it printed more than {size(limit)} (the setting `limits.output`)"
            )
        case ExitReason.CANCELLED:
            return code or 128 + signal.SIGINT, "cancelled"
        case ExitReason.EXITED:
            left = result.left_running
            ended = f"{many(left, 'background process', 'background processes')} ended with the box"
            return code, ended if left else ""
