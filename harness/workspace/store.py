"""What was loaded into a box: every path's git mode and content, kept for the diff."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import SessionStorage
from harness.workspace.sections import Side, blob_id


@dataclass(frozen=True, slots=True)
class Kept:
    """A file as it was loaded; its content is `size` bytes at `offset` of the store."""

    mode: int
    blob: str
    offset: int
    size: int


class Baseline:
    """One append-only file of contents below a folder of ours, and an index in memory.

    One file written in sequence costs little more than reading the repository. Hard links
    would cost less and be wrong: an editor that writes in place changes both names. Nothing is
    synced, since a lost store loses a diff and no work of the user's.
    """

    def __init__(self, folder: Path) -> None:
        self._kept: dict[bytes, Kept] = {}
        self._offsets: dict[str, int] = {}
        self._end = 0
        self._name = folder / "baseline"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(self._name, flags, 0o600)
        except OSError as fault:
            raise self._storage(fault) from fault
        weakref.finalize(self, os.close, self._file)

    def keep(self, path: bytes, mode: int, data: bytes) -> None:
        """Remember a file. Raises `SessionStorage`."""
        blob = blob_id(data)
        offset = self._offsets.get(blob)
        if offset is None:
            offset = self._offsets[blob] = self._end
            self._append(data)
        self._kept[path] = Kept(mode, blob, offset, len(data))

    def get(self, path: bytes) -> Kept | None:
        return self._kept.get(path)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def read(self, path: bytes) -> Side:
        """The file as it was loaded. Raises `SessionStorage`; `KeyError` for an unknown path."""
        kept = self._kept[path]
        pieces: list[bytes] = []
        at, end = kept.offset, kept.offset + kept.size
        try:
            while at < end:
                piece = os.pread(self._file, end - at, at)
                if not piece:
                    raise SessionStorage(f"`{self._name}` was cut short; no diff can be made")
                pieces.append(piece)
                at += len(piece)
        except OSError as fault:
            raise self._storage(fault) from fault
        return Side(kept.mode, b"".join(pieces))

    def _append(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                written = os.pwrite(self._file, rest, self._end)
                self._end += written
                rest = rest[written:]
        except OSError as fault:
            raise self._storage(fault) from fault

    def _storage(self, fault: OSError) -> SessionStorage:
        return SessionStorage(f"the copy `{self._name}` cannot be kept: {fault.strerror}")
