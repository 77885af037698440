"""Bad input and every way a command ends: the right code, a clear line, no traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import __version__
from harness.cli import main as edge

pytestmark = pytest.mark.local


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["run"], "Missing argument"),
        (["bogus"], "No such command"),
        (["exec", "--bogus", "--", "id"], "No such option"),
        (["run", "x"], "no model is named"),
        (["run", "", "--model", "scripted:x"], "the task is empty"),
        (["run", "x", "--model", "scripted:nope.yaml"], "nope.yaml: cannot be read"),
        (["run", "x", "--model", "nobody/nothing"], "no wire for `nobody/nothing`"),
        (["run", "x", "--policy", "nope"], "there is no policy `nope`"),
        (["run", "x", "--max-turns", "many"], "`--max-turns`: `many` is no whole number"),
        (["run", "x", "--timeout", "soon"], "`--timeout`: `soon` is no duration"),
        (["run", "x", "--memory", "big"], "`--memory`: `big` is no size"),
        (["run", "x", "--timeout", "0s"], "`--timeout`: `0s` is no duration above"),
        (["exec", "--timeout", "0s", "--", "id"], "`--timeout`: `0s` is no"),
        (["exec", "--cpus", "0", "--", "id"], "`--cpus"),
        (["run", "x", "--approve", "maybe"], "`--approve maybe` is unknown"),
        (["run", "x", "--approve", "pause"], "not built yet"),
        (["exec", "--env", "A=secret", "--", "id"], "`--env A` takes a name alone"),
        (["exec", "--env", "NOT_SET_ANYWHERE", "--", "id"], "is not set"),
        (["exec", "--repo", "/nonexistent", "--", "id"], "is no folder"),
        (["exec", "--backend", "tank", "--", "id"], "tank"),
        (["diff", "nope"], "nope"),
        (["diff"], "no session has changes"),
        (["sessions", "show", "nope"], "nope"),
        (["policy", "explain"], "give a command"),
        (["policy", "explain", "--args", "{"], "no JSON"),
        (["policy", "explain", "--args", "[1]"], "no JSON object"),
    ],
)
def test_what_the_user_gave_wrong_is_code_2_with_a_reason(harness, argv, words):
    done = harness(*argv)
    assert done.code == 2
    assert words in done.err
    assert "secret" not in done.err
    assert done.out == ""


def test_a_broken_policy_is_named_by_file_and_line(harness, script, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nname: [\n")
    done = harness("run", "x", "--model", script(), "--policy", str(bad))
    assert done.code == 2
    assert done.err.startswith(f"harness: {bad}:3: ")


def test_a_script_with_an_unknown_tool_is_refused_before_anything_starts(harness, script, tmp_path):
    done = harness("run", "x", "--model", script(("teleport", {})))
    assert done.code == 2
    assert "teleport" in done.err
    assert not list(tmp_path.glob("state/harness/sessions/*"))


def test_version_and_help(harness):
    assert harness("--version").out == f"harness {__version__}\n"
    assert "exec" in harness("--help").out
    assert harness("run", "--help").code == 0


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["true"], 0, ""),
        (["sh", "-c", "exit 3"], 3, ""),
        (["sh", "-c", "kill -9 $$"], 137, ""),
        (["no-such-program"], 127, ""),
        (["git", "push", "--force"], 126, "vcs.publish [high]"),
        (["sh", "-c", "exit 126"], 126, ""),
    ],
)
def test_exec_ends_as_the_command_does_or_says_why_not(harness, command, code, words):
    done = harness("exec", "--", *command)
    assert done.code == code
    assert words in done.err
    assert ("refused" in done.err) is bool(words)


def test_exec_is_killed_at_its_time_limit(harness):
    done = harness("exec", "--timeout", "300ms", "--", "sleep", "30")
    assert done.code == 124
    assert done.err.startswith("harness: killed at the time limit, after ")


def test_a_box_that_cannot_be_had_is_125_and_never_the_commands_code(harness, monkeypatch):
    monkeypatch.delenv("HARNESS_ASSUME_ISOLATED")
    done = harness("exec", "--", "true")
    assert done.code == 125
    assert done.err.startswith("harness: ")
    assert done.err.count("\n") == 1


def test_without_an_engine_each_command_says_how_to_get_one(harness, script, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    monkeypatch.setenv("HARNESS_BACKEND", "docker")
    for code, argv in (
        (125, ["exec", "--", "true"]),
        (1, ["run", "x", "--model", script()]),
        (1, ["sandbox", "list"]),
    ):
        done = harness(*argv)
        assert done.code == code
        assert done.err.startswith("harness: no container engine answers at unix:///nonexistent")
    found = json.loads(harness("doctor", "--json").out)
    assert [row["state"] for row in found if row["name"] == "engine"] == ["bad"]


@pytest.mark.parametrize("place", ["/proc", "/dev/null"])
def test_a_store_that_cannot_be_written_is_told_before_anything_runs(harness, monkeypatch, place):
    monkeypatch.setenv("XDG_STATE_HOME", place)
    done = harness("exec", "--", "sh", "-c", "echo ran >&2")
    assert done.code == 125
    assert "cannot write session" in done.err
    assert "ran\n" not in done.err


def test_exec_json_is_the_event_stream_and_nothing_else(harness):
    done = harness("exec", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 5")
    kinds = [record["kind"] for record in done.records]
    assert done.code == 5
    assert (kinds[0], kinds[-1]) == ("run.started", "finished")
    assert {"tool.resolved", "tool.started", "tool.completed"} <= set(kinds)
    completed = next(r for r in done.records if r["kind"] == "tool.completed")
    assert completed["facts"]["code"] == 5
    assert completed["text"] == "out\n[stderr]\nerr"
    assert done.err == ""


def test_a_run_in_json_is_the_session_log_line_by_line(harness, script, tmp_path):
    done = harness("run", "x", "--json", "--model", script(("shell", {"command": "echo hi"})))
    assert done.code == 0
    (log,) = tmp_path.glob("state/harness/**/events.jsonl")
    assert done.out == log.read_text()


UNSEEN = (
    "python3 -c \"import os; p = '.gi' + 'thub/work' + 'flows'; os.makedirs(p); "
    "open(p + '/ci.' + 'yml', 'w').write('y' + chr(10))\""
)
"""Writes a CI file in a way that no reading of text can see; the patch still tells."""


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([], 0, "completed  after 2 turns"),
        (["--max-turns", "1"], 3, "max_turns  after 1 turn"),
        (["--timeout", "400ms"], 3, "max_duration"),
    ],
)
def test_a_run_ends_with_a_card_and_the_code_of_its_outcome(harness, script, options, code, words):
    command = "sleep 2" if "--timeout" in options else "true"
    done = harness("run", "x", "--model", script(("shell", {"command": command})), *options)
    assert done.code == code
    assert words in done.out
    assert "tokens   unknown" in done.out


def test_a_script_that_runs_out_is_a_broken_run(harness, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("replies:\n- calls: [{tool: list_files, args: {}}]\n")
    done = harness("run", "x", "--model", f"scripted:{path}")
    assert done.code == 1
    assert "failed  protocol" in done.out


def test_a_repository_with_nothing_in_it_is_no_fault(harness, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert harness("exec", "--repo", str(empty), "--", "true").code == 0


def test_a_run_is_reviewed_and_applied(harness, script, repo):
    calls = (
        ("write_file", {"path": "new.txt", "content": "x\n"}),
        ("write_file", {"path": ".github/workflows/ci.yml", "content": "y\n"}),
        ("shell", {"command": UNSEEN}),
    )
    done = harness("run", "x", "--json", "--model", script(*calls))
    session = done.session
    assert harness("sessions", "verify", session).code == 0
    assert not (repo / "new.txt").exists()

    patch = harness("diff", session)
    assert patch.out.startswith("diff --git a/.github/workflows/ci.yml")
    assert "new.txt" in harness("diff", "--stat").out

    trial = harness("apply", session, "--dry-run")
    assert trial.out.startswith("would change 1 file")
    assert not (repo / "new.txt").exists()

    assert harness("apply", session, "--include", "nope").code == 2
    applied = harness("apply", session)
    assert applied.code == 0
    assert (repo / "new.txt").read_text() == "x\n"
    assert "held back" in applied.out
    assert not (repo / ".github").exists()
    again = harness("apply", session)
    assert (again.code, (repo / ".github").exists()) == (0, False)
    assert "changed 0 files" in again.out
    assert "already as the patch leaves them: 1 file" in again.out
    rest = harness("apply", session, "--include", "./.github/")
    assert rest.code == 0, rest.err
    assert (repo / ".github/workflows/ci.yml").read_text() == "y\n"

    listed = json.loads(harness("sessions", "list", "--json").out)
    assert [(s["end"], s["changed"]) for s in listed] == [("completed", 2)]
    assert "completed  after 4 turns" in harness("sessions", "show", session).out
    assert harness("sessions", "show", "--json", session).out == done.out


def test_a_path_that_is_refused_is_not_said_to_be_absent(harness, script, repo):
    calls = [("shell", {"command": UNSEEN})]
    session = harness("run", "x", "--json", "--model", script(*calls)).session
    (repo / ".github/workflows").mkdir(parents=True)
    (repo / ".github/workflows/ci.yml").write_text("mine\n")
    done = harness("apply", session, "--include", ".github/workflows/ci.yml")
    assert done.code == 1
    assert "there is a file already" in done.out
    assert "not in the patch" not in done.out + done.err


def test_a_session_that_was_tampered_with_fails_verification(harness, script, tmp_path):
    done = harness("run", "x", "--json", "--model", script(("shell", {"command": "echo hi"})))
    (log,) = tmp_path.glob("state/harness/**/events.jsonl")
    log.write_bytes(log.read_bytes().replace(b"echo hi", b"echo ho", 1))
    found = harness("sessions", "verify", done.session, "--json")
    assert found.code == 1
    assert json.loads(found.out)["whole"] is False


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("run", "ask-before-write where a person is asked, else full-auto"),
        ("run", "kept in memory on top of it"),
        ("exec", "kept in memory on top of it"),
        ("policy explain", "Exit code: 0 whatever the verdict"),
    ],
)
def test_help_says_what_no_name_of_an_option_tells(harness, command, words):
    shown = harness(*command.split(), "--help").out
    assert words in " ".join(shown.split())


def test_policy_check_takes_built_in_names_and_files_before_them(harness, repo):
    done = harness("policy", "check", "full-auto", "read-only")
    assert (done.code, done.err) == (0, "")
    assert "full-auto: ok" in done.out
    (repo / "full-auto").write_text("version: 2\n")
    assert harness("policy", "check", "full-auto").code == 2


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{id: a, deny: {op: net.send}, why: no}", "put it in quotes"),
        ("{id: a, deny: {op: net.send}, wy: x}", "the keys there are stand in docs/policy.md"),
    ],
)
def test_a_faulty_row_is_told_with_the_next_step(harness, tmp_path, row, words):
    path = tmp_path / "p.yaml"
    path.write_text(f"version: 1\nname: p\nextends: [full-auto]\nrules:\n- {row}\n")
    done = harness("policy", "check", str(path))
    assert done.code == 2
    assert words in " ".join(done.out.split())


def test_policy_check_reads_all_files_and_fails_for_one(harness, tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("version: 1\nname: good\nextends: [full-auto]\n")
    bad.write_text("version: 1\nname: bad\nbogus: 1\n")
    done = harness("policy", "check", str(good), str(bad))
    assert done.code == 2
    assert f"{good}: ok" in done.out
    assert f"{bad}:3" in done.out
    rows = json.loads(harness("policy", "check", "--json", str(bad)).out)
    assert rows[0]["severity"] == "error"


def test_policy_explain_says_effect_operations_reasons_and_advice(harness):
    plain = harness("policy", "explain", "--json", "--", "git", "push", "--force")
    found = json.loads(plain.out)
    assert found["effect"] == "deny"
    assert "vcs.rewrite" in {o["op"] for o in found["operations"]}
    assert all(m["source"] for m in found["matches"])
    shown = harness("policy", "explain", "git push --force").out
    assert shown.startswith("deny\n")
    assert "vcs.rewrite [critical]" in shown
    asked = harness("policy", "explain", "--attended", "--", "git", "commit", "-m", "x")
    assert asked.out.startswith("ask\n")


def test_doctor_tells_where_each_setting_comes_from(harness, tmp_path, repo):
    (tmp_path / "config" / "harness").mkdir(parents=True)
    (tmp_path / "config" / "harness" / "config.yaml").write_text("timeout: 90s\n")
    (repo / ".harness.yaml").write_text("limits:\n  pids: 64\n")
    rows = json.loads(harness("doctor", "--config", "--json").out)
    assert rows["timeout"]["value"] == "1 m 30 s"
    assert rows["timeout"]["origin"].endswith("config.yaml:1")
    assert rows["limits.pids"] == {"value": "64", "origin": f"{repo}/.harness.yaml:2"} or (
        rows["limits.pids"]["origin"].endswith(".harness.yaml:2")
    )
    assert rows["backend"] == {"value": "local", "origin": "HARNESS_BACKEND"}


def test_a_fault_of_our_own_is_one_line_and_how_to_report_it(capsys, monkeypatch):
    def broken(**_):
        raise RuntimeError("bad \x1b[2J luck")

    monkeypatch.setattr("harness.cli.app.app", broken)
    monkeypatch.setattr("sys.argv", ["harness", "run", "x"])
    monkeypatch.delenv("HARNESS_DEBUG", raising=False)
    assert edge.main() == 1
    err = capsys.readouterr().err
    assert "a fault of harness itself: RuntimeError: bad <U+001B>[2J luck" in err
    assert "Traceback" not in err
    monkeypatch.setattr("sys.argv", ["harness", "exec", "x"])
    monkeypatch.setenv("HARNESS_DEBUG", "1")
    assert edge.main() == 125
    assert "Traceback" in capsys.readouterr().err


def test_the_edge_is_the_only_place_that_prints_tracebacks():
    sources = Path(edge.__file__).parent.glob("*.py")
    assert [p.name for p in sources if "traceback" in p.read_text().lower()] == ["main.py"]
