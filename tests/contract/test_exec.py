"""Commands: results, ends, trees, output. Every backend with real processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from harness.values.commands import ExecRequest, ExitReason
from tests.contract.stations import Station


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_an_exit_code_is_exact(real: Station, code: int) -> None:
    result = real.sh(f"exit {code}")
    assert (result.code, result.signal, result.reason) == (code, None, ExitReason.EXITED)
    assert result.ok == (code == 0)


@pytest.mark.parametrize("signal", [9, 15, 11])
def test_death_by_a_signal_is_no_code(real: Station, signal: int) -> None:
    result = real.sh(f"kill -{signal} $$")
    assert (result.code, result.signal, result.reason) == (None, signal, ExitReason.EXITED)


def test_a_missing_program_is_127_with_words(station: Station) -> None:
    result = station.exec("no-such-program-here")
    assert (result.code, result.signal) == (127, None)
    assert b"no-such-program-here" in result.stderr.data


def test_a_file_that_is_no_program_is_126(real: Station) -> None:
    path = real.write(real.folder(), b"data", mode=0o644)
    result = real.exec(path)
    assert result.code == 126
    assert result.stderr.data


def test_the_streams_are_apart_and_bytes_are_kept(real: Station) -> None:
    result = real.sh(r"printf 'a\0\377\n'; printf 'e\302' >&2")
    assert result.stdout.data == b"a\0\xff\n"
    assert result.stderr.data == b"e\xc2"


def test_merged_streams_keep_their_order(real: Station) -> None:
    result = real.sh("for i in 1 2 3; do echo o$i; echo e$i >&2; done", merge=True)
    assert result.stdout.data == b"o1\ne1\no2\ne2\no3\ne3\n"
    assert result.stderr.total == 0


def test_input_arrives_whole(real: Station) -> None:
    data = bytes(range(256)) * 4096
    assert real.exec("cat", stdin=data, head=len(data)).stdout.data == data


def test_no_input_is_an_empty_one(real: Station) -> None:
    assert real.exec("cat").stdout.total == 0
    assert real.exec("cat", stdin=b"").stdout.total == 0


def test_input_that_nobody_reads_holds_nothing_up(real: Station) -> None:
    assert real.exec("true", stdin=bytes(4 << 20)).ok


async def _for_ever() -> AsyncIterator[bytes]:
    yield b"one\n"
    yield b"two\n"
    await asyncio.Event().wait()


def test_input_that_is_still_to_come_does_not_keep_a_command(real: Station) -> None:
    assert real.exec("head", "-n", "2", stdin=_for_ever()).stdout.data == b"one\ntwo\n"
    assert real.exec("true", stdin=_for_ever()).ok


def test_environment_comes_from_the_box_and_the_request(real: Station) -> None:
    words = real.out('echo "$FROM_SPEC $BOTH $MINE"', env={"BOTH": "request", "MINE": "a b"})
    assert words == "spec request a b\n"


def test_the_users_place_is_set(real: Station) -> None:
    words = real.out('[ -d "$HOME" ] && [ -w "$HOME" ] && [ -w "$TMPDIR" ] && echo "$PATH"')
    assert "/usr/bin" in words


def test_work_begins_at_the_root_or_where_told(real: Station) -> None:
    assert real.out("pwd -P").strip() == real.box.root
    place = real.folder()
    real.write(f"{place}/x")
    assert real.out("pwd -P", cwd=place).strip() == place


def test_a_missing_working_directory_is_a_failed_command(real: Station) -> None:
    result = real.exec("true", cwd=f"{real.folder()}/none")
    assert not result.ok
    assert result.stderr.data


def test_long_arguments_pass(real: Station) -> None:
    word = "é" * 50_000
    assert real.exec("printf", "%s", word, head=200_000).stdout.data == word.encode()


def test_a_timeout_kills_grandchildren_that_left_the_group(real: Station) -> None:
    started = time.monotonic()
    result = real.sh("(setsid sleep 4242 &); sleep 4242 & sleep 4242", timeout=0.4, grace=0.3)
    assert result.reason is ExitReason.TIMEOUT
    assert result.code is None or result.signal is None
    assert time.monotonic() - started < 5
    assert real.running("4242") == 0


def test_a_timeout_asks_before_it_kills(real: Station) -> None:
    script = "trap 'echo bye; exit 7' TERM; sleep 4343 & wait"
    result = real.sh(script, timeout=0.4, grace=5.0)
    assert result.reason is ExitReason.TIMEOUT
    assert result.stdout.data == b"bye\n"
    assert result.usage.wall < 4


def test_who_does_not_listen_is_killed(real: Station) -> None:
    result = real.sh("trap '' TERM; while :; do sleep 1; done", timeout=0.3, grace=0.3)
    assert result.reason is ExitReason.TIMEOUT
    assert 0.3 <= result.usage.wall < 4


def test_a_cancelled_call_leaves_nothing_running(real: Station) -> None:
    async def go() -> None:
        argv = ("sh", "-c", "(setsid sleep 4444 &); sleep 4444")
        task = asyncio.create_task(real.box.exec(ExecRequest(argv, grace=0.2)))
        await asyncio.sleep(0.4)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)

    real.run(go())
    assert real.running("4444") == 0


def test_a_background_child_does_not_hold_the_call(real: Station) -> None:
    result = real.sh("sleep 4545 & echo started", timeout=20)
    assert result.ok
    assert result.stdout.data == b"started\n"
    assert result.usage.wall < 5
    assert result.left_running >= 1
    assert real.running("4545") == 1


def test_background_children_end_with_the_command_on_request(real: Station) -> None:
    result = real.sh("sleep 4646 & (setsid sleep 4646 &) ; echo started", kill_left=True)
    assert result.ok
    assert result.left_running == 0
    assert real.running("4646") == 0


def test_a_box_made_quiet_holds_its_files_and_no_processes(real: Station) -> None:
    path = real.write(real.folder(), b"kept")
    assert real.sh("sleep 4747 & (setsid sleep 4747 &) ; true").left_running >= 2
    real.run(real.box.quiet())
    assert real.running("4747") == 0
    assert real.run(real.box.read(path)) == b"kept"


def test_a_box_in_which_nothing_runs_may_be_made_quiet(station: Station) -> None:
    path = station.write(station.folder(), b"kept")
    station.run(station.box.quiet())
    station.run(station.box.quiet())
    assert station.run(station.box.read(path)) == b"kept"


def test_output_after_the_first_process_ended_is_kept(real: Station) -> None:
    assert real.sh("(sleep 0.02; echo late) & echo early").stdout.data == b"early\nlate\n"


def test_a_cap_keeps_both_ends(real: Station) -> None:
    whole = "".join(f"{n}\n" for n in range(20_000)).encode()
    script = "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done"
    kept = real.sh(script, head=100, tail=50).stdout
    assert (kept.head, kept.tail, kept.total) == (whole[:100], whole[-50:], len(whole))
    assert kept.truncated


def test_more_output_than_allowed_ends_the_command(real: Station) -> None:
    result = real.sh(
        "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done", limit=200_000
    )
    assert result.reason is ExitReason.OUTPUT_LIMIT
    assert result.stdout.total >= 200_000
    assert result.usage.wall < 10


def test_much_output_comes_through_whole(real: Station) -> None:
    result = real.exec("head", "-c", "9000000", "/dev/zero", head=10, tail=10)
    assert result.ok
    assert result.stdout.total == 9_000_000


def test_a_sink_sees_everything_as_it_comes(real: Station) -> None:
    seen: list[tuple[str, bytes]] = []
    request = ExecRequest(("sh", "-c", "echo a; echo b >&2; sleep 0.1; echo c"), head=1, tail=0)
    real.run(real.box.exec(request, lambda stream, data: seen.append((stream, data))))
    assert b"".join(d for s, d in seen if s == "stdout") == b"a\nc\n"
    assert b"".join(d for s, d in seen if s == "stderr") == b"b\n"


def test_commands_run_side_by_side_and_do_not_mix(real: Station) -> None:
    async def go() -> list[bytes]:
        async def one(n: int) -> bytes:
            argv = ("sh", "-c", f"sleep 0.2; for i in 1 2 3; do echo {n}; done")
            return (await real.box.exec(ExecRequest(argv, timeout=20))).stdout.data

        return await asyncio.gather(*(one(n) for n in range(10)))

    started = time.monotonic()
    assert real.run(go()) == [f"{n}\n".encode() * 3 for n in range(10)]
    assert time.monotonic() - started < 10


def test_usage_is_measured_with_children(real: Station) -> None:
    loop = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    usage = real.sh(f"sh -c '{loop}'; sleep 0.2").usage
    assert usage.wall >= 0.2
    assert usage.user is not None
    assert usage.system is not None
    assert 0.005 < usage.user + usage.system < usage.wall
    assert usage.max_rss is not None
    assert 200_000 < usage.max_rss < 100_000_000


@pytest.mark.parametrize("argv", [("a\0b",), ("true", "a\0b")])
def test_a_word_with_a_zero_byte_is_a_failed_command(real: Station, argv: tuple[str, ...]) -> None:
    result = real.exec(*argv)
    assert not result.ok
    assert result.stderr.data
