"""The git index, read with bounds: gitformat-index(5), versions 2 to 4.

In version 4 a path is written as a change of the one before, so that a small file can spell
out any number of bytes; paths are therefore counted while they are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LONGEST_PATH = 4096
MOST_ENTRIES = 400_000
MOST_NAMES = 96 << 20
"""Bytes of all paths of one index."""

_TYPE = 0o170000
_SUBMODULE = 0o160000
_FOLDER = 0o040000
_EXTENDED = 0x4000
_STAGE = 0x3000
_STAT = 40


class BadIndex(ValueError):
    """An index that cannot be read, or is over a bound; the message says which."""


@dataclass
class Index:
    """Paths with blob ids in hex, `""` for one in conflict; and what a split index rests on."""

    blobs: dict[bytes, str] = field(default_factory=dict[bytes, str])
    base: str | None = None
    names: int = 0


def read_index(data: bytes, hash_size: int, into: Index | None = None) -> Index:
    """Read an index whose hashes have `hash_size` bytes. Submodules and folders of a sparse
    index are left out. With `into`, paths are added to what is there.

    Raises `BadIndex`.
    """
    if data[:4] != b"DIRC" or len(data) < 12 + hash_size:
        raise BadIndex("it is no index")
    version = int.from_bytes(data[4:8], "big")
    count = int.from_bytes(data[8:12], "big")
    if version not in {2, 3, 4}:
        raise BadIndex("its version is unknown")
    if count > MOST_ENTRIES:
        raise BadIndex("it is too large")
    index = into or Index()
    index.base = None
    reader = _Reader(data, hash_size, version)
    for _ in range(count):
        reader.entry(index)
    index.base = _base(data, reader.at, hash_size)
    return index


class _Reader:
    def __init__(self, data: bytes, hash_size: int, version: int) -> None:
        self._data = data
        self._hash = hash_size
        self._version = version
        self._last = b""
        self.at = 12

    def entry(self, index: Index) -> None:
        data, start = self._data, self.at
        fixed = start + _STAT + self._hash + 2
        mode = int.from_bytes(data[start + 24 : start + 28], "big")
        flags = int.from_bytes(data[fixed - 2 : fixed], "big")
        self.at = fixed + 2 * bool(flags & _EXTENDED and self._version > 2)
        path = self._path(start)
        index.names += len(path)
        if index.names > MOST_NAMES:
            raise BadIndex("its paths are too many")
        # A split index leaves the name out where the shared one has it.
        if path and mode & _TYPE not in {_SUBMODULE, _FOLDER}:
            blob = data[start + _STAT : start + _STAT + self._hash].hex()
            index.blobs[path] = "" if flags & _STAGE else blob

    def _path(self, start: int) -> bytes:
        kept = 0
        if self._version == 4:
            kept = len(self._last) - self._number()
        end = self._data.find(b"\0", self.at, self.at + LONGEST_PATH + 1)
        if end < 0 or kept < 0 or kept + end - self.at > LONGEST_PATH:
            raise BadIndex("a path is too long or its end is missing")
        path = self._last[:kept] + self._data[self.at : end]
        self._last = path
        # Before version 4, one to eight NUL bytes make an entry's length a multiple of eight.
        self.at = end + 1 if self._version == 4 else start + ((end - start) // 8 + 1) * 8
        return path

    def _number(self) -> int:
        """A number in git's variable width: 7 bits a byte, each further byte adding one."""
        number = -1
        for at in range(self.at, min(self.at + 5, len(self._data))):
            byte = self._data[at]
            number = (number + 1) << 7 | byte & 127
            if byte < 128:
                self.at = at + 1
                return number
        raise BadIndex("a number has no end")


def _base(data: bytes, at: int, hash_size: int) -> str | None:
    """The hash in the name of the shared index, from the `link` extension."""
    end = len(data) - hash_size
    if at > end:
        raise BadIndex("it is cut short")
    while at + 8 <= end:
        size = int.from_bytes(data[at + 4 : at + 8], "big")
        if data[at : at + 4] == b"link" and hash_size <= size <= end - at - 8:
            base = data[at + 8 : at + 8 + hash_size]
            return base.hex() if any(base) else None
        at += 8 + size
    return None
