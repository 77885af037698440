"""Changes that could not be read back must be missed aloud."""

from __future__ import annotations

import pytest

from harness.errors import SandboxError
from harness.workspace.copy import CopyWorkspace

pytestmark = pytest.mark.local

WORDS = "the last changes could not be read and are not in the patch: the box is too full"
SLEEPY = {"command": "echo x > made; sleep 30"}


@pytest.fixture
def unreadable(monkeypatch):
    """A box whose changes can be read until `made` is there."""
    known = CopyWorkspace.changes

    async def changes(self, box):
        found = await known(self, box)
        if any(change.path == "made" for change in found.files):
            raise SandboxError("the box is too full")
        return found

    monkeypatch.setattr(CopyWorkspace, "changes", changes)


@pytest.mark.usefixtures("unreadable")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_exec_says_so_in_every_mode(harness, interrupted, options):
    with interrupted():
        done = harness("exec", *options, "--", "sh", "-c", SLEEPY["command"])
    assert done.code == 130
    assert done.err.count(WORDS) == 1


@pytest.mark.usefixtures("unreadable")
def test_the_card_and_diff_say_so(harness, interrupted, script, tmp_path):
    model = script(("write_file", {"path": "kept", "content": "x\n"}), ("shell", SLEEPY))
    with interrupted():
        done = harness("run", "x", "--model", model)
    assert " ".join(done.out.split()).count(WORDS) == 2
    (folder,) = tmp_path.glob("state/harness/sessions/*")
    shown = harness("diff", folder.name)
    assert shown.err.startswith(f"harness: {WORDS}\n")


@pytest.mark.usefixtures("unreadable")
def test_diff_says_so_of_a_run_that_broke_on_it(harness, script, tmp_path):
    model = script(
        ("write_file", {"path": "kept", "content": "x\n"}),
        ("write_file", {"path": "made", "content": "x\n"}),
    )
    assert harness("run", "x", "--model", model).code == 1
    (folder,) = tmp_path.glob("state/harness/sessions/*")
    shown = harness("diff", folder.name)
    assert "+x" in shown.out
    assert shown.err.startswith(f"harness: {WORDS}\n")
