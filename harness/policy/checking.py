"""What is wrong with policy files, and what is only odd, for their authors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.errors import PolicyError
from harness.operations.lower import Surroundings
from harness.policy.covering import covers
from harness.policy.files import PolicyFile, PolicySource
from harness.policy.layering import Resolve, Rules, load
from harness.policy.patterns import TokenPattern
from harness.policy.rows import Matcher, Row
from harness.values.decisions import Effect
from harness.values.operations import RISK, Op, Risk

TOOLS = frozenset(
    {"shell", "read_file", "write_file", "edit_file", "list_files", "search", "fetch"}
)
_CARRIERS = frozenset(
    {
        "sh", "bash", "dash", "zsh", "env", "sudo", "xargs", "eval", "exec", "busybox", "timeout",
        "nohup", "nice", "python", "python3", "perl", "ruby", "node", "php", "awk", "find", "ssh",
        "docker", "npx", "uvx",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """`error` stops a row or a file from counting as written, `warning` is likely a mistake,
    `note` is worth knowing. Lines and columns are 1-based, None where there is none."""

    severity: Literal["error", "warning", "note"]
    file: str
    line: int | None
    column: int | None
    code: str
    message: str
    hint: str = ""


def check(
    sources: Sequence[PolicySource],
    around: Surroundings,
    *,
    built_in: Mapping[str, PolicySource],
    resolve: Resolve | None = None,
) -> list[Finding]:
    """All findings about the files as they would be loaded together, errors first. Findings
    about built-in files that are only extended are left out."""
    try:
        rules = load(sources, around, built_in=built_in, resolve=resolve)
    except PolicyError as error:
        return [Finding("error", error.file or "", error.line, None, "file", error.message,
                        "nothing of this file counts until that is corrected")]  # fmt: skip
    findings: list[Finding] = []
    for file in rules.files:
        if file.source.layer == "built-in" and file.source not in sources:
            continue
        findings.extend(_faults(file))
        for rows in (file.rules, file.floor):
            findings.extend(_order(rows))
        for row in (*file.rules, *file.floor):
            findings.extend(_never(row, rules))
            findings.extend(_broad(row))
    findings.extend(_tables(rules))
    rank = {"error": 0, "warning": 1, "note": 2}
    return sorted(findings, key=lambda f: (rank[f.severity], f.file, f.line or 0))


def _at(
    row: Row, severity: Literal["error", "warning", "note"], code: str, text: str, hint: str
) -> Finding:
    return Finding(severity, row.file, row.line, None, code, f"`{row.id}` {text}", hint)


def _faults(file: PolicyFile) -> Iterator[Finding]:
    for fault in file.faults:
        yield Finding(
            "error", fault.file, fault.line, None, "row",
            f"`{fault.id}` cannot be loaded: {fault.message}",
            f"until it is corrected the row {_became(fault.became)}",
        )  # fmt: skip


def _became(text: str) -> str:
    return "is dropped" if text == "dropped" else text


def _order(rows: Sequence[Row]) -> Iterator[Finding]:
    """Rows that an earlier one in the same list always decides before."""
    for at, row in enumerate(rows[:2000]):
        for earlier in rows[:at]:
            if not covers(earlier, row):
                continue
            if earlier.effect is row.effect:
                yield _at(row, "warning", "shadowed",
                          f"adds nothing: `{earlier.id}` at line {earlier.line} already decides "
                          "the same", "remove one of the two")  # fmt: skip
            else:
                yield _at(row, "warning", "unreachable",
                          f"is never reached: `{earlier.id}` at line {earlier.line} matches all "
                          "it matches", f"move it above `{earlier.id}`")  # fmt: skip
            break


def _never(row: Row, rules: Rules) -> Iterator[Finding]:
    reason = _contradiction(row.matcher, rules)
    if reason:
        yield _at(row, "warning", "never-matches", f"can never match: {reason}",
                  "remove a field, or split the row")  # fmt: skip


def _contradiction(matcher: Matcher, rules: Rules) -> str:
    if matcher.ops is not None and matcher.risks is not None:
        levels = {RISK[op] for op in matcher.ops}
        if not levels & matcher.risks:
            return "no class of `op` has a level of `risk`"
    if matcher.command is not None:
        if matcher.tool is not None and not any(t in {"shell", "*"} for t in matcher.tool):
            return "`command` is for the tool `shell`"
        if matcher.server is not None or matcher.server_tool is not None:
            return "a call is a command or a tool of an MCP server, not both"
    if matcher.tool is not None and not any(_known(tool) for tool in matcher.tool):
        return f"no tool is called `{matcher.tool[0]}`"
    modes = {mode for file in rules.files for mode in (*file.tables, file.name)}
    if matcher.mode is not None and not any(
        mode in modes or any(c in mode for c in "*?[") for mode in matcher.mode
    ):
        return f"no mode is called `{matcher.mode[0]}`"
    return ""


def _known(tool: str) -> bool:
    return tool in TOOLS or tool.startswith("mcp:") or any(c in tool for c in "*?[")


def _broad(row: Row) -> Iterator[Finding]:
    if row.effect is not Effect.ALLOW:
        return
    reason = _breadth(row.matcher)
    if reason:
        yield _at(row, "warning", "over-broad", f"allows more than it seems: {reason}",
                  "name the programs, paths or hosts that are meant")  # fmt: skip


def _breadth(matcher: Matcher) -> str:
    for pattern in matcher.command or ():
        reason = _command_breadth(pattern)
        if reason:
            return reason
    if any(not p.parts or p.parts == ("**",) for p in matcher.path or ()):
        return "the `path` is the whole file system"
    if any(p.host == "*" for p in matcher.host or ()):
        return "the `host` is every host"
    if matcher.command or matcher.path or matcher.host or matcher.args or matcher.server:
        return ""
    risks = matcher.risks or frozenset(RISK[op] for op in matcher.ops or ())
    if any(risk >= Risk.CRITICAL for risk in risks):
        return "it covers every critical operation of its class"
    if matcher.ops is not None and Op.OPAQUE in matcher.ops:
        return "`opaque` is any text that could not be read"
    if matcher.ops is None and matcher.risks is None:
        return "it covers every operation but critical ones"
    return ""


def _command_breadth(pattern: TokenPattern) -> str:
    program = pattern.program
    if program is None:
        return f"the program `{pattern.tokens[0]}` is a pattern"
    if program in _CARRIERS and "**" in pattern.tokens:
        return f"`{program}` runs any other program"
    return ""


def _tables(rules: Rules) -> Iterator[Finding]:
    last = rules.files[0] if rules.files else None
    file = (last.source.path or last.source.name) if last is not None else ""
    undecided = [
        risk.word
        for risk in Risk
        if risk.word not in rules.ladder.table
        and any(op.value not in rules.ladder.table for op in Op if RISK[op] is risk)
    ]
    if undecided:
        yield Finding("note", file, None, None, "undecided",
                      f"the table of the mode `{rules.mode}` leaves {', '.join(undecided)} open",
                      "what no rule and no table decides is denied")  # fmt: skip
    if rules.ceiling_cell is None:
        yield Finding("warning", file, None, None, "no-ceiling",
                      "no file sets `ceiling`; unattended, only operations of level none run",
                      "add `ceiling: {unattended: medium}`")  # fmt: skip
