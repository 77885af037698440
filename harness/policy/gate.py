"""The policy of a run: reads calls and judges them. Satisfies `ports.Policy`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from harness.operations.lower import lower
from harness.policy.advice import advise
from harness.policy.grants import Grant
from harness.policy.judging import Situation, judge
from harness.policy.layering import Rules
from harness.values.calls import Call
from harness.values.decisions import Decision
from harness.values.operations import Draft, Links


@dataclass(frozen=True, slots=True)
class Gate:
    """Compiled rules in one situation; immutable: a changed situation is a new gate."""

    rules: Rules
    situation: Situation = field(default_factory=Situation)

    @property
    def name(self) -> str:
        return self.rules.name

    @property
    def mode(self) -> str:
        return self.rules.mode

    @property
    def attended(self) -> bool:
        return self.situation.attended

    def with_labels(self, labels: frozenset[str]) -> Gate:
        return replace(self, situation=replace(self.situation, labels=labels))

    def with_grants(self, grants: tuple[Grant, ...]) -> Gate:
        return replace(self, situation=replace(self.situation, grants=grants))

    def lower(self, call: Call) -> Draft:
        """Read a call into operations. Never raises for what a call holds."""
        return lower(call, self.rules.around)

    def judge(self, draft: Draft, links: Links) -> Decision:
        """`links` must have every path of `draft.paths`; one that is missing is a denial."""
        decision = judge(self.rules, draft, links, self.situation)
        return replace(decision, advice=advise(decision))
