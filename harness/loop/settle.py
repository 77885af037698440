"""The one way out of a run: every call answered, one last record, the error passed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from harness.errors import HarnessError, SandboxError, SandboxLost, SessionStorage
from harness.loop.maintain import checkpoint
from harness.loop.parts import Parts
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
        state = self.parts.session.state
        totals = Totals(
            turns=state.turns,
            requests=state.requests,
            unknown_requests=state.requests - state.known_requests,
            input=state.input_tokens,
            output=state.output_tokens,
            seconds=round(self.parts.elapsed(), 3),
            tool_calls=state.calls,
            denied=state.denied,
        )
        return Outcome(self.stop, state.text, totals)


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
        if not isinstance(fault, SandboxError):
            await _last_checkpoint(ending.parts)
    finally:
        await session.append(_last_record(ending, fault), durable=True)


async def _last_checkpoint(parts: Parts) -> None:
    try:
        await checkpoint(parts)
    except SandboxError as fault:
        await parts.session.append(Warned("checkpoint_failed", str(fault)))


def _unanswered(call_id: str, tool: str, started: bool) -> ToolCompleted:
    if started:
        text = "interrupted while it ran: it may have had effects"
        return ToolCompleted(call_id, tool, Status.INTERRUPTED.value, text)
    return ToolCompleted(call_id, tool, Status.NOT_STARTED.value, "not started: the run ended")


def _last_record(ending: Ending, fault: BaseException | None) -> Finished | Failed:
    if fault is None or isinstance(fault, asyncio.CancelledError):
        outcome = ending.outcome()
        totals = outcome.totals
        return Finished(
            stop=outcome.stop.value,
            text=outcome.text,
            turns=totals.turns,
            requests=totals.requests,
            unknown_requests=totals.unknown_requests,
            input_tokens=totals.input,
            output_tokens=totals.output,
            tool_calls=totals.tool_calls,
            denied=totals.denied,
            seconds=totals.seconds,
        )
    return failed(fault)


def failed(fault: BaseException) -> Failed:
    """The last record of a run that broke, by the name of what broke it."""
    kind = fault.kind if isinstance(fault, HarnessError) else LoopError.INTERNAL.value
    evidence = fault.evidence if isinstance(fault, SandboxLost) else ()
    return Failed(error=kind, text=str(fault) or type(fault).__name__, evidence=evidence)
