"""Lines of `.gitignore` files as expressions for RE2, on bytes: gitignore(5), git's wildmatch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

_CLASSES: Mapping[bytes, Callable[[int], bool]] = {
    b"alnum": lambda b: chr(b).isalnum() and b < 128,
    b"alpha": lambda b: chr(b).isalpha() and b < 128,
    b"blank": lambda b: b in b" \t",
    b"cntrl": lambda b: b < 32 or b == 127,
    b"digit": lambda b: 48 <= b < 58,
    b"graph": lambda b: 33 <= b < 127,
    b"lower": lambda b: 97 <= b < 123,
    b"print": lambda b: 32 <= b < 127,
    b"punct": lambda b: 33 <= b < 127 and not chr(b).isalnum(),
    b"space": lambda b: b in b" \t\n\r\v\f",
    b"upper": lambda b: 65 <= b < 91,
    b"xdigit": lambda b: b in b"0123456789abcdefABCDEF",
}


class _Malformed(ValueError):
    """A pattern git would never match."""


_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def _escaped(byte: int) -> bytes:
    return bytes((byte,)) if byte in _PLAIN else b"\\x%02x" % byte


def _ranges(chosen: set[int]) -> bytes:
    """A class as ranges: one of 255 members is as short as one of two."""
    out = bytearray(b"[")
    first = 0
    while first < 256:
        if first not in chosen:
            first += 1
            continue
        last = first
        while last + 1 in chosen:
            last += 1
        out += _escaped(first) if last == first else _escaped(first) + b"-" + _escaped(last)
        first = last + 1
    return bytes(out + b"]")


def _bracket(glob: bytes, at: int) -> tuple[bytes, int]:
    """Translate the bracket expression that opens before `at`; the class and where it ends."""
    negated = glob[at : at + 1] in {b"!", b"^"}
    at += negated
    chosen: set[int] = set()
    last: int | None = None
    first = True
    while True:
        if at >= len(glob):
            raise _Malformed
        byte = glob[at]
        if byte == 93 and not first:
            break
        first = False
        if glob.startswith(b"[:", at):
            end = glob.find(b":]", at)
            members = _CLASSES.get(glob[at + 2 : end]) if end >= 0 else None
            if members is None:
                raise _Malformed
            chosen.update(b for b in range(256) if members(b))
            at, last = end + 2, None
            continue
        if byte == 45 and last is not None and glob[at + 1 : at + 2] not in {b"]", b""}:
            at += 1
            at += glob[at] == 92
            if at >= len(glob):
                raise _Malformed
            chosen.update(range(last, glob[at] + 1))
            at, last = at + 1, None
            continue
        at += byte == 92
        if at >= len(glob):
            raise _Malformed
        last = glob[at]
        chosen.add(last)
        at += 1
    members_of = set(range(256)) - chosen if negated else chosen
    members_of.discard(47)
    if not members_of:
        raise _Malformed
    return _ranges(members_of), at + 1


def _stars(glob: bytes, at: int, anchored: bool) -> tuple[bytes, int]:
    """Translate the run of stars at `at`; the expression and where it ends."""
    end = at
    while glob[end : end + 1] == b"*":
        end += 1
    opens = at == 0 or glob[at - 1] == 47
    if anchored and end - at >= 2 and opens:
        if glob[end : end + 1] == b"/":
            return b"(?:.*/)?", end + 1
        if end == len(glob):
            return b".*", end
    return b"[^/]*", end


def _expression(glob: bytes, anchored: bool) -> bytes:
    out: list[bytes] = []
    at = 0
    while at < len(glob):
        byte = glob[at]
        if byte == 42:
            piece, at = _stars(glob, at, anchored)
            out.append(piece)
        elif byte == 63:
            out.append(b"[^/]")
            at += 1
        elif byte == 91:
            piece, at = _bracket(glob, at + 1)
            out.append(piece)
        else:
            at += byte == 92
            if at >= len(glob):
                raise _Malformed
            out.append(_escaped(glob[at]))
            at += 1
    return b"".join(out)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line: its expression, whether it takes back (`!`), whether it is for folders alone."""

    expression: bytes
    negated: bool
    folders_only: bool


def _without_blanks(line: bytes) -> bytes:
    """Drop blanks at the end, unless a backslash keeps one."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if backslashes % 2 and len(bare) < len(line) else bare


def read_pattern(line: bytes) -> Pattern | None:
    """The pattern of a line, or None for a comment and for what git would never match."""
    line = _without_blanks(line)
    if not line or line.startswith(b"#"):
        return None
    negated = line.startswith(b"!")
    glob = line[1:] if negated else line
    folders_only = glob.endswith(b"/")
    glob = glob[:-1] if folders_only else glob
    anchored = b"/" in glob
    glob = glob.removeprefix(b"/")
    if not glob:
        return None
    try:
        expression = _expression(glob, anchored)
    except _Malformed:
        return None
    return Pattern(expression if anchored else b"(?:.*/)?" + expression, negated, folders_only)
