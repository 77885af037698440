"""What stands before each turn: checkpoints, budgets, and the reasons to stop."""

from __future__ import annotations

from harness.errors import FileFault, WireProtocol
from harness.loop.parts import Parts
from harness.values.changes import Changes
from harness.values.events import BudgetNotice, ChangedFile, NoteAdded, Warned, WorkspaceChanged
from harness.values.outcomes import LoopStop
from harness.values.wire import Branch

TRUNCATED_LIMIT = 2
"""A reply cut off by its token limit is continued this often in a row."""

PAUSED_LIMIT = 5
"""A paused reply is taken up again this often in a row."""

NOTICES = (50, 80, 95)
"""Shares of a budget, in percent, at which the model is told."""


async def maintain(parts: Parts) -> LoopStop | None:
    """Why to stop here, or None to go on. Raises `WireProtocol` for a reply that never ends."""
    await checkpoint(parts)
    return await _after_reply(parts) or await _budgets(parts)


async def checkpoint(parts: Parts) -> None:
    """Put the patch so far into the log, if a tool ran since the last one and it moved."""
    session = parts.session
    seen = session.state.effects
    if seen == session.checked:
        return
    session.checked = seen
    try:
        changes = await parts.workspace.changes(parts.box)
    except FileFault as fault:
        await session.append(Warned("checkpoint_failed", str(fault)))
        return
    known = session.state.changed
    if known is None and not (changes.files or changes.notes):
        return
    event = _on_record(changes, await session.log.put_blob(changes.patch))
    if event != known:
        await session.append(event)


def _on_record(changes: Changes, digest: str) -> WorkspaceChanged:
    files = tuple(
        ChangedFile(c.path, c.action, c.added, c.removed, tuple(sorted(c.flags)))
        for c in changes.files
    )
    return WorkspaceChanged(digest, files, changes.ignored, changes.notes)


async def _after_reply(parts: Parts) -> LoopStop | None:
    state = parts.session.state
    match state.branch:
        case Branch.FINAL:
            return LoopStop.COMPLETED
        case Branch.REFUSED:
            return LoopStop.REFUSED
        case Branch.OUT_OF_TIME:
            return LoopStop.MAX_DURATION
        case Branch.TRUNCATED:
            if state.streak > TRUNCATED_LIMIT:
                return LoopStop.MAX_OUTPUT_TOKENS
            await _note(
                parts, "Your reply was cut off at its token limit; nothing of it ran. Go on."
            )
        case Branch.EMPTY:
            if state.streak > 1:
                return LoopStop.UNSTRUCTURED
            await _note(parts, "Your reply was empty. Call a tool, or answer in words to finish.")
        case Branch.PAUSED if state.streak > PAUSED_LIMIT:
            raise WireProtocol(f"the model paused {state.streak} times in a row")
        case _:
            pass
    return None


async def _budgets(parts: Parts) -> LoopStop | None:
    """Equality binds; a bound that cannot be checked stops by that name."""
    state, budgets = parts.session.state, parts.budgets
    if budgets.output_tokens is not None:
        if state.known_requests < state.requests:
            return LoopStop.BUDGET_UNVERIFIABLE
        if state.output_tokens >= budgets.output_tokens:
            return LoopStop.MAX_OUTPUT_TOKENS
    if budgets.turns is not None and state.turns >= budgets.turns:
        return LoopStop.MAX_TURNS
    left = parts.remaining()
    if left is not None and left <= 0:
        return LoopStop.MAX_DURATION
    await _notices(parts)
    return None


async def _notices(parts: Parts) -> None:
    state, budgets = parts.session.state, parts.budgets
    used: dict[str, tuple[float, float | None]] = {
        "turns": (state.turns, budgets.turns),
        "time": (parts.elapsed(), budgets.duration),
        "output tokens": (state.output_tokens, budgets.output_tokens),
    }
    for name, (spent, bound) in used.items():
        reached = [n for n in NOTICES if bound and spent * 100 >= n * bound]
        if reached and (name, reached[-1]) not in state.notices:
            await parts.session.append(BudgetNotice(name, reached[-1]))


async def _note(parts: Parts, text: str) -> None:
    await parts.session.append(NoteAdded("loop", text))
