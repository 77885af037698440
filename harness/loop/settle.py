"""The one way out of a run: every call answered, one last record, the error passed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from harness.errors import HarnessError, SandboxError, SandboxLost, SessionStorage
from harness.loop.maintain import checkpoint
from harness.loop.parts import Parts
from harness.loop.session import Session
from harness.values.calls import Status
from harness.values.events import Failed, Finished, ToolCompleted, Warned
from harness.values.outcomes import LoopError, LoopStop, Outcome
from harness.values.usage import Totals


@dataclass(slots=True)
class Ending:
    """How the run ends; filled in on the way out."""

    parts: Parts
    stop: LoopStop = LoopStop.CANCELLED

    def outcome(self) -> Outcome:
        """The outcome of a run that stopped."""
        attended = self.parts.policy.attended
        return outcome(self.parts.session, self.stop, attended=attended)


def outcome(session: Session, stop: LoopStop, *, attended: bool = False) -> Outcome:
    """What a session adds up to when it stops here."""
    state = session.state
    totals = Totals(
        turns=state.turns,
        requests=state.requests,
        unknown_requests=state.requests - state.known_requests,
        input=state.input_tokens,
        output=state.output_tokens,
        seconds=round(session.elapsed(attended=attended), 3),
        tool_calls=state.calls,
        denied=state.denied,
    )
    return Outcome(stop, state.text, totals)


@asynccontextmanager
async def settle(parts: Parts) -> AsyncGenerator[Ending, None]:
    """Settle the log on every way out, then let the error, if there is one, go on.

    A second cancellation while settling skips what takes long, not the last record.
    """
    ending = Ending(parts)
    try:
        yield ending
    except SessionStorage:
        raise  # nothing more can be written, and what was written is whole
    except BaseException as fault:
        await _close(ending, fault)
        raise
    await _close(ending, None)


async def _close(ending: Ending, fault: BaseException | None) -> None:
    session = ending.parts.session
    for call in tuple(session.state.open.values()):
        await session.append(_unanswered(call.id, call.tool, call.id in session.state.started))
    try:
        if not isinstance(fault, SandboxLost):
            await _last_checkpoint(ending.parts)
    finally:
        await session.append(last_record(ending.outcome(), fault), durable=True)


async def _last_checkpoint(parts: Parts) -> None:
    """The patch as it is once nothing runs any more, whatever was left in the background."""
    session = parts.session
    if not session.state.effects:
        return
    session.checked = 0
    try:
        await parts.box.quiet()
        await checkpoint(parts)
    except SandboxError as fault:
        await parts.session.append(Warned("checkpoint_failed", str(fault)))
    except asyncio.CancelledError:
        words = "stopped before the last changes were read; the patch is the one before them"
        await parts.session.append(Warned("checkpoint_cut", words))
        raise


def _unanswered(call_id: str, tool: str, started: bool) -> ToolCompleted:
    if started:
        text = "interrupted while it ran: it may have had effects"
        return ToolCompleted(call_id, tool, Status.INTERRUPTED.value, text)
    return ToolCompleted(call_id, tool, Status.NOT_STARTED.value, "not started: the run ended")


def last_record(ended: Outcome, fault: BaseException | None) -> Finished | Failed:
    """The last record of a run that stopped or was cancelled, or that broke."""
    if fault is not None and not isinstance(fault, asyncio.CancelledError):
        kind = fault.kind if isinstance(fault, HarnessError) else LoopError.INTERNAL.value
        evidence = fault.evidence if isinstance(fault, SandboxLost) else ()
        return Failed(error=kind, text=str(fault) or type(fault).__name__, evidence=evidence)
    totals = ended.totals
    return Finished(
        stop=ended.stop.value,
        text=ended.text,
        turns=totals.turns,
        requests=totals.requests,
        unknown_requests=totals.unknown_requests,
        input_tokens=totals.input,
        output_tokens=totals.output,
        tool_calls=totals.tool_calls,
        denied=totals.denied,
        seconds=totals.seconds,
    )
