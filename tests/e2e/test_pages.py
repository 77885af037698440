"""Commands that the pages tell people to type, typed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import harness
from tests.meta.source import ROOT

BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)

BY_CI = {"make demo", "make test", "make check"}
BY_HAND = {"make setup", "make bench", "pipx install ."}
"""Set-up runs before any test; `pipx install` is `pip install` into an environment of its own,
which `test_an_installed_package_brings_all_it_needs` does."""

SESSION = ["harness sessions list", "harness diff SESSION", "harness apply SESSION"]


def blocks(page: str, language: str) -> Iterator[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return (body for kind, body in BLOCK.findall(text) if kind == language)


def commands(page: str) -> list[str]:
    lines = [line for body in blocks(page, "sh") for line in body.splitlines()]
    return [line.split(" #")[0].strip() for line in lines if line.strip()]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "test_it.py").write_text("def test_it():\n    assert True\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        me = ["-c", "user.name=t", "-c", "user.email=t@t.example", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", folder, *me, *words], check=True)
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_every_command_of_the_pages_is_run_somewhere() -> None:
    typed = {*commands("README.md"), *commands("CONTRIBUTING.md")}
    tried = {*BY_CI, *BY_HAND, *SESSION, "harness exec -- id"}
    assert typed == tried
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    called = {
        f"make {word}" for line in re.findall("^make (.*)$", ci, re.M) for word in line.split()
    }
    assert called == BY_CI


@pytest.mark.sandbox
def test_the_first_command_prints_an_ordinary_user(repo: Path, state: Path) -> None:
    done = harness("exec", "--", "id", cwd=repo, state=state)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("uid=1000(agent) gid=1000(agent)")


@pytest.mark.sandbox
def test_the_commands_after_a_run(repo: Path, state: Path) -> None:
    made = harness("exec", "--", "sh", "-c", "echo two >> a.txt", cwd=repo, state=state)
    assert made.returncode == 0, made.stderr
    listed = harness(*SESSION[0].split()[1:], cwd=repo, state=state)
    assert listed.returncode == 0, listed.stderr
    (session,) = re.findall(r"\d{8}-\d{6}-\w+", listed.stdout)
    shown = harness("diff", session, cwd=repo, state=state)
    assert "+two" in shown.stdout.splitlines()
    assert (repo / "a.txt").read_text() == "one\n"
    applied = harness("apply", session, cwd=repo, state=state)
    assert applied.returncode == 0, applied.stderr
    assert (repo / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.sandbox
def test_each_users_first_command(repo: Path, state: Path) -> None:
    """The table of users: its commands, with a file where it says FILE and a command for CMD."""
    (repo / "script.yaml").write_text(
        "replies: [{calls: [{tool: read_file, args: {path: a.txt}}]}, {text: done}]\n"
    )
    (repo / "policy.yaml").write_text("version: 1\nname: mine\nextends: [full-auto]\n")
    files = {"scripted:FILE": "scripted:script.yaml", "FILE": "policy.yaml", "CMD": "git status"}
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("## Who it is for")[1]
    rows = [line for line in text.split("\n## ")[0].splitlines() if line.startswith("|")]
    typed = [shlex.split(c) for line in rows for c in re.findall(r"`(harness [^`]*)`", line)]
    assert len(typed) == 4
    for words in typed:
        given = [files.get(word, word) for word in words[1:]]
        done = harness(*given, cwd=repo, state=state)
        assert done.returncode == 0, (words, done.stdout, done.stderr)


@pytest.mark.sandbox
def test_what_the_pages_show_is_what_is_printed(repo: Path, state: Path) -> None:
    """Each `console` block: the command after `$`, then all that it prints."""
    for body in blocks("README.md", "console"):
        first, *shown = body.splitlines()
        words = shlex.split(first.removeprefix("$ "))
        assert words[0] == "harness"
        done = harness(*words[1:], cwd=repo, state=state)
        printed = (done.stdout + done.stderr).splitlines()
        assert [line.rstrip() for line in printed] == shown


@pytest.mark.sandbox
@pytest.mark.slow
def test_an_installed_package_brings_all_it_needs(tmp_path: Path, repo: Path, state: Path) -> None:
    """As `pipx install` does: no checkout beside it to take a supervisor or a policy from."""
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, str(ROOT)], check=True)
    program = folder / "bin" / "harness"
    done = harness("exec", "--", "id", "-un", cwd=repo, state=state, program=program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "agent\n", "")


@pytest.mark.slow
def test_the_version_comes_at_once() -> None:
    """At most a quarter of a second, best of five: the machine may be busy, the program may not."""
    spent: list[float] = []
    for _ in range(5):
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "harness.cli.main", "--version"],
            capture_output=True,
            cwd=ROOT,
            check=True,
        )
        spent.append(time.perf_counter() - started)
        assert done.stdout.startswith(b"harness ")
    assert min(spent) <= 0.25
