"""How a run ends: a stop is a value, an error is a fault by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness.values.usage import Totals


class LoopStop(StrEnum):
    """Ends that are no fault."""

    COMPLETED = "completed"
    MAX_TURNS = "max_turns"
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    MAX_DURATION = "max_duration"
    MAX_COST = "max_cost"
    CONTEXT_WINDOW = "context_window"
    BUDGET_UNVERIFIABLE = "budget_unverifiable"
    CANCELLED = "cancelled"
    STUCK = "stuck"
    REFUSED = "refused"
    UNSTRUCTURED = "unstructured"
    HOOK_HALT = "hook_halt"
    AWAITING_APPROVAL = "awaiting_approval"
    STEP_PAUSED = "step_paused"


class LoopError(StrEnum):
    """Faults, by who can mend them."""

    CONFIG = "config"
    CREDENTIAL = "credential"
    QUOTA = "quota"
    TRANSPORT = "transport"
    PROTOCOL = "protocol"
    WIRE_MISMATCH = "wire_mismatch"
    SESSION_CORRUPT = "session_corrupt"
    SESSION_LOCKED = "session_locked"
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run that was not a fault. `text` is the model's last answer."""

    stop: LoopStop
    text: str = ""
    totals: Totals = field(default_factory=Totals)

    @property
    def exit_code(self) -> int:
        """0 completed, 3 any other stop."""
        return 0 if self.stop is LoopStop.COMPLETED else 3
