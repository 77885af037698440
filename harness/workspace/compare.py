"""What differs in a box from what was loaded into it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.errors import FileFault
from harness.ports import Sandbox
from harness.values.changes import Change, Changes, Flag
from harness.values.commands import FileKind, Stat
from harness.values.limits import MIB
from harness.workspace.flags import flags, name_flags
from harness.workspace.ignore import IgnoreRules
from harness.workspace.lines import Effort
from harness.workspace.litter import is_litter, marked_folders
from harness.workspace.names import (
    has_git_part,
    is_git_name,
    parents,
    shown_path,
)
from harness.workspace.notes import Notes
from harness.workspace.sections import FILE, LINK, PROGRAM, Side, section
from harness.workspace.store import Baseline, Kept
from harness.workspace.walk import CopyLimits

_PIECE = 16 * MIB
_LARGEST_PATCH = 256 * MIB
_STEPS = 30_000_000
_STEPS_A_FILE = 2_000_000
_TICK = 0.1
"""Seconds, several ticks of any kernel's clock for files: two changes of a file within one tick
may leave the same time stamp."""

_UNREADABLE = "changed in the box and cannot be read, not in the patch"
_TOO_LARGE = "changed in the box and too large, not in the patch"
_SPECIAL = "neither a file nor a folder nor a link, not in the patch"


_ORDINARY = re.compile(
    rb"\.git(/(objects(/([0-9a-f]{2}|pack|info(/packs|/commit-graphs?)?)(/.*)?)?"
    rb"|(refs|logs)(/.*)?|info|info/(exclude|refs)|index|sharedindex\..*|packed-refs|shallow"
    rb"|branches|description|gc\.log|[A-Z_]+_(MSG|MODE|EDITMSG)|([A-Z]+_)?HEAD|AUTO_MERGE"
    rb"|[^/]+\.lock))?",
    re.DOTALL,
)
"""What using git writes below `.git`. It stays in the box and needs no second look."""

Key = tuple[FileKind, int, int, int, int, bytes]


def _key(entry: Stat) -> Key:
    return entry.kind, entry.ctime, entry.size, entry.inode, entry.mode, entry.target


@dataclass(frozen=True, slots=True)
class _Seen:
    """A path that was read: its metadata, when that was first seen, when it was read."""

    key: Key
    first: float
    read: float
    change: Change | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is known of a loaded box: contents, ignore rules, and metadata right after loading.

    `ours` are the paths we uploaded. `seen` is filled by comparisons, so that the next one reads
    only what moved since.
    """

    kept: Baseline
    rules: IgnoreRules
    there: Mapping[bytes, Stat]
    ours: frozenset[bytes]
    limits: CopyLimits
    seen: dict[bytes, _Seen] = field(default_factory=dict[bytes, _Seen])

    def moved(self, now: Mapping[bytes, Stat]) -> list[bytes]:
        """Paths whose metadata does not prove that they are as they were loaded, sorted. A
        workload cannot set a ctime; a backend without one (0) proves nothing."""
        there = self.there
        moved = [p for p, entry in now.items() if there.get(p) != entry or not entry.ctime]
        return sorted([*moved, *(path for path in there if path not in now)])

    def known(self, path: bytes, now: Stat) -> _Seen | None:
        """What an earlier comparison found, if nothing can have changed since it read the file."""
        seen = self.seen.get(path)
        if seen is None or now.ctime == 0 or seen.key != _key(now):
            return None
        return seen if seen.read - seen.first > _TICK else None


