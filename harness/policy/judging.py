"""The verdict on a draft, in the stated order.

floors (the strictest of all layers) and the first matching rule, or else the table → for each
operation the higher of the two → the highest over operations and compositions → grants → the
ceiling of an unattended run → an ask with nobody to ask is a denial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.operations.compositions import SENDING, compose, follow, unresolved
from harness.policy.grants import Grant
from harness.policy.layering import Ladder, Rules
from harness.policy.patterns import special
from harness.policy.rows import Row, Setting
from harness.values.decisions import Decision, Effect, Match
from harness.values.operations import Draft, Links, Op, Operation, Risk


@dataclass(frozen=True, slots=True)
class Verdict:
    """The effect on one operation, why, and the row that decided if it was a rule."""

    operation: Operation
    effect: Effect
    reasons: tuple[Match, ...]
    row: Row | None = None
    floored: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """What a run knows beside its rules."""

    attended: bool = True
    agent: str = ""
    labels: frozenset[str] = frozenset()
    grants: tuple[Grant, ...] = ()
    pauses: bool = False


def judge(rules: Rules, draft: Draft, links: Links, situation: Situation) -> Decision:
    """Decide. Pure: equal arguments, equal decision."""
    if draft.refused is not None:
        return refuse(draft.refused, draft.operations)
    lost = unresolved(draft.operations, links)
    if lost is not None:
        return refuse(f"the links of `{lost[:200]}` could not be resolved", draft.operations)
    if not draft.operations:
        return refuse("the call resolves to no operation", ())
    setting = Setting(draft.call, rules.mode, situation.attended, situation.agent, links)
    operations = read_operations(rules, draft, links)
    verdicts = [judge_operation(rules, setting, operation) for operation in operations]
    verdicts = [judge_label(rules, setting, situation, verdict) for verdict in verdicts]
    verdicts = [apply_grants(situation, setting, verdict) for verdict in verdicts]
    verdicts = [apply_ceiling(rules, situation, verdict) for verdict in verdicts]
    verdicts = [apply_absence(situation, verdict) for verdict in verdicts]
    reasons = [match for verdict in verdicts for match in verdict.reasons]
    reasons.extend(search_text(rules, setting, draft))
    effect = max(match.effect for match in reasons)
    return Decision(
        effect=effect,
        matches=order_reasons(reasons),
        operations=tuple(verdict.operation for verdict in verdicts),
    )


def refuse(reason: str, operations: tuple[Operation, ...]) -> Decision:
    """What cannot be read or resolved is denied in every policy."""
    return Decision(Effect.DENY, (Match(Effect.DENY, f"refused:{reason}"),), operations)


def read_operations(rules: Rules, draft: Draft, links: Links) -> tuple[Operation, ...]:
    """The draft's operations with links followed, and what they compose to."""
    followed = follow(draft.operations, links, rules.around.places)
    return followed + compose(followed)


def judge_operation(rules: Rules, setting: Setting, operation: Operation) -> Verdict:
    """The maximum of floors, ladder, and a project that is not trusted."""
    verdict = judge_ladder(rules.ladder, setting, operation)
    if operation.op is Op.NET_READ and not _lists_host(verdict):
        raised = replace(operation, op=Op.NET_SEND, reason=f"{operation.reason} (not listed)")
        verdict = judge_ladder(rules.ladder, setting, raised)
    if rules.project is not None:
        verdict = raise_by_project(rules.project, setting, verdict)
    return apply_floors(rules, setting, verdict)


def _lists_host(verdict: Verdict) -> bool:
    """A host is listed when the row that decides allows it by name."""
    return (
        verdict.effect is Effect.ALLOW
        and verdict.row is not None
        and verdict.row.matcher.host is not None
    )


def judge_ladder(ladder: Ladder, setting: Setting, operation: Operation) -> Verdict:
    """The first matching rule or, if none, the mode's table."""
    weak: Row | None = None
    for row in ladder.rules.candidates(operation, setting.links):
        if not row.matches(operation, setting):
            continue
        if _too_weak(row, operation):
            weak = weak or row
            continue
        return _strictest(_by_row(operation, row), operation, weak)
    return _strictest(judge_table(ladder, setting, operation), operation, weak)


def _too_weak(row: Row, operation: Operation) -> bool:
    """An allow or ask that names no class never lowers a critical operation."""
    return (
        operation.risk is Risk.CRITICAL
        and row.effect is not Effect.DENY
        and not row.matcher.names_class
    )


def _strictest(verdict: Verdict, operation: Operation, weak: Row | None) -> Verdict:
    if weak is None or weak.effect <= verdict.effect:
        return verdict
    return _by_row(operation, weak)


def _by_row(operation: Operation, row: Row) -> Verdict:
    return Verdict(operation, row.effect, (row_match(row),), row)


def row_match(row: Row) -> Match:
    return Match(row.effect, row.source, row.why, row.file, row.line)


