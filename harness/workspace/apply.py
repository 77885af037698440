"""Applying a patch to a repository: our own applier, no git process, no link followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.workspace.flags import held_back
from harness.workspace.hidden import visible_name
from harness.workspace.names import (
    LONGEST_PATH,
    fault,
    folded,
    parents,
    raw_path,
    shown_path,
)
from harness.workspace.parse import Mismatch, Step, parse
from harness.workspace.sections import LINK, NO_BLOB, Side
from harness.workspace.tree import Present, Refused, Tree, Write, Writing

_MOVED = (
    "it is not the file the run started from; take your change away, or apply this part by hand"
)
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Report:
    """What an application did. Paths as in `Change.path`; a reason goes with the last two.

    `already` are paths that were as the patch leaves them. If anything is refused, nothing is
    applied. `held` are paths that must be named and were not.
    """

    applied: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    held: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()


def apply(
    patch: bytes, repo: Path, *, include_control: frozenset[str] = _NONE, dry_run: bool = False
) -> Report:
    """Apply a patch that `harness` wrote to the repository it came from.

    Every file must still be the one the run started from. Everything is checked first, then
    written; a failure puts everything back. What runs outside the box later, compiled code and
    links that lead out are held back unless their paths, or a folder above them, are in
    `include_control`. With `dry_run` nothing is written, and `applied` is what would be.

    Raises `UserError` for a patch that cannot be read, a name to include that is not in it, or
    a repository that cannot be written.
    """
    files = parse(patch)
    included = _included(files, include_control)
    held = {s[0].path: why for s in files if (why := _held(s)) and s[0].path not in included}
    chosen = [steps for steps in files if steps[0].path not in held]
    tree = Tree(repo)
    try:
        plan = _Plan(tree, chosen)
        writes = plan.writes()
        if not plan.refused and not dry_run:
            Writing(tree).run(writes)
    finally:
        tree.close()
    paths = [steps[0].path for steps in chosen if steps[0].path not in plan.already]
    return Report(
        () if plan.refused else tuple(map(shown_path, paths)),
        tuple(map(shown_path, plan.already)),
        tuple((shown_path(path), f"{why}; name it to apply it") for path, why in held.items()),
        tuple((shown_path(path), why) for path, why in plan.refused.items()),
    )


def _included(files: Sequence[tuple[Step, ...]], names: frozenset[str]) -> set[bytes]:
    """The paths of a patch that are named, or lie in a folder that is."""
    found: set[bytes] = set()
    for name in sorted(names):
        wanted = b"/".join(part for part in raw_path(name).split(b"/") if part not in {b"", b"."})
        paths = (steps[0].path for steps in files)
        exact = raw_path(name)
        below = {path for path in paths if path == exact or wanted in {path, *parents(path)}}
        if not below:
            shown = visible_name(raw_path(name))
            raise UserError(f"`{shown}` is not in the patch, so it cannot be included")
        found |= below
    return found


def _held(steps: tuple[Step, ...]) -> str | None:
    """Why a path is not applied unless it is named."""
    path, last = steps[0].path, steps[-1]
    if last.new_mode != LINK:
        return held_back(path)
    target = last.literal or b"".join(line for hunk in last.hunks for line in hunk.new)
    return held_back(path, target)


def _same_kind(mode: int, step: Step) -> bool:
    """Whether a file's mode is what the step starts from; its executable bit counts only where
    the step changes it."""
    if step.new_mode in {None, step.old_mode} and mode != LINK:
        return step.old_mode != LINK
    return mode == step.old_mode


def _is_done(state: Side | None, last: Step) -> bool:
    """Whether a path is as the patch leaves it."""
    if state is None:
        return last.new_mode is None
    return (state.mode, state.blob) == (last.new_mode, last.new_blob)


class _Plan:
    """The writes of a patch, and what is wrong with it; looks at the disk and changes nothing."""

    def __init__(self, tree: Tree, files: list[tuple[Step, ...]]) -> None:
        self._tree = tree
        self._files = files
        self.refused: dict[bytes, str] = {}
        self.already: list[bytes] = []
        self._gone = {s[0].path for s in files if s[0].old_mode and s[-1].new_mode is None}
        self._made = {s[0].path for s in files if s[-1].new_mode is not None}
        self._names: dict[bytes, list[tuple[bytes, bool]]] = {}
        self._spelled: dict[bytes, bytes] = {}

    def writes(self) -> list[Write]:
        writes: list[Write] = []
        for steps in self._files:
            path = steps[0].path
            try:
                reason = fault(path)
                if reason is not None:
                    raise Refused(reason)
                write = self._write(path, steps)
                if write is None:
                    self.already.append(path)
                else:
                    writes.append(write)
            except (Refused, Mismatch) as refusal:
                self.refused[path] = str(refusal)
            except OSError as error:
                self.refused[path] = f"it cannot be read: {error.strerror}"
        return writes

    def _write(self, path: bytes, steps: tuple[Step, ...]) -> Write | None:
        old = self._present(path, steps)
        state = old.side if old is not None else None
        if _is_done(state, steps[-1]):
            return None
        self._matches(state, steps)
        for step in steps:
            state = step.applied(state)
        if old is not None and state is not None and steps[0].old_mode == steps[-1].new_mode:
            state = Side(old.side.mode, state.data)
        if state is not None:
            self._may_be(path, state)
            if old is None:
                self._is_alone(path)
        return Write(path, old, state)

    def _present(self, path: bytes, steps: tuple[Step, ...]) -> Present | None:
        """What is there now. A file above the path, or a folder in its place, is nothing if this
        very patch takes it away."""
        if steps[0].old_mode is None:
            if any(above in self._gone for above in parents(path)):
                return None
            if self._tree.is_folder(path) and self._is_emptied(path):
                return None
        return self._tree.look(path)

    def _is_emptied(self, path: bytes) -> bool:
        todo = [path]
        while todo:
            folder = todo.pop()
            held = self._tree.names(folder)
            if not held:
                return False
            for name, is_folder in held:
                below = folder + b"/" + name
                if is_folder:
                    todo.append(below)
                elif below not in self._gone:
                    return False
        return True

    def _matches(self, state: Side | None, steps: tuple[Step, ...]) -> None:
        first = steps[0]
        here = state.blob if state is not None else NO_BLOB
        if here == first.old_blob and (state is None or _same_kind(state.mode, first)):
            return
        if first.old_mode is None:
            raise Refused("there is a file already; move it away, or apply this part by hand")
        if state is None:
            raise Refused("the file is not there any more")
        raise Refused(_MOVED)

    def _may_be(self, path: bytes, state: Side) -> None:
        if any(above in self._made for above in parents(path)):
            raise Refused("the patch makes a file of a folder above it")
        empty_or_long = not 0 < len(state.data) <= LONGEST_PATH
        if state.is_link and (empty_or_long or b"\0" in state.data):
            raise Refused("the link's target is no path")

    def _is_alone(self, path: bytes) -> None:
        """Refuse a new name that some file systems take for another one."""
        for part in [*parents(path), path]:
            above, _, name = part.rpartition(b"/")
            key = folded(part)
            if self._spelled.setdefault(key, part) != part:
                raise Refused(f"its name collides with `{shown_path(self._spelled[key])}`")
            if above not in self._names:
                self._names[above] = self._tree.names(above)
            for other, is_folder in self._names[above]:
                if other == name or folded(other) != folded(name):
                    continue
                beside = above + b"/" + other if above else other
                leaves = self._is_emptied(beside) if is_folder else beside in self._gone
                if not leaves:
                    raise Refused(f"its name collides with `{shown_path(beside)}`")
