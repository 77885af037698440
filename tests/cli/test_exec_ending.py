"""What the end of `harness exec` leaves unsaid, or says wrongly."""

from __future__ import annotations

import os
import signal
import threading
import time

from harness.cli.exec import ending
from harness.values.commands import ExitReason
from harness.values.limits import MIB
from tests.tools.conftest import ended


def test_too_much_output_names_the_limit_and_its_setting(harness, monkeypatch):
    monkeypatch.setenv("HARNESS_LIMITS_OUTPUT", "64KiB")
    done = harness("exec", "--", "sh", "-c", "yes")
    assert done.code in {137, 143}
    assert "printed more than 64 KiB (the setting `limits.output`)" in done.err


def test_a_killed_command_never_ends_with_its_own_zero():
    result = ended(0, reason=ExitReason.OUTPUT_LIMIT)
    assert ending(result, MIB) == (
        137,
        "killed: it printed more than 1 MiB (the setting `limits.output`)",
    )


def test_an_interrupt_tells_how_to_see_what_was_changed(harness, repo, tmp_path):
    """The box's own folder is not known here, so the record tells that the command began."""

    def interrupt():
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            logs = tmp_path.glob("state/harness/sessions/*/events.jsonl")
            if any(b'"tool.started"' in log.read_bytes() for log in logs):
                break
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    done = harness("exec", "--", "sh", "-c", "echo x > made; sleep 30")
    waiting.join()
    assert done.code == 130
    (log,) = tmp_path.glob("state/harness/sessions/*")
    assert f"harness: 1 file changed: harness diff {log.name}\n" in done.err
