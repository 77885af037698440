"""The loop as a whole: what is logged, in which order, on which way out."""

from __future__ import annotations

import asyncio

import pytest

from harness.errors import FileFault, SandboxLost, SessionStorage, WireProtocol
from harness.loop.execute import SIDE_BY_SIDE
from harness.loop.parts import Parts
from harness.loop.run import run
from harness.ports import Sandbox
from harness.sessions.clock import FixedClock
from harness.sessions.memory import MemoryLog
from harness.values.calls import Args, Status, ToolOutput
from harness.values.changes import Changes
from harness.values.decisions import Effect
from harness.values.events import (
    Event,
    Failed,
    Finished,
    ToolCompleted,
    ToolResolved,
    ToolStarted,
    Warned,
)
from harness.values.limits import Budgets
from harness.values.outcomes import LoopStop
from tests.fakes import (
    FixedApprover,
    FixedPolicy,
    FunctionTool,
    UnchangedWorkspace,
    call_of,
    echo,
    parts,
    script,
    sleeper,
)


def kinds(made: Parts) -> list[str]:
    return [record.event.kind for record in made.session.log.records()]


def results(made: Parts) -> list[tuple[str, str]]:
    return [(e.call_id, e.status) for e in events(made) if isinstance(e, ToolCompleted)]


def events(made: Parts) -> list[Event]:
    return [record.event for record in made.session.log.records()]


def last(made: Parts) -> Event:
    return events(made)[-1]


def test_a_whole_run_is_in_the_log_in_order() -> None:
    made = parts(
        script({"text": "let me see", "calls": [call_of("echo", word="hi")]}, {"text": "done"})
    )
    outcome = asyncio.run(run("say hi", made))
    assert (outcome.stop, outcome.text, outcome.exit_code) == (LoopStop.COMPLETED, "done", 0)
    assert kinds(made) == [
        "user.message",
        "turn.started",
        "request.sent",
        "message",
        "tool.resolved",
        "tool.started",
        "tool.completed",
        "turn.started",
        "request.sent",
        "message",
        "finished",
    ]
    assert outcome.totals.turns == 2
    assert outcome.totals.unknown_requests == 2, "a script without usage is not a usage of zero"


def test_the_decision_is_logged_before_the_tool_starts() -> None:
    made = parts(script({"calls": [call_of("echo")]}, {"text": "done"}))
    asyncio.run(run("go", made))
    order = [type(e) for e in events(made)]
    assert order.index(ToolResolved) < order.index(ToolStarted) < order.index(ToolCompleted)


@pytest.mark.parametrize(
    ("calls", "status"),
    [
        ([{"tool": "gone", "args": {}}], Status.INVALID),
        ([{"tool": "echo", "args": "{not json"}], Status.INVALID),
        ([{"tool": "echo", "args": "[1]"}], Status.INVALID),
        ([{"tool": "echo", "args": {"word": 3}}], Status.INVALID),
        ([{"tool": "echo", "args": {"other": "x"}}], Status.INVALID),
        ([{"tool": "echo", "args": {"word": "x"}}], Status.OK),
    ],
)
def test_every_call_gets_one_result(calls: list[dict[str, object]], status: Status) -> None:
    made = parts(script({"calls": calls}, {"text": "done"}))
    asyncio.run(run("go", made))
    assert results(made) == [("call-1", status.value)]


def test_an_invalid_call_never_reaches_the_tool() -> None:
    tool = echo()
    made = parts(script({"calls": [call_of("echo", word=3)]}, {"text": "done"}), [tool])
    asyncio.run(run("go", made))
    assert tool.seen == []


def test_a_denied_call_does_not_run_and_says_why() -> None:
    tool = echo()
    made = parts(
        script({"calls": [call_of("echo")]}, {"text": "done"}),
        [tool],
        policy=FixedPolicy({"echo": Effect.DENY}),
    )
    asyncio.run(run("go", made))
    assert tool.seen == []
    done = next(e for e in events(made) if isinstance(e, ToolCompleted))
    assert done.status == "denied"
    for words in (
        "rule:test/fixed",
        "because the test says so",
        "do something",
    ):
        assert words in done.text


@pytest.mark.parametrize(("approved", "status"), [(True, "ok"), (False, "denied")])
def test_ask_goes_to_the_approver_once(approved: bool, status: str) -> None:
    approver = FixedApprover(approved)
    made = parts(
        script({"calls": [call_of("echo")]}, {"text": "done"}),
        policy=FixedPolicy({"echo": Effect.ASK}),
        approver=approver,
    )
    asyncio.run(run("go", made))
    assert results(made) == [("call-1", status)]
    assert len(approver.asked) == 1
    assert "approval.required" in kinds(made)
    assert "approval.resolved" in kinds(made)


