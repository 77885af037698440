"""One typed call: judged like a model's, its changes in the log before its end."""

from __future__ import annotations

import asyncio

from harness.loop.single import run_one
from harness.values.calls import Call
from harness.values.decisions import Effect
from harness.values.outcomes import LoopStop
from tests.fakes import FixedPolicy, UnchangedWorkspace, echo, parts, script

CALL = Call("call-1", "echo", {"word": "hi"})


def test_a_call_that_ran_is_completed_and_its_changes_were_read() -> None:
    workspace = UnchangedWorkspace()
    made = parts(script(), workspace=workspace)
    outcome, refused = asyncio.run(run_one(CALL, "echo hi", made))
    assert (outcome.stop, refused, workspace.asked) == (LoopStop.COMPLETED, None, 1)


def test_a_call_that_was_refused_is_no_completed_one() -> None:
    tool = echo()
    made = parts(script(), [tool], policy=FixedPolicy({"echo": Effect.DENY}))
    outcome, refused = asyncio.run(run_one(CALL, "echo hi", made))
    assert outcome.stop is LoopStop.REFUSED
    assert refused is not None
    assert tool.seen == []
    assert made.session.state.denied == 1
