"""What one run is made of."""

from __future__ import annotations

from dataclasses import dataclass

from harness.loop.session import Session
from harness.ports import Approver, Clock, OutputSink, Policy, Sandbox, Tools, Wire, Workspace
from harness.values.limits import Budgets


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a run, each behind its port.

    `session` is the log and its fold; `sink` sees the live output of commands.
    """

    session: Session
    wire: Wire
    policy: Policy
    tools: Tools
    box: Sandbox
    workspace: Workspace
    approver: Approver
    clock: Clock
    budgets: Budgets
    system: str
    sink: OutputSink | None = None

    def elapsed(self) -> float:
        """Seconds of the run so far; without the waiting for a person, if one is there."""
        return self.session.elapsed(attended=self.policy.attended)

    def remaining(self) -> float | None:
        """Seconds left of the wall clock; None where it has no bound."""
        bound = self.budgets.duration
        return None if bound is None else bound - self.elapsed()
