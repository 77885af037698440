"""Commands on host pipes: ends, output, kills. Each test is a kind of fault."""

from __future__ import annotations

import asyncio
import ctypes
import platform
import random
import secrets
import time
from pathlib import Path

import pytest

from harness.sandbox.local import LocalSandbox
from harness.values.commands import ExecRequest, ExecResult, ExitReason
from harness.values.limits import BoxSpec, Limits
from tests.sandbox.supervising import (
    alive,
    local_box,
    processes_with,
    run,
    shell,
    supervisor,
)

pytestmark = pytest.mark.local


def once(script: str, **options: object) -> ExecResult:
    async def go() -> ExecResult:
        async with local_box() as box:
            return await run(box, script, **options)

    return asyncio.run(go())


def test_exit_code_and_both_streams() -> None:
    result = once("echo out; echo err >&2; exit 3")
    assert (result.code, result.signal, result.reason) == (3, None, ExitReason.EXITED)
    assert (result.stdout.data, result.stderr.data) == (b"out\n", b"err\n")
    assert result.usage.wall > 0
    assert result.usage.max_rss
    assert not result.ok


def test_merged_output_keeps_its_order() -> None:
    result = once("for i in 1 2 3; do echo o$i; echo e$i >&2; done", merge=True)
    assert result.stdout.data == b"o1\ne1\no2\ne2\no3\ne3\n"
    assert result.stderr.total == 0


def test_exit_by_signal_is_a_signal_and_no_code() -> None:
    result = once("kill -9 $$")
    assert (result.code, result.signal, result.reason) == (None, 9, ExitReason.EXITED)


NO_STARTS = [
    (("no-such-program",), 127, b"command not found"),
    (("/no/such/program",), 127, b"no such file"),
    (("/etc/passwd",), 126, b"Permission denied"),
    (("/etc",), 126, b"Permission denied"),
    (("",), 127, b"not found"),
    (("a\0b",), 126, b"NUL"),
    (("x" * 600_000,), 126, b"too long"),
    (("true", "x" * 200_000), 126, b"too long"),
    (("true", "\ud800"), 126, b"encoded"),
    ((), 126, b"no program"),
]


def test_what_cannot_start_is_a_result() -> None:
    async def go() -> None:
        async with local_box() as box:
            for argv, code, words in NO_STARTS:
                result = await box.exec(ExecRequest(argv))
                assert (result.code, result.signal) == (code, None), words
                assert result.reason is ExitReason.EXITED
                assert words in result.stderr.data

    asyncio.run(go())


def test_a_script_without_a_header_runs_as_in_a_shell() -> None:
    async def go() -> ExecResult:
        async with local_box() as box:
            await box.write(f"{box.root}/script", b"echo $1; exit 4\n", mode=0o755)
            return await box.exec(ExecRequest(("./script", "word")))

    result = asyncio.run(go())
    assert (result.code, result.stdout.data) == (4, b"word\n")


def test_a_working_directory_through_a_link_or_missing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")

    async def go() -> tuple[ExecResult, ExecResult, ExecResult]:
        async with local_box() as box:
            inside = await box.exec(ExecRequest(("pwd",), cwd=str(tmp_path)))
            link = await box.exec(ExecRequest(("pwd",), cwd=f"{tmp_path}/link/etc"))
            return inside, link, await box.exec(ExecRequest(("pwd",), cwd="/no/where"))

    inside, link, missing = asyncio.run(go())
    assert inside.stdout.data == f"{tmp_path}\n".encode()
    assert (link.code, missing.code) == (126, 126)
    assert b"symbolic link" in link.stderr.data
    assert link.stdout.total == missing.stdout.total == 0


def test_the_command_sees_no_descriptor_and_no_signal_setting_of_ours() -> None:
    result = once("ls /proc/self/fd | wc -l; grep -E 'SigBlk|SigIgn' /proc/self/status; cat")
    lines = result.stdout.data.split()
    assert lines[0] == b"4"  # three, and the one `ls` opens to look
    assert lines[2] == lines[4] == b"0000000000000000"
    assert once("readlink /proc/self/fd/0").stdout.data == b"/dev/null\n"


