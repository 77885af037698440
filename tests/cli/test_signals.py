"""A run that is asked to stop settles: its log is closed, its patch kept, its box gone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-m", "harness.cli.main"]


@pytest.fixture
def stopped(environment, repo, script):
    """Run until the shell call has started, send signals, and read what came out."""

    def run(*signals: int, command: str, pause: float = 0.0):
        model = script(
            ("write_file", {"path": "half.txt", "content": "x\n"}),
            ("shell", {"command": command}),
        )
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(
            [*COMMAND, "run", "x", "--json", "--repo", str(repo), "--model", model],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        records = []
        for line in process.stdout:
            records.append(json.loads(line))
            if records[-1]["kind"] == "tool.started" and records[-1]["tool"] == "shell":
                break
        for number in signals:
            process.send_signal(number)
            time.sleep(pause)
        out, err = process.communicate(timeout=30)
        assert b"Traceback" not in err
        records += [json.loads(line) for line in out.splitlines()]
        return process.returncode, records, err.decode()

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_one_signal_settles_and_keeps_the_patch(stopped, number, code):
    ended, records, err = stopped(number, command="sleep 60")
    assert ended == code
    assert "keeping the patch" in err
    by_kind = {r["kind"]: r for r in records}
    assert records[-1]["kind"] == "finished"
    assert records[-1]["stop"] == "cancelled"
    assert by_kind["tool.completed"]["status"] == "interrupted"
    assert [f["path"] for f in by_kind["workspace.changed"]["files"]] == ["half.txt"]


@pytest.mark.sandbox
def test_a_second_interrupt_ends_at_once_and_the_box_ends_by_itself(stopped, monkeypatch):
    monkeypatch.setenv("HARNESS_BACKEND", "docker")
    begun = time.monotonic()
    ended, records, _ = stopped(signal.SIGINT, signal.SIGINT, command="sleep 60", pause=0.02)
    assert ended == 130
    session = records[0]["session"]
    mine = ["docker", "ps", "-aq", "--filter", f"label=harness.run={session}"]
    while subprocess.run(mine, capture_output=True, check=True).stdout:
        assert time.monotonic() - begun < 60, "the box outlives its run"
        time.sleep(0.5)
