"""A supervisor that keeps the format and means no good: time and memory stay bounded."""

from __future__ import annotations

import asyncio
import struct

import pytest

from harness.errors import FileFault, SandboxError, SandboxLost
from harness.sandbox.capture import Capture
from harness.sandbox.frames import FrameType
from harness.sandbox.supervised import FILES, SupervisedSandbox
from harness.values.commands import ExecRequest, ExitReason
from tests.sandbox.test_link import Frame, Played, ended, play

OK_REPLY = bytes(16)


def stats(count: int, name: bytes = b"a") -> bytes:
    return (struct.pack("<B3xIQqqQHH", 0, 0, 0, 0, 0, 1, len(name), 0) + name) * count


def test_a_file_operation_that_is_never_answered_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.sandbox.supervised.FILE_SECONDS", 0.05)
    monkeypatch.setattr("harness.sandbox.running.PATIENCE", 0.05)

    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        with pytest.raises(SandboxLost, match="did not end a file operation"):
            await asyncio.wait_for(box.read("/x"), 5)
        assert pipe.of(FrameType.CANCEL)

    play(None, work)


def test_a_file_operation_that_takes_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.sandbox.supervised.FILE_SECONDS", 0.05)

    def slow(pipe: Played, one: Frame) -> None:
        if one[0] == FrameType.CANCEL:
            pipe.say(FrameType.REPLY, one[1], b"\x0d" + bytes(15))

    async def work(_: Played, box: SupervisedSandbox) -> None:
        with pytest.raises(FileFault, match="took too long"):
            await asyncio.wait_for(box.read("/x"), 5)

    play(slow, work)


def test_a_cancelled_file_operation_that_is_never_answered_is_a_lost_box(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.sandbox.supervised.PATIENCE", 0.05)

    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        task = asyncio.create_task(box.read("/x"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert pipe.closed

    play(None, work)


def test_pieces_of_any_size_cost_no_more_than_their_bytes() -> None:
    for size, count in ((0, 200_000), (1, 200_000)):
        capture = Capture(1 << 20, 1 << 10)
        for _ in range(count):
            capture.add(bytes(size))
        kept = capture.captured()
        assert (len(kept.head), kept.total) == (size * count, size * count)
        assert not any(isinstance(part, list) for part in vars(capture).values())


@pytest.mark.parametrize(("head", "tail"), [(0, 0), (3, 0), (0, 5), (3, 5)])
def test_the_first_and_last_bytes_are_kept_however_they_come(head: int, tail: int) -> None:
    data = bytes(range(200))
    for piece in (1, 2, 3, 7, 11, 200):
        capture = Capture(head, tail)
        for at in range(0, len(data), piece):
            capture.add(data[at : at + piece])
        kept = capture.captured()
        assert kept.head == data[:head]
        assert kept.tail == (data[-tail:] if tail else b"")
        assert kept.total == 200


def test_more_entries_than_asked_for_are_not_taken() -> None:
    def generous(pipe: Played, one: Frame) -> None:
        if one[0] == FrameType.FILE:
            pipe.say(FrameType.OUT, one[1], stats(30))
            pipe.say(FrameType.REPLY, one[1], OK_REPLY)

    async def work(_: Played, box: SupervisedSandbox) -> None:
        assert len(await box.list("/x", limit=30)) == 30
        with pytest.raises(SandboxLost, match="more than was asked for"):
            await box.list("/x", limit=29)

    play(generous, work)


def test_an_honest_listing_that_is_too_large_is_a_fault_and_not_a_lost_box(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.sandbox.supervised._ANSWER_LIMIT", 20_000)

    def huge(pipe: Played, one: Frame) -> None:
        if one[0] == FrameType.FILE:
            for _ in range(3):
                pipe.say(FrameType.OUT, one[1], stats(200))
        if one[0] == FrameType.CANCEL:
            pipe.say(FrameType.REPLY, one[1], b"\x0d" + bytes(15))

    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        with pytest.raises(FileFault) as told:
            await box.list("/x", limit=100_000)
        assert told.value.code == "too_large"
        assert not pipe.closed

    play(huge, work)


def test_output_beyond_the_limit_gets_no_credit_and_too_much_of_it_loses_the_box() -> None:
    def flood(pipe: Played, one: Frame) -> None:
        if one[0] == FrameType.EXEC:
            for _ in range(12):
                pipe.say(FrameType.OUT, one[1], bytes(60_000))

    async def work(_: Played, box: SupervisedSandbox) -> None:
        with pytest.raises(SandboxLost, match="more output than it was allowed"):
            await asyncio.wait_for(box.exec(ExecRequest(("x",), limit=1000)), 5)

    play(flood, work)


def test_a_command_that_is_not_ended_at_its_output_limit_loses_the_box(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.sandbox.running.PATIENCE", 0.05)

    def quiet(pipe: Played, one: Frame) -> None:
        if one[0] == FrameType.EXEC:
            pipe.say(FrameType.OUT, one[1], bytes(2000))

    async def work(_: Played, box: SupervisedSandbox) -> None:
        request = ExecRequest(("x",), limit=1000, grace=0.01)
        with pytest.raises(SandboxLost, match="printed too much"):
            await asyncio.wait_for(box.exec(request), 5)

    play(quiet, work)


def test_an_output_limit_passed_at_the_very_end_still_ends() -> None:
    def late(pipe: Played, one: Frame) -> None:
        if one[0] == FrameType.EXEC:
            pipe.say(FrameType.OUT, one[1], bytes(2000))
            pipe.say(FrameType.EXIT, one[1], ended())

    async def work(_: Played, box: SupervisedSandbox) -> None:
        result = await box.exec(ExecRequest(("x",), limit=1000))
        assert result.reason is ExitReason.EXITED

    play(late, work)


def test_more_calls_than_a_supervisor_takes_wait_for_their_turn() -> None:
    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        calls = [asyncio.create_task(box.stat("/x")) for _ in range(4 * FILES)]
        answered = 0
        while answered < len(calls):
            await asyncio.sleep(0)
            waiting = pipe.of(FrameType.FILE)[answered:]
            assert len(waiting) <= FILES
            for _, channel, _ in waiting:
                pipe.say(FrameType.REPLY, channel, OK_REPLY + stats(1))
            answered += len(waiting)
        assert len(await asyncio.gather(*calls)) == 4 * FILES

    play(None, work)


def test_calls_that_wait_for_their_turn_end_with_the_box() -> None:
    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        calls = [asyncio.create_task(box.stat("/x")) for _ in range(2 * FILES)]
        await asyncio.sleep(0.01)
        pipe.link.lost("gone")
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(result, SandboxError) for result in results)

    play(None, work)
