"""Each field of a matcher: when a deny may match, when an allow must."""

from __future__ import annotations

from typing import Any

import pytest

from harness.policy.patterns import compile_host, compile_path, compile_tokens
from harness.values.operations import Access, HostUse, Op, Operation, Origin, PathUse
from tests.policy.build import call, effect, gate, judge, source


def under(row: dict[str, Any], base: str = "full-auto", **situation: Any) -> Any:
    return gate(base, source(rules=[row]), **situation)


def command(*argv: str | None, flags: frozenset[str] | None = None) -> Operation:
    return Operation(
        Op.EXEC_CODE, program=argv[0] or "", argv=argv, origin=Origin.COMMAND, flags=flags
    )


@pytest.mark.parametrize(
    ("pattern", "argv", "may", "must"),
    [
        ("git push **", ("git", "push"), True, True),
        ("git push **", ("git", "push", "a", "b"), True, True),
        ("git push", ("git", "push", "a"), False, False),
        ("git push", ("git", "push", "-f"), True, False),
        ("git push **", ("git", "-C", "x", "push"), True, False),
        ("git push **", ("git", "--no-pager", "push"), True, False),
        ("git push **", ("git", "stash", "push"), False, False),
        ("git status **", ("git", "status-stash"), False, False),
        ("git * **", ("git", "x"), True, True),
        ("git *", ("git",), False, False),
        ("aws * describe-* **", ("aws", "ec2", "describe-x", "--a"), True, True),
        ("aws * describe-* **", ("aws", "ec2", "terminate"), False, False),
        ("rm **", ("/bin/rm", "x"), True, True),
        ("rm **", ("./rm", "x"), True, False),
        ("./run **", ("./run", "x"), True, True),
        ("./run **", ("run", "x"), False, False),
        ("rm **", (None, "x"), True, False),
        ("git push **", ("git", None), True, False),
        ("git **", ("git", None), True, True),
        ("git * x", ("git", None, "x"), True, False),
        ("** --force **", ("git", "a", "--force", "b"), True, True),
        ("'a b' *", ("a b", "c"), True, True),
        ("** a ** b ** c", ("x", *"ababab"), False, False),
    ],
)
def test_tokens(pattern: str, argv: tuple[str | None, ...], may: bool, must: bool) -> None:
    compiled = compile_tokens(pattern)
    assert (compiled.may(command(*argv)), compiled.must(command(*argv))) == (may, must)


def test_many_stars_stay_fast() -> None:
    pattern = compile_tokens("a " + "** x " * 20 + "y")
    assert not pattern.may(command("a", *["x"] * 300))


@pytest.mark.parametrize(
    ("pattern", "path", "may", "must"),
    [
        ("/etc/**", "/etc/passwd", True, True),
        ("/etc/**", "/etc", True, False),
        ("/etc/", "/etc/passwd", True, True),
        ("/etc", "/etc/passwd", True, False),
        ("/etc", "/etc", True, True),
        ("/etc/**", "/etcetera", False, False),
        ("build/**", "/workspace/build/x/y", True, True),
        ("*.py", "/workspace/a.py", True, True),
        ("*.py", "/workspace/b/a.py", False, False),
        ("**/*.py", "/workspace/b/a.py", True, True),
        ("**/*.py", "/workspace/a.py", True, True),
        ("~/Desktop/**", "/home/agent/desktop/x", True, False),
        ("~/Desktop/**", "/home/agent/Desktop/x", True, True),
        ("caf\u00e9", "/workspace/cafe\u0301", True, False),
        ("/", "/etc", True, True),
    ],
)
def test_paths(pattern: str, path: str, may: bool, must: bool) -> None:
    compiled = compile_path(pattern, "/workspace", "/home/agent")
    assert compiled.may((path,), wide=False) is may
    assert compiled.must((path,)) is must


def test_deleting_a_folder_may_touch_what_lies_in_it() -> None:
    found = under({"deny": {"path": "keep/me/**"}, "why": "kept"})
    assert effect(found, "rm -rf keep") == "deny"
    assert effect(found, "rm -rf other") == "allow"


def test_a_deny_meets_either_form_of_a_path_and_an_allow_needs_both() -> None:
    links = {"/workspace/in": "/workspace/secret/x"}
    denied = under({"deny": {"path": "secret/**"}})
    assert effect(denied, call("read_file", path="in"), links) == "deny"
    allowed = under({"allow": {"op": "write.outside", "path": "/srv/**"}}, "read-only")
    asked = call("write_file", path="/srv/a", content="")
    assert effect(allowed, asked) == "allow"
    assert effect(allowed, asked, {"/srv/a": "/opt/a"}) == "deny"


def test_an_unknown_path_is_denied_by_what_lies_below_it_and_never_allowed() -> None:
    use = PathUse("/srv", Access.READ, unknown=True)
    pattern = compile_path("/srv/private/**", "/workspace", "/home/agent")
    assert pattern.may((use.path,), wide=use.unknown)


@pytest.mark.parametrize(
    ("pattern", "host", "port", "may", "must"),
    [
        ("x.example:443", "x.example", 443, True, True),
        ("x.example:443", "x.example", 8080, False, False),
        ("x.example:443", "x.example", None, True, False),
        ("x.example:443", "x.example.evil.example", 443, False, False),
        ("*.x.example:443", "a.x.example", 443, True, True),
        ("*.x.example:443", "x.example", 443, False, False),
        ("*.x.example:443", "evilx.example", 443, False, False),
        ("*:443", "any.example", 443, True, True),
        ("X.Example.:443", "x.example", 443, True, True),
    ],
)
def test_hosts(pattern: str, host: str, port: int | None, may: bool, must: bool) -> None:
    use = HostUse(host, port)
    assert compile_host(pattern, allow=False).may(use) is may
    assert compile_host(pattern, allow=True).must(use) is must


