"""Output of a box cannot steer a terminal, however its bytes are cut."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli.filter import TerminalFilter

PIECES = st.lists(
    st.sampled_from(
        [
            b"\x1b", b"[", b"]", b"0;", b"m", b"31", b"\x07", b"\x1b\\", b"P", b"\x9b", b"\xc2\x9b",
            b"\xc2", b"\x9d",
            b"52;c;aGk=", b"\n", b"\r", b"?25l", b"c", b"\x18", b"text", b"\xe2\x82",
        ]
    )
    | st.binary(max_size=6),
    max_size=40,
).map(b"".join)  # fmt: skip
CUTS = st.lists(st.integers(0, 200), max_size=8)


def filtered(data: bytes, cuts=()) -> str:
    made = TerminalFilter()
    edges = sorted({min(c, len(data)) for c in cuts} | {0, len(data)})
    out = [made.feed(data[a:b]) for a, b in itertools.pairwise(edges)]
    return "".join(out) + made.close()


@settings(max_examples=80)
@given(PIECES)
def test_only_text_and_colours_come_through(data):
    rest = re.sub(r"\x1b\[[0-9;:]{0,64}m", "", filtered(data))
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", rest)


@settings(max_examples=80)
@given(PIECES, CUTS)
def test_where_the_bytes_are_cut_makes_no_difference(data, cuts):
    assert filtered(data, cuts) == filtered(data)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])), CUTS)
def test_plain_text_is_left_alone(text, cuts):
    assert filtered(text.encode(), cuts) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m\x1b[0m"),
        (b"\x1b[38:2:1:2:3mx", "\x1b[38:2:1:2:3mx\x1b[0m"),
        (b"a\x1b]0;title\x07b", "ab"),
        (b"a\x1b]52;c;aGk=\x1b\\b", "ab"),
        (b"a\x1bP+q544e\x1b\\b", "ab"),
        (b"a\x1b[2J\x1b[Hb\x1b[6nc", "abc"),
        (b"a\x1bcb", "ab"),
        (b"a\x1b[?1049hb", "ab"),
        (b"a\x1b(0b", "ab"),
        (b"\xc2\x9b31mx\x9b", "31mx\ufffd"),
        (b"10%\r20%\r\n", "10%\r20%\r\n"),
        (b"a\x1b]0;no end\nnext", "a\nnext"),
        (b"bell\x07\x08\x00", "bell"),
        (b"a\x1b", "a"),
    ],
)
def test_filter(raw, shown):
    assert filtered(raw) == shown


def test_a_string_without_an_end_does_not_swallow_what_follows_for_ever():
    data = b"\x1b]0;" + b"x" * 10_000 + b"end"
    assert filtered(data).endswith("end")
    assert filtered(data, range(0, 200, 7)) == filtered(data)
