"""Whatever a model does and wherever a run is cut, the log stays true."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError, SandboxLost
from harness.loop.fold import State, fold
from harness.loop.parts import Parts
from harness.loop.run import run
from harness.sessions.codec import decode, digest, encode
from harness.values.calls import Args, Status, ToolOutput
from harness.values.decisions import Effect
from harness.values.events import Failed, Finished, Message, Record, ToolCompleted, ToolStarted
from harness.values.limits import Budgets
from tests.fakes import FixedApprover, FixedPolicy, FunctionTool, call_of, parts, script

UNBOUND = Budgets(turns=None, duration=None)
TOOLS = ("read", "write", "slow", "lose", "denied", "asked", "gone")


def toolset() -> list[FunctionTool]:
    async def work(args: Args) -> ToolOutput:
        return ToolOutput(Status.OK, "ok", {})

    async def slow(args: Args) -> ToolOutput:
        for _ in range(3):
            await asyncio.sleep(0)
        return ToolOutput(Status.TIMEOUT, "late", {})

    async def lose(args: Args) -> ToolOutput:
        await asyncio.sleep(0)
        raise SandboxLost("gone")

    return [
        FunctionTool("read", work, read_only=True),
        FunctionTool("write", work),
        FunctionTool("slow", slow, read_only=True),
        FunctionTool("lose", lose),
        FunctionTool("denied", work),
        FunctionTool("asked", work),
    ]


calls = st.lists(
    st.sampled_from(TOOLS).map(call_of) | st.just({"tool": "read", "args": "{bad"}), max_size=4
)
replies = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(["", "words"]), "calls": calls},
        optional={
            "stop": st.sampled_from(["max_tokens", "pause", "refusal", "cut"]),
            "usage": st.just({"input": 5, "output": 50}),
        },
    ),
    max_size=6,
)


def made(said: list[Mapping[str, object]], approved: bool, budgets: Budgets = UNBOUND) -> Parts:
    return parts(
        script(*said),
        toolset(),
        policy=FixedPolicy({"denied": Effect.DENY, "asked": Effect.ASK}),
        approver=FixedApprover(approved),
        budgets=budgets,
    )


def ended(which: Parts) -> None:
    """Run to the end, whichever it is."""
    with contextlib.suppress(HarnessError):
        asyncio.run(run("go", which))


def holds(which: Parts) -> None:
    """The invariants of a log, on whatever way the run ended."""
    records = which.session.log.records()
    events = [r.event for r in records]
    asked = [c.id for e in events if isinstance(e, Message) for c in e.calls]
    answered = [e.call_id for e in events if isinstance(e, ToolCompleted)]
    assert answered == asked, "one result for each call, in the order they were made"
    ends = [e for e in events if isinstance(e, Finished | Failed)]
    assert ends == [events[-1]], "one last record, and it is the last"
    started = [e.call_id for e in events if isinstance(e, ToolStarted)]
    assert set(started) <= set(asked)
    assert len(started) == len(set(started)), "nothing runs twice"
    refolded = State()
    prev = ""
    for record in records:
        line = encode(record)
        assert decode(line) == record
        assert record.prev == prev
        prev = digest(line)
        fold(refolded, record)
    assert refolded == which.session.state, "the state is the fold of the log"
    assert refolded.open == {}


@given(replies, st.booleans())
def test_any_script_ends_with_a_true_log(said: list[Mapping[str, object]], approved: bool) -> None:
    which = made(said, approved)

    ended(which)
    holds(which)


@given(replies, st.booleans(), st.integers(0, 60), st.booleans())
def test_a_run_cut_at_any_await_ends_with_a_true_log(
    said: list[Mapping[str, object]], approved: bool, steps: int, twice: bool
) -> None:
    which = made(said, approved)

    async def go() -> None:
        task = asyncio.ensure_future(run("go", which))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        if twice:
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(go())
    if which.session.log.records():
        holds(which)


@given(replies, st.integers(0, 4), st.integers(0, 200))
def test_budgets_are_never_passed_by_more_than_the_reply_that_reached_them(
    said: list[Mapping[str, object]], turns: int, tokens: int
) -> None:
    which = made(said, True, Budgets(turns=turns, duration=None, output_tokens=tokens))

    ended(which)
    holds(which)
    state = which.session.state
    assert state.turns <= turns
    assert state.output_tokens < tokens + 50 or state.turns == 0


@given(replies)
def test_equal_logs_give_equal_states(said: list[Mapping[str, object]]) -> None:
    def state() -> tuple[State, list[Record]]:
        which = made(said, True)

        ended(which)
        return which.session.state, cast("list[Record]", list(which.session.log.records()))

    assert state() == state()