def test_a_host_without_a_port_is_every_port_for_a_deny() -> None:
    assert compile_host("x.example", allow=False).may(HostUse("x.example", 81))
    with pytest.raises(ValueError, match="without a port"):
        compile_host("x.example", allow=True)


@pytest.mark.parametrize(
    ("flags", "text", "expected"),
    [
        ({"any": ["-f", "--force"]}, "git push --force", "deny"),
        ({"any": ["--force"]}, "git push -uf origin", "deny"),
        ({"any": ["--force-with-lease"]}, "git push --force-w", "deny"),
        ({"any": ["-f"]}, "git push -o -f", "ask"),
        ({"any": ["-f"]}, "git push -- -f", "ask"),
        ({"all": ["-u", "-f"]}, "git push -f", "ask"),
        ({"all": ["-u", "-f"]}, "git push -fu", "deny"),
        ({"none": ["-n"]}, "git push", "deny"),
        ({"none": ["-n"]}, "git push --dry-run", "ask"),
    ],
)
def test_flags_follow_the_specification(flags: dict[str, Any], text: str, expected: str) -> None:
    row = {"deny": {"command": "git push **", "flags": flags}}
    ask = {"id": "rest", "ask": {"op": ["vcs.publish", "vcs.rewrite"]}}
    found = gate("full-auto", source(rules=[row, ask]))
    assert effect(found, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("frob --force x", "deny"), ("frob --force=1", "deny"), ("frob -xf", "allow"),
     ("frob -- --force", "allow")],
)  # fmt: skip
def test_without_a_specification_flags_are_literal(text: str, expected: str) -> None:
    row = {"deny": {"command": "frob **", "flags": {"any": ["--force", "-f"]}}}
    assert effect(under(row), text) == expected


@pytest.mark.parametrize(
    ("matcher", "asked", "matches"),
    [
        ({"tool": "read_*"}, call("read_file", path="a"), True),
        ({"tool": "read_*"}, call("list_files"), False),
        ({"op": ["read.workspace", "vcs.read"]}, "git status", True),
        ({"op": "vcs.read"}, call("read_file", path="a"), False),
        ({"risk": "low"}, call("read_file", path="a"), True),
        ({"risk": ">=medium"}, call("read_file", path="a"), False),
        ({"risk": ">= medium"}, call("write_file", path="a", content=""), True),
        ({"risk": ["<low", "medium"]}, call("write_file", path="a", content=""), True),
        ({"args": {"path": "a/*"}}, call("read_file", path="a/b"), True),
        ({"args": {"path": "a/*"}}, call("read_file", path="b"), False),
        ({"args": {"edits.0.old": "x"}}, call("edit_file", path="a", edits=[{"old": "x"}]), True),
        ({"args": {"n": "3"}}, call("read_file", path="a", n=3), True),
        ({"args": {"n": "*"}}, call("read_file", path="a"), False),
        ({"mode": "full-auto"}, "git status", True),
        ({"mode": "other"}, "git status", False),
        ({"attended": True}, "git status", True),
        ({"attended": False}, "git status", False),
        ({"agent": "plan*"}, "git status", False),
        ({"regex": "sta.us$"}, "git status", True),
        ({"regex": "^sta.us$"}, "git status", False),
        ({"regex": '"path": "a'}, call("read_file", path="a"), True),
        ({"tool": "read_file", "risk": "high"}, call("read_file", path="a"), False),
    ],
)
def test_all_fields_that_are_given_must_hold(
    matcher: dict[str, Any], asked: Any, matches: bool
) -> None:
    assert effect(under({"deny": matcher}), asked) == ("deny" if matches else "allow")


def test_the_agent_is_the_one_that_calls() -> None:
    row = {"deny": {"agent": "explorer"}}
    assert effect(under(row, agent="explorer"), "git status") == "deny"
    assert effect(under(row, agent="planner"), "git status") == "allow"


def test_server_and_tool_of_mcp_are_a_pair() -> None:
    row = {"allow": {"mcp": {"server": "foo", "tool": "bar_*"}}}
    assert effect(under(row), call("mcp:foo/bar_x")) == "allow"
    assert effect(under(row), call("mcp:foo_bar/evil")) == "deny"
    assert effect(under(row), call("mcp:foo/evil")) == "deny"


def test_an_allow_by_arguments_never_reaches_into_shell_text() -> None:
    row = {"allow": {"tool": "shell", "args": {"command": "git *"}}}
    assert effect(under(row, "read-only"), "git push") == "deny"


def test_a_special_address_needs_private() -> None:
    url = call("fetch", url="http://10.0.0.5/")
    row = {"allow": {"host": "10.0.0.5:80"}}
    assert effect(under(row), url) == "deny"
    assert effect(under({"allow": {**row["allow"], "private": True}}), url) == "allow"
    open_table = source(tables={"full-auto": {"net.send": "allow"}}, name="full-auto")
    assert effect(gate("full-auto", open_table), url) == "deny"


def test_a_command_row_decides_nothing_but_the_commands_own_operands() -> None:
    row = {"allow": {"command": "echo **"}}
    found = under(row, "ask-before-write")
    assert effect(found, "echo a; touch b") == "ask"
    assert effect(found, "echo k >> ~/.ssh/authorized_keys") == "deny"


def test_rows_of_a_refused_call_do_not_matter() -> None:
    found = under({"allow": {"tool": "*", "risk": ">=none"}})
    assert judge(found, call("frobnicate")).effect.word == "deny"