def test_a_cut_reply_runs_none_of_its_calls() -> None:
    tool = echo()
    cut = {"calls": [call_of("echo", word="half")], "stop": "max_tokens"}
    made = parts(script(cut, {"text": "done"}), [tool])
    asyncio.run(run("go", made))
    assert tool.seen == []
    assert results(made) == [("call-1", "not_started")]


def test_a_final_reply_runs_none_of_its_calls() -> None:
    tool = echo()
    made = parts(script({"text": "done", "calls": [call_of("echo")], "stop": "end"}), [tool])
    assert asyncio.run(run("go", made)).stop is LoopStop.COMPLETED
    assert tool.seen == []
    assert results(made) == [("call-1", "not_started")]


def test_any_number_of_readers_in_one_reply_runs_a_few_at_a_time() -> None:
    running = most = 0

    async def look(args: Args) -> ToolOutput:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return ToolOutput(Status.OK, str(args["word"]), {})

    calls = [call_of("look", word=str(n)) for n in range(100)]
    made = parts(
        script({"calls": calls}, {"text": "done"}), [FunctionTool("look", look, read_only=True)]
    )
    asyncio.run(run("go", made))
    assert most == SIDE_BY_SIDE
    texts = [e.text for e in events(made) if isinstance(e, ToolCompleted)]
    assert texts == [str(n) for n in range(100)]


def test_a_reply_cut_for_ever_stops_by_name() -> None:
    cut = {"text": "and so", "stop": "max_tokens"}
    made = parts(script(*[cut] * 5))
    outcome = asyncio.run(run("go", made))
    assert outcome.stop is LoopStop.MAX_OUTPUT_TOKENS
    assert outcome.totals.turns == 3
    assert outcome.exit_code == 3


@pytest.mark.parametrize(
    ("replies", "stop"),
    [
        ([{"stop": "refusal", "text": "no"}], LoopStop.REFUSED),
        ([{}, {}], LoopStop.UNSTRUCTURED),
        ([{}, {"text": "sorry, here"}], LoopStop.COMPLETED),
        ([{"stop": "pause"}, {"text": "done"}], LoopStop.COMPLETED),
    ],
)
def test_ends_that_are_no_tool_call(replies: list[dict[str, object]], stop: LoopStop) -> None:
    outcome = asyncio.run(run("go", parts(script(*replies))))
    assert outcome.stop is stop


def test_a_pause_without_end_is_a_protocol_error() -> None:
    made = parts(script(*[{"stop": "pause"}] * 9))
    with pytest.raises(WireProtocol, match="paused 6 times"):
        asyncio.run(run("go", made))


def test_a_script_that_runs_out_is_a_protocol_error() -> None:
    made = parts(script({"calls": [call_of("echo")]}))
    with pytest.raises(WireProtocol, match="no more"):
        asyncio.run(run("go", made))
    failed = last(made)
    assert isinstance(failed, Failed)
    assert failed.error == "protocol"


def test_a_stream_cut_before_its_end_leaves_no_message() -> None:
    made = parts(script({"text": "half", "calls": [call_of("echo")], "stop": "cut"}))
    with pytest.raises(WireProtocol):
        asyncio.run(run("go", made))
    assert "message" not in kinds(made)
    assert kinds(made)[-1] == "failed"


@pytest.mark.parametrize(("turns", "made_turns"), [(0, 0), (1, 1), (3, 3)])
def test_the_turn_budget_binds_at_equality(turns: int, made_turns: int) -> None:
    made = parts(
        script(*[{"calls": [call_of("echo")]}] * 9), budgets=Budgets(turns=turns, duration=None)
    )
    outcome = asyncio.run(run("go", made))
    assert outcome.stop is LoopStop.MAX_TURNS
    assert outcome.totals.turns == made_turns
    assert len(results(made)) == made_turns


def test_notices_reach_the_model_once_each() -> None:
    made = parts(
        script(*[{"calls": [call_of("echo")]}] * 9), budgets=Budgets(turns=10, duration=None)
    )
    with pytest.raises(WireProtocol):
        asyncio.run(run("go", made))
    assert kinds(made).count("budget.notice") == 2
    assert made.session.state.notices == {("turns", 50), ("turns", 80)}


def test_unknown_usage_stops_a_token_budget_by_name() -> None:
    made = parts(
        script({"calls": [call_of("echo")]}),
        budgets=Budgets(turns=None, duration=None, output_tokens=1000),
    )
    assert asyncio.run(run("go", made)).stop is LoopStop.BUDGET_UNVERIFIABLE


