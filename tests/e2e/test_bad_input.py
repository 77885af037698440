"""What users get wrong, and what goes wrong around them: a clear word, the right exit code,
no traceback, nothing lost, no container left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import command, harness, settings
from tests.sandbox.engines import serving

pytestmark = pytest.mark.sandbox

SCRIPT = """\
replies:
- calls: [{tool: write_file, args: {path: made.txt, content: "made\\n"}}]
- calls: [{tool: shell, args: {command: sleep 60}}]
- text: done
"""
DONE = "replies: [{text: done}]\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    return path


def told(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """The exit code, the words on stderr, and no traceback."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    assert done.stderr.startswith("harness: "), done.stderr


def boxes() -> set[str]:
    listed = subprocess.run(
        ["docker", "ps", "-aq", "--filter", "label=harness.owner"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(listed.stdout.split())


@pytest.fixture
def no_box_left() -> Iterator[None]:
    before = boxes()
    yield
    deadline = time.monotonic() + 60
    while boxes() - before and time.monotonic() < deadline:
        time.sleep(1)
    assert boxes() - before == set()


def ends(state: Path) -> list[dict[str, object]]:
    """The last record of each session, and that each log is whole."""
    found = []
    for log in sorted((state / "sessions").glob("*/events.jsonl")):
        lines = log.read_bytes().splitlines()
        found.append(json.loads(lines[-1]))
    return found


# The engine.


def test_no_engine_says_how_to_get_one(repo: Path, state: Path) -> None:
    env = {"DOCKER_HOST": f"unix://{repo}/none.sock"}
    done = harness("exec", "--", "id", cwd=repo, state=state, env=env)
    told(done, 125, "none.sock", "no")
    assert [e["kind"] for e in ends(state)] == ["failed"]


def test_no_engine_ends_the_event_stream_with_one_failed_record(
    repo: Path, state: Path, script: Path
) -> None:
    env = {"DOCKER_HOST": f"unix://{repo}/none.sock"}
    words = ["run", "x", "--json", "--model", f"scripted:{script}"]
    done = harness(*words, cwd=repo, state=state, env=env)
    told(done, 1)
    kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert kinds == ["run.started", "failed"]


def test_an_engine_that_is_too_old_is_named_with_its_version(
    tmp_path: Path, repo: Path, state: Path
) -> None:
    old = (200, {"Version": "17.03", "ApiVersion": "1.26", "MinAPIVersion": "1.12"})

    async def ask() -> subprocess.CompletedProcess[str]:
        async with serving(tmp_path, {"GET /version": old, "GET /_ping": (200, "OK")}) as (_, end):
            env = {"DOCKER_HOST": f"unix://{end.path}"}
            return await asyncio.to_thread(
                harness, "exec", "--", "id", cwd=repo, state=state, env=env
            )

    told(asyncio.run(ask()), 125, "1.26", "1.41")


def test_a_socket_without_permission_says_whom_to_ask(
    tmp_path: Path, repo: Path, state: Path
) -> None:
    """Root without its right to pass over permissions stands for a user outside the group."""
    before = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    socket = tmp_path / "engine.sock"

    async def ask() -> subprocess.CompletedProcess[str]:
        async with serving(tmp_path, {}):
            os.chown(socket, 65534, 65534)
            os.chmod(socket, 0o600)  # noqa: PTH101 - a path of an async function
            env = {"DOCKER_HOST": f"unix://{socket}"}
            return await asyncio.to_thread(
                harness, "exec", "--", "id", cwd=repo, state=state, env=env, before=before
            )

    told(asyncio.run(ask()), 125, "permission", "docker")


def test_an_image_that_is_not_there_is_not_fetched_behind_ones_back(
    repo: Path, state: Path, no_box_left: None
) -> None:
    done = harness("exec", "--image", "gone:1", "--", "id", cwd=repo, state=state)
    told(done, 125, "`gone:1`", "docker pull gone:1")


def test_a_runtime_that_is_not_there_is_named(repo: Path, state: Path, no_box_left: None) -> None:
    done = harness("exec", "--runtime", "krun9", "--", "id", cwd=repo, state=state)
    told(done, 125, "krun9")


# The repository.


def test_a_repository_that_is_none_is_named(repo: Path, state: Path) -> None:
    done = harness("exec", "--repo", "nowhere", "--", "id", cwd=repo, state=state)
    told(done, 2, "nowhere", "--repo")
    assert not (state / "sessions").exists()


def test_an_empty_repository_works(tmp_path: Path, state: Path, no_box_left: None) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    words = ["sh", "-c", "ls -A | wc -l; echo x > new"]
    done = harness("exec", "--", *words, cwd=empty, state=state)
    assert (done.returncode, done.stdout.strip()) == (0, "0")
    assert list(empty.iterdir()) == []
    assert "+x" in harness("diff", cwd=empty, state=state).stdout


def test_odd_files_are_copied_or_named(repo: Path, state: Path, no_box_left: None) -> None:
    (repo / "latin.txt").write_bytes(b"caf\xe9\n")
    Path(os.fsdecode(os.fsencode(repo) + b"/caf\xe9")).write_text("x")
    (repo / "out").symlink_to("/etc/passwd")
    os.mkfifo(repo / "pipe")
    words = ["sh", "-c", "cat latin.txt | od -c | head -1; readlink out; ls | wc -l"]
    done = harness("exec", "--json", "--", *words, cwd=repo, state=state)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    notes = " ".join(next(r["notes"] for r in records if r["kind"] == "workspace.loaded"))
    assert "pipe" in notes
    assert "out" in notes
    finished = next(r for r in records if r["kind"] == "tool.completed")
    assert finished["facts"]["code"] == 0


def test_an_unreadable_file_is_named_and_left_out(
    repo: Path, state: Path, no_box_left: None
) -> None:
    (repo / "closed.txt").write_text("secret")
    os.chown(repo / "closed.txt", 65534, 65534)
    (repo / "closed.txt").chmod(0o600)
    before = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    done = harness("exec", "--json", "--", "ls", cwd=repo, state=state, before=before)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    notes = " ".join(next(r["notes"] for r in records if r["kind"] == "workspace.loaded"))
    assert "closed.txt" in notes
    assert next(r for r in records if r["kind"] == "tool.completed")["facts"]["code"] == 0


def test_what_is_not_committed_is_what_the_box_has(
    repo: Path, state: Path, no_box_left: None
) -> None:
    git = ["git", "-C", str(repo), "-c", "user.name=t", "-c", "user.email=t@t.example"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    (repo / "a.txt").write_text("two\n")
    (repo / "b.txt").write_text("untracked\n")
    words = ["sh", "-c", "cat a.txt b.txt; git status --short; echo three >> a.txt"]
    done = harness("exec", "--", *words, cwd=repo, state=state)
    assert done.stdout == "two\nuntracked\n M a.txt\n?? b.txt\n"
    diff = harness("diff", cwd=repo, state=state).stdout
    assert "+three" in diff
    assert "untracked" not in diff


# Policies and scripts.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version: 1\nname: [\n", ["p.yaml:3"]),
        ("version: 1\nname: x\ncolour: red\n", ["p.yaml:3", "colour"]),
        ("", ["p.yaml", "empty"]),
        (b"\xff\xfe", ["p.yaml", "UTF-8"]),
        ("version: 1\nname: x\nextends: [p.yaml]\n", ["p.yaml", "circle"]),
    ],
    ids=["broken", "unknown key", "empty", "bytes", "cycle"],
)
def test_a_policy_at_fault_is_told_by_file_and_line(
    repo: Path, state: Path, text: str | bytes, words: list[str]
) -> None:
    data = text.encode() if isinstance(text, str) else text
    (repo / "p.yaml").write_bytes(data)
    done = harness("exec", "--policy", "p.yaml", "--", "id", cwd=repo, state=state)
    told(done, 2, *words)
    assert not (state / "sessions").exists()


def test_a_row_that_cannot_be_read_is_told_and_the_rest_holds(
    repo: Path, state: Path, no_box_left: None
) -> None:
    rows = "- id: a\n  allow: {comand: ls}\n"
    (repo / "p.yaml").write_text(f"version: 1\nname: p\nextends: [full-auto]\nrules:\n{rows}")
    done = harness("exec", "--policy", "p.yaml", "--", "id", "-u", cwd=repo, state=state)
    assert (done.returncode, done.stdout) == (0, "1000\n")
    assert "p.yaml:6" in done.stderr
    assert "comand" in done.stderr


def test_a_policy_that_is_not_there_names_those_that_are(repo: Path, state: Path) -> None:
    done = harness("exec", "--policy", "strict", "--", "id", cwd=repo, state=state)
    told(done, 2, "`strict`", "full-auto", "read-only")


def test_a_mode_that_no_policy_has_is_named(repo: Path, state: Path) -> None:
    done = harness("exec", "--mode", "yolo", "--", "id", cwd=repo, state=state)
    told(done, 2, "`yolo`")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("replies:\n- calls:\n  - {tool: magic}\n", ["s.yaml:3", "`magic`", "read_file"]),
        ("replies: {\n", ["s.yaml:2"]),
        ("replies:\n- say: hi\n", ["s.yaml:2", "say"]),
    ],
)
def test_a_script_at_fault_is_told_by_file_and_line(
    repo: Path, state: Path, text: str, words: list[str]
) -> None:
    (repo / "s.yaml").write_text(text)
    done = harness("run", "x", "--model", "scripted:s.yaml", cwd=repo, state=state)
    told(done, 2, *words)


