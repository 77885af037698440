"""Reading a git-format patch back: exactly the form `sections` writes, nothing more lenient.

A stored patch may have been edited, so everything is bounded, and `UserError` is the only error.
"""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import dataclass, field

from harness.errors import UserError
from harness.values.limits import GIB
from harness.workspace.names import unquote
from harness.workspace.sections import FILE, LINK, NO_BLOB, PROGRAM, Side, label

LARGEST = GIB
"""Bytes of a patch, and of all binary contents in it."""

_MODES = {b"100644": FILE, b"100755": PROGRAM, b"120000": LINK}
_HEADERS = (
    (b"new file mode ", "new"),
    (b"deleted file mode ", "deleted"),
    (b"old mode ", "from"),
    (b"new mode ", "to"),
)
_INDEX = re.compile(rb"index ([0-9a-f]{40})\.\.([0-9a-f]{40})(?: ([0-7]{6}))?")
_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_LITERAL = re.compile(rb"literal (\d{1,10})")


class Mismatch(Exception):
    """A step does not fit the file it is for."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines `old`, from index `start` on, give way to `new`, which stand at `place` in the new
    text. Lines keep their newline."""

    start: int
    place: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One section: a file's state before and after. A mode of None: no file."""

    path: bytes
    old_mode: int | None
    new_mode: int | None
    old_blob: str
    new_blob: str
    hunks: tuple[Hunk, ...] = ()
    literal: bytes | None = None

    def applied(self, state: Side | None) -> Side | None:
        """The state after this step. Raises `Mismatch` unless it is the one that was named."""
        data = self.literal
        if data is None:
            data = _patched(state.data if state else b"", self.hunks)
        if self.new_mode is None:
            if data or self.new_blob != NO_BLOB:
                raise Mismatch("the patch does not delete what it says")
            return None
        new = Side(self.new_mode, data)
        if new.blob != self.new_blob:
            raise Mismatch("the patch does not make the file it names")
        return new


def _patched(data: bytes, hunks: tuple[Hunk, ...]) -> bytes:
    if not hunks:
        return data
    lines = data.split(b"\n")
    last = lines.pop()
    old = [line + b"\n" for line in lines] + ([last] if last else [])
    out: list[bytes] = []
    at = 0
    for hunk in hunks:
        end = hunk.start + len(hunk.old)
        if hunk.start < at or tuple(old[hunk.start : end]) != hunk.old:
            raise Mismatch("the patch's lines are not the file's")
        out += old[at : hunk.start]
        if len(out) != hunk.place:
            raise Mismatch("the patch's line numbers do not fit")
        out += hunk.new
        at = end
    return b"".join([*out, *old[at:]])


def parse(patch: bytes) -> tuple[tuple[Step, ...], ...]:
    """The steps of a patch, by path and in order; two where a file gives way to a link.

    Raises `UserError` for anything that `sections` would not write.
    """
    if len(patch) > LARGEST:
        raise UserError("the patch is larger than 1 GiB")
    reader = _Reader(patch)
    files: dict[bytes, list[Step]] = {}
    latest = None
    while reader.more():
        step = reader.section()
        known = files.setdefault(step.path, [])
        retyped = len(known) == 1 and latest == step.path and known[0].new_mode is None
        if known and not (retyped and step.old_mode is None):
            raise reader.fault("a path is named twice")
        known.append(step)
        latest = step.path
    return tuple(tuple(steps) for steps in files.values())


@dataclass
class _Head:
    path: bytes
    modes: dict[str, int] = field(default_factory=dict[str, int])
    old_blob: str = ""
    new_blob: str = ""
    index_mode: int | None = None


