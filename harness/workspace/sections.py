"""One path's section of a git-format patch (the formats of `git-diff`(1), full index lines)."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from harness.workspace.lines import Effort, Range, differences
from harness.workspace.names import quote

FILE = 0o100644
PROGRAM = 0o100755
LINK = 0o120000
NO_BLOB = "0" * 40
CONTEXT = 3
REVERSIBLE = 1 << 20
"""Old binary contents up to this size stand in the patch, so that it can be taken back."""

_NO_NEWLINE = b"\\ No newline at end of file\n"


def blob_id(data: bytes) -> str:
    """Git's name for file content: SHA-1 over a header and the bytes, in hex."""
    name = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    name.update(data)
    return name.hexdigest()


@dataclass(frozen=True, slots=True)
class Side:
    """A file before or after: its git mode and its content (a link's target)."""

    mode: int
    data: bytes

    @property
    def blob(self) -> str:
        return blob_id(self.data)

    @property
    def is_link(self) -> bool:
        return self.mode == LINK


@dataclass(frozen=True, slots=True)
class Section:
    """The text of a section; how many lines it adds and removes (None: binary); the added text."""

    text: bytes
    added: int | None
    removed: int | None
    fresh: bytes = b""


def section(path: bytes, old: Side | None, new: Side | None, effort: Effort) -> Section:
    """The section that turns `old` into `new`; a file that becomes a link is taken away and made
    anew, as git writes it."""
    if old is not None and new is not None and old.is_link != new.is_link:
        gone, made = section(path, old, None, effort), section(path, None, new, effort)
        counted = None not in {gone.added, made.added}
        return Section(
            gone.text + made.text,
            made.added if counted else None,
            gone.removed if counted else None,
            made.fresh,
        )
    head = _head(path, old, new)
    before, after = old.data if old else b"", new.data if new else b""
    if before == after:
        return Section(head, 0, 0)
    if is_binary(before) or is_binary(after):
        return Section(head + _literals(before, after), None, None)
    was, now = _lines(before), _lines(after)
    changed = differences(was, now, effort)
    body = b"".join(_hunks(was, now, changed))
    return Section(
        head + _labels(path, old, new) + body,
        sum(part[3] - part[2] for part in changed),
        sum(part[1] - part[0] for part in changed),
        b"".join(line for part in changed for line in now[part[2] : part[3]]),
    )


def _head(path: bytes, old: Side | None, new: Side | None) -> bytes:
    out = [b"diff --git %s %s\n" % (quote(b"a/" + path), quote(b"b/" + path))]
    ids = f"index {old.blob if old else NO_BLOB}..{new.blob if new else NO_BLOB}"
    if old is None and new is not None:
        out.append(b"new file mode %o\n" % new.mode)
    elif new is None and old is not None:
        out.append(b"deleted file mode %o\n" % old.mode)
    elif old is not None and new is not None:
        if old.mode != new.mode:
            out.append(b"old mode %o\nnew mode %o\n" % (old.mode, new.mode))
        else:
            ids += f" {new.mode:o}"
    out.append(ids.encode() + b"\n")
    return b"".join(out)


def _labels(path: bytes, old: Side | None, new: Side | None) -> bytes:
    before = label(b"a/", path, there=old is not None)
    return b"--- %s\n+++ %s\n" % (before, label(b"b/", path, there=new is not None))


def label(prefix: bytes, path: bytes, *, there: bool) -> bytes:
    """How the `---` and `+++` lines name one side of a file."""
    if not there:
        return b"/dev/null"
    name = quote(prefix + path)
    # A tab tells `patch` and git where a name with blanks ends.
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name


def is_binary(data: bytes) -> bool:
    """Whether content is no text to git: a NUL byte near its start."""
    return b"\0" in data[:8000]


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    whole = [line + b"\n" for line in lines]
    return [*whole, last] if last else whole


def _hunks(old: list[bytes], new: list[bytes], changed: list[Range]) -> Iterator[bytes]:
    at = 0
    while at < len(changed):
        end = at + 1
        while end < len(changed) and changed[end][0] - changed[end - 1][1] <= 2 * CONTEXT:
            end += 1
        yield _hunk(old, new, changed[at:end])
        at = end


def _hunk(old: list[bytes], new: list[bytes], parts: list[Range]) -> bytes:
    before = min(CONTEXT, parts[0][0])
    after = min(CONTEXT, len(old) - parts[-1][1])
    a0, a1 = parts[0][0] - before, parts[-1][1] + after
    b0, b1 = parts[0][2] - before, parts[-1][3] + after
    out = [b"@@ -%s +%s @@\n" % (_span(a0, a1), _span(b0, b1))]
    at = a0
    for x0, x1, y0, y1 in parts:
        out.extend(_marked(b" ", old[at:x0]))
        out.extend(_marked(b"-", old[x0:x1]))
        out.extend(_marked(b"+", new[y0:y1]))
        at = x1
    out.extend(_marked(b" ", old[at:a1]))
    return b"".join(out)


def _span(start: int, end: int) -> bytes:
    if end == start:
        return b"%d,0" % start
    return b"%d" % (start + 1) if end - start == 1 else b"%d,%d" % (start + 1, end - start)


def _marked(mark: bytes, lines: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield mark + line if line.endswith(b"\n") else mark + line + b"\n" + _NO_NEWLINE


def _literals(old: bytes, new: bytes) -> bytes:
    out = b"GIT binary patch\n" + _literal(new)
    return out + _literal(old) if len(old) <= REVERSIBLE else out


def _literal(data: bytes) -> bytes:
    packed = zlib.compress(data, 6)
    out = [b"literal %d\n" % len(data)]
    for at in range(0, len(packed), 52):
        piece = packed[at : at + 52]
        count = len(piece)
        mark = count + 64 if count <= 26 else count + 70
        out.append(bytes([mark]) + base64.b85encode(piece, pad=True) + b"\n")
    return b"".join(out) + b"\n"
