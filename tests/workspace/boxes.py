"""A box that is a folder, for what a tree in memory does not have: real times, inodes, modes."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from harness.errors import FileFault
from harness.sandbox.memory import MemorySandbox
from harness.values.commands import FileKind, Stat, Upload


class FolderBox(MemorySandbox):
    """Files of the box lie below `folder`; tests change them there. `reads` counts reads."""

    def __init__(self, folder: Path) -> None:
        super().__init__(root=str(folder))
        self.folder = os.fsencode(folder)
        self.reads: list[str] = []
        self.uploaded: list[Upload] = []

    async def upload(self, entries: Sequence[Upload]) -> None:
        for entry in entries:
            self.uploaded.append(entry)
            path = os.path.join(self.folder, entry.path)
            if entry.kind is FileKind.DIRECTORY:
                os.makedirs(path, exist_ok=True)
            elif entry.kind is FileKind.LINK:
                os.symlink(entry.data, path)
            else:
                Path(os.fsdecode(path)).write_bytes(entry.data)
                os.chmod(path, entry.mode)

    async def list(self, path: str, *, depth: int = 1, limit: int = 10_000) -> tuple[Stat, ...]:
        found: list[Stat] = []
        for above, folders, files in os.walk(os.fsencode(path)):
            for name in [*folders, *files]:
                full = os.path.join(above, name)
                found.append(_stat(full, os.path.relpath(full, os.fsencode(path))))
        return tuple(sorted(found, key=lambda entry: entry.path)[:limit])

    async def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        self.reads.append(path)
        try:
            data = Path(path).read_bytes()
        except OSError as fault:
            raise FileFault("denied", path, "no") from fault
        return data[offset : None if length is None else offset + length]


def _stat(full: bytes, path: bytes) -> Stat:
    info = os.lstat(full)
    kinds = {
        stat.S_IFREG: FileKind.FILE,
        stat.S_IFDIR: FileKind.DIRECTORY,
        stat.S_IFLNK: FileKind.LINK,
    }
    return Stat(
        path,
        kinds.get(stat.S_IFMT(info.st_mode), FileKind.OTHER),
        info.st_size,
        stat.S_IMODE(info.st_mode),
        info.st_mtime_ns,
        info.st_ctime_ns,
        info.st_ino,
        os.readlink(full) if stat.S_ISLNK(info.st_mode) else b"",
    )