def test_known_usage_binds_a_token_budget() -> None:
    reply = {"calls": [call_of("echo")], "usage": {"input": 10, "output": 400}}
    made = parts(
        script(*[reply] * 9), budgets=Budgets(turns=None, duration=None, output_tokens=800)
    )
    outcome = asyncio.run(run("go", made))
    assert outcome.stop is LoopStop.MAX_OUTPUT_TOKENS
    assert (outcome.totals.turns, outcome.totals.output) == (2, 800)


def test_the_wall_clock_stops_between_turns() -> None:
    clock = FixedClock()

    async def slow(args: Args) -> ToolOutput:
        clock.advance(60)
        return ToolOutput(Status.OK, "", {})

    made = parts(
        script(*[{"calls": [call_of("slow"), call_of("slow"), call_of("slow")]}] * 9),
        [FunctionTool("slow", slow)],
        clock=clock,
        budgets=Budgets(turns=None, duration=120),
    )
    outcome = asyncio.run(run("go", made))
    assert outcome.stop is LoopStop.MAX_DURATION
    assert results(made) == [("call-1", "ok"), ("call-2", "ok"), ("call-3", "not_started")]


def test_waiting_for_a_person_does_not_use_up_the_clock_when_attended() -> None:
    clock = FixedClock()

    class Slow(FixedApprover):
        async def ask(self, call, decision):  # type: ignore[no-untyped-def]
            clock.advance(500)
            return await super().ask(call, decision)

    made = parts(
        script({"calls": [call_of("echo")]}, {"text": "done"}),
        policy=FixedPolicy({"echo": Effect.ASK}, attended=True),
        approver=Slow(True),
        clock=clock,
        budgets=Budgets(turns=None, duration=100),
    )
    assert asyncio.run(run("go", made)).stop is LoopStop.COMPLETED


def test_neighbours_that_only_read_run_side_by_side_and_keep_their_order() -> None:
    running: list[str] = []
    most = 0

    async def look(args: Args) -> ToolOutput:
        nonlocal most
        word = str(args["word"])
        running.append(word)
        most = max(most, len(running))
        await asyncio.sleep(0.02 if word == "a" else 0)
        running.remove(word)
        return ToolOutput(Status.OK, word, {})

    calls = [call_of("look", word=w) for w in "abc"]
    made = parts(
        script({"calls": calls}, {"text": "done"}), [FunctionTool("look", look, read_only=True)]
    )
    asyncio.run(run("go", made))
    assert most == 3
    assert [e.text for e in events(made) if isinstance(e, ToolCompleted)] == ["a", "b", "c"]


def test_what_may_write_runs_alone_and_is_judged_after_the_one_before() -> None:
    made = parts(
        script({"calls": [call_of("echo"), call_of("look"), call_of("echo")]}, {"text": "done"}),
        [echo(), echo("look", read_only=True)],
    )
    asyncio.run(run("go", made))
    order = [k for k in kinds(made) if k.startswith("tool.")]
    assert order == ["tool.resolved", "tool.started", "tool.completed"] * 3


async def _cancel_when(made: Parts, kind: str, times: int = 1) -> BaseException | None:
    task = asyncio.ensure_future(run("go", made))
    for _ in range(1000):
        await asyncio.sleep(0)
        if kind in kinds(made):
            break
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    done = await asyncio.gather(task, return_exceptions=True)
    return done[0] if isinstance(done[0], BaseException) else None


@pytest.mark.parametrize("times", [1, 2])
def test_cancelling_a_running_tool_settles_the_log(times: int) -> None:
    calls = [call_of("sleep"), call_of("echo")]
    made = parts(script({"calls": calls}), [sleeper(), echo()])
    fault = asyncio.run(_cancel_when(made, "tool.started", times))
    assert isinstance(fault, asyncio.CancelledError)
    assert results(made) == [("call-1", "interrupted"), ("call-2", "not_started")]
    finished = last(made)
    assert isinstance(finished, Finished)
    assert finished.stop == "cancelled"


def test_cancelling_a_batch_of_readers_answers_each() -> None:
    made = parts(script({"calls": [call_of("sleep")] * 3}), [sleeper(read_only=True)])
    asyncio.run(_cancel_when(made, "tool.started"))
    assert [status for _, status in results(made)] == ["interrupted"] * 3


