"""Patterns of commands: what they match, and that no text makes matching expensive."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.policy.patterns import compile_tokens
from harness.values.operations import Op, Operation

WORDS = st.sampled_from(["a", "b", "-x", "push"])


def operation(*words: str | None, flags: bool = True) -> Operation:
    aside = frozenset(i for i, w in enumerate(words) if i and w is not None and w[:1] == "-")
    given_flags = frozenset[str]() if flags else None
    return Operation(
        Op.EXEC_CODE, program=words[0] or "", argv=words, flags=given_flags, aside=aside
    )


@pytest.mark.parametrize(
    "tokens", ["foo push **", "foo ** push **", "foo ** ** ** x", "foo * ** *"]
)
def test_matching_takes_the_product_of_both_lengths_at_most(tokens: str) -> None:
    pattern = compile_tokens(tokens)
    began = time.monotonic()
    for flags in (True, False):
        pattern.may(operation("foo", *["-a"] * 20_000, flags=flags))
        pattern.must(operation("foo", *["a"] * 20_000, flags=flags))
    assert time.monotonic() - began < 5


@given(
    st.lists(st.sampled_from(["a", "b", "*", "**", "p*"]), max_size=5), st.lists(WORDS, max_size=6)
)
def test_an_allow_pattern_agrees_with_a_regular_expression(
    tokens: list[str], words: list[str]
) -> None:
    parts = {"*": "[^ ]+ ", "**": "(?:[^ ]+ )*", "p*": "p[^ ]* "}
    expression = "".join(parts.get(t, re.escape(t) + " ") for t in tokens)
    expected = re.fullmatch(expression, "".join(f"{w} " for w in words)) is not None
    assert compile_tokens(" ".join(["foo", *tokens])).must(operation("foo", *words)) is expected


@given(st.lists(st.sampled_from(["a", "b", "*", "**"]), max_size=5), st.lists(WORDS, max_size=6))
def test_a_deny_pattern_matches_whatever_an_allow_pattern_does_and_more(
    tokens: list[str], words: list[str]
) -> None:
    pattern = compile_tokens(" ".join(["foo", *tokens]))
    without = [w for w in words if not w.startswith("-")]
    if pattern.must(operation("foo", *words)) or pattern.must(operation("foo", *without)):
        assert pattern.may(operation("foo", *words))
