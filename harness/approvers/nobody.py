"""The approver that stands for absence."""

from __future__ import annotations

from harness.ports import Approval
from harness.values.calls import Call
from harness.values.decisions import Decision


class DenyAll:
    """Nobody is there to ask, so the answer is no."""

    name = "nobody"

    async def ask(self, call: Call, decision: Decision) -> Approval:
        del call, decision
        return Approval(approved=False, decided_by=self.name, comment="nobody is there to ask")
