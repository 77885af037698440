"""The command line in this process, on a repository and a state folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from harness.cli.main import main


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def session(self) -> str:
        return self.records[0]["session"]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.py").write_text("print(1)\n")
    return folder


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Only what stands here is configured. The local backend runs without Docker."""
    values = {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "HARNESS_BACKEND": "local",
        "HARNESS_ASSUME_ISOLATED": "true",
        "NO_COLOR": "1",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    for name in ("HARNESS_MODEL", "HARNESS_POLICY", "HARNESS_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return values


@pytest.fixture
def harness(
    repo: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Ended]:
    """Type a command in the repository."""
    monkeypatch.chdir(repo)

    def run(*argv: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["harness", *argv])
        try:
            code = main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Ended(code, out, err)

    return run


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """A scripted model that makes these calls, one a reply, and then says `done`."""

    def write(*calls: tuple[str, dict], end: str = "done") -> str:
        replies = [{"text": "", "calls": [{"tool": t, "args": a}]} for t, a in calls]
        path = tmp_path / "script.yaml"
        path.write_text(yaml.safe_dump({"replies": [*replies, {"text": end}]}))
        return f"scripted:{path}"

    return write


@pytest.fixture
def interrupted(tmp_path: Path) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """Presses Ctrl-C a moment after the first command began; its record tells when."""

    def press() -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            logs = tmp_path.glob("state/harness/sessions/*/events.jsonl")
            if any(b'"tool.started"' in log.read_bytes() for log in logs):
                break
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    @contextlib.contextmanager
    def waiting() -> Generator[None]:
        thread = threading.Thread(target=press)
        thread.start()
        yield
        thread.join()

    return waiting