@pytest.mark.parametrize("number", [15, 32, 33, 40, 64])
def test_a_signal_that_whoever_started_us_ignores_is_not_ignored(number: int) -> None:
    """Set by system call, as a C library refuses to touch its own two (32 and 33)."""
    call = {"x86_64": 13, "aarch64": 134}[platform.machine()]
    libc = ctypes.CDLL(None)
    before = (ctypes.c_uint64 * 4)()
    ignore = (ctypes.c_uint64 * 4)(1)
    assert libc.syscall(call, number, ctypes.byref(ignore), ctypes.byref(before), 8) == 0
    try:
        result = once("grep SigIgn /proc/self/status")
    finally:
        libc.syscall(call, number, ctypes.byref(before), None, 8)
    assert result.stdout.data.split() == [b"SigIgn:", b"0000000000000000"]


def test_ten_megabytes_of_input_arrive_and_end() -> None:
    assert once("wc -c", stdin=b"0123456789" * 1_000_000).stdout.data.strip() == b"10000000"
    assert once("cat", stdin=b"").stdout.data == b""


def test_input_that_nobody_reads_does_not_hold_the_command() -> None:
    result = once("exec 0<&-; echo done", stdin=bytes(5_000_000))
    assert (result.code, result.stdout.data) == (0, b"done\n")


def test_output_flood_is_counted_and_kept_at_both_ends() -> None:
    result = once("head -c 5000000 /dev/zero; printf end", head=1000, tail=10)
    assert result.stdout.total == 5_000_003
    assert result.stdout.head == bytes(1000)
    assert result.stdout.tail == bytes(7) + b"end"
    assert result.stdout.truncated


@pytest.mark.slow
def test_a_flood_of_two_hundred_megabytes_leaves_others_their_turn() -> None:
    async def go() -> None:
        box = await LocalSandbox.start(BoxSpec(limits=Limits(output=1 << 40)), binary=supervisor())
        try:
            flood = asyncio.create_task(box.exec(shell("head -c 200000000 /dev/zero")))
            turns = 0
            while not flood.done():
                began = time.monotonic()
                assert (await box.exec(shell("echo turn"))).stdout.data == b"turn\n"
                assert time.monotonic() - began < 1
                turns += 1
            assert turns > 5
            result = await flood
            assert result.stdout.total == 200_000_000
            assert len(result.stdout.data) == 2 << 20
        finally:
            await box.close()

    asyncio.run(go())


def test_an_output_limit_ends_the_command() -> None:
    result = once("yes", limit=100_000, head=10, tail=10, grace=0.1)
    assert result.reason is ExitReason.OUTPUT_LIMIT
    assert result.stdout.total > 100_000


def test_a_character_split_between_writes_stays_whole() -> None:
    pieces: list[bytes] = []

    async def go() -> ExecResult:
        async with local_box() as box:
            request = shell(r"printf '\303'; sleep 0.05; printf '\251'")
            return await box.exec(request, lambda _, data: pieces.append(data))

    result = asyncio.run(go())
    assert b"".join(pieces) == result.stdout.data == "é".encode()
    assert len(pieces) == 2


def test_a_background_child_that_holds_the_pipe_does_not_hold_the_call() -> None:
    async def go() -> None:
        async with local_box() as box:
            began = time.monotonic()
            result = await run(box, "sleep 60 & echo $!")
            pid = int(result.stdout.data)
            assert time.monotonic() - began < 1.5
            assert (result.code, result.left_running) == (0, 1)
            assert alive(pid)
            killed = await run(box, "sleep 60 & echo $!", kill_left=True)
            assert killed.left_running == 0
            assert not alive(int(killed.stdout.data))
            assert alive(pid)
        assert not alive(pid)

    asyncio.run(go())


@pytest.mark.slow
def test_what_lives_on_may_go_on_printing() -> None:
    async def go() -> None:
        async with local_box() as box:
            script = "(while echo tick; do sleep 0.01; done; echo died > gone) & echo up"
            assert (await run(box, script)).left_running >= 1
            await asyncio.sleep(0.3)
            assert await box.list(box.root) == ()

    asyncio.run(go())


def test_timeout_with_a_child_that_ignores_term() -> None:
    began = time.monotonic()
    result = once("trap '' TERM; sleep 60 & wait; sleep 60", timeout=0.2, grace=0.2)
    assert (result.code, result.signal, result.reason) == (None, 9, ExitReason.TIMEOUT)
    assert 0.4 <= time.monotonic() - began < 3


def test_timeout_gives_the_chance_to_end_well() -> None:
    result = once("trap 'echo bye; exit 7' TERM; sleep 60 & wait", timeout=0.2, grace=5)
    assert (result.code, result.reason, result.stdout.data) == (7, ExitReason.TIMEOUT, b"bye\n")