@pytest.mark.parametrize(
    ("model", "words"),
    [("", ["HARNESS_MODEL"]), ("scripted:none.yaml", ["none.yaml"]), ("magic/x", ["`magic/x`"])],
)
def test_a_model_that_is_none_is_told(
    repo: Path, state: Path, model: str, words: list[str]
) -> None:
    done = harness("run", "x", *(["--model", model] if model else []), cwd=repo, state=state)
    told(done, 2, *words)


def test_sessions_inside_the_repository_are_refused(repo: Path) -> None:
    done = harness("exec", "--", "id", cwd=repo, state=repo / "state")
    told(done, 2, "HARNESS_STATE")


# Signals, and a store that fills up.


def _started(repo: Path, state: Path, script: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*command(), "run", "x", "--json", "--model", f"scripted:{script}"],
        cwd=repo,
        env=settings(state),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        record = json.loads(line)
        if record["kind"] == "tool.started" and record["tool"] == "shell":
            return process
    raise AssertionError(process.communicate()[1])


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_settles_the_run_and_keeps_its_patch(
    repo: Path, state: Path, script: Path, number: signal.Signals, code: int, no_box_left: None
) -> None:
    process = _started(repo, state, script)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    records = [json.loads(line) for line in out.splitlines()]
    assert records[-1]["kind"] == "finished"
    assert records[-1]["stop"] == "cancelled"
    done = [r for r in records if r["kind"] == "tool.completed"]
    assert [r["status"] for r in done] == ["interrupted"]
    assert "+made" in harness("diff", cwd=repo, state=state).stdout
    assert not (repo / "made.txt").exists()


