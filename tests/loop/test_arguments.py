"""Arguments as a model may send them."""

from __future__ import annotations

import asyncio
import json

import pytest

from harness.loop.arguments import MAX_DEPTH, fault_in, parse_arguments
from harness.loop.run import run
from harness.sessions.codec import decode, encode
from harness.values.events import ToolCompleted
from harness.values.items import ToolSpec
from tests.fakes import SCHEMA, parts, script

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "null",
        "[]",
        '"x"',
        "{",
        '{"word": NaN}',
        '{"word": Infinity}',
        '{"word": -Infinity}',
        '{"word": 1e999}',
        f'{{"word": {DEEP}}}',
        f'{{"word": {"[" * 600}{"]" * 600}}}',
        f'{{"word": {"9" * 5000}}}',
    ],
    ids=range(12),
)
def test_what_is_no_object_of_plain_json_is_none_and_never_an_error(raw: str) -> None:
    assert parse_arguments(raw) is None
    made = parts(script({"calls": [{"tool": "echo", "args": raw}]}, {"text": "done"}))
    asyncio.run(run("go", made))
    (done,) = [r.event for r in made.session.log.records() if isinstance(r.event, ToolCompleted)]
    assert done.status == "invalid"
    for record in made.session.log.records():
        assert decode(encode(record)) == record


def test_what_is_read_can_be_written_again() -> None:
    nested: object = 1
    for _ in range(MAX_DEPTH - 2):
        nested = [nested]
    args = {"word": nested, "other": [1.5, -0.0, 10**30, "\ud800", None, True]}
    assert parse_arguments(json.dumps(args)) == args


def test_a_fault_names_its_place_in_few_words() -> None:
    spec = ToolSpec("t", "", SCHEMA)
    assert fault_in({"word": "x"}, spec) is None
    fault = fault_in({"word": {"x": "y" * 10_000}}, spec)
    assert fault is not None
    assert "['word']" in fault
    assert len(fault) < 400
