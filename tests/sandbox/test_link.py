"""The controller's end against a supervisor that is played here, honest and otherwise."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import FileFault, SandboxError, SandboxLost
from harness.sandbox.frames import (
    CHANNEL_WINDOW,
    INPUT_WINDOW,
    MAX_PAYLOAD,
    TOTAL_WINDOW,
    FrameType,
    frame,
)
from harness.sandbox.link import Link
from harness.sandbox.supervised import SupervisedSandbox
from harness.values.commands import ExecRequest, ExecResult, ExitReason
from harness.values.limits import Capabilities

TOKEN = b"t" * 32
Frame = tuple[int, int, bytes]
Play = Callable[["Played", Frame], None]


class Played:
    """A pipe whose other end answers at once, as a function says."""

    def __init__(self, play: Play | None = None) -> None:
        self.link = Link(self)
        self.sent: list[Frame] = []
        self.closed = False
        self.answer_lease = True
        self._play = play

    def write(self, data: bytes) -> None:
        length, kind, channel = struct.unpack_from("<IBI", data)
        assert len(data) == length + 9
        one = (kind, channel, data[9:])
        self.sent.append(one)
        if kind == FrameType.LEASE and self.answer_lease:
            self.say(FrameType.HELLO, 0, one[2][32:48] + b"b" * 16 + b"\1\0\1a\1b")
        elif self._play is not None:
            self._play(self, one)

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def close(self) -> None:
        self.closed = True

    def say(self, kind: int, channel: int, payload: bytes = b"") -> None:
        data = struct.pack("<IBI", len(payload), kind, channel) + payload
        asyncio.get_running_loop().call_soon(self.link.feed, data)

    def of(self, kind: FrameType) -> list[Frame]:
        return [one for one in self.sent if one[0] == kind]


def ended(code: int = 0, reason: int = 0, kind: int = 1) -> bytes:
    return struct.pack("<BBBBIQQQQQQI12x", reason, kind, 1, 0, code, 5, 1, 1, 4096, 0, 0, 0)


def box_on(pipe: Played) -> SupervisedSandbox:
    return SupervisedSandbox(
        pipe.link, root="/work", capabilities=Capabilities("played", False, {}), image="played"
    )


def play(script: Play | None, work: Callable[[Played, SupervisedSandbox], Awaitable[None]]) -> None:
    async def go() -> None:
        pipe = Played(script)
        await pipe.link.open(token=TOKEN)
        try:
            await work(pipe, box_on(pipe))
        finally:
            await pipe.link.close()

    asyncio.run(go())


def test_the_lease_is_a_token_a_nonce_and_a_time_and_hello_is_read() -> None:
    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        (lease,) = pipe.of(FrameType.LEASE)
        assert (len(lease[2]), lease[2][:32]) == (52, TOKEN)
        assert int.from_bytes(lease[2][48:], "little") == 15_000
        assert pipe.link.hello.features == {"a": "b"}

    play(None, work)


def test_silence_at_the_start_is_a_lost_box() -> None:
    async def go() -> None:
        pipe = Played()
        pipe.answer_lease = False
        with pytest.raises(SandboxLost, match="did not answer"):
            await pipe.link.open(token=TOKEN, timeout=0.05)
        assert pipe.closed

    asyncio.run(go())


def test_another_version_is_refused() -> None:
    async def go() -> None:
        pipe = Played()
        pipe.answer_lease = False
        opening = asyncio.create_task(pipe.link.open(token=TOKEN))
        await asyncio.sleep(0)
        nonce = pipe.sent[0][2][32:48]
        pipe.say(FrameType.HELLO, 0, nonce + b"b" * 16 + b"\x09\0")
        with pytest.raises(SandboxLost, match="version 9"):
            await opening

    asyncio.run(go())


def test_losing_the_box_ends_everything_that_waits_with_its_evidence() -> None:
    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        waiting = [
            asyncio.create_task(box.exec(ExecRequest(("x",)))),
            asyncio.create_task(box.exec(ExecRequest(("x",), stdin=bytes(10 * INPUT_WINDOW)))),
            asyncio.create_task(box.read("/x")),
            asyncio.create_task(box.write("/x", bytes(10 * INPUT_WINDOW))),
        ]
        await asyncio.sleep(0.02)
        pipe.link.lost("the container is gone", ("exit code 137",))
        pipe.link.lost("something else", ())
        for error in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(error, SandboxLost)
            assert (str(error), error.evidence) == ("the container is gone", ("exit code 137",))
        with pytest.raises(SandboxLost, match="container is gone"):
            await box.exec(ExecRequest(("x",)))
        assert pipe.link.closed.is_set()

    play(None, work)


def test_a_closed_box_says_so() -> None:
    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        waiting = asyncio.create_task(box.exec(ExecRequest(("x",))))
        await asyncio.sleep(0)
        await asyncio.gather(box.close(), box.close())
        with pytest.raises(SandboxError, match="closed"):
            await waiting
        with pytest.raises(SandboxError, match="closed"):
            await box.stat("/x")
        assert len(pipe.of(FrameType.SHUTDOWN)) == 1
        assert pipe.closed

    play(None, work)


def test_credits_go_back_before_the_windows_are_used_up() -> None:
    def script(pipe: Played, one: Frame) -> None:
        if one[0] == FrameType.EXEC:
            for _ in range(30):
                pipe.say(FrameType.OUT, one[1], bytes(MAX_PAYLOAD))
            pipe.say(FrameType.EXIT, one[1], ended())

    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        result = await box.exec(ExecRequest(("x",), head=10, tail=10))
        assert result.stdout.total == 30 * MAX_PAYLOAD
        used = 30 * (MAX_PAYLOAD + 9)
        for channel, window in ((0, TOTAL_WINDOW), (1, CHANNEL_WINDOW)):
            given = [
                int.from_bytes(c[2], "little") for c in pipe.of(FrameType.CREDIT) if c[1] == channel
            ]
            assert used - window < sum(given) <= used

    play(script, work)


def test_input_waits_for_its_credit() -> None:
    got = bytearray()

    def script(pipe: Played, one: Frame) -> None:
        if one[0] == FrameType.DATA:
            got.extend(one[2])
        if one[0] == FrameType.END:
            pipe.say(FrameType.EXIT, one[1], ended())

    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        data = bytes(range(256)) * 2048
        task = asyncio.create_task(box.exec(ExecRequest(("x",), stdin=data)))
        await asyncio.sleep(0.02)
        assert len(got) == INPUT_WINDOW
        while len(got) < len(data):
            pipe.say(FrameType.CREDIT, 1, struct.pack("<I", 65_536))
            await asyncio.sleep(0.005)
        assert (await task).ok
        assert got == data

    play(script, work)


def test_an_output_limit_cancels_once_and_keeps_the_reason() -> None:
    def script(pipe: Played, one: Frame) -> None:
        if one[0] == FrameType.EXEC:
            for _ in range(5):
                pipe.say(FrameType.OUT, one[1], bytes(1000))
        if one[0] == FrameType.CANCEL:
            pipe.say(FrameType.EXIT, one[1], ended(15, reason=one[2][0], kind=2))

    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        seen: list[bytes] = []
        result = await box.exec(ExecRequest(("x",), limit=2500), lambda _, data: seen.append(data))
        assert (result.signal, result.reason) == (15, ExitReason.OUTPUT_LIMIT)
        assert result.stdout.total == 5000
        assert len(seen) == 3
        assert len(pipe.of(FrameType.CANCEL)) == 1

    play(script, work)


def test_a_sink_that_raises_harms_only_itself() -> None:
    def script(pipe: Played, one: Frame) -> None:
        if one[0] == FrameType.EXEC:
            pipe.say(FrameType.OUT, one[1], b"x")
            pipe.say(FrameType.EXIT, one[1], ended())

    complaints: list[dict[str, object]] = []

    def bad(stream: str, data: bytes) -> None:
        raise KeyError(stream)

    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, c: complaints.append(c))
        assert (await box.exec(ExecRequest(("x",)), bad)).ok
        assert (await box.exec(ExecRequest(("x",)))).ok

    play(script, work)
    assert len(complaints) == 1


def test_a_cancelled_command_waits_for_the_end_of_its_tree() -> None:
    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        task = asyncio.create_task(box.exec(ExecRequest(("x",))))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.sleep(0.02)
        assert not task.done()
        assert pipe.of(FrameType.CANCEL) == [(FrameType.CANCEL, 1, b"\x02")]
        pipe.say(FrameType.EXIT, 1, ended(15, reason=2, kind=2))
        with pytest.raises(asyncio.CancelledError):
            await task

    play(None, work)


def test_more_output_than_the_window_is_a_lost_box() -> None:
    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        task = asyncio.create_task(box.read("/x", length=10))
        await asyncio.sleep(0)
        pipe.say(FrameType.OUT, 1, bytes(11))
        with pytest.raises(SandboxLost, match="more data than was asked for"):
            await task

    play(None, work)


@pytest.mark.parametrize(
    "words",
    [
        (FrameType.EXIT, b""),
        (FrameType.EXIT, ended(code=256)),
        (FrameType.EXIT, ended(reason=6)),
        (FrameType.EXIT, ended(kind=0)),
        (FrameType.EXIT, ended(reason=5)),
        (FrameType.EXIT, ended(code=65, kind=2)),
        (FrameType.REPLY, bytes(16)),
        (FrameType.CREDIT, b"12345"),
        (FrameType.PONG, b""),
    ],
)
def test_a_message_that_does_not_fit_is_a_lost_box(words: tuple[FrameType, bytes]) -> None:
    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        task = asyncio.create_task(box.exec(ExecRequest(("x",))))
        await asyncio.sleep(0)
        pipe.say(words[0], 1, words[1])
        with pytest.raises(SandboxLost):
            await task

    play(None, work)


def test_a_refusal_is_told_without_control_characters_and_bounded() -> None:
    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        task = asyncio.create_task(box.exec(ExecRequest(("x",))))
        await asyncio.sleep(0)
        pipe.say(FrameType.REFUSED, 1, b"\x03No \x1b[31mroom" + b"x" * 5000)
        with pytest.raises(SandboxError) as error:
            await task
        assert str(error.value).isprintable()
        assert len(str(error.value)) < 300

    play(None, work)


def test_a_supervisor_that_stops_answering_is_lost() -> None:
    async def go() -> None:
        pipe = Played()
        await pipe.link.open(token=TOKEN, orphan_seconds=0.06)
        task = asyncio.create_task(box_on(pipe).exec(ExecRequest(("x",))))
        with pytest.raises(SandboxLost, match="no longer answers"):
            await asyncio.wait_for(task, 2)

    asyncio.run(go())


def test_a_missed_deadline_is_a_lost_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.sandbox.supervised.PATIENCE", 0.05)

    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        with pytest.raises(SandboxLost, match="missed a deadline"):
            await box.exec(ExecRequest(("x",), timeout=0.05, grace=0.0))

    play(None, work)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.builds(
                frame,
                st.sampled_from([FrameType.OUT, FrameType.EXIT, FrameType.REPLY, FrameType.CREDIT]),
                st.integers(0, 3),
                st.binary(max_size=90),
            ),
            st.just(frame(FrameType.EXIT, 1, ended())),
        ),
        max_size=6,
    )
)
def test_garbage_gives_a_result_or_a_lost_box(said: list[bytes]) -> None:
    async def work(pipe: Played, box: SupervisedSandbox) -> None:
        calls = [
            asyncio.create_task(box.exec(ExecRequest(("x",)))),
            asyncio.create_task(box.read("/x")),
            asyncio.create_task(box.resolve_links(["/x"])),
        ]
        await asyncio.sleep(0)
        for data in said:
            pipe.link.feed(data)
        await asyncio.sleep(0)
        pipe.link.lost("over")
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(outcome, ExecResult | bytes | dict | SandboxError | FileFault)

    play(None, work)
