"""What a model learns of a command, whatever the command printed or however it ended."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from harness.tools import Shell
from harness.values.calls import Status
from harness.values.commands import Captured, ExitReason
from harness.values.limits import MIB


def run(box, context, command="x", *, timeout=None, **args):
    return asyncio.run(
        Shell(600.0, 10 * MIB).run({"command": command, **args}, context(timeout=timeout))
    )


def test_streams_are_merged_and_the_last_line_is_the_exit_code(box, context):
    out = run(box, context, "echo one; echo two >&2; exit 3")
    assert (out.status, out.text) == (Status.OK, "one\ntwo\nexit code 3")
    assert out.facts["code"] == 3
    assert box.asked[0].argv == ("bash", "-c", "--", "echo one; echo two >&2; exit 3")


def test_no_output_is_said(box, context):
    assert run(box, context, "true").text == "(no output)\nexit code 0"


def test_a_killed_command_names_the_signal(box, context):
    assert run(box, context, "kill -9 $$").text == "(no output)\n[killed by SIGKILL]"


@pytest.mark.parametrize(
    ("reason", "status", "word"),
    [
        (ExitReason.TIMEOUT, Status.TIMEOUT, "partial"),
        (ExitReason.OOM, Status.ERROR, "out of memory"),
        (ExitReason.OUTPUT_LIMIT, Status.ERROR, "more than 10,485,760 bytes"),
        (ExitReason.CANCELLED, Status.INTERRUPTED, "cancelled"),
        (ExitReason.KEEPER_LOST, Status.ERROR, "not known"),
    ],
)
def test_every_ending_but_an_exit_is_told_with_the_partial_output(
    box, context, result, reason, status, word
):
    box.script = lambda _: result(None, b"half", reason=reason, signal=9)
    out = run(box, context)
    assert (out.status, out.text.splitlines()[0]) == (status, "half")
    assert word in out.text.splitlines()[-1]
    assert "exit code" not in out.text.splitlines()[-1].replace("its exit code is not", "")


def test_processes_left_running_are_told(box, context, result):
    box.script = lambda _: result(0, left_running=2)
    assert run(box, context).text.endswith("[2 background processes are still running]")


def test_the_middle_of_a_long_output_is_kept_in_the_box(box, context):
    out = run(box, context, "seq 1 20000")
    whole = "".join(f"{i}\n" for i in range(1, 20001)).encode()
    assert box.written == {"/tmp/harness/call-1.log": whole}
    lines = out.text.splitlines()
    assert lines[0] == "1"
    assert lines[-2:] == ["20000", "exit code 0"]
    gap = next(line for line in lines if "left out" in line)
    assert f"{len(whole):,} bytes" in gap
    assert "/tmp/harness/call-1.log" in gap
    assert all(line.isdigit() for line in lines[:-1] if line != gap)
    assert len(out.text) < 17 * 1024


def test_a_gap_in_what_was_kept_is_told(box, context, result):
    captured = Captured(b"a\n" * 50_000, b"z\n" * 50_000, 900_000)
    box.script = lambda _: replace(result(0), stdout=captured)
    out = run(box, context)
    assert "without the middle 700,000 bytes" in out.text


def test_no_room_in_the_box_is_told_and_nothing_fails(box, context):
    box.full = True
    out = run(box, context, "seq 1 20000")
    assert "had no room" in out.text
    assert "read_file" not in out.text
    assert out.status is Status.OK


def test_the_shortest_of_the_time_limits_holds(box, context):
    run(box, context, timeout=50.0)
    run(box, context, timeout=5.0)
    asyncio.run(Shell(600.0, MIB).run({"command": "x", "timeout": 7}, context(timeout=50.0)))
    assert [r.timeout for r in box.asked if r.argv[-1] == "x"] == [50.0, 5.0, 7.0]


def test_an_image_without_bash_gets_sh_and_is_asked_once(box, context):
    box.absent = frozenset({"bash"})
    shell = Shell(600.0, MIB)

    async def twice():
        await shell.run({"command": "exit 4"}, context())
        return await shell.run({"command": "exit 5"}, context())

    assert asyncio.run(twice()).text == "(no output)\nexit code 5"
    assert [r.argv[0] for r in box.asked] == ["bash", "bash", "sh", "sh"]


def test_a_missing_program_does_not_run_the_command_again(box, context):
    out = run(box, context, "echo once >> count; no-such-program")
    assert out.text.splitlines()[-1] == "exit code 127"
    assert Path(box.root, "count").read_text() == "once\n"


def test_command_lines_that_look_like_options_are_commands(box, context):
    assert run(box, context, "--version").facts["code"] == 127