def test_timeout_reaches_a_stopped_command() -> None:
    began = time.monotonic()
    result = once("kill -STOP $$", timeout=0.2, grace=5)
    assert (result.signal, result.reason) == (15, ExitReason.TIMEOUT)
    assert time.monotonic() - began < 3


DAEMONS = """
import os, time
for _ in range(10):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
        os._exit(0)
time.sleep(60)
"""


def test_ten_double_forked_daemons_die_with_their_command() -> None:
    mark = f"MARK={secrets.token_hex(8)}"

    async def go() -> None:
        async with local_box() as box:
            request = ExecRequest(
                ("python3", "-c", DAEMONS), env=dict([mark.split("=")]), grace=0.1
            )
            task = asyncio.create_task(box.exec(request))
            for _ in range(200):
                if len(processes_with(mark)) == 11:
                    break
                await asyncio.sleep(0.02)
            assert len(processes_with(mark)) == 11
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert processes_with(mark) == []

    asyncio.run(go())


def test_cancelled_at_any_moment_nothing_is_left() -> None:
    mark = f"MARK={secrets.token_hex(8)}"
    moments = random.Random(7)

    async def go() -> None:
        async with local_box() as box:
            for _ in range(25):
                request = shell("sleep 60 & sleep 60", env=dict([mark.split("=")]), grace=0.05)
                task = asyncio.create_task(box.exec(request))
                await asyncio.sleep(moments.uniform(0, 0.01))
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert processes_with(mark) == []
            assert (await run(box, "echo still here")).ok

    asyncio.run(go())


def test_a_hundred_commands_at_once_keep_their_own_output() -> None:
    async def go() -> list[ExecResult]:
        async with local_box() as box:
            scripts = [run(box, f"echo {i}; exit {i}") for i in range(100)]
            return await asyncio.gather(*scripts)

    results = asyncio.run(go())
    assert [(r.code, r.stdout.data) for r in results] == [(i, b"%d\n" % i) for i in range(100)]


def test_more_commands_than_there_is_room_for_wait_and_harm_nobody() -> None:
    async def go() -> None:
        async with local_box() as box:
            tasks = [asyncio.create_task(run(box, "sleep 0.3; echo ok")) for _ in range(230)]
            done = await asyncio.gather(*tasks)
            assert all(r.stdout.data == b"ok\n" for r in done)
            assert (await run(box, "true")).ok

    asyncio.run(go())


def test_a_killed_keeper_is_said_and_no_code_is_invented() -> None:
    mark = f"MARK={secrets.token_hex(8)}"

    async def go() -> ExecResult:
        async with local_box() as box:
            request = shell(
                "sleep 60 & setsid sleep 60 & sleep 0.1; kill -9 $PPID; sleep 60",
                env=dict([mark.split("=")]),
            )
            result = await box.exec(request)
            assert processes_with(mark) == []
            assert (await run(box, "echo well")).ok
            return result

    result = asyncio.run(go())
    assert (result.code, result.signal, result.reason) == (None, None, ExitReason.KEEPER_LOST)
    assert result.usage.user is None


@pytest.mark.slow
def test_a_keeper_that_is_stopped_is_replaced_by_the_supervisor() -> None:
    mark = f"MARK={secrets.token_hex(8)}"

    async def go() -> ExecResult:
        async with local_box() as box:
            request = shell(
                "kill -STOP $PPID; sleep 60", env=dict([mark.split("=")]), timeout=0.2, grace=0.1
            )
            result = await box.exec(request)
            assert processes_with(mark) == []
            return result

    assert asyncio.run(go()).reason in {ExitReason.KEEPER_LOST, ExitReason.TIMEOUT}


def test_usage_counts_children_and_orphans() -> None:
    burn = "x=0; while [ $x -lt 200000 ]; do x=$((x+1)); done"
    result = once(f"sh -c '{burn}' & wait")
    assert result.usage.user is not None
    assert result.usage.user > 0.05


def test_the_workload_dies_first_when_memory_is_short() -> None:
    assert once("cat /proc/self/oom_score_adj").stdout.data == b"1000\n"


def test_the_workload_gains_no_privilege_from_set_uid_programs() -> None:
    assert b"NoNewPrivs:\t1" in once("grep NoNewPrivs /proc/self/status").stdout.data
