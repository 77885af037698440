"""Records survive the way to disk and back, whatever they hold."""

from __future__ import annotations

import dataclasses
import json
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SessionCorrupt
from harness.sessions.codec import KINDS, decode, digest, encode
from harness.values.events import Event, Record, Unknown, UserMessage

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def some(kind: type) -> st.SearchStrategy[typing.Any]:
    """Any value of a type that events use."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is str:
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.integers(0, 2**40)
    if kind is float:
        return st.floats(0, 1e6, allow_nan=False)
    if origin is tuple:
        return st.lists(some(args[0]), max_size=3).map(tuple)
    if origin is not None and issubclass(typing.cast("type", origin), typing.Mapping):  # type: ignore[arg-type]
        return st.dictionaries(st.sampled_from(["a", "b"]), _JSON, max_size=2)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{f.name: some(hints[f.name]) for f in dataclasses.fields(kind)})
    if type(None) in args:
        return st.none() | some(next(a for a in args if a is not type(None)))
    raise AssertionError(f"no values for {kind}")


KNOWN = [kind for kind in KINDS.values() if kind is not Unknown]


@pytest.mark.parametrize("kind", KNOWN, ids=lambda kind: kind.kind)
def test_every_kind_of_event_comes_back_as_it_was(kind: type[Event]) -> None:
    @given(some(kind), st.integers(0, 99), st.none() | st.integers(1, 5))
    def check(event: Event, turn: int, attempt: int | None) -> None:
        record = Record(3, 12.5, "s", turn, event, "ab", attempt)
        line = encode(record)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert line.isascii()
        assert decode(line) == record

    check()


@given(st.text())
def test_any_text_gives_a_line_that_any_reader_can_read(text: str) -> None:
    line = encode(Record(0, 1.0, "s", 0, UserMessage(text + "\ud800\u2028\x00"), ""))
    assert json.loads(line)["text"] == text.encode("utf-8", "replace").decode() + "?\u2028\x00"


@given(st.binary(max_size=200))
def test_garbage_is_refused_by_type(data: bytes) -> None:
    with pytest.raises(SessionCorrupt):
        decode(data)


def test_the_digest_does_not_depend_on_the_line_end() -> None:
    assert digest(b"{}\n") == digest(b"{}")
