"""From a call to something that may run, or to the reason why not."""

from __future__ import annotations

from dataclasses import dataclass

from harness.loop.arguments import fault_in
from harness.loop.parts import Parts
from harness.ports import Tool
from harness.values.calls import Args, Call, Status
from harness.values.decisions import Decision, Effect, Match
from harness.values.events import (
    ApprovalRequired,
    ApprovalResolved,
    OperationSeen,
    Reason,
    ToolResolved,
)
from harness.values.operations import Links, Operation
from harness.values.wire import Branch

_ROWS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Runnable:
    """A call that was judged and allowed. `execute` runs exactly this."""

    call: Call
    tool: Tool
    args: Args
    links: Links
    decision: Decision


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that will not run; `text` tells the model why, and what it may do instead."""

    call: Call
    status: Status
    text: str


async def resolve(call: Call, parts: Parts) -> Runnable | Refused:
    """Known tool, valid arguments, operations, judgement, and a person where one is needed.

    The decision is in the log when this returns. Raises `SandboxError` when the box cannot
    say where a path leads.
    """
    if parts.session.state.branch is not Branch.TOOL_CALLS:
        return Refused(
            call, Status.NOT_STARTED, "not started: the reply did not end as one that calls tools"
        )
    tool = parts.tools.get(call.tool)
    if tool is None:
        known = ", ".join(f"`{name}`" for name in parts.tools)
        return await _invalid(call, f"there is no tool `{call.tool}`; the tools are {known}", parts)
    if call.args is None:
        return await _invalid(call, "the arguments are not a JSON object", parts)
    if fault := fault_in(call.args, tool.spec):
        return await _invalid(call, fault, parts)
    return await _judge(call, tool, call.args, parts)


async def _judge(call: Call, tool: Tool, args: Args, parts: Parts) -> Runnable | Refused:
    draft = parts.policy.lower(call)
    links: Links = await parts.box.resolve_links(draft.paths) if draft.paths else {}
    decision = parts.policy.judge(draft, links)
    await parts.session.append(_on_record(call, decision), durable=True)
    if decision.effect is Effect.DENY:
        return Refused(call, Status.DENIED, refusal(decision))
    if decision.effect is Effect.ASK and (words := await _ask(call, decision, parts)) is not None:
        return Refused(call, Status.DENIED, words)
    return Runnable(call, tool, args, links, decision)


async def _ask(call: Call, decision: Decision, parts: Parts) -> str | None:
    """None when approved, else the refusal for the model."""
    await parts.session.append(ApprovalRequired(call.id))
    asked = parts.clock.monotonic()
    answer = await parts.approver.ask(call, decision)
    waited = parts.clock.monotonic() - asked
    await parts.session.append(
        ApprovalResolved(call.id, answer.approved, answer.decided_by, waited), durable=True
    )
    if answer.approved:
        return None
    said = f": {answer.comment}" if answer.comment else ""
    return f"denied by {answer.decided_by}{said}. Do not try the same by another way."


def refusal(decision: Decision) -> str:
    """A denial in words a model can act on: which rows say no and why, and what else to do."""
    rows = [m for m in decision.matches if m.effect is Effect.DENY] or list(decision.matches)
    said = "; ".join(_row(match) for match in rows[:_ROWS_SHOWN])
    seen = ", ".join(dict.fromkeys(f"{o.op.value} ({o.risk.word})" for o in decision.operations))
    return f"denied by policy ({said}): {decision.advice or f'it resolves to {seen}'}"


def _row(match: Match) -> str:
    """A table's or a ceiling's reason stands in the advice; a row's own is the author's words."""
    written = match.why and match.source.startswith(("rule:", "floor:"))
    return f"{match.source}: {match.why}" if written else match.source


async def _invalid(call: Call, text: str, parts: Parts) -> Refused:
    reason = Reason(effect="deny", source="refused:invalid", why=text)
    await parts.session.append(
        ToolResolved(call_id=call.id, tool=call.tool, effect="deny", reasons=(reason,))
    )
    return Refused(call, Status.INVALID, text)


def _on_record(call: Call, decision: Decision) -> ToolResolved:
    return ToolResolved(
        call_id=call.id,
        tool=call.tool,
        effect=decision.effect.word,
        operations=tuple(_seen(o) for o in decision.operations),
        reasons=tuple(
            Reason(m.effect.word, m.source, m.why, m.file, m.line) for m in decision.matches
        ),
        advice=decision.advice,
    )


def _seen(operation: Operation) -> OperationSeen:
    return OperationSeen(
        op=operation.op.value,
        risk=operation.risk.word,
        reason=operation.reason,
        program=operation.program,
        argv=operation.argv,
        paths=tuple(p.path for p in operation.paths),
        hosts=tuple(h.host if h.port is None else f"{h.host}:{h.port}" for h in operation.hosts),
    )
