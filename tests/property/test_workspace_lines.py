"""The differences of two texts rebuild the new one, however little effort is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.workspace.lines import Effort, differences

texts = st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), max_size=30)


@given(texts, texts, st.sampled_from([0, 10, 60, 1_000_000]))
def test_differences_rebuild_the_new_text(old: list[bytes], new: list[bytes], steps: int) -> None:
    rebuilt: list[bytes] = []
    at = 0
    for a0, a1, b0, b1 in differences(old, new, Effort(steps)):
        assert a0 >= at
        assert a1 > a0 or b1 > b0
        rebuilt += old[at:a0] + new[b0:b1]
        at = a1
    assert rebuilt + old[at:] == new


@given(texts)
def test_equal_texts_do_not_differ(text: list[bytes]) -> None:
    assert differences(text, list(text), Effort(0)) == []
