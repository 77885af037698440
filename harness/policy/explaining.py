"""One call under a policy: every stage with its time, every operation, every matching row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.operations.paths import normal
from harness.policy.gate import Gate
from harness.policy.judging import judge_table, read_operations, row_match
from harness.policy.layering import Ladder
from harness.policy.rows import Row, Setting
from harness.values.calls import Call
from harness.values.decisions import Decision, Match
from harness.values.operations import Draft, Links, Operation


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of judgement and how long it took, in microseconds."""

    name: str
    micros: float


@dataclass(frozen=True, slots=True)
class Explained:
    """One operation with everything that matches it, in the order of precedence. `stands` are
    reasons that count: floors, and the first rule or the table; `passed` come after it."""

    operation: Operation
    stands: tuple[Match, ...]
    passed: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    draft: Draft
    decision: Decision
    stages: tuple[Stage, ...]
    operations: tuple[Explained, ...]


def explain(gate: Gate, call: Call, links: Links | None, clock: Callable[[], float]) -> Explanation:
    """Judge and say how. `links` None stands for a tree without links; `clock` gives seconds
    that only grow. Pure but for the clock."""
    begin = clock()
    draft = gate.lower(call)
    read = clock()
    known = links if links is not None else {path: normal(path) for path in draft.paths}
    decision = gate.judge(draft, known)
    judged = clock()
    operations = tuple(_explained(gate, draft, known)) if draft.refused is None else ()
    stages = (
        Stage("read the call", (read - begin) * 1e6),
        Stage("judge", (judged - read) * 1e6),
    )
    return Explanation(draft, decision, stages, operations)


def _explained(gate: Gate, draft: Draft, links: Links) -> Iterator[Explained]:
    rules, situation = gate.rules, gate.situation
    setting = Setting(draft.call, rules.mode, situation.attended, situation.agent, links)
    for operation in read_operations(rules, draft, links):
        floors = [
            row_match(row)
            for row in rules.floors.candidates(operation, setting.links)
            if row.matches(operation, setting)
        ]
        matching = list(_matching(rules.ladder, operation, setting))
        if rules.project is not None:
            floors.extend(row_match(r) for r in _matching(rules.project, operation, setting))
        table = judge_table(rules.ladder, setting, operation).reasons
        if not matching:
            yield Explained(operation, (*floors, *table), ())
            continue
        first, *others = matching
        rest = (*(row_match(row) for row in others), *table)
        yield Explained(operation, (*floors, row_match(first)), rest)


def _matching(ladder: Ladder, operation: Operation, setting: Setting) -> Iterator[Row]:
    return (
        row
        for row in ladder.rules.candidates(operation, setting.links)
        if row.matches(operation, setting)
    )
