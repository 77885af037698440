"""`check`, `explain` and fixtures."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from harness.errors import PolicyError
from harness.policy import PolicySource
from harness.policy.checking import Finding, check
from harness.policy.explaining import explain
from harness.policy.fixtures import read_cases, resolve, run_case
from tests.policy.build import built_in, call, gate, source, surroundings


def checked(*sources: PolicySource) -> list[Finding]:
    return check([built_in()["full-auto"], *sources], surroundings(), built_in=built_in())


def codes(*rows: dict[str, Any]) -> list[tuple[str, int | None]]:
    found = checked(source(rules=list(rows)))
    return [(finding.code, finding.line) for finding in found]


@pytest.mark.parametrize("name", ["read-only", "ask-before-write", "full-auto", "bench"])
def test_built_in_policies_have_no_findings(name: str) -> None:
    assert check([built_in()[name]], surroundings(), built_in=built_in()) == []


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([{"deny": {"command": "git **"}}, {"allow": {"command": "git push *"}}], "unreachable"),
        ([{"deny": {"command": "git **"}}, {"deny": {"command": "git push"}}], "shadowed"),
        ([{"deny": {"op": ["net.send", "net.read"]}}, {"ask": {"op": "net.send"}}], "unreachable"),
        ([{"deny": {"risk": ">=high"}}, {"ask": {"op": "net.send"}}], "unreachable"),
        ([{"allow": {"op": "write.workspace", "path": "a/**"}},
          {"allow": {"op": "write.workspace", "path": "a/b"}}], "shadowed"),
        ([{"deny": {"tool": "fetch", "command": "ls"}}], "never-matches"),
        ([{"deny": {"tool": "frobnicate"}}], "never-matches"),
        ([{"deny": {"op": "net.send", "risk": "low"}}], "never-matches"),
        ([{"deny": {"mode": "nothing", "op": "opaque"}}], "never-matches"),
        ([{"allow": {"command": "bash **"}}], "over-broad"),
        ([{"allow": {"command": "* **"}}], "over-broad"),
        ([{"allow": {"tool": "*"}}], "over-broad"),
        ([{"allow": {"host": "*:443"}}], "over-broad"),
        ([{"allow": {"op": "read.outside", "path": "/**"}}], "over-broad"),
        ([{"allow": {"op": "vcs.rewrite"}}], "over-broad"),
        ([{"deny": {"frobs": 1}}], "row"),
    ],
)  # fmt: skip
def test_check_finds(rows: list[dict[str, Any]], code: str) -> None:
    (finding,) = checked(source(rules=rows))
    assert finding.code == code
    assert finding.file == "user/own.yaml"
    assert finding.line is not None
    assert finding.line > 1
    assert finding.hint


@pytest.mark.parametrize(
    "rows",
    [
        [{"allow": {"command": "aws * describe-* **"}}, {"deny": {"command": "aws **"}}],
        [{"allow": {"command": "git **"}}, {"deny": {"command": "git push **"}}],
        [{"deny": {"command": "git push **"}}, {"allow": {"command": "git **"}}],
        [{"deny": {"command": "a *"}}, {"deny": {"command": "a **"}}],
        [{"deny": {"command": "a **", "flags": {"any": ["-f"]}}}, {"ask": {"command": "a **"}}],
        [{"deny": {"path": "a*/**"}}, {"deny": {"path": "a*/b"}}],
    ],
)
def test_check_leaves_useful_rows_alone(rows: list[dict[str, Any]]) -> None:
    assert codes(*rows) == []


def test_check_reports_a_broken_file_with_its_line() -> None:
    broken = PolicySource("user", "p", "version: 1\nname: p\nfrobs: 1\n", "p.yaml")
    (finding,) = checked(broken)
    assert (finding.severity, finding.file, finding.line) == ("error", "p.yaml", 3)


def test_check_notes_what_a_table_leaves_open_and_a_missing_ceiling() -> None:
    file = source(name="mine", tables={"mine": {"low": "allow"}})
    found = check([file], surroundings(), built_in={})
    assert {finding.code for finding in found} == {"undecided", "no-ceiling"}


def test_explain_shows_every_operation_and_every_matching_row() -> None:
    rows = [
        {"id": "first", "deny": {"command": "git push **"}},
        {"id": "second", "allow": {"op": "vcs.publish"}},
    ]
    floor = [{"id": "floor", "ask": {"op": "vcs.publish"}}]
    found = gate("full-auto", source(rules=rows, floor=floor))
    ticks = count()
    told = explain(found, call("shell", command="git push"), None, lambda: next(ticks) / 1e6)
    assert [stage.name for stage in told.stages] == ["read the call", "judge"]
    assert [round(stage.micros) for stage in told.stages] == [1, 1]
    (operation,) = told.operations
    assert [m.source for m in operation.stands] == ["floor:user/floor", "rule:user/first"]
    assert [m.source for m in operation.passed] == ["rule:user/second", "table:full-auto/high"]
    assert all(m.line for m in (*operation.stands, *operation.passed))
    assert told.decision.effect.word == "deny"


def test_explain_of_a_refused_call_has_no_operations() -> None:
    told = explain(gate("full-auto"), call("frobnicate"), None, lambda: 0.0)
    assert told.operations == ()
    assert told.draft.refused


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("cases: [{id: a, expect: maybe}]", "expect"),
        ("cases: [{id: a, expect: allow, frobs: 1}]", "frobs"),
        ("cases: 1", "cases"),
        ("[", "YAML"),
    ],
)
def test_a_broken_fixture_names_its_fault(text: str, part: str) -> None:
    with pytest.raises(PolicyError, match=part):
        read_cases(text, "f.yaml")


def test_a_row_without_a_call_or_with_an_unknown_policy_is_a_fault() -> None:
    for text in ("{id: a, expect: allow}", "{id: a, shell: ls, policy: x, expect: allow}"):
        (case,) = read_cases(f"cases: [{text}]", "f.yaml")
        with pytest.raises(PolicyError):
            run_case(case, surroundings(), built_in())


def test_links_of_a_fixture_are_followed_as_a_kernel_would() -> None:
    tree = {"/w/l": "/etc", "/w/up": "../x", "/w/loop": "loop", "/w/a": "b", "/w/b": "/c"}
    assert resolve("/w/l/new", tree) == "/etc/new"
    assert resolve("/w/l/../y", tree) == "/y"
    assert resolve("/w/up", tree) == "/x"
    assert resolve("/w/a/z", tree) == "/c/z"
    assert resolve("/w/loop", tree).startswith("/proc/unresolved/")
