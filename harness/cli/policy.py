"""`harness policy`: files of rules, checked and explained."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from harness.cli import options
from harness.errors import PolicyError, UserError

if TYPE_CHECKING:
    from harness.policy.checking import Finding
    from harness.values.calls import Call
    from harness.values.decisions import Decision
    from harness.wiring.policies import LoadedPolicy

policy = typer.Typer(help="Files of rules, checked and explained.", no_args_is_help=True)


@policy.command()
def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files, or built-in names.")
    ],
    as_json: options.Json = False,
) -> None:
    """Read each policy file as a run would, and name what is wrong with it or only odd.

    Exit code 2 if there is an error. Rows with an error still count on the safe side: an allow
    is dropped, an ask or a deny covers more. A fault of the whole file, such as broken YAML,
    ends the check there.
    """
    from dataclasses import asdict

    found = {str(file): _findings(file) for file in files}
    if as_json:
        print(json.dumps([asdict(each) for rows in found.values() for each in rows]))
    else:
        for file, rows in found.items():
            _told(file, rows)
    if any(each.severity == "error" for rows in found.values() for each in rows):
        raise typer.Exit(2)


def _findings(path: Path) -> list[Finding]:
    from harness.policy.checking import Finding, check
    from harness.wiring.policies import beside, built_in, policy_file, surroundings

    known = built_in()
    try:
        named = str(path) in known and not path.exists()
        source = known[str(path)] if named else policy_file(path)
    except PolicyError as fault:
        return [Finding("error", str(path), None, None, "file", fault.message)]
    return check([source], surroundings(), built_in=known, resolve=beside)


def _told(file: str, rows: list[Finding]) -> None:
    from harness.cli.screen import make_console, terminal_width
    from harness.cli.wrapping import paragraph

    console = make_console()
    styles = {"error": "bold red", "warning": "yellow", "note": "dim"}
    for row in rows:
        numbers = [str(n) for n in (row.line, row.column) if n is not None]
        place = ":".join([row.file or file, *numbers])
        text = f"{place}: {row.severity}: {row.message} [{row.code}]"
        console.print(paragraph(text, 0, terminal_width(), styles[row.severity]))
        if row.hint:
            console.print(paragraph(row.hint, 2, terminal_width(), "dim"))
    if not any(row.severity == "error" for row in rows):
        console.print(paragraph(f"{file}: ok", 0, terminal_width()))


@policy.command(context_settings={"allow_interspersed_args": False})
def explain(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="CMD...", help="A command; one word alone is a line of shell."),
    ] = None,
    tool: Annotated[str, typer.Option(metavar="NAME", help="A tool other than shell.")] = "shell",
    args: Annotated[
        str | None, typer.Option(metavar="JSON", help="The tool's arguments, an object.")
    ] = None,
    attended: Annotated[
        bool, typer.Option("--attended", help="As if a person were there to ask.")
    ] = False,
    repo: options.Repo = options.HERE,  # noqa: ARG001 - `configured` reads it
    policy: options.Policy = None,  # noqa: ARG001 - `configured` reads it
    mode: options.Mode = None,  # noqa: ARG001 - `configured` reads it
    as_json: options.Json = False,
) -> None:
    """Say what a call would do, how it is judged, and why. Nothing runs.

    There is no box here, so links count as what they are called. Exit code: 0 whatever the
    verdict (`--json` has it as `effect`), 2 wrong usage or a policy that cannot be read.
    """
    from time import perf_counter

    from harness.wiring.policies import load_policy

    call = _call(command or [], tool, args)
    loaded = load_policy(options.configured(context, attended=attended))
    begun = perf_counter()
    draft = loaded.gate.lower(call)
    lowered = perf_counter()
    decision = loaded.gate.judge(draft, {path: path for path in draft.paths})
    seconds = {"lower": lowered - begun, "judge": perf_counter() - lowered}
    if as_json:
        print(json.dumps(_plain(loaded, decision, seconds)))
    else:
        _show(loaded, decision, seconds)


def _call(command: list[str], tool: str, args: str | None) -> Call:
    """Raises `UserError` for both or neither of a command and arguments."""
    from harness.values.calls import Call

    if (args is None) == (not command):
        raise UserError("give a command after `--`, or `--tool NAME --args JSON`")
    if args is None:
        text = command[0] if len(command) == 1 else shlex.join(command)
        return Call("explain", "shell", {"command": text})
    try:
        given: object = json.loads(args)
    except (ValueError, RecursionError) as fault:
        raise UserError(f"`--args` is no JSON: {fault}") from None
    if not isinstance(given, dict):
        raise UserError('`--args` is no JSON object, such as {"path": "a"}')
    return Call("explain", tool, cast("dict[str, object]", given), args)


def _plain(
    loaded: LoadedPolicy, decision: Decision, seconds: Mapping[str, float]
) -> dict[str, object]:
    return {
        "effect": decision.effect.word,
        "policy": loaded.gate.name,
        "mode": loaded.gate.mode,
        "operations": [
            {
                "op": o.op.value,
                "risk": o.risk.word,
                "reason": o.reason,
                "program": o.program,
                "argv": list(o.argv),
                "paths": [{"path": p.path, "access": p.access.value} for p in o.paths],
                "hosts": [{"host": h.host, "port": h.port} for h in o.hosts],
            }
            for o in decision.operations
        ],
        "matches": [
            {
                "effect": m.effect.word,
                "source": m.source,
                "why": m.why,
                "file": m.file,
                "line": m.line,
            }
            for m in decision.matches
        ],
        "advice": decision.advice,
        "faults": list(loaded.faults),
        "seconds": dict(seconds),
    }


def _show(loaded: LoadedPolicy, decision: Decision, seconds: Mapping[str, float]) -> None:
    from harness.approvers.terminal import operation_line
    from harness.cli.screen import make_console, terminal_width
    from harness.cli.wrapping import paragraph

    console = make_console()
    width = terminal_width()
    styles = {"allow": "bold green", "ask": "bold yellow", "deny": "bold red"}
    word = decision.effect.word
    console.print(paragraph(word, 0, width, styles[word]))
    gate = loaded.gate
    mode = "" if gate.mode == gate.name else f", mode {gate.mode}"
    console.print(paragraph(f"by {gate.name}{mode}; nothing was run", 0, width, "dim"))
    console.print("it would")
    for operation in decision.operations:
        console.print(paragraph(operation_line(operation), 2, width))
    console.print("because")
    for match in decision.matches:
        place = f" ({match.file}:{match.line})" if match.file else ""
        why = f": {match.why}" if match.why else ""
        row = f"{match.effect.word} {match.source}{place}{why}"
        console.print(paragraph(row, 2, width))
    if decision.advice:
        console.print("instead")
        console.print(paragraph(decision.advice, 2, width))
    for fault in loaded.faults:
        console.print(paragraph(f"! {fault}", 0, width, "yellow"))
    times = ", ".join(f"{step} {value * 1e6:,.0f} µs" for step, value in seconds.items())
    console.print(paragraph(times, 0, width, "dim"))
