"""Everything of a repository's folder that goes into a box."""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.errors import UserError
from harness.values.commands import FileKind
from harness.values.limits import GIB, MIB
from harness.workspace.ignore import LARGEST, IgnoreRules
from harness.workspace.names import is_git_name, points_out
from harness.workspace.notes import Notes

UNREADABLE = "left out, cannot be read"
_SPECIAL = "left out, neither a file nor a folder nor a link"
_NESTED = "nested repositories, copied without their `.git`"
_LINK_OUT = "links that lead out of the repository, copied as links"
_NOT_UTF8 = "names that are not UTF-8, kept as they are"
_IGNORED = "left out, ignored by `.gitignore`"


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """Bounds of a copy: bytes in all, bytes of one file, and entries.

    A file over its bound is left out and reported; a repository over the others is refused.
    """

    total: int = 2 * GIB
    file: int = 256 * MIB
    entries: int = 400_000


@dataclass(frozen=True, slots=True)
class Found:
    """An entry to copy. A file's bytes are at `source` on the host, or in `data`."""

    path: bytes
    kind: FileKind
    mode: int
    size: int = 0
    source: bytes | None = None
    data: bytes = b""


class Walk:
    """One walk over a folder; fills `rules` and `notes` as it goes.

    `tracked` holds the paths git tracks, which are copied even where they are ignored; `nested`
    gets the folders that are repositories of their own.
    """

    def __init__(
        self,
        root: bytes,
        limits: CopyLimits,
        rules: IgnoreRules,
        tracked: Mapping[bytes, object],
        notes: Notes,
    ) -> None:
        self._root = root
        self._limits = limits
        self._rules = rules
        self._notes = notes
        self._tracked = tracked
        self.nested: set[bytes] = set()
        # Sorted rather than every folder above: paths of many parts have as many folders.
        self._in_order = sorted(tracked)

    def entries(self) -> Iterator[Found]:
        """Folders before what they hold, by name. Raises `UserError` if the root is unreadable."""
        todo: list[tuple[bytes, bool]] = [(b"", False)]
        while todo:
            folder, only_tracked = todo.pop()
            held = self._scan(folder)
            if held is None:
                continue
            if not only_tracked:
                self._read_rules(folder, held)
            deeper: list[tuple[bytes, bool]] = []
            for name in sorted(held):
                path = folder + b"/" + name if folder else name
                if is_git_name(name):
                    if folder:
                        self.nested.add(folder)
                        self._notes.add(_NESTED, folder)
                    continue
                skipped = only_tracked or self._is_ignored(path, held[name])
                if skipped and not self._is_tracked(path):
                    if not only_tracked:
                        self._notes.add(_IGNORED, path)
                    continue
                found = self._found(path, held[name])
                if found is not None:
                    yield found
                    deeper += [(path, skipped)] * (found.kind is FileKind.DIRECTORY)
            todo.extend(reversed(deeper))

    def _is_ignored(self, path: bytes, entry: os.DirEntry[bytes]) -> bool:
        return self._rules.matches(path, folder=entry.is_dir(follow_symlinks=False))

    def _is_tracked(self, path: bytes) -> bool:
        if path in self._tracked:
            return True
        below = path + b"/"
        at = bisect_left(self._in_order, below)
        return at < len(self._in_order) and self._in_order[at].startswith(below)

    def _scan(self, folder: bytes) -> dict[bytes, os.DirEntry[bytes]] | None:
        try:
            with os.scandir(os.path.join(self._root, folder)) as entries:  # noqa: PTH118 - bytes
                return {entry.name: entry for entry in entries}
        except OSError as fault:
            if not folder:
                raise UserError(f"the repository cannot be read: {fault.strerror}") from fault
            self._notes.add(UNREADABLE, folder)
            return None

    def _read_rules(self, folder: bytes, held: Mapping[bytes, os.DirEntry[bytes]]) -> None:
        entry = held.get(b".gitignore")
        if entry is None or not entry.is_file(follow_symlinks=False):
            return
        text = read_file(entry.path, LARGEST, cut=True)
        if text is not None:
            self._rules.add(folder, text)

    def _found(self, path: bytes, entry: os.DirEntry[bytes]) -> Found | None:
        try:
            info = entry.stat(follow_symlinks=False)
            target = b""
            if stat.S_ISLNK(info.st_mode):
                target = os.readlink(entry.path)  # noqa: PTH115 - bytes
        except OSError:
            self._notes.add(UNREADABLE, path)
            return None
        if not is_text(path.rpartition(b"/")[2]):
            self._notes.add(_NOT_UTF8, path)
        mode = stat.S_IMODE(info.st_mode) & 0o777
        if stat.S_ISDIR(info.st_mode):
            return Found(path, FileKind.DIRECTORY, mode | 0o700)
        if stat.S_ISLNK(info.st_mode):
            if points_out(path, target):
                self._notes.add(_LINK_OUT, path)
            return Found(path, FileKind.LINK, 0o777, len(target), data=target)
        if not stat.S_ISREG(info.st_mode):
            self._notes.add(_SPECIAL, path)
            return None
        if info.st_size > self._limits.file:
            self._notes.add(f"left out, larger than {self._limits.file // MIB} MiB", path)
            return None
        return Found(path, FileKind.FILE, mode | 0o600, info.st_size, entry.path)


def is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_file(path: bytes, most: int, *, cut: bool = False) -> bytes | None:
    """A regular file's bytes, no link followed at its end; None if it cannot be read, is no
    file, or is larger than `most` (unless `cut`)."""
    try:
        # A FIFO that took the file's place must not block the open.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode) or (info.st_size > most and not cut):
            return None
        data = os.read(file, min(info.st_size, most) + 1)
        while len(data) <= most:
            piece = os.read(file, min(most + 1 - len(data), 1 << 20))
            if not piece:
                break
            data += piece
    except OSError:
        return None
    finally:
        os.close(file)
    if len(data) > most:
        return data[:most] if cut else None
    return data
