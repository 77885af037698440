"""A box that is a folder, for what a tree in memory does not have: real times, inodes, modes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.errors import FileFault
from harness.sandbox.memory import MemorySandbox
from harness.values.commands import FileKind, Stat, Upload

_KINDS = {
    stat.S_IFREG: FileKind.FILE,
    stat.S_IFDIR: FileKind.DIRECTORY,
    stat.S_IFLNK: FileKind.LINK,
}


class FolderBox(MemorySandbox):
    """Files of the box lie below `folder`; tests change them there. `reads` are paths read.

    `denied` files cannot be read, `closed` folders not be listed, as if their modes said so: who
    runs the tests may be root.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(root=str(folder))
        self.folder = folder
        self.reads: list[str] = []
        self.batches: list[int] = []
        self.denied: set[str] = set()
        self.closed: set[bytes] = set()

    async def upload(self, entries: Sequence[Upload]) -> None:
        self.batches.append(len(entries))
        for entry in entries:
            _put(self.folder / os.fsdecode(entry.path), entry)

    async def list(self, path: str, *, depth: int = 1, limit: int = 10_000) -> tuple[Stat, ...]:
        found = sorted(_below(Path(path), Path(path), depth), key=lambda entry: entry.path)
        for folder in self.closed:
            found = [entry for entry in found if not entry.path.startswith(folder + b"/")]
            found = [replace(e, mode=0) if e.path == folder else e for e in found]
        return tuple(found[:limit])

    async def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        self.reads.append(path.removeprefix(f"{self.folder}/"))
        if self.reads[-1] in self.denied:
            raise FileFault("denied", path, "it cannot be read")
        data = _content(path)
        return data[offset : None if length is None else offset + length]


def _put(path: Path, entry: Upload) -> None:
    if entry.kind is FileKind.DIRECTORY:
        path.mkdir()
    elif entry.kind is FileKind.LINK:
        path.symlink_to(os.fsdecode(entry.data))
    else:
        path.write_bytes(entry.data)
    if entry.kind is not FileKind.LINK:
        path.chmod(entry.mode)


def _content(path: str) -> bytes:
    return Path(path).read_bytes()


def _below(base: Path, folder: Path, depth: int) -> Iterator[Stat]:
    for path in folder.iterdir():
        info = path.lstat()
        kind = _KINDS.get(stat.S_IFMT(info.st_mode), FileKind.OTHER)
        yield Stat(
            os.fsencode(path.relative_to(base)),
            kind,
            info.st_size,
            stat.S_IMODE(info.st_mode),
            info.st_mtime_ns,
            info.st_ctime_ns,
            info.st_ino,
            os.fsencode(path.readlink()) if kind is FileKind.LINK else b"",
        )
        if kind is FileKind.DIRECTORY and depth > 1:
            yield from _below(base, path, depth - 1)
