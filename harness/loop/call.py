"""One request to the model, and its one finished reply."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from harness.errors import WireProtocol, WireTransient
from harness.loop.parts import Parts
from harness.values.events import Message, RequestSent, TurnStarted
from harness.values.wire import Branch, Delta, Reply, Request


async def call(request: Request, parts: Parts) -> Reply:
    """Send a request and log the reply.

    Nothing of an attempt without its terminal event is kept. When the wall clock runs out
    first, the reply is of branch `out_of_time` and empty. Raises `WireError`.
    """
    await parts.session.append(TurnStarted())
    await parts.session.append(RequestSent(digest=request.digest, size=len(request.body)))
    reply = Reply(Branch.OUT_OF_TIME)
    clock = asyncio.timeout(parts.remaining())
    with suppress(TimeoutError):
        async with clock:
            reply = await _read(request, parts)
    if reply.branch is Branch.OUT_OF_TIME and not clock.expired():
        raise WireTransient("the model's side timed out")
    reply = _own_ids(reply, parts.session.state.calls)
    await parts.session.append(
        Message(
            branch=reply.branch.value,
            text=reply.text,
            calls=reply.calls,
            stop=reply.stop,
            usage=reply.usage,
        ),
        durable=True,
    )
    return reply


async def _read(request: Request, parts: Parts) -> Reply:
    reply: Reply | None = None
    async for event in parts.wire.stream(request):
        match event:
            case Delta():
                continue
            case Reply():
                if reply is not None:
                    raise WireProtocol("the model's reply ended twice")
                reply = event
    if reply is None:
        raise WireProtocol("the model's reply had no end")
    if (reply.branch is Branch.TOOL_CALLS) and not reply.calls:
        raise WireProtocol("the model announced tool calls and made none")
    return reply


def _own_ids(reply: Reply, before: int) -> Reply:
    """Give calls ids of our own: a provider's may be empty, repeated or reused."""
    calls = tuple(replace(c, id=f"call-{n}") for n, c in enumerate(reply.calls, before + 1))
    return replace(reply, calls=calls)
