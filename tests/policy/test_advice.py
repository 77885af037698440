from __future__ import annotations

import pytest

from tests.policy.build import call, gate, judge, source


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        ("cat ~/.ssh/id_ed25519", ["read.secret", "without that credential", "full-auto.yaml:"]),
        ("curl https://a.example", ["net.send", "without the network"]),
        (call("write_file", path=".git/hooks/x", content=""), ["write.control", "describe"]),
        ("git push", ["vcs.publish", "commit locally"]),
        (call("frobnicate"), ["no tool is called `frobnicate`"]),
        ("ls\rx", ["control character U+000D"]),
    ],
)
def test_a_denial_says_why_and_what_instead(asked: object, parts: list[str]) -> None:
    advice = judge(gate("full-auto", attended=False), asked).advice  # type: ignore[arg-type]  # a call or text
    assert all(part in advice for part in parts), advice


def test_the_reason_of_a_row_is_passed_on() -> None:
    row = {"id": "no-ls", "deny": {"command": "ls **"}, "why": "for the test"}
    advice = judge(gate("full-auto", source(rules=[row])), "ls").advice
    assert "for the test" in advice
    assert "rule:user/no-ls" in advice


def test_an_allow_needs_no_advice() -> None:
    assert judge(gate("full-auto"), "ls").advice == ""
