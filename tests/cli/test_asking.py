"""Who is asked, and that the question and its answer work on a real terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time

import pytest

from harness.cli import asking
from harness.errors import ConfigError

pytestmark = pytest.mark.local


def test_without_a_terminal_nobody_is_asked_and_ask_is_refused(monkeypatch):
    monkeypatch.setattr(asking, "_TERMINAL", "/nonexistent")
    assert asking.attended(None) is False
    assert asking.attended("deny") is False
    with pytest.raises(ConfigError, match="needs a terminal"):
        asking.attended("ask")


def test_a_person_is_asked_only_where_one_sits(monkeypatch):
    monkeypatch.setattr(asking, "_TERMINAL", os.devnull)
    for stdin, stderr in ((True, True), (True, False), (False, True)):
        monkeypatch.setattr("sys.stdin.isatty", lambda value=stdin: value)
        monkeypatch.setattr("sys.stderr.isatty", lambda value=stderr: value)
        assert asking.attended(None) is (stdin and stderr)
    assert asking.attended("ask") is True


def at_a_terminal(argv: list[str], answers: list[bytes]) -> tuple[int, str]:
    """Run harness as the leader of a terminal of its own, answering each question."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        os.execv(sys.executable, [sys.executable, "-m", "harness.cli.main", *argv])
    seen = b""
    asked = 0
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not select.select([fd], [], [], 0.5)[0]:
            continue
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
        if seen.count(b"anything else: no > ") > asked:
            os.write(fd, answers[asked])
            asked += 1
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), seen.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_a_question_on_a_terminal_is_answered_there(environment, repo, script):
    model = script(
        ("shell", {"command": "echo one; echo two"}),
        ("write_file", {"path": "b.py", "content": "x\x07\u202e"}),
    )
    argv = ["run", "x", "--repo", str(repo), "--model", model]
    code, seen = at_a_terminal(argv, [b"n\n", b"y\n"])
    text = re.sub(r"\x1b\[[0-9;]*m", "", seen)
    assert code == 0
    assert "policy   ask-before-write (asks you)" in text
    assert "content: x<U+0007><U+202E>" in text
    assert "refused by person" in text
    assert "admitted by person" in text
    assert "A b.py" in text
    assert "\x07" not in seen
    assert "\u202e" not in seen