def test_a_second_interrupt_ends_at_once_and_leaves_nothing(
    repo: Path, state: Path, script: Path, no_box_left: None
) -> None:
    process = _started(repo, state, script)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    began = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 5
    assert process.returncode == 130
    assert "Traceback" not in err
    (session,) = (state / "sessions").iterdir()
    verified = harness("sessions", "verify", session.name, cwd=repo, state=state)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_killed_run_leaves_no_container_and_a_log_that_verifies(
    repo: Path, state: Path, script: Path, no_box_left: None
) -> None:
    process = _started(repo, state, script)
    process.kill()
    process.communicate()
    (session,) = (state / "sessions").iterdir()
    verified = harness("sessions", "verify", session.name, cwd=repo, state=state)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_full_disk_under_the_sessions_ends_the_run_with_whole_records(
    repo: Path, state: Path, script: Path, tmp_path: Path, no_box_left: None
) -> None:
    """The file size limit of the process stands for the disk."""
    limited = tmp_path / "limited.py"
    limited.write_text(
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "from harness.cli.main import main\n"
        "sys.exit(main())\n"
    )
    words = ["run", "x", "--json", "--model", f"scripted:{script}"]
    done = subprocess.run(
        [sys.executable, str(limited), *words],
        cwd=repo,
        env=settings(state) | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "free some space" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["kind"] == "failed"
    (log,) = (state / "sessions").glob("*/events.jsonl")
    assert log.read_bytes().endswith(b"\n")
