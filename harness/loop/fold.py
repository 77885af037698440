"""From records to what a run knows. Equal logs give equal states."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.values.calls import Call, Result, Status
from harness.values.events import (
    ApprovalResolved,
    BudgetNotice,
    Event,
    Failed,
    Finished,
    Message,
    NoteAdded,
    Record,
    RequestSent,
    ToolCompleted,
    ToolStarted,
    TurnStarted,
    UserMessage,
    WorkspaceChanged,
)
from harness.values.items import AssistantTurn, Item, Note, UserText
from harness.values.wire import Branch


@dataclass(slots=True)
class State:
    """The fold of a log. Only `fold` writes to it.

    `open` holds the calls that have no result yet, in the order they were asked for, and
    `started` the ids among them that began. `streak` counts replies in a row of the same
    branch. `effects` counts tools that began and may change something. `known_requests`
    counts replies whose usage was reported. `changed` is the last checkpoint.
    """

    items: list[Item] = field(default_factory=list[Item])
    open: dict[str, Call] = field(default_factory=dict[str, Call])
    started: set[str] = field(default_factory=set[str])
    branch: Branch | None = None
    streak: int = 0
    text: str = ""
    turns: int = 0
    requests: int = 0
    known_requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    denied: int = 0
    waited: float = 0.0
    effects: int = 0
    changed: WorkspaceChanged | None = None
    notices: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    ended: bool = False


def fold(state: State, record: Record) -> None:
    """Add one record. Kinds that change nothing a run needs are passed over."""
    _conversation(state, record.event)
    _bookkeeping(state, record.event)


def _conversation(state: State, event: Event) -> None:
    """What the model will see."""
    match event:
        case UserMessage(text=text):
            state.items.append(UserText(text))
            state.branch, state.ended = None, False
        case NoteAdded(origin=origin, text=text):
            state.items.append(Note(origin, text))
        case BudgetNotice(budget=budget, used=used):
            state.notices.add((budget, used))
            state.items.append(Note("budget", f"{used} % of this run's {budget} is used up."))
        case Message() as message:
            _message(state, message)
        case ToolCompleted() as done:
            _completed(state, done)
        case _:
            pass


def _bookkeeping(state: State, event: Event) -> None:
    """What budgets and the way out need."""
    match event:
        case TurnStarted():
            state.turns += 1
        case RequestSent():
            state.requests += 1
        case ToolStarted(call_id=call_id, effects=effects):
            state.started.add(call_id)
            state.effects += effects
        case ApprovalResolved(waited=waited):
            state.waited += waited
        case WorkspaceChanged() as changed:
            state.changed = changed
        case Finished() | Failed():
            state.ended = True
        case _:
            pass


def _message(state: State, message: Message) -> None:
    branch = Branch(message.branch)
    state.streak = state.streak + 1 if branch is state.branch else 1
    state.branch = branch
    state.text = message.text
    state.items.append(AssistantTurn(message.text, message.calls))
    state.open.update((call.id, call) for call in message.calls)
    state.calls += len(message.calls)
    usage = message.usage
    if usage.input is not None and usage.output is not None:
        state.known_requests += 1
    state.input_tokens += sum(
        n or 0 for n in (usage.input, usage.cache_read, usage.cache_write, usage.cache_write_long)
    )
    state.output_tokens += usage.output or 0


def _completed(state: State, done: ToolCompleted) -> None:
    status = Status(done.status)
    state.open.pop(done.call_id, None)
    state.started.discard(done.call_id)
    state.denied += status is Status.DENIED
    state.items.append(Result(done.call_id, done.tool, status, done.text))
