"""Why a person should look twice at a changed path."""

from __future__ import annotations

import re

from harness.operations.control import is_control_path, is_run_here
from harness.operations.spelling import fold_path
from harness.values.changes import Flag
from harness.workspace.hidden import has_hidden
from harness.workspace.names import has_git_part, joined, points_out, shown_path
from harness.workspace.sections import PROGRAM, Side, is_binary

_COMPILED = (
    ".pyc", ".pyo", ".pyd", ".so", ".dll", ".dylib", ".node", ".exe", ".class", ".jar", ".war",
    ".whl", ".egg", ".elc", ".luac", ".beam", ".wasm",
)  # fmt: skip
"""Code that no reader of a patch can read, and that programs load by its name."""
_VERSIONED = re.compile(r"\.so(\.\d+)+\Z")


def _is_compiled(path: bytes) -> bool:
    name = fold_path(shown_path(path)).rpartition("/")[2]
    return name.endswith(_COMPILED) or _VERSIONED.search(name) is not None


def _runs_unread(path: bytes) -> bool:
    return has_git_part(path) or _is_compiled(path) or is_control_path(shown_path(path))


def held_back(path: bytes, target: bytes | None = None) -> str | None:
    """Why a path (a link, with its target) is only applied when it is named; None: it is not."""
    if has_git_part(path) or is_control_path(shown_path(path)):
        return "it runs outside the box later"
    if _is_compiled(path):
        return "it is compiled code, which nobody can read here, and it runs outside the box later"
    if target is None:
        return None
    if points_out(path, target):
        return "it is a link that leads out of the repository"
    behind = joined(path, target)
    if behind is not None and _runs_unread(behind):
        return "it is a link to what runs outside the box later"
    return None


def name_flags(path: bytes) -> frozenset[Flag]:
    """What a path's name alone says."""
    found: set[Flag] = set()
    if _runs_unread(path):
        found.add(Flag.CONTROL)
    if is_run_here(shown_path(path)):
        found.add(Flag.RUNS_HERE)
    if has_hidden(path) or b"\n" in path or b"\t" in path:
        found.add(Flag.HIDDEN_TEXT)
    return frozenset(found)


def flags(path: bytes, new: Side | None, fresh: bytes) -> frozenset[Flag]:
    """What a change's name, its added text and, for a link, its target say."""
    found = set(name_flags(path))
    if has_hidden(fresh):
        found.add(Flag.HIDDEN_TEXT)
    if new is None:
        return frozenset(found)
    if new.is_link and points_out(path, new.data):
        found.add(Flag.LINK_OUT)
    elif new.is_link and held_back(path, new.data):
        found.add(Flag.CONTROL)
    if new.mode == PROGRAM and is_binary(new.data):
        found.add(Flag.RUNS_HERE)
    return frozenset(found)
