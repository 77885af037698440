"""What must hold for every call and every row, not only for those somebody thought of."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.operations.control import is_control_path
from harness.operations.hosts import HostFault, parse_host
from harness.operations.paths import normal
from harness.operations.spelling import fold_path
from harness.operations.words import NotPlain, plain_words
from harness.policy.patterns import compile_path
from harness.values.calls import Call
from harness.values.decisions import Effect
from harness.values.operations import RISK, Op, Risk
from tests.policy.build import call, gate, judge, source

PIECES = st.sampled_from(
    [
        "ls", "cat", "rm", "git", "push", "status", "curl", "sudo", "python3", "-c", "-rf",
        "--force", "x", "a/b", ".env", ".git/config", "~/.ssh/id_rsa", "https://a.example", ";",
        "&&", "|", ">", "<", "$X", "$(", ")", "`", "'", '"', "\\", "{", "}", "*", "?", "#", "\n",
        "<<EOF", "EOF", "&", "!", "~", "=", "[", "]", "--", "/tmp/x", "/",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(PIECES, max_size=12).map(" ".join),
    st.lists(PIECES, max_size=12).map("".join),
    st.text(max_size=60),
)
NAMES = st.sampled_from(
    ["a", ".git", ".GIT", "hooks", "..", ".", "", "src", ".env", "etc", "workspace", "\u200c.git"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=6).map("/".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
ARGS = st.dictionaries(st.sampled_from(["command", "path", "content", "url", "pattern", "x"]), JSON)
TOOLS = st.sampled_from(
    ["shell", "read_file", "write_file", "edit_file", "list_files", "search", "fetch", "mcp:a/b",
     "mcp:", "x", ""]
)  # fmt: skip
MATCHERS = st.sampled_from(
    [
        {"command": "git **"},
        {"command": "rm **", "flags": {"any": ["-r"]}},
        {"path": "src/**"},
        {"path": "**/.env"},
        {"host": "a.example"},
        {"op": ["opaque", "exec.code"]},
        {"risk": ">=low"},
        {"tool": "shell"},
        {"command": "git status **", "op": "vcs.read"},
    ]
)
DENIES = [{"command": "git push **"}, {"command": "rm ** x"}, {"path": "a/**/b"}, {"host": "a.x"}]
GATES = {name: gate(name) for name in ("read-only", "ask-before-write", "full-auto", "bench")}
ALONE = {name: gate(name, attended=False) for name in GATES}


def rows(effect: str, matcher: dict[str, Any], at: int) -> dict[str, Any]:
    return {"id": f"{effect}-{at}", effect: matcher}


@given(TEXTS)
def test_any_text_gets_a_verdict(text: str) -> None:
    for found in (*GATES.values(), *ALONE.values()):
        decision = judge(found, text)
        assert decision.matches
        assert decision.effect is max(match.effect for match in decision.matches)
        assert bool(decision.advice) is (decision.effect is not Effect.ALLOW)


@given(TOOLS, st.none() | ARGS)
def test_any_call_gets_a_verdict(tool: str, args: Any) -> None:
    decision = judge(GATES["full-auto"], Call("1", tool, args))
    assert decision.matches


@given(
    TEXTS,
    MATCHERS,
    st.lists(st.tuples(st.sampled_from(["allow", "ask", "deny"]), MATCHERS), max_size=3),
)
def test_a_deny_row_above_all_others_never_lowers_a_verdict(
    text: str, matcher: dict[str, Any], others: list[tuple[str, dict[str, Any]]]
) -> None:
    def allowed(effect: str, fields: dict[str, Any]) -> dict[str, Any]:
        return (
            {**fields, "host": "a.example:443"}
            if effect == "allow" and "host" in fields
            else fields
        )

    known = [
        rows(effect, allowed(effect, fields), at) for at, (effect, fields) in enumerate(others)
    ]
    before = judge(gate("full-auto", source(rules=known)), text).effect
    for kind in ("rules", "floor"):
        added = [rows("deny", matcher, 99)]
        keys: dict[str, Any] = {"rules": known, kind: added + (known if kind == "rules" else [])}
        assert judge(gate("full-auto", source(**keys)), text).effect >= before


@given(TEXTS)
def test_text_that_cannot_be_read_is_never_allowed_where_writing_is_asked(text: str) -> None:
    try:
        plain_words(text, "/home/agent")
    except NotPlain:
        assert judge(GATES["ask-before-write"], text).effect is not Effect.ALLOW


@given(TEXTS)
def test_policies_are_ordered_by_how_much_they_let_through(text: str) -> None:
    strict, middle = (judge(GATES[name], text).effect for name in ("read-only", "ask-before-write"))
    assert strict >= middle
    assert judge(GATES["bench"], text).effect is judge(GATES["full-auto"], text).effect


@given(TEXTS)
def test_nobody_watching_never_lets_more_through(text: str) -> None:
    for name, found in GATES.items():
        alone = judge(ALONE[name], text).effect
        assert alone is not Effect.ASK
        assert alone >= judge(found, text).effect


@given(st.sampled_from(list(Op)))
def test_every_class_has_a_level(op: Op) -> None:
    assert RISK[op] in Risk


@given(PATHS)
def test_normal_paths_stay_as_they_are(path: str) -> None:
    once = normal("/" + path)
    assert normal(once) == once
    assert ".." not in once.split("/")
    assert once.startswith("/")


@given(PATHS)
def test_folding_is_done_after_one_time(path: str) -> None:
    once = fold_path(path)
    assert fold_path(once) == once


@given(st.text(max_size=40))
def test_folding_any_name_is_done_after_one_time(name: str) -> None:
    once = fold_path(name)
    assert fold_path(once) == once


@given(PATHS)
def test_control_files_stay_so_below_any_folder_and_in_upper_case(path: str) -> None:
    if is_control_path(path):
        assert is_control_path("some/folder/" + path.lstrip("/"))
        assert is_control_path(path.upper())


@given(PATHS, PATHS)
def test_what_an_allow_must_match_a_deny_may_match(pattern: str, path: str) -> None:
    compiled = compile_path(pattern + "/**", "/workspace", "/home/agent")
    form = normal("/workspace/" + path)
    if compiled.must((form,)):
        assert compiled.may((form,), wide=False)


@given(PATHS)
def test_the_spelling_of_a_path_does_not_matter(path: str) -> None:
    found = GATES["full-auto"]
    for tool in ("read_file", "write_file"):
        plain = judge(found, call(tool, path=normal("/workspace/" + path), content=""))
        odd = judge(found, call(tool, path="/workspace/./" + path.replace("/", "//"), content=""))
        assert plain.effect is odd.effect


@given(st.text(max_size=40))
def test_a_host_once_read_reads_the_same_again(text: str) -> None:
    try:
        once = parse_host(text)
    except HostFault:
        return
    assert parse_host(once) == once


@given(st.lists(st.sampled_from(["''", '""', "\\\n", "\\", "$@", "${x:-}"]), max_size=4))
def test_what_a_shell_removes_from_a_word_hides_no_program(removed: list[str]) -> None:
    text = "true; s" + "".join(removed) + "udo id"
    assert judge(ALONE["full-auto"], text).effect is Effect.DENY


@given(
    st.lists(st.sampled_from(["a", "\\", "#", " ", "!", "-name", "$", "=", ":", "@"]), max_size=8)
)
def test_no_line_before_it_hides_a_program(before: list[str]) -> None:
    text = "".join(before) + "\nsudo id"
    assert judge(ALONE["full-auto"], text).effect is Effect.DENY


@pytest.mark.parametrize(
    "piece",
    ["'", '"', "\\", "$'", "a ", "ls;", "[", "{", "(", "$(", "`", "<<E\n", "~/", "-", ".env ",
     "curl ", "rm ", "rm;", "git ", "${x:-", "${x:-a}", "$'a'", "\\\n", "cd a;",
     "rm -r a ", "git -x ", "../", "a/", "=", "*", "git push "],
)  # fmt: skip
def test_long_text_is_judged_in_bounded_time(piece: str) -> None:
    found = gate("full-auto", source(rules=[rows("deny", m, n) for n, m in enumerate(DENIES)]))
    begin = time.process_time()
    for size in (60_000, 250_000, 1_000_000):
        judge(found, piece * (size // len(piece)))
    assert time.process_time() - begin < 3
