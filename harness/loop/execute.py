"""Running what was judged, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.loop.parts import Parts
from harness.loop.resolve import Refused, Runnable
from harness.ports import ToolContext
from harness.values.calls import Call, Status, ToolOutput
from harness.values.events import ToolCompleted, ToolStarted
from harness.values.wire import Reply

SIDE_BY_SIDE = 16
"""A reply may hold any number of calls; a box serves this many at once without strain."""


def batches(reply: Reply, parts: Parts) -> Iterator[tuple[Call, ...]]:
    """The calls of a reply in order: neighbours that only read together, at most `SIDE_BY_SIDE`
    of them, and every other one alone."""

    def read_only(call: Call) -> bool:
        tool = parts.tools.get(call.tool)
        return tool is not None and tool.read_only

    for together, calls in groupby(reply.calls, key=read_only):
        group = tuple(calls)
        step = SIDE_BY_SIDE if together else 1
        yield from (group[at : at + step] for at in range(0, len(group), step))


async def execute(
    resolved: Sequence[Runnable | Refused], parts: Parts
) -> tuple[ToolCompleted, ...]:
    """Run one batch, side by side if it holds more than one call; results in source order.

    Raises `SandboxError`: what goes wrong around a box is never a result. At the first error
    the rest of the batch is cancelled and waited for.
    """
    tasks = [asyncio.ensure_future(_one(each, parts)) for each in resolved]
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _one(resolved: Runnable | Refused, parts: Parts) -> ToolCompleted:
    call = resolved.call
    if isinstance(resolved, Refused):
        return ToolCompleted(call.id, call.tool, resolved.status.value, resolved.text)
    left = parts.remaining()
    if left is not None and left <= 0:
        text = "not started: this run's time is used up"
        return ToolCompleted(call.id, call.tool, Status.NOT_STARTED.value, text)
    effects = not resolved.tool.read_only
    await parts.session.append(ToolStarted(call.id, call.tool, effects), durable=effects)
    output = await resolved.tool.run(
        resolved.args, ToolContext(parts.box, resolved.links, left, call.id, parts.sink)
    )
    return _result(call, output)


def _result(call: Call, output: ToolOutput) -> ToolCompleted:
    text = output.text or "(no output)"
    return ToolCompleted(call.id, call.tool, output.status.value, text, output.facts)
