"""Why a person should look twice at a changed path."""

from __future__ import annotations

from harness.operations.control import is_control_path, is_run_here
from harness.values.changes import Flag
from harness.workspace.hidden import has_hidden
from harness.workspace.names import has_git_part, joined, points_out, shown_path
from harness.workspace.sections import Side


def is_control(path: bytes, target: bytes | None = None) -> bool:
    """Whether a path is a control file, or a link (with its target) to one."""
    if has_git_part(path) or is_control_path(shown_path(path)):
        return True
    if target is None:
        return False
    behind = joined(path, target)
    return is_control_path(shown_path(target if behind is None else behind))


def name_flags(path: bytes) -> frozenset[Flag]:
    """What a path's name alone says."""
    found: set[Flag] = set()
    if is_control(path):
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
    if new is not None and new.is_link:
        if points_out(path, new.data):
            found.add(Flag.LINK_OUT)
        if is_control(path, new.data):
            found.add(Flag.CONTROL)
    return frozenset(found)
