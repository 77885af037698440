"""Nothing that a terminal acts on, and nothing that cannot be seen, is ever shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.approvers.escape import columns, lines, shortened, visible

TRICKY = st.text(
    st.characters()
    | st.sampled_from(
        "\x1b\r\n\0\x07\x9b\u202e\u2066\u200b\u200d\u2060\ufeff\u3164\u00ad\ufe0f\u0301\u2028"
    )
)


@given(TRICKY)
def test_no_control_format_or_unassigned_character_is_left(text):
    for char in visible(text):
        assert unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        assert char == " " or unicodedata.category(char) != "Zs"


@given(TRICKY, st.integers(1, 200))
def test_no_line_is_wider_than_asked_and_nothing_is_lost(text, width):
    shown = list(lines(text, width))
    assert all(columns(line) <= max(width, 2) for line in shown)
    assert "".join(shown) == visible(text.replace("\n", ""))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -la", "ls -la"),
        ("größe 数 😀", "größe 数 😀"),
        ("a\x1b[2Kb", "a<U+001B>[2Kb"),
        ("a\u202eb", "a<U+202E>b"),
        ("a\u3164b\u2800c", "a<U+3164>b<U+2800>c"),
        ("e\u0301", "e\u0301"),
        ("e\u0301\u0301\u0301", "e\u0301\u0301<U+0301>"),
        ("\udc9b", "<U+DC9B>"),
        ("a\u00a0b", "a<U+00A0>b"),
    ],
)
def test_visible(text, shown):
    assert visible(text) == shown


def test_a_long_text_keeps_its_ends_and_says_how_much_and_which(tmp_path):
    text = "start" + "x" * 10_000 + "end"
    shown, note = shortened(text, 1000)
    assert shown.startswith("start")
    assert shown.endswith("end")
    assert "9,008 of 10,008 characters" in note
    assert "sha256 " in note
    assert shortened("short", 1000) == ("short", "")
