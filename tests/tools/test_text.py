"""Whatever a box printed, a model gets bounded, valid UTF-8 without terminal tricks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.tools.text import MODEL_TEXT, clean, decode, ends, first, last, name, size
from harness.values.commands import Captured

PIECES = st.lists(
    st.sampled_from(
        [b"\x1b[31m", b"\x1b]0;t\x07", b"\x1bP", b"\r", b"\n", b"\0", b"\xed\xa0\x80", b"\xff"]
    )
    | st.binary(max_size=40)
    | st.text(max_size=40).map(lambda t: t.encode("utf-8", "replace")),
    max_size=60,
).map(b"".join)


@settings(max_examples=50)
@given(PIECES)
def test_no_control_character_and_no_lone_surrogate_is_left(data):
    text = decode(data)
    json.dumps(text, ensure_ascii=False).encode("utf-8")
    assert not [c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0]


@settings(max_examples=25)
@given(PIECES, st.integers(1, 200_000))
def test_what_a_model_gets_is_bounded(data, times):
    many = (data * times)[:100_000]
    cut = ends(Captured(many, b"", len(many)))
    assert size(cut.head) + size(cut.tail) <= MODEL_TEXT
    assert cut.whole == (not cut.tail) or not decode(many)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), st.integers(1, 400))
def test_a_cut_is_a_prefix_and_a_suffix_within_the_limit(text, limit):
    start, end = first(text, limit), last(text, limit)
    assert text.startswith(start)
    assert text.endswith(end)
    assert max(size(start), size(end)) <= limit


@given(st.text(st.sampled_from("aé€😀"), min_size=30, max_size=60), st.integers(4, 100))
def test_a_cut_never_splits_a_character_and_wastes_less_than_one(text, limit):
    start, end = first(text, limit), last(text, limit)
    assert size(start) > min(limit, size(text)) - 4
    assert size(end) > min(limit, size(text)) - 4


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (" 10%\r 50%\r100%\ndone", "100%\ndone"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\rb\r", "b"),
        ("nul\0nul", "nul�nul"),
        ("\x1b]0;never ends\nnext line", "0;never ends\nnext line"),
        ("\ud83d", "�"),
    ],
)
def test_clean(raw, shown):
    assert clean(raw) == shown


@given(st.binary(min_size=1, max_size=30))
def test_a_name_stays_on_one_line_and_is_valid(raw):
    text = name(raw)
    text.encode("utf-8")
    assert text.isprintable()


def test_names_that_differ_look_different():
    assert (
        len({name(b"a\nb"), name(b"a\\nb"), name(b'"a\\nb"'), name(b"\xff"), name(b"\\xff")}) == 5
    )
