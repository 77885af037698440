"""What the end of `harness exec` leaves unsaid, or says wrongly."""

from __future__ import annotations

import pytest

from harness.cli.exec import ending
from harness.values.commands import ExitReason
from harness.values.limits import MIB
from tests.tools.conftest import ended

pytestmark = pytest.mark.local


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


def test_an_interrupt_tells_how_to_see_what_was_changed(harness, interrupted, tmp_path):
    with interrupted():
        done = harness("exec", "--", "sh", "-c", "echo x > made; sleep 30")
    assert done.code == 130
    (log,) = tmp_path.glob("state/harness/sessions/*")
    assert f"harness: 1 file changed: harness diff {log.name}\n" in done.err
