"""One call that a person made, judged and run like any other."""

from __future__ import annotations

from harness.loop.append import append
from harness.loop.execute import execute
from harness.loop.parts import Parts
from harness.loop.resolve import Refused, resolve
from harness.loop.settle import settle
from harness.values.calls import Call
from harness.values.events import Message, UserMessage
from harness.values.outcomes import LoopStop, Outcome
from harness.values.usage import TokenUsage
from harness.values.wire import Branch


async def run_one(call: Call, task: str, parts: Parts) -> tuple[Outcome, Refused | None]:
    """The outcome, and the refusal if it did not run. Raises as `run` does."""
    message = Message(Branch.TOOL_CALLS.value, "", (call,), "typed", TokenUsage())
    async with settle(parts) as ending:
        await parts.session.append(UserMessage(task))
        await parts.session.append(message, durable=True)
        resolved = await resolve(call, parts)
        await append(await execute([resolved], parts), parts)
        refused = resolved if isinstance(resolved, Refused) else None
        ending.stop = LoopStop.REFUSED if refused else LoopStop.COMPLETED
    return ending.outcome(), refused