def judge_table(ladder: Ladder, setting: Setting, operation: Operation) -> Verdict:
    """A class beats a level, a level covers only itself, and what nothing decides is denied."""
    found = ladder.cell(operation.op, operation.risk)
    if found is None:
        match = Match(
            Effect.DENY, "refused:undecided", f"no rule and no table decides `{operation.op}`"
        )
        return Verdict(operation, Effect.DENY, (match,))
    key, cell = found
    if cell.effect is Effect.ALLOW and special(operation):
        match = Match(
            Effect.DENY,
            "refused:private-address",
            "an address of a special-purpose range needs an allow row with `private: true`",
        )
        return Verdict(operation, Effect.DENY, (match,))
    match = Match(
        cell.effect, f"table:{setting.mode}/{key}", operation.reason, cell.file, cell.line
    )
    return Verdict(operation, cell.effect, (match,))


def raise_by_project(project: Ladder, setting: Setting, verdict: Verdict) -> Verdict:
    """A project that is not trusted is judged apart and only raises."""
    operation = verdict.operation
    for row in project.rules.candidates(operation, setting.links):
        if row.matches(operation, setting):
            return _raised(verdict, row_match(row))
    found = project.cell(operation.op, operation.risk)
    if found is None:
        return verdict
    key, cell = found
    source = f"table:{setting.mode}/{key}"
    return _raised(verdict, Match(cell.effect, source, operation.reason, cell.file, cell.line))


def _raised(verdict: Verdict, match: Match) -> Verdict:
    if match.effect <= verdict.effect:
        return verdict
    return Verdict(verdict.operation, match.effect, (match, *verdict.reasons), None)


def apply_floors(rules: Rules, setting: Setting, verdict: Verdict) -> Verdict:
    """Floor rows of every layer; nothing later lowers them."""
    found = [
        row_match(row)
        for row in rules.floors.candidates(verdict.operation, setting.links)
        if row.matches(verdict.operation, setting)
    ]
    if not found:
        return verdict
    effect = max(match.effect for match in found)
    return Verdict(
        verdict.operation,
        max(effect, verdict.effect),
        (*found, *verdict.reasons),
        verdict.row if effect < verdict.effect else None,
        floored=True,
    )


def judge_label(rules: Rules, setting: Setting, situation: Situation, verdict: Verdict) -> Verdict:
    """Sending, while private and untrusted content are both in the session, is `send.secret`
    unless an allow row names the host together with that class."""
    if verdict.operation.op not in SENDING or not {"private", "untrusted"} <= situation.labels:
        return verdict
    operation = replace(
        verdict.operation,
        op=Op.SEND_SECRET,
        reason=f"{verdict.operation.reason}, while the session holds private and untrusted content",
    )
    raised = judge_operation(rules, setting, operation)
    row = raised.row
    named = row is not None and row.matcher.host is not None and row.matcher.ops is not None
    if raised.effect is Effect.ALLOW and not named:
        return replace(verdict, operation=operation)
    return raised


def apply_grants(situation: Situation, setting: Setting, verdict: Verdict) -> Verdict:
    """A grant turns an ask into an allow, never against a floor."""
    if verdict.effect is not Effect.ASK or verdict.floored:
        return verdict
    for grant in situation.grants:
        if grant.covers(verdict.operation, setting):
            match = Match(Effect.ALLOW, f"grant:{grant.scope}/{grant.id}", "granted before")
            return replace(verdict, effect=Effect.ALLOW, reasons=(match,))
    return verdict


def apply_ceiling(rules: Rules, situation: Situation, verdict: Verdict) -> Verdict:
    """Unattended, nothing above the ceiling runs, unless an org or user row that decided says
    `unattended: true`."""
    if situation.attended or verdict.operation.risk <= rules.ceiling:
        return verdict
    if verdict.row is not None and verdict.row.unattended:
        return verdict
    cell = rules.ceiling_cell
    match = Match(
        Effect.DENY,
        f"ceiling:{rules.ceiling.word}",
        f"`{verdict.operation.op}` is {verdict.operation.risk.word}, and nobody is attending",
        cell.file if cell is not None else "",
        cell.line if cell is not None else 0,
    )
    first = verdict.effect is not Effect.DENY
    reasons = (match, *verdict.reasons) if first else (*verdict.reasons, match)
    return replace(verdict, effect=Effect.DENY, reasons=reasons)


def apply_absence(situation: Situation, verdict: Verdict) -> Verdict:
    """With nobody to ask, an ask is a denial, unless the run stops for a person."""
    if situation.attended or situation.pauses or verdict.effect is not Effect.ASK:
        return verdict
    match = Match(
        Effect.DENY, "ceiling:unattended", "it would be asked, and nobody is there to ask"
    )
    return replace(verdict, effect=Effect.DENY, reasons=(match, *verdict.reasons))


def search_text(rules: Rules, setting: Setting, draft: Draft) -> Sequence[Match]:
    """Deny rows whose program, path or host stands in text that could not be read."""
    if not draft.text:
        return ()
    found = rules.denied.named_in(draft.text, rules.around, setting)
    return [row_match(row) for row in found]


def order_reasons(reasons: Sequence[Match]) -> tuple[Match, ...]:
    """Each reason once, the deciding ones first."""
    unique = list(dict.fromkeys(reasons))
    unique.sort(key=lambda match: match.effect, reverse=True)
    return tuple(unique)
