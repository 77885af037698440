"""Names of files: how git quotes them, which are safe to write, and which spell `.git`."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from harness.operations.spelling import fold_path

LONGEST_NAME = 255
LONGEST_PATH = 4095

_SHORT = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}
_LONG = {short[0]: code for code, short in _SHORT.items()}


def quote(path: bytes) -> bytes:
    """As git prints a path with `core.quotePath` on: C-quoted if any byte needs it."""
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in path):
        return path
    out = bytearray(b'"')
    for byte in path:
        if byte in _SHORT:
            out += b"\\" + _SHORT[byte]
        elif 0x20 <= byte < 0x7F:
            out.append(byte)
        else:
            out += b"\\%03o" % byte
    return bytes(out + b'"')


def unquote(text: bytes) -> tuple[bytes, bytes] | None:
    """Read one quoted name at the start of `text`: the name and what follows, or None."""
    if not text.startswith(b'"'):
        return None
    out = bytearray()
    at = 1
    while at < len(text):
        byte = text[at]
        if byte == 34:
            return bytes(out), text[at + 1 :]
        if byte != 92:
            out.append(byte)
            at += 1
            continue
        digits = text[at + 1 : at + 4]
        if digits[:1] and digits[0] in _LONG:
            out.append(_LONG[digits[0]])
            at += 2
        elif len(digits) == 3 and digits[0] in b"0123" and all(d in b"01234567" for d in digits):
            out.append(int(digits, 8))
            at += 4
        else:
            return None
    return None


def folded(name: bytes) -> bytes:
    """A key under which names that some file system takes for the same are equal."""
    text = unicodedata.normalize("NFC", shown_path(name)).casefold()
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogateescape")


def is_git_name(name: bytes) -> bool:
    """Whether a path component is `.git` to some file system: case, HFS+ and NTFS spellings."""
    if len(name) < 4 or b"g" not in name.lower():
        return False
    return ".git" in fold_path(shown_path(name)).split("/")


def has_git_part(path: bytes) -> bool:
    return any(is_git_name(part) for part in path.split(b"/"))


def fault(path: bytes, *, git: bool = False) -> str | None:
    """Why a relative path must not be created, or None if it may; with `git`, `.git` may."""
    if not path or len(path) > LONGEST_PATH:
        return "the name is empty or too long"
    if path.startswith(b"/"):
        return "the path is absolute"
    if b"\0" in path:
        return "the name holds a NUL byte"
    for part in path.split(b"/"):
        if part in {b"", b".", b".."}:
            return "the path leaves its folder"
        if len(part) > LONGEST_NAME:
            return "the name is too long"
        if not git and is_git_name(part):
            return "the path lies in a `.git` folder"
    return None


def parents(path: bytes) -> Iterator[bytes]:
    """The folders above a path, outermost first, without the root."""
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)


def points_out(path: bytes, target: bytes) -> bool:
    """Whether a link may lead out of the tree it stands in.

    Lexical, so a `..` behind an ordinary name counts: that name may be a link itself.
    """
    if target.startswith(b"/"):
        return True
    depth = path.count(b"/")
    climbing = True
    for part in target.split(b"/"):
        if part in {b"", b"."}:
            continue
        if part == b"..":
            depth -= 1
            if not climbing or depth < 0:
                return True
        else:
            climbing = False
    return False


def joined(path: bytes, target: bytes) -> bytes | None:
    """Where a link at `path` leads, lexically; None if that is outside or the root itself."""
    if target.startswith(b"/"):
        return None
    parts = path.split(b"/")[:-1]
    for part in target.split(b"/"):
        if part == b"..":
            if not parts:
                return None
            parts.pop()
        elif part not in {b"", b"."}:
            parts.append(part)
    return b"/".join(parts) or None


def shown_path(path: bytes) -> str:
    """A path as values carry it: undecodable bytes as surrogate escapes."""
    return path.decode("utf-8", "surrogateescape")


def raw_path(path: str) -> bytes:
    """The bytes behind `shown_path`."""
    return path.encode("utf-8", "surrogateescape")
