"""A box that the workload has filled: the workload is told, the box is not lost."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import struct
import sys
import time
from pathlib import Path

import pytest

from harness.errors import FileFault
from harness.sandbox.frames import CHANNEL_WINDOW, INPUT_WINDOW, FrameType
from harness.sandbox.local import LocalSandbox
from harness.sandbox.messages import INPUT_FOLLOWS, FileOp, FileRequest
from harness.sandbox.running import NO_ROOM
from harness.sandbox.supervised import SupervisedSandbox
from harness.values.commands import ExecRequest, ExitReason
from harness.values.limits import BoxSpec, Limits
from tests.sandbox.supervising import Raw, alive, exec_payload, local_box, raw, run, supervisor
from tests.sandbox.test_link import Frame, Played, play

pytestmark = pytest.mark.local

MOST_COMMANDS = 176


def refusing(pipe: Played, one: Frame) -> None:
    kind, channel, _ = one
    if kind in {FrameType.EXEC, FrameType.FILE}:
        pipe.say(FrameType.REFUSED, channel, b"\x02" + NO_ROOM.encode())


def test_a_refusal_for_want_of_room_is_the_workloads_fault_and_told_as_one() -> None:
    async def work(_: Played, box: SupervisedSandbox) -> None:
        result = await box.exec(ExecRequest(("true",)))
        assert (result.code, result.reason) == (126, ExitReason.EXITED)
        assert result.stderr.data == f"{NO_ROOM}\n".encode()
        for asked in (box.read("/x"), box.list("/x"), box.write("/x", b"1"), box.stat("/x")):
            with pytest.raises(FileFault, match="no room for another process") as told:
                await asked
            assert (told.value.code, told.value.path) == ("io", "/x")
        assert await box.resolve_links(["/x"]) == {"/x": "/proc/unresolved/x"}

    play(refusing, work)


def test_background_commands_that_use_all_descriptors_are_told_and_can_be_ended() -> None:
    async def go() -> None:
        spec = BoxSpec(limits=Limits(nofile=64))
        box = await LocalSandbox.start(spec, binary=supervisor())
        try:
            await box.write(f"{box.root}/kept", b"work")
            results = [await run(box, "sleep 60 & echo $!") for _ in range(30)]
            begun = [int(r.stdout.data) for r in results if r.ok]
            refused = [r for r in results if not r.ok]
            assert begun
            assert {(r.code, r.stderr.data) for r in refused} == {(126, f"{NO_ROOM}\n".encode())}
            assert await box.read(f"{box.root}/kept") == b"work"
            await box.quiet()
            assert not any(map(alive, begun))
            assert (await run(box, "true")).ok
        finally:
            await box.close()

    asyncio.run(go())


def test_quiet_ends_what_left_its_group_and_what_still_runs() -> None:
    async def go() -> None:
        async with local_box() as box:
            left = await run(box, "setsid sleep 60 >/dev/null 2>&1 & echo $!")
            script = "trap '' TERM; sleep 61 & echo $!; sleep 62"
            heard = asyncio.Queue[bytes]()
            running = asyncio.create_task(
                box.exec(ExecRequest(("sh", "-c", script)), lambda _, data: heard.put_nowait(data))
            )
            child = int(await heard.get())
            await asyncio.gather(box.quiet(), box.quiet())
            assert not alive(int(left.stdout.data))
            assert not alive(child)
            assert (await running).reason is ExitReason.CANCELLED
            await box.quiet()
            assert (await run(box, "echo on")).stdout.data == b"on\n"

    asyncio.run(go())


def test_what_begins_after_quiet_was_asked_lives() -> None:
    with raw() as talk:
        talk.lease()
        talk.send(FrameType.EXEC, 1, exec_payload("sh", "-c", "sleep 60 >/dev/null & exit 3"))
        talk.until(FrameType.EXIT, 1)
        talk.send(FrameType.QUIET, 2)
        talk.send(FrameType.EXEC, 3, exec_payload("sleep", "60"))
        talk.until(FrameType.REPLY, 2)
        talk.send(FrameType.EXEC, 4, exec_payload("true"))
        seen = talk.until(FrameType.EXIT, 4)
        assert (FrameType.EXIT, 3) not in {one[:2] for one in seen}


def test_a_table_full_of_background_commands_leaves_places_for_files() -> None:
    with raw() as talk:
        talk.lease()
        for channel in range(1, MOST_COMMANDS + 2):
            talk.send(FrameType.EXEC, channel, exec_payload("sleep", "60"))
        *_, (_, _, words) = talk.until(FrameType.REFUSED, MOST_COMMANDS + 1)
        assert words == b"\x02" + NO_ROOM.encode()
        talk.send(FrameType.FILE, 900, FileRequest(FileOp.STAT, b"/").encode())
        assert talk.until(FrameType.REPLY, 900)[-1][2][0] == 0


def child_of(talk: Raw) -> int:
    """The only child of the supervisor."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        for facts in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if facts.read_text().rpartition(")")[2].split()[1] == str(talk.process.pid):
                    return int(facts.parent.name)
        time.sleep(0.01)
    raise AssertionError("no child")


