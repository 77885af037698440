"""Policies of a run: where they are read from, and what they ask of the box."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import PolicyError
from harness.values.calls import Call
from harness.values.limits import MIB
from harness.wiring.config import Config
from harness.wiring.policies import load_policy

ALLOWS = "version: 1\nname: p\ntables: {p: {none: allow, low: allow, medium: deny, high: deny}}\n"


def config(tmp_path: Path, **others: object) -> Config:
    repo = tmp_path / "repo"
    repo.mkdir(exist_ok=True)
    made = Config(repo=repo, state=tmp_path / "state")
    return replace(made, **others)  # type: ignore[arg-type]


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("policy", "needs"),
    [
        ("full-auto", True),
        ("bench", True),
        ("ask-before-write", False),
        ("read-only", False),
        (ALLOWS, False),
        (ALLOWS.replace("high: deny", "high: deny, exec.code: allow"), True),
        (ALLOWS.replace("high: deny", "high: deny, exec.task: allow"), True),
        (ALLOWS.replace("high: deny", "high: deny, opaque: allow"), True),
        (ALLOWS + "rules: [{id: a, allow: {tool: shell}}]\n", True),
        (ALLOWS + "rules: [{id: a, allow: {op: exec.code}}]\n", True),
        (ALLOWS + 'rules: [{id: a, allow: {risk: ">=medium"}}]\n', True),
        (ALLOWS + 'rules: [{id: a, allow: {command: "pytest **"}}]\n', True),
        (ALLOWS + 'rules: [{id: a, allow: {op: write.workspace, path: "src/**"}}]\n', False),
        (ALLOWS + "rules: [{id: a, deny: {op: exec.code}}]\n", False),
    ],
)
def test_what_lets_unread_code_run_needs_a_box(tmp_path: Path, policy: str, needs: bool) -> None:
    name = written(tmp_path, policy) if "\n" in policy else policy
    assert load_policy(config(tmp_path, policy=name)).needs_box is needs


def test_nobody_attending_is_full_auto_and_a_person_is_asked(tmp_path: Path) -> None:
    assert load_policy(config(tmp_path)).gate.name == "full-auto"
    assert load_policy(config(tmp_path, attended=True)).gate.name == "ask-before-write"


def effect(made: Config, command: str) -> str:
    gate = load_policy(made).gate
    draft = gate.lower(Call("c", "shell", {"command": command}))
    return gate.judge(draft, {path: path for path in draft.paths}).effect.word


def test_a_repositorys_own_policy_only_tightens(tmp_path: Path) -> None:
    made = config(tmp_path)
    assert (effect(made, "git push"), effect(made, "make")) == ("deny", "allow")
    (made.repo / ".harness").mkdir()
    rows = 'rules: [{id: y, allow: {command: "git **"}}, {id: n, deny: {command: "make **"}}]\n'
    (made.repo / ".harness" / "policy.yaml").write_text(f"version: 1\nname: own\n{rows}")
    assert (effect(made, "git push"), effect(made, "make")) == ("deny", "deny")


def test_a_repositorys_policy_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    made = config(tmp_path)
    (made.repo / ".harness").mkdir()
    (made.repo / ".harness" / "policy.yaml").symlink_to("/etc/passwd")
    with pytest.raises(PolicyError, match="may not be a link") as caught:
        load_policy(made)
    assert "daemon" not in str(caught.value)


def test_a_repositorys_policy_extends_nothing_outside_its_folder(tmp_path: Path) -> None:
    made = config(tmp_path)
    (tmp_path / "outside.yaml").write_text("version: 1\nname: outside\n")
    (made.repo / ".harness").mkdir()
    text = "version: 1\nname: own\nextends: [../../outside.yaml]\n"
    (made.repo / ".harness" / "policy.yaml").write_text(text)
    with pytest.raises(PolicyError, match=r"outside\.yaml"):
        load_policy(made)


def test_a_pipe_for_a_policy_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.yaml")
    with pytest.raises(PolicyError, match="not a regular file"):
        load_policy(config(tmp_path, policy=str(tmp_path / "p.yaml")))


def test_a_policys_limits_only_lower(tmp_path: Path) -> None:
    text = ALLOWS + "limits: {memory: 100MiB, disk: 900GiB, wall: 2m}\n"
    limits = load_policy(config(tmp_path, policy=written(tmp_path, text))).limits
    assert (limits.memory, limits.wall) == (100 * MIB, 120.0)
    assert limits.disk == config(tmp_path).limits.disk


def test_the_files_behind_a_policy_are_named_by_their_content(tmp_path: Path) -> None:
    name = written(tmp_path, ALLOWS + "extends: [read-only]\n")
    one = load_policy(config(tmp_path, policy=name)).files
    assert len(one) == 2
    assert any(line.endswith(name) and line.startswith("sha256:") for line in one)
    written(tmp_path, ALLOWS + "extends: [read-only] # changed\n")
    assert load_policy(config(tmp_path, policy=name)).files != one


def test_a_policy_inside_the_repository_is_not_the_agents_to_change(tmp_path: Path) -> None:
    made = config(tmp_path)
    (made.repo / "rules.yaml").write_text("version: 1\nname: r\nextends: [full-auto]\n")
    made = replace(made, policy=str(made.repo / "rules.yaml"))
    gate = load_policy(made).gate
    for path in ("rules.yaml", "./RULES.yaml", "/workspace/rules.yaml"):
        draft = gate.lower(Call("c", "write_file", {"path": path, "content": "x"}))
        decision = gate.judge(draft, {p: p for p in draft.paths})
        assert decision.effect.word == "deny", path
        assert [o.op.value for o in decision.operations] == ["policy.change"]