def test_a_lost_box_is_an_error_with_its_evidence_and_no_result_of_a_tool() -> None:
    async def lose(args: Args) -> ToolOutput:
        raise SandboxLost("the box is gone", evidence=("exit code 137",))

    workspace = UnchangedWorkspace()
    made = parts(
        script({"calls": [call_of("lose"), call_of("lose")]}),
        [FunctionTool("lose", lose)],
        workspace=workspace,
    )
    with pytest.raises(SandboxLost):
        asyncio.run(run("go", made))
    assert results(made) == [("call-1", "interrupted"), ("call-2", "not_started")]
    assert last(made) == Failed("sandbox_unavailable", "the box is gone", ("exit code 137",))
    assert workspace.asked == 0, "a lost box cannot be asked for its changes"


def test_an_error_in_one_reader_cancels_the_others_and_passes_on() -> None:
    async def lose(args: Args) -> ToolOutput:
        raise SandboxLost("gone")

    made = parts(
        script({"calls": [call_of("sleep"), call_of("lose")]}),
        [sleeper(read_only=True), FunctionTool("lose", lose, read_only=True)],
    )
    with pytest.raises(SandboxLost):
        asyncio.run(run("go", made))


def test_a_bug_in_a_tool_is_an_internal_error_on_record() -> None:
    async def bug(args: Args) -> ToolOutput:
        raise ZeroDivisionError("oops")

    made = parts(script({"calls": [call_of("bug")]}), [FunctionTool("bug", bug)])
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run("go", made))
    failed = last(made)
    assert isinstance(failed, Failed)
    assert (failed.error, failed.text) == ("internal", "oops")


class FullLog(MemoryLog):
    """A log whose disk is full after some records."""

    def __init__(self, room: int) -> None:
        super().__init__("s", FixedClock())
        self.room = room

    async def append(self, event, *, turn, durable=False):  # type: ignore[no-untyped-def]
        if len(self.records()) >= self.room:
            raise SessionStorage("no space left")
        return await super().append(event, turn=turn, durable=durable)


@pytest.mark.parametrize("room", range(10))
def test_a_full_store_stops_the_run_before_any_further_effect(room: int) -> None:
    tool = echo()
    log = FullLog(room)
    made = parts(script({"calls": [call_of("echo")]}, {"text": "done"}), [tool], log=log)
    with pytest.raises(SessionStorage):
        asyncio.run(run("go", made))
    started = [e for e in events(made) if isinstance(e, ToolStarted)]
    assert len(tool.seen) == len(started), "nothing runs that is not in the log first"


def test_a_checkpoint_is_taken_once_after_a_turn_that_may_have_written() -> None:
    workspace = UnchangedWorkspace()
    made = parts(
        script(
            {"calls": [call_of("look")]},
            {"calls": [call_of("echo"), call_of("echo")]},
            {"calls": [call_of("look")]},
            {"text": "done"},
        ),
        [echo(), echo("look", read_only=True)],
        workspace=workspace,
    )
    asyncio.run(run("go", made))
    assert workspace.asked == 2, "once after the turn that wrote, once when nothing runs any more"
    assert made.box.quieted  # type: ignore[attr-defined]


def test_a_run_that_only_looked_takes_no_checkpoint() -> None:
    workspace = UnchangedWorkspace()
    look = echo("look", read_only=True)
    made = parts(
        script({"calls": [call_of("look")]}, {"text": "done"}), [look], workspace=workspace
    )
    asyncio.run(run("go", made))
    assert workspace.asked == 0


def test_changes_that_cannot_be_read_are_told_and_end_no_run() -> None:
    class Unreadable(UnchangedWorkspace):
        async def changes(self, box: Sandbox) -> Changes:
            raise FileFault("too_large", "/workspace", "too many names")

    made = parts(
        script(*[{"calls": [call_of("echo")]}] * 2, {"text": "done"}), workspace=Unreadable()
    )
    assert asyncio.run(run("go", made)).stop is LoopStop.COMPLETED
    told = [e for e in events(made) if isinstance(e, Warned)]
    assert told
    assert {e.code for e in told} == {"checkpoint_failed"}


def test_call_ids_are_ours_and_unique_whatever_the_provider_sends() -> None:
    made = parts(script(*[{"calls": [call_of("echo"), call_of("echo")]}] * 3, {"text": "done"}))
    asyncio.run(run("go", made))
    assert [call_id for call_id, _ in results(made)] == [f"call-{n}" for n in range(1, 7)]


def test_the_same_log_gives_the_same_request_bytes() -> None:
    def digests() -> list[str]:
        made = parts(script(*[{"calls": [call_of("echo", word="x")]}] * 4, {"text": "done"}))
        asyncio.run(run("go", made))
        return [e.digest for e in events(made) if e.kind == "request.sent"]

    assert digests() == digests()
