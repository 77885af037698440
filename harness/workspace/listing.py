"""Everything a box holds, by path, whatever its workload made of the tree.

A workload may nest folders without end or fill them with names: what cannot be listed is left
out and said, and what is known of it stays as it was, so that it is not taken for deleted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from harness.errors import FileFault, SandboxError
from harness.ports import Sandbox
from harness.values.commands import FileKind, Stat
from harness.values.limits import MIB
from harness.workspace.hidden import visible_name
from harness.workspace.names import fault, shown_path
from harness.workspace.notes import Notes

_ANY_DEPTH = 10_000
_AT_ONCE = 100_000
"""Entries asked for in one listing; a folder with more is listed folder by folder."""

_UNLISTED = "the box could not list these folders, what changed there is not in the patch"
_TOO_MANY = "the box holds too much to list, what changed in these folders is not in the patch"
_NO_ROOM = "the box holds too much to list, these are not in the patch"
_IMPOSSIBLE = "names that no patch can carry, not in the patch"


@dataclass(frozen=True, slots=True)
class ListLimits:
    """Bounds of one listing: new entries, bytes of their paths, calls of the box, seconds, and
    how many listings of whole trees may turn out too large."""

    entries: int = 2_000_000
    names: int = 128 * MIB
    calls: int = 50_000
    seconds: float = 120.0
    too_large: int = 64


_DEFAULT = ListLimits()
LATER = ListLimits(names=32 * MIB)
"""Bounds for what a workload adds to a loaded box."""


@dataclass
class Listing:
    """One listing of a box. `here` and `notes` are what came of it.

    `known` are the paths that were there before, with their metadata. Folders among them are
    listed first, so that new ones cannot use up the bounds.
    """

    box: Sandbox
    known: Mapping[bytes, Stat] = field(default_factory=dict[bytes, Stat])
    limits: ListLimits = _DEFAULT
    here: dict[bytes, Stat] = field(default_factory=dict[bytes, Stat])
    notes: Notes = field(default_factory=Notes)

    async def run(self) -> None:
        """Fill `here`. Raises `SandboxError` if the box is lost."""
        self._new = self._names = self._calls = self._failed = 0
        self._until = time.monotonic() + self.limits.seconds
        unseen: set[bytes] = set()
        old: list[tuple[bytes, bool]] = [(b"", True)]
        new: list[tuple[bytes, bool]] = []
        while old or new:
            folder, whole = (old or new).pop()
            if self._is_spent(folder):
                self.notes.add(_TOO_MANY, folder or b".")
                unseen.add(folder)
                continue
            deeper = await self._folder(folder, whole=whole)
            if deeper is None:
                unseen.add(folder)
                continue
            # One folder alone holds about as much as the one above it: no use in trying.
            again = len(deeper) > 1
            for path in reversed(deeper):
                (old if path in self.known else new).append((path, again))
        self._keep(unseen)

    def _is_spent(self, folder: bytes) -> bool:
        if self._calls >= self.limits.calls or time.monotonic() > self._until:
            return True
        return folder not in self.known and bool(folder) and not self._has_room()

    def _has_room(self) -> bool:
        return self._new <= self.limits.entries and self._names <= self.limits.names

    async def _folder(self, folder: bytes, *, whole: bool) -> list[bytes] | None:
        """List a folder: the folders in it that are still to be listed, None if it cannot be."""
        if whole and self._failed < self.limits.too_large:
            found = await self._ask(folder, _ANY_DEPTH)
            if isinstance(found, tuple):
                self._take(folder, found)
                return []
            if found != "too_large":
                self.notes.add(_UNLISTED, folder or b".")
                return None
            self._failed += 1
        found = await self._ask(folder, 1)
        if isinstance(found, str):
            self.notes.add(_TOO_MANY if found == "too_large" else _UNLISTED, folder or b".")
            return None
        return self._take(folder, found)

    async def _ask(self, folder: bytes, depth: int) -> tuple[Stat, ...] | str:
        """What the box lists, or a `FileFault` code."""
        self._calls += 1
        name = f"{self.box.root.rstrip('/')}/{shown_path(folder)}".rstrip("/") or "/"
        try:
            found = await self.box.list(name, depth=depth, limit=_AT_ONCE)
        except FileFault as fault_:
            return fault_.code
        return "too_large" if len(found) >= _AT_ONCE else found

    def _take(self, folder: bytes, found: tuple[Stat, ...]) -> list[bytes]:
        """Keep what was listed; the folders of it."""
        folders: list[bytes] = []
        for entry in found:
            path = folder + b"/" + entry.path if folder else entry.path
            reason = None if path in self.known else fault(path, git=True)
            if reason is not None:
                self.notes.add(f"{_IMPOSSIBLE} ({reason})", path)
                continue
            if path not in self.known:
                if not self._has_room():
                    self.notes.add(_NO_ROOM, path)
                    continue
                self._new += 1
                self._names += len(path)
            self.here[path] = replace(entry, path=path) if folder else entry
            if entry.kind is FileKind.DIRECTORY:
                folders.append(path)
        return folders

    def _keep(self, unseen: set[bytes]) -> None:
        if not unseen:
            return
        for path, entry in self.known.items():
            if path not in self.here and _is_below(path, unseen):
                self.here[path] = entry


def _is_below(path: bytes, folders: set[bytes]) -> bool:
    while path:
        path = path.rpartition(b"/")[0]
        if path in folders:
            return True
    return False


def uploaded(here: Mapping[bytes, Stat], paths: Mapping[bytes, object], notes: Notes) -> None:
    """Check that a box lists what was uploaded and nothing impossible.

    Raises `SandboxError`.
    """
    wrong = notes.lines()
    if wrong:
        raise SandboxError(f"the box lists what cannot be: {wrong[0]}")
    missing = next((path for path in paths if path not in here), None)
    if missing is not None:
        raise SandboxError(f"the box did not take `{visible_name(missing)}`")
