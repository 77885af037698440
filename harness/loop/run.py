"""One run: the page to read first.

A run is a loop around a log. Whatever happens is appended to the log before anything is done
about it, and what a run knows is a fold over the log, so a log tells the whole story.

    assemble   the log so far  →  the exact bytes of one request
    call       those bytes     →  one finished reply, or an error
    resolve    a call          →  `Runnable`, judged and allowed, or `Refused`
    execute    a `Runnable`    →  its output, from inside the box
    append     the result      →  the log

`maintain` stands before each turn: it keeps budgets and checkpoints and names the reason to
stop. `settle` stands around it all: on every way out, by whatever error, each call that is
still open gets its one result, and the log its one last record.
"""

from __future__ import annotations

from harness.loop.append import append
from harness.loop.assemble import assemble
from harness.loop.call import call
from harness.loop.execute import batches, execute
from harness.loop.maintain import maintain
from harness.loop.parts import Parts
from harness.loop.resolve import resolve
from harness.loop.settle import settle
from harness.values.events import UserMessage
from harness.values.outcomes import Outcome


async def run(task: str, parts: Parts) -> Outcome:
    """Work on a task until something says stop.

    Raises `HarnessError` for what is not an outcome: the model's side failed, the box was
    lost, the log cannot be written. Cancelling it stops a running tool and settles the log.
    """
    async with settle(parts) as ending:
        await parts.session.append(UserMessage(task), durable=True)
        while (stop := await maintain(parts)) is None:
            request = assemble(parts)
            reply = await call(request, parts)
            for batch in batches(reply, parts):
                resolved = [await resolve(each, parts) for each in batch]
                results = await execute(resolved, parts)
                await append(results, parts)
        ending.stop = stop
    return ending.outcome()