def test_the_process_of_a_file_operation_holds_no_end_of_the_frames(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "new")
    with raw("--one-user") as talk:
        talk.lease()
        request = FileRequest(FileOp.WRITE, path, INPUT_FOLLOWS, 0o644, 100)
        talk.send(FrameType.FILE, 1, request.encode())
        worker = child_of(talk)
        while not list(tmp_path.iterdir()):
            time.sleep(0.01)
        os.kill(worker, signal.SIGSTOP)
        try:
            talk.process.kill()
            talk.process.wait()
            talk.socket.settimeout(2)
            assert talk.socket.recv(1) == b""
        finally:
            os.kill(worker, signal.SIGKILL)


def test_too_much_input_is_a_cancellation_whatever_the_input_says() -> None:
    with raw() as talk:
        talk.lease()
        talk.send(FrameType.EXEC, 1, exec_payload("sleep", "60", flags=1))
        for _ in range(2 * INPUT_WINDOW // 65_536 + 2):
            talk.send(FrameType.DATA, 1, b"\x04" * 65_536)
        assert talk.until(FrameType.EXIT, 1)[-1][2][0] == 2


def test_answers_that_find_no_room_wait_for_it(tmp_path: Path) -> None:
    """Each reply is long, nobody reads meanwhile, and none is lost."""
    count = 180
    (tmp_path / "link").symlink_to("t" * 4000)
    stat = FileRequest(FileOp.STAT, os.fsencode(tmp_path / "link")).encode()
    with raw("--one-user") as talk:
        talk.lease()
        for round_ in range(3):
            for channel in range(1, count + 1):
                talk.send(FrameType.FILE, round_ * count + channel, stat)
            time.sleep(0.5)
        answers: dict[int, FrameType] = {}
        while len(answers) < 3 * count:
            kind, channel, payload = talk.next()
            assert kind is FrameType.REFUSED or len(payload) == 16 + 44 + 4000
            answers[channel] = kind
        assert sum(kind is FrameType.REPLY for kind in answers.values()) >= 2 * count


def test_cancelling_a_finished_command_drops_output_that_waits_for_a_credit() -> None:
    with raw() as talk:
        talk.lease()
        size = str(CHANNEL_WINDOW + 40_000)
        talk.send(FrameType.EXEC, 1, exec_payload("head", "-c", size, "/dev/zero"))
        time.sleep(0.5)
        talk.send(FrameType.CANCEL, 1, b"\x04")
        assert talk.until(FrameType.EXIT, 1)


NO_PIDFD = """
import ctypes, os, struct, sys
number = int(sys.argv[1])
program = b"".join(struct.pack("HBBI", *line) for line in (
    (0x20, 0, 0, 0), (0x15, 0, 1, 434), (0x06, 0, 0, 0x50000 | number), (0x06, 0, 0, 0x7FFF0000)))
libc = ctypes.CDLL(None, use_errno=True)
held = ctypes.create_string_buffer(program)
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(held)))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, filter, 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOSYS, errno.EPERM])
def test_a_kernel_that_gives_no_pidfd_keeps_nothing_alive(number: int) -> None:
    with raw(command=(sys.executable, "-c", NO_PIDFD, str(number))) as talk:
        talk.lease()
        script = "trap '' TERM; sleep 60 & echo $!; wait; sleep 60"
        talk.send(FrameType.EXEC, 1, exec_payload("sh", "-c", script))
        child = int(talk.until(FrameType.OUT, 1)[-1][2])
        assert alive(child)
        talk.send(FrameType.CANCEL, 1, b"\x02")
        assert talk.until(FrameType.EXIT, 1)[-1][2][0] == 2
        assert not alive(child)


def test_a_flood_of_requests_is_answered_one_by_one() -> None:
    """Answers longer than their requests, more than any buffer holds, unread for a while."""
    count = 60_000
    with raw() as talk:
        talk.lease()
        talk.socket.setblocking(False)
        flood = b"".join(struct.pack("<IBI", 0, FrameType.EXEC, n) for n in range(1, count + 1))
        sent = 0
        seen = 0
        pause = time.monotonic() + 0.5
        until = time.monotonic() + 20
        while seen < count and time.monotonic() < until:
            try:
                sent += talk.socket.send(flood[sent : sent + 65_536])
            except BlockingIOError:
                time.sleep(0.001)
            if time.monotonic() < pause and sent < len(flood):
                continue
            while True:
                try:
                    kind, _, _ = talk.next()
                except BlockingIOError:
                    break
                seen += kind is FrameType.REFUSED
        assert seen == count


def test_paths_that_no_frame_carries_are_counted() -> None:
    async def go() -> None:
        async with local_box() as box:
            script = (
                "import os\n"
                "for _ in range(45):\n os.mkdir('d' * 200)\n os.chdir('d' * 200)\n"
                "open('end', 'w').close()"
            )
            assert (await box.exec(ExecRequest(("python3", "-c", script)))).ok
            assert box.notes == ()
            await box.list(box.root, depth=100)
            assert len(await box.list(box.root, depth=100)) == 40
            assert box.notes == (f"1 paths below `{box.root}` are too long and were left out",)

    asyncio.run(go())
