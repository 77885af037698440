"""The error tree as drawn, against the classes that are there."""

from __future__ import annotations

import inspect
import re

from harness import errors
from harness.errors import FileFault, HarnessError
from harness.values.outcomes import LoopError

ROW = re.compile(r"^    ([│├└─ ]*)([A-Z]\w+)(?: +([a-z_]+) +(\d))?", re.MULTILINE)


def drawn() -> dict[str, tuple[str, str, str]]:
    """Each class in the picture: its parent, the error a run ends with, the exit code."""
    assert errors.__doc__ is not None
    picture = errors.__doc__.split("::", 1)[1]
    rows: dict[str, tuple[str, str, str]] = {}
    branch: list[str] = []
    for lines, name, kind, code in ROW.findall(picture):
        depth = len(lines) // 4
        parent = branch[depth - 1] if depth else ""
        branch[depth:] = [name]
        rows[name] = (parent, kind, code)
    return rows


def defined() -> dict[str, type[HarnessError]]:
    classes = inspect.getmembers(errors, inspect.isclass)
    return {name: c for name, c in classes if issubclass(c, HarnessError)}


def test_the_tree_shows_every_class_under_its_parent() -> None:
    bases = {name: c.__base__.__name__ for name, c in defined().items() if c is not HarnessError}
    assert {name: parent for name, (parent, _, _) in drawn().items() if parent} == bases


def test_kinds_and_exit_codes_are_as_drawn() -> None:
    real = {
        name: (c.kind, str(c.exit_code))
        for name, c in defined().items()
        if c not in {HarnessError, FileFault}
    }
    shown = {name: (kind, code) for name, (_, kind, code) in drawn().items() if kind}
    assert shown == real


def test_each_kind_is_a_loop_error() -> None:
    assert {c.kind for c in defined().values()} <= {e.value for e in LoopError}