class Comparison:
    """One comparison of a box, as it is listed `now`, with what was loaded."""

    def __init__(self, loaded: Loaded, box: Sandbox, now: Mapping[bytes, Stat]) -> None:
        self._loaded = loaded
        self._box = box
        self._now = now
        self._marked = marked_folders(now, loaded.ours)
        self._notes = Notes()
        self._ignored = 0
        self._size = 0
        self._effort = _STEPS
        self._listed = time.monotonic()

    async def changes(self) -> Changes:
        moved = self._loaded.moved(self._now)
        found = self._git_changes(moved)
        for path in moved:
            if has_git_part(path):
                continue
            change = await self._change(path)
            if change is not None:
                found.append(change)
        found.sort(key=lambda change: change.path.encode("utf-8", "surrogateescape"))
        return Changes(tuple(found), self._ignored, self._notes.lines())

    async def _change(self, path: bytes) -> Change | None:
        entry = self._now.get(path)
        old = self._loaded.kept.get(path)
        if entry is not None and entry.kind in {FileKind.FILE, FileKind.LINK}:
            if old is None and self._is_left(path):
                return None
            return await self._file(path, entry, old)
        if entry is not None and entry.kind is FileKind.OTHER and not self._is_left(path):
            self._notes.add(_SPECIAL, path)
        if old is None:
            return None
        if self._is_out_of_sight(path):
            self._notes.add(_UNREADABLE, path)
            return None
        return await self._compared(path, None)

    def _is_out_of_sight(self, path: bytes) -> bool:
        """Whether a folder above the path was closed, so that its absence says nothing."""
        above = (self._now.get(folder) for folder in parents(path))
        return any(
            entry is not None and entry.kind is FileKind.DIRECTORY and entry.mode & 0o500 != 0o500
            for entry in above
        )

    async def _file(self, path: bytes, entry: Stat, old: Kept | None) -> Change | None:
        known = self._loaded.known(path, entry)
        if known is not None:
            self._size += len(known.change.patch) if known.change else 0
            return known.change
        started = time.monotonic()
        new = await self._read(path, entry)
        if isinstance(new, str):
            self._notes.add(new, path)
            return _named(path, "modified" if old else "added")
        change = None
        if old is None or (old.mode, old.blob) != (new.mode, new.blob):
            change = await self._compared(path, new)
        before = self._loaded.seen.get(path)
        same = before is not None and before.key == _key(entry)
        first = before.first if before is not None and same else self._listed
        self._loaded.seen[path] = _Seen(_key(entry), first, started, change)
        return change

    def _is_left(self, path: bytes) -> bool:
        """Whether a new path is no part of a patch: ignored, litter, or there before we loaded."""
        if path in self._loaded.there and path not in self._loaded.ours:
            return True
        if self._loaded.kept.get(path) is not None:
            return False
        left = is_litter(path, self._marked) or self._loaded.rules.ignored(path)
        self._ignored += left
        return left

    async def _read(self, path: bytes, entry: Stat) -> Side | str:
        """A file as it is in the box, or the reason why it cannot be had."""
        if entry.kind is FileKind.LINK:
            return Side(LINK, entry.target)
        if entry.size > self._loaded.limits.file:
            return _TOO_LARGE
        name = f"{self._box.root.rstrip('/')}/{shown_path(path)}"
        data = bytearray()
        try:
            while len(data) <= self._loaded.limits.file:
                piece = await self._box.read(name, offset=len(data), length=_PIECE)
                data += piece
                if len(piece) < _PIECE:
                    break
        except FileFault:
            return _UNREADABLE
        if len(data) > self._loaded.limits.file:
            return _TOO_LARGE
        return Side(PROGRAM if entry.mode & 0o100 else FILE, bytes(data))

    async def _compared(self, path: bytes, new: Side | None) -> Change:
        old = self._loaded.kept.read(path) if self._loaded.kept.get(path) is not None else None
        effort = Effort(min(self._effort, _STEPS_A_FILE))
        before = effort.left
        made = await asyncio.to_thread(section, path, old, new, effort)
        self._effort -= before - max(effort.left, 0)
        self._size += len(made.text)
        if self._size > _LARGEST_PATCH:
            self._size -= len(made.text)
            self._notes.add(_TOO_LARGE, path)
            return _named(path, _action(old, new))
        return Change(
            shown_path(path),
            _action(old, new),
            made.text,
            made.added,
            made.removed,
            flags(path, new, made.fresh),
        )

    def _git_changes(self, moved: list[bytes]) -> list[Change]:
        """Control files that moved in the `.git` we made, and every `.git` we did not make."""
        found: dict[bytes, Change] = {}
        made = b".git" in self._loaded.ours
        there = self._loaded.there
        for path in moved:
            top = _git_folder(path)
            if top is None:
                continue
            if top != b".git" or not made:
                if top not in there:
                    found[top] = _named(top, "added", Flag.CONTROL)
                continue
            change = self._git_change(path)
            if change is not None:
                found[path] = change
        return list(found.values())

    def _git_change(self, path: bytes) -> Change | None:
        was, now = self._loaded.there.get(path), self._now.get(path)
        if _ORDINARY.fullmatch(path):
            return None
        if was is None or now is None:
            return _named(path, "deleted" if now is None else "added", Flag.CONTROL)
        same_folder = was.kind is FileKind.DIRECTORY and now.kind is FileKind.DIRECTORY
        if same_folder or _key(was) == _key(now):
            return None
        return _named(path, "modified", Flag.CONTROL)


def _git_folder(path: bytes) -> bytes | None:
    """The path up to its first part that spells `.git`."""
    parts = path.split(b"/")
    for at, part in enumerate(parts):
        if is_git_name(part):
            return b"/".join(parts[: at + 1])
    return None


def _named(path: bytes, action: str, *more: Flag) -> Change:
    """A change that is named but whose content is not in the patch."""
    kept = {Flag.LEFT_OUT, *more, *name_flags(path)}
    return Change(shown_path(path), action, b"", flags=frozenset(kept))


def _action(old: Side | None, new: Side | None) -> str:
    if old is None:
        return "added"
    if new is None:
        return "deleted"
    return "mode" if old.data == new.data and old.is_link == new.is_link else "modified"
