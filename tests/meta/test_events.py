"""Event kinds that would be written and not read back, or not be written at all."""

from __future__ import annotations

import ast
import inspect
from typing import get_args

from harness.sessions.codec import KINDS
from harness.values import events
from harness.values.events import Event, Unknown
from tests.meta.source import ROOT


def test_every_event_class_is_in_the_union_and_known_to_the_codec() -> None:
    tree = ast.parse(inspect.getsource(events))
    written = {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(s, ast.AnnAssign) and ast.unparse(s.target) == "kind" for s in node.body)
    }
    union = {kind.__name__ for kind in get_args(Event)}
    assert written == union
    assert {c.__name__ for c in KINDS.values()} == union


def test_no_two_events_share_a_name() -> None:
    names = [kind.kind for kind in get_args(Event) if kind is not Unknown]
    assert len(names) == len(set(names))


def test_the_codec_is_tested_on_every_kind() -> None:
    """`tests/sessions/test_codec.py` takes its cases from the codec's own list."""
    text = (ROOT / "tests" / "sessions" / "test_codec.py").read_text(encoding="utf-8")
    assert "KINDS.values()" in text
