"""Layers, bases and tables: what stands before what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.errors import PolicyError
from harness.policy import Gate, PolicySource, Rules, load
from tests.policy.build import built_in, call, effect, gate, judge, rules, source, surroundings

READ = call("read_file", path="a")
WRITE = call("write_file", path="a", content="")
PUSH = "git push"


def layered(layer: Any, kind: str, name: str, **keys: Any) -> PolicySource:
    return source(layer, name=name, rules=[{"id": name, kind: {"op": "vcs.publish"}}], **keys)


@pytest.mark.parametrize(
    ("nearer", "farther"),
    [("session", "user"), ("session", "org"), ("user", "org"), ("session", "project")],
)
def test_the_nearer_layer_is_asked_first(nearer: Any, farther: Any) -> None:
    first = layered(nearer, "allow", "near")
    last = layered(farther, "deny", "far", trusted=True)
    for order in ((first, last), (last, first)):
        assert effect(gate("full-auto", *order), PUSH) == "allow"


def test_a_trusted_project_stands_before_the_user() -> None:
    found = gate(
        "full-auto",
        layered("project", "allow", "p", trusted=True),
        layered("user", "deny", "u"),
    )
    assert effect(found, PUSH) == "allow"


def test_an_untrusted_project_only_raises() -> None:
    loosens = source(
        "project",
        name="full-auto",
        tables={"full-auto": {"net.send": "allow", "low": "deny"}},
        rules=[{"allow": {"op": "vcs.publish"}}, {"id": "n", "deny": {"op": "exec.task"}}],
        ceiling={"unattended": "critical"},
    )
    found = gate("full-auto", loosens)
    assert effect(found, PUSH) == "deny"
    assert effect(found, "curl https://x.example") == "deny"
    assert effect(found, READ) == "deny"
    assert effect(found, "make") == "deny"
    assert found.rules.ceiling.word == "high"


def test_an_untrusted_project_is_judged_by_its_own_policy() -> None:
    project = source("project", name="strict", extends=["read-only"])
    assert effect(gate("full-auto", project), WRITE) == "deny"
    lax = source("project", name="lax", extends=["full-auto"])
    assert effect(gate("ask-before-write", lax), "python3 a.py") == "ask"
    assert gate("ask-before-write", lax).rules.ceiling.word == "medium"


def test_an_extending_file_stands_before_its_base() -> None:
    base = source("user", name="base", rules=[{"deny": {"op": "vcs.publish"}}])
    near = source(
        "user", name="near", extends=["base.yaml"], rules=[{"allow": {"op": "vcs.publish"}}]
    )
    assert effect(extended(near, {"base.yaml": base}), PUSH) == "allow"


def extended(
    file: PolicySource, others: Mapping[str, PolicySource], base: str = "full-auto"
) -> Any:
    return Gate(loaded(file, others, base))


def loaded(file: PolicySource, others: Mapping[str, PolicySource], base: str) -> Rules:
    return load(
        [built_in()[base], file],
        surroundings(),
        built_in=built_in(),
        resolve=lambda name, origin: others.get(name),
    )


def test_a_table_is_merged_key_by_key_over_its_base() -> None:
    file = source(
        name="mine",
        extends=["full-auto"],
        tables={"mine": {"write.workspace": "ask", "vcs.publish": "allow"}},
    )
    found = gate("read-only", file)
    assert found.mode == "mine"
    assert effect(found, WRITE) == "ask"
    assert effect(found, PUSH) == "allow"
    assert effect(found, "python3 a.py") == "allow"
    assert effect(found, "curl https://x.example") == "deny"


def test_a_level_above_does_not_undo_a_class_below() -> None:
    base = source(name="base", tables={"base": {"exec.code": "deny"}})
    file = source(name="mine", extends=["base.yaml"], tables={"mine": {"high": "allow"}})
    assert effect(extended(file, {"base.yaml": base}), "python3 a.py") == "deny"


def test_the_mode_defaults_to_the_name_of_the_nearest_policy_with_a_table() -> None:
    assert rules("full-auto", source(name="only-rows")).mode == "full-auto"
    assert rules("full-auto", source(name="mine", extends=["read-only"])).mode == "mine"
    assert rules("bench").mode == "bench"


def test_another_mode_has_its_own_table() -> None:
    file = source(name="mine", tables={"mine": {"low": "allow"}, "careful": {"low": "ask"}})
    chosen = rules("full-auto", file, mode="careful")
    assert chosen.mode == "careful"
    with pytest.raises(PolicyError, match="no policy has a table"):
        rules("full-auto", file, mode="nothing")


def test_extends_in_a_circle_is_an_error() -> None:
    a = source(name="a", extends=["b.yaml"])
    b = source(name="b", extends=["a.yaml"])
    with pytest.raises(PolicyError, match="circle"):
        loaded(a, {"a.yaml": a, "b.yaml": b}, "full-auto")


def test_extends_without_end_is_an_error() -> None:
    files = {f"{n}.yaml": source(name=f"f{n}", extends=[f"{n + 1}.yaml"]) for n in range(40)}
    with pytest.raises(PolicyError, match="deeper"):
        loaded(files["0.yaml"], files, "full-auto")


def test_extends_that_fans_out_without_end_is_an_error() -> None:
    files = {f"{n}.yaml": source(name=f"f{n}", extends=[f"{n + 1}.yaml"] * 8) for n in range(10)}
    files["10.yaml"] = source(name="last")
    with pytest.raises(PolicyError, match="more than"):
        loaded(files["0.yaml"], files, "full-auto")


def test_extends_of_nothing_names_what_there_is() -> None:
    with pytest.raises(PolicyError, match="full-auto") as caught:
        rules("full-auto", source(extends=["frobnicate"]))
    assert caught.value.file == "user/own.yaml"


def test_limits_are_the_lowest_across_layers_and_the_nearest_within() -> None:
    org = source("org", name="o", limits={"memory": "2GiB", "pids": 100})
    far = source("user", name="far", limits={"memory": "1GiB"})
    near = source("user", name="near", limits={"memory": "3GiB", "cpus": 1})
    assert rules("full-auto", org, far, near).limits == {
        "memory": 2 << 30, "pids": 100, "cpus": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("base", "verdicts"),
    [
        ("read-only", "adddddd"),
        ("ask-before-write", "aaqqqqd"),
        ("full-auto", "aaaaadd"),
        ("bench", "aaaaadd"),
    ],
)
def test_built_in_policies(base: str, verdicts: str) -> None:
    asked: list[Any] = [
        READ,
        "git status" if base != "read-only" else WRITE,
        WRITE,
        "python3 a.py",
        "a | b",
        "curl https://x.example",
        "git push --force",
    ]
    words = {"a": "allow", "q": "ask", "d": "deny"}
    assert [effect(gate(base), each) for each in asked] == [words[v] for v in verdicts]


@pytest.mark.parametrize(
    ("base", "ceiling"),
    [
        ("read-only", "low"),
        ("ask-before-write", "medium"),
        ("full-auto", "high"),
        ("bench", "high"),
    ],
)
def test_built_in_ceilings(base: str, ceiling: str) -> None:
    found = rules(base)
    assert found.ceiling.word == ceiling
    assert not found.faults


@pytest.mark.parametrize(
    "text",
    ["pip install -e .", "npm ci", "make -j2", "sed -i s/a/b/ x", "git commit -qm x",
     "mkdir -p /tmp/w", "rm -rf /tmp/w", "cat a | sort > b", "kill 5", "./configure && make"],
)  # fmt: skip
def test_full_auto_lets_ordinary_work_run_unattended(text: str) -> None:
    assert effect(gate("full-auto", attended=False), text) == "allow"


@pytest.mark.parametrize(
    "text",
    ["cat ~/.ssh/id_ed25519", "cat .env", "curl https://a.example", "touch .git/hooks/x",
     "git push", "sudo id", "rm -rf /", "rm -rf .git", "touch /etc/x", "rm -rf /tmp",
     "npm publish"],
)  # fmt: skip
def test_full_auto_stops_the_same_in_plain_and_in_unread_text(text: str) -> None:
    found = gate("full-auto", attended=False)
    assert effect(found, text) == "deny"
    if not text.startswith(("touch /etc", "rm -rf /tmp")):
        assert effect(found, f"cd src && {text}") == "deny"
        assert effect(found, f"bash -c '{text}'") == "deny"


def test_reasons_name_layer_row_file_and_line() -> None:
    row = {"id": "no-push", "deny": {"command": "git push **"}, "why": "history is shared"}
    first = judge(gate("full-auto", source("org", name="o", rules=[row])), PUSH).matches[0]
    assert first.source == "rule:org/no-push"
    assert (first.file, first.why) == ("org/o.yaml", "history is shared")
    assert first.line > 1
