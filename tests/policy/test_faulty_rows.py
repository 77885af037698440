"""A row that cannot load: an allow is dropped, anything else denies what it named."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.build import call, effect, gate, judge, rules, source

BAD = {"frobs": 1}


def loaded(*rows: dict[str, Any], **keys: Any) -> Any:
    return gate("full-auto", source(rules=list(rows), **keys))


def test_a_faulty_allow_is_dropped_loudly() -> None:
    found = loaded({"allow": {"op": "net.send", **BAD}})
    assert effect(found, "curl https://x.example") == "deny"
    (fault,) = found.rules.faults
    assert (fault.file, fault.id, fault.became) == ("user/own.yaml", "rules-0", "dropped")
    assert fault.line > 1
    assert "frobs" in fault.message


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize(
    ("matcher", "denied", "free"),
    [
        ({"tool": "read_file", **BAD}, call("read_file", path="a"), "git status"),
        ({"tool": ["read_file", "fetch"], **BAD}, call("read_file", path="a"), "git status"),
        ({"command": "rm **", **BAD}, "git status", call("read_file", path="a")),
        ({"command": ""}, "git status", call("read_file", path="a")),
        ({"mcp": {"server": "db", "tools": "x"}}, call("mcp:db/q"), "git status"),
        ({"host": "a b:1"}, call("fetch", url="https://x.example"), "git status"),
        ({"path": "a", **BAD}, "git status", None),
        ({"regex": "("}, "git status", None),
        ({}, "git status", None),
        ("all", "git status", None),
    ],
)
def test_a_faulty_deny_or_ask_denies_what_it_named(
    kind: str, matcher: Any, denied: Any, free: Any
) -> None:
    found = loaded({kind: matcher})
    decision = judge(found, denied)
    assert decision.effect.word == "deny"
    assert "rule:user/rules-0" in [match.source for match in decision.matches]
    if free is not None:
        assert effect(found, free) == "allow"


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ({"allow": {"tool": "shell"}, "deny": {"tool": "shell"}}, "exactly one"),
        ({"why": "nothing"}, "exactly one"),
        ({"deny": {"tool": "x"}, "unattended": True, "id": "a b"}, "id"),
        ({"allow": {"regex": "x"}}, "ask and deny"),
        ({"allow": {"host": "x.example"}}, "without a port"),
        ({"allow": {"op": "read.everything"}}, "op"),
        ({"allow": {"risk": ">=huge"}}, "risk"),
        ({"deny": {"flags": {"any": ["force"]}}}, "begins with"),
        ({"deny": {"tool": []}}, "tool"),
        ({"deny": {"path": "a\0"}}, "NUL"),
        ({"deny": {"private": True, "tool": "x"}}, "private"),
    ],
)
def test_the_fault_says_what_is_wrong(row: dict[str, Any], part: str) -> None:
    assert part in rules("full-auto", source(rules=[row])).faults[0].message


def test_the_same_id_twice_is_a_fault_of_the_second() -> None:
    found = loaded({"id": "a", "deny": {"op": "opaque"}}, {"id": "a", "deny": {"tool": "fetch"}})
    assert [fault.became for fault in found.rules.faults] == ["denies the tool `fetch`"]


def test_a_floor_row_cannot_allow() -> None:
    found = gate("full-auto", source(floor=[{"allow": {"op": "net.send"}}]))
    assert found.rules.faults[0].became == "dropped"


def test_inline_examples_are_checked_when_the_file_loads() -> None:
    row = {
        "allow": {"command": "aws * describe-* **"},
        "match": ["aws ec2 describe-instances"],
        "not_match": ["aws ec2 terminate-instances"],
    }
    assert not rules("full-auto", source(rules=[row])).faults
    wrong = {**row, "not_match": ["aws ec2 describe-volumes --all"]}
    (fault,) = rules("full-auto", source(rules=[wrong])).faults
    assert fault.became == "dropped"
    assert "describe-volumes" in fault.message
    deny = {"deny": {"command": "rm **"}, "match": ["ls; rm x", "rm x"], "not_match": ["ls"]}
    assert not rules("full-auto", source(rules=[deny])).faults
    broken = {"deny": {"command": "rm **"}, "match": ["ls"]}
    assert effect(loaded(broken), "git status") == "deny"


def test_examples_of_a_row_that_matches_no_shell_call_are_a_fault() -> None:
    row = {"deny": {"tool": "fetch"}, "match": ["ls"]}
    assert "shell text" in rules("full-auto", source(rules=[row])).faults[0].message
