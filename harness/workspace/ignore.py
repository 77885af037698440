"""Which files git would ignore, by the repository's own `.gitignore` files.

Follows gitignore(5) and git's wildmatch, on bytes. Patterns come from repositories nobody
vouches for, so they run in RE2, where no pattern takes exponential time.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.workspace.names import parents

LARGEST = 1 << 20
"""Bytes of one ignore file that are read."""
MOST_PATTERNS = 5_000
LONGEST_PATTERN = 1024

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


def _escaped(byte: int) -> bytes:
    return b"\\x%02x" % byte


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
    return b"[" + b"".join(map(_escaped, sorted(members_of))) + b"]", at + 1


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
class _Pattern:
    expression: bytes
    negated: bool
    folders_only: bool


def _without_blanks(line: bytes) -> bytes:
    """Drop blanks at the end, unless a backslash keeps one."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if backslashes % 2 and len(bare) < len(line) else bare


def _pattern(line: bytes) -> _Pattern | None:
    line = _without_blanks(line)
    if not line or line.startswith(b"#") or len(line) > LONGEST_PATTERN:
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
    return _Pattern(expression if anchored else b"(?:.*/)?" + expression, negated, folders_only)


def _compiled(patterns: list[tuple[int, _Pattern]]) -> Any:
    """One automaton for all patterns, or None where there are none, or RE2 finds them too big."""
    # Loaded by the runs that need it; it ships no types.
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.dot_nl = True
    options.never_capture = True
    options.max_mem = 64 << 20
    found = re2.Set.FullMatchSet(options)
    try:
        for _, pattern in patterns:
            found.Add(pattern.expression)
        found.Compile()
    except re2.error:
        return None
    return found


class IgnoreFile:
    """The patterns of one ignore file. Paths are relative to the folder it stands in."""

    def __init__(self, text: bytes) -> None:
        lines = text[:LARGEST].removeprefix(b"\xef\xbb\xbf").split(b"\n")[:MOST_PATTERNS]
        parsed = (_pattern(line.removesuffix(b"\r")) for line in lines)
        self._patterns: list[_Pattern] = [p for p in parsed if p is not None]
        every = list(enumerate(self._patterns))
        plain = [(i, p) for i, p in every if not p.folders_only]
        self._sets: dict[bool, tuple[list[int], Any]] = {
            True: ([i for i, _ in every], _compiled(every) if every else None),
            False: ([i for i, _ in plain], _compiled(plain) if plain else None),
        }

    def verdict(self, path: bytes, *, folder: bool) -> bool | None:
        """True ignored, False taken back in by `!`, None when no pattern matches."""
        numbers, found = self._sets[folder]
        hits: list[int] | None = found.Match(path) if found is not None else None
        if not hits:
            return None
        last: _Pattern = self._patterns[numbers[max(hits)]]
        return not last.negated


@dataclass
class IgnoreRules:
    """Every ignore file of a repository, by the folder it stands in (`b""` for the root)."""

    exclude: IgnoreFile | None = None
    _files: dict[bytes, IgnoreFile] = field(default_factory=dict[bytes, IgnoreFile])
    _folders: dict[bytes, bool] = field(default_factory=dict[bytes, bool])

    def add(self, folder: bytes, text: bytes) -> None:
        self._files[folder] = IgnoreFile(text)

    def matches(self, path: bytes, *, folder: bool = False) -> bool:
        """Whether this very path is ignored, what lies above it set aside."""
        above = path
        while above:
            above = above.rpartition(b"/")[0]
            rules = self._files.get(above)
            if rules is not None:
                below = path[len(above) + 1 :] if above else path
                verdict = rules.verdict(below, folder=folder)
                if verdict is not None:
                    return verdict
        if self.exclude is not None:
            return self.exclude.verdict(path, folder=folder) or False
        return False

    def ignored(self, path: bytes, *, folder: bool = False) -> bool:
        """Whether git would ignore the path: it, or a folder above it, is matched."""
        inherited = False
        for above in parents(path):
            inherited = self._folder(above, inherited)
        return self._folder(path, inherited) if folder else inherited or self.matches(path)

    def _folder(self, path: bytes, inherited: bool) -> bool:
        known = self._folders.get(path)
        if known is None:
            known = inherited or self.matches(path, folder=True)
            self._folders[path] = known
        return known
