"""Fixture files of policies: calls and the verdicts they must get, judged in memory.

The keys of a file and of a row are described in `docs/policy.md`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import Field, ValidationError

from harness.errors import PolicyError
from harness.operations.lower import Surroundings
from harness.operations.paths import normal
from harness.policy.files import Fault, LayerName, PolicySource, describe
from harness.policy.gate import Gate
from harness.policy.grammar import Name, Strict
from harness.policy.grants import compile_grant
from harness.policy.judging import Situation
from harness.policy.layering import load
from harness.policy.source import read_source
from harness.values.calls import Call
from harness.values.decisions import Decision, Effect
from harness.values.limits import WORKSPACE

MAX_LINKS = 40


class _CallModel(Strict):
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)


class _LinkModel(Strict):
    link: str


class _Defaults(Strict):
    policy: str = "ask-before-write"
    attended: bool = True
    cwd: str = WORKSPACE


class CaseModel(Strict):
    id: Name
    shell: str | None = None
    call: _CallModel | None = None
    policy: str | None = None
    attended: bool | None = None
    cwd: str | None = None
    files: Mapping[str, str | _LinkModel] = Field(default_factory=dict)
    rules: tuple[Any, ...] = ()
    floor: tuple[Any, ...] = ()
    grants: tuple[dict[str, Any], ...] = ()
    labels: frozenset[Literal["private", "untrusted"]] = frozenset()
    layer: LayerName = "user"
    expect: Literal["allow", "ask", "deny", "not-allow"]
    why: str = ""
    source: str = ""
    gap: str = ""


class _FileModel(Strict):
    defaults: _Defaults = _Defaults()
    cases: tuple[CaseModel, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One row with its file's defaults applied."""

    row: CaseModel
    policy: str
    attended: bool
    cwd: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """`faults` are rows of the case that could not be loaded as written."""

    case: Case
    decision: Decision
    faults: tuple[Fault, ...] = ()

    @property
    def ok(self) -> bool:
        expect, effect = self.case.row.expect, self.decision.effect
        return effect is not Effect.ALLOW if expect == "not-allow" else effect.word == expect


def read_cases(text: str | bytes, file: str) -> tuple[Case, ...]:
    """Raises `PolicyError` with file and line."""
    located = read_source(text, file)
    try:
        model = _FileModel.model_validate(located.value)
    except ValidationError as error:
        message, line = describe(error, located)
        raise PolicyError(message, file=file, line=line) from None
    return tuple(
        Case(
            row,
            row.policy if row.policy is not None else model.defaults.policy,
            model.defaults.attended if row.attended is None else row.attended,
            row.cwd if row.cwd is not None else model.defaults.cwd,
        )
        for row in model.cases
    )


def run_case(case: Case, around: Surroundings, built_in: Mapping[str, PolicySource]) -> Outcome:
    """Judge one row in a tree of its own. Raises `PolicyError` for an unknown policy."""
    base = built_in.get(case.policy)
    if base is None:
        raise PolicyError(f"the row `{case.row.id}` names the unknown policy `{case.policy}`")
    around = replace(around, places=replace(around.places, cwd=case.cwd))
    rules = load([base, *_extra(case.row)], around, built_in=built_in)
    grants = tuple(_grant(at, fields, around) for at, fields in enumerate(case.row.grants))
    gate = Gate(rules, Situation(attended=case.attended, labels=case.row.labels, grants=grants))
    draft = gate.lower(_call(case.row))
    tree = {
        _below(path, around.places.root): content.link
        for path, content in case.row.files.items()
        if isinstance(content, _LinkModel)
    }
    links = {path: resolve(path, tree) for path in draft.paths}
    return Outcome(case, gate.judge(draft, links), rules.faults)


def _below(path: str, root: str) -> str:
    return normal(path if path.startswith("/") else f"{root}/{path}")


def _grant(at: int, fields: Mapping[str, Any], around: Surroundings) -> Any:
    rest = {key: value for key, value in fields.items() if key != "scope"}
    return compile_grant(f"grant-{at}", rest, str(fields.get("scope", "session")), around.places)


def _call(row: CaseModel) -> Call:
    if row.call is not None:
        return Call(row.id, row.call.tool, row.call.args)
    if row.shell is None:
        raise PolicyError(f"the row `{row.id}` has neither `shell` nor `call`")
    return Call(row.id, "shell", {"command": row.shell})


def _extra(row: CaseModel) -> Sequence[PolicySource]:
    if not row.rules and not row.floor:
        return ()
    text = json.dumps(
        {"version": 1, "name": "case", "rules": list(row.rules), "floor": list(row.floor)}
    )
    return (PolicySource(row.layer, "case", text, f"{row.id} (rows)"),)


def resolve(path: str, links: Mapping[str, str]) -> str:
    """The real path in a tree that has only these links (absolute path to target)."""
    todo = [part for part in path.split("/") if part][::-1]
    done: list[str] = []
    followed = 0
    while todo:
        part = todo.pop()
        if part == "..":
            if done:
                done.pop()
            continue
        if part == ".":
            continue
        target = links.get("/" + "/".join((*done, part)))
        if target is None:
            done.append(part)
            continue
        followed += 1
        if followed > MAX_LINKS:
            return "/proc/unresolved/" + path.strip("/")
        if target.startswith("/"):
            done.clear()
        todo.extend([step for step in target.split("/") if step][::-1])
    return "/" + "/".join(done)