class _Reader:
    def __init__(self, patch: bytes) -> None:
        self._lines = patch.split(b"\n")
        if self._lines[-1] == b"":
            self._lines.pop()
        self._at = 0
        self._unpacked = 0

    def more(self) -> bool:
        return self._at < len(self._lines)

    def fault(self, reason: str) -> UserError:
        return UserError(f"the patch cannot be applied: {reason} (line {self._at})")

    def _peek(self) -> bytes:
        return self._lines[self._at] if self.more() else b""

    def _next(self) -> bytes:
        if not self.more():
            raise self.fault("it is cut short")
        self._at += 1
        return self._lines[self._at - 1]

    def section(self) -> Step:
        line = self._next()
        if not line.startswith(b"diff --git "):
            raise self.fault("a section must start with `diff --git`")
        head = self._head(self._path(line[11:]))
        old_mode, new_mode = self._modes(head)
        step = Step(head.path, old_mode, new_mode, head.old_blob, head.new_blob)
        if self._peek().startswith(b"--- "):
            return self._text(step)
        if self._peek() == b"GIT binary patch":
            self._next()
            data = self._literal()
            if self._peek().startswith(b"literal "):
                self._literal()
            return Step(head.path, old_mode, new_mode, head.old_blob, head.new_blob, literal=data)
        return step

    def _path(self, names: bytes) -> bytes:
        if names.startswith(b'"'):
            first = unquote(names)
            second = unquote(first[1][1:]) if first and first[1].startswith(b" ") else None
            if first is None or second is None or second[1]:
                raise self.fault("a name cannot be read")
            before, after = first[0], second[0]
        else:
            middle = len(names) // 2
            before, after = names[:middle], names[middle + 1 :]
            if names[middle : middle + 1] != b" ":
                raise self.fault("a name cannot be read")
        if before[:2] != b"a/" or after[:2] != b"b/" or before[2:] != after[2:]:
            raise self.fault("a section names two paths")
        return before[2:]

    def _head(self, path: bytes) -> _Head:
        head = _Head(path)
        while True:
            line = self._next()
            found = _INDEX.fullmatch(line)
            if found is not None:
                head.old_blob, head.new_blob = found[1].decode(), found[2].decode()
                if found[3] is not None:
                    head.index_mode = self._mode(found[3])
                return head
            for start, key in _HEADERS:
                if line.startswith(start) and key not in head.modes:
                    head.modes[key] = self._mode(line[len(start) :])
                    break
            else:
                raise self.fault("a header is unknown")

    def _mode(self, text: bytes) -> int:
        mode = _MODES.get(text)
        if mode is None:
            raise self.fault("a mode is neither a file's nor a link's")
        return mode

    def _modes(self, head: _Head) -> tuple[int | None, int | None]:
        keys, modes = set(head.modes), head.modes
        none_before, none_after = head.old_blob == NO_BLOB, head.new_blob == NO_BLOB
        result: tuple[int | None, int | None] | None = None
        if head.index_mode is not None:
            result = (head.index_mode, head.index_mode) if not keys else None
        elif keys == {"new"}:
            result = (None, modes["new"])
        elif keys == {"deleted"}:
            result = (modes["deleted"], None)
        elif keys == {"from", "to"}:
            result = (modes["from"], modes["to"])
        if result is None or (result[0] is None, result[1] is None) != (none_before, none_after):
            raise self.fault("a section's headers do not agree")
        if None not in result and (result[0] == LINK) != (result[1] == LINK):
            raise self.fault("a file turns into a link in place")
        return result

    def _text(self, step: Step) -> Step:
        before = label(b"a/", step.path, there=step.old_mode is not None)
        after = label(b"b/", step.path, there=step.new_mode is not None)
        if self._next() != b"--- " + before or self._next() != b"+++ " + after:
            raise self.fault("a section names another path than its first line")
        hunks: list[Hunk] = []
        while self._peek().startswith(b"@@ "):
            hunks.append(self._hunk())
        if not hunks:
            raise self.fault("a section holds no lines")
        return Step(
            step.path, step.old_mode, step.new_mode, step.old_blob, step.new_blob, tuple(hunks)
        )

    def _hunk(self) -> Hunk:
        found = _HUNK.fullmatch(self._next())
        if found is None:
            raise self.fault("a hunk's first line cannot be read")
        start, count, place, fresh = (int(g) if g is not None else 1 for g in found.groups())
        old: list[bytes] = []
        new: list[bytes] = []
        while len(old) < count or len(new) < fresh:
            line = self._next()
            mark, text = line[:1], line[1:] + b"\n"
            if self._peek() == b"\\ No newline at end of file":
                self._next()
                text = text[:-1]
            if mark not in {b" ", b"-", b"+"}:
                raise self.fault("a hunk is cut short")
            if mark != b"+":
                old.append(text)
            if mark != b"-":
                new.append(text)
        if len(old) != count or len(new) != fresh or (count and not start) or (fresh and not place):
            raise self.fault("a hunk does not hold the lines it counts")
        at, now = start - (count > 0), place - (fresh > 0)
        return Hunk(at, now, tuple(old), tuple(new))

    def _literal(self) -> bytes:
        found = _LITERAL.fullmatch(self._next())
        if found is None:
            raise self.fault("a binary content must be `literal`")
        size = int(found[1])
        self._unpacked += size
        if self._unpacked > LARGEST:
            raise self.fault("its binary contents are larger than 1 GiB")
        packed = bytearray()
        while line := self._next():
            packed += self._line(line)
        try:
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(bytes(packed), size + 1)
        except zlib.error:
            raise self.fault("a binary content is damaged") from None
        if len(data) != size or not unpacker.eof or unpacker.unused_data:
            raise self.fault("a binary content has another size than it names")
        return data

    def _line(self, line: bytes) -> bytes:
        mark = line[0]
        count = mark - 64 if 65 <= mark <= 90 else mark - 70 if 97 <= mark <= 122 else 0
        try:
            data = base64.b85decode(line[1:])
        except ValueError:
            data = b""
        if not count or not count <= len(data) < count + 4:
            raise self.fault("a binary content is damaged")
        return data[:count]
