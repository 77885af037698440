"""The read_file tool: a text file or a range of its lines, as it stands."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from harness.errors import FileFault
from harness.ports import ToolContext
from harness.tools.arguments import done, failed, failure, int_arg, real, shown, text_arg
from harness.tools.text import MODEL_TEXT, clean, size
from harness.values.calls import Args, ToolOutput
from harness.values.commands import FileKind
from harness.values.items import ToolSpec
from harness.values.limits import MIB

_BUDGET = 2 * MODEL_TEXT
_LINE = 2000
_LINES = 1000
_PIECE = MIB
_LARGEST = 64 * MIB

_KINDS = (
    (b"\x7fELF", "an ELF program or library"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\xfd7zXZ", "xz data"),
    (b"BZh", "bzip2 data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)

_DESCRIPTION = f"""\
Read a text file, or `limit` lines of it from line `offset` (the first is 1). Lines come back \
as they stand in the file, without numbers, so that they can be used in edit_file. At most \
{_LINES} lines or {_BUDGET // 1024} KiB at once: a first line in brackets then says which lines \
these are and where to go on. Lines over {_LINE} characters are cut and say so. Binary files \
are refused. Links are not followed below the workspace.\
"""

_SCHEMA: Args = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "description": "from the workspace root"},
        "offset": {"type": "integer", "minimum": 1, "description": "first line, from 1"},
        "limit": {"type": "integer", "minimum": 1, "description": "how many lines"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@dataclass(slots=True)
class _Page:
    """Lines of one range, taken until the range or the budget ends."""

    start: int
    limit: int
    lines: list[str] = field(default_factory=list[str])
    number: int = 0
    used: int = 0
    cut: int = 0
    crlf: bool = False
    full: bool = False

    def take(self, line: str) -> None:
        """One whole line, without its LF."""
        self.number += 1
        if self.full or self.number < self.start:
            return
        if line.endswith("\r"):
            self.crlf, line = True, line[:-1]
        text = clean(line)
        if len(text) > _LINE:
            text = f"{text[:_LINE]} [… line cut, it has {len(line):,} characters]"
            self.cut += 1
        self.used += size(text) + 1
        if self.lines and (len(self.lines) >= self.limit or self.used > _BUDGET):
            self.full = True
            return
        self.lines.append(text)

    @property
    def end(self) -> int:
        return self.start + len(self.lines) - 1


class ReadFile:
    """Reads through the port in pieces, so that a page of a large file stays cheap."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("read_file", _DESCRIPTION, _SCHEMA)

    @property
    def read_only(self) -> bool:
        return True

    async def run(self, args: Args, context: ToolContext) -> ToolOutput:
        page = _Page(
            start=max(int_arg(args, "offset", 1), 1),
            limit=max(min(int_arg(args, "limit", _LINES), _LINES), 1),
        )
        try:
            return await _read(real(context, text_arg(args, "path")), page, context)
        except FileFault as fault:
            return failure(fault)


async def _read(path: str, page: _Page, context: ToolContext) -> ToolOutput:
    stat = await context.box.stat(path)
    if stat.kind is FileKind.DIRECTORY:
        raise FileFault("directory", path, "not a file")
    if stat.size > _LARGEST:
        raise FileFault("too_large", path, f"the file has {stat.size:,} bytes")
    piece = await context.box.read(path, length=_PIECE)
    kind = _binary(piece)
    if kind:
        return failed(
            f"{shown(context, path)} is {kind} of {stat.size:,} bytes; it is not shown",
            binary=True,
            size=stat.size,
        )
    broken, known = await _pages(path, piece, page, context)
    return _output(context, path, page, broken=broken, known=known)


async def _pages(path: str, piece: bytes, page: _Page, context: ToolContext) -> tuple[bool, bool]:
    """Fill the page; whether bytes were not UTF-8, and whether the end of the file was seen."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    offset, rest, broken = 0, "", False
    while piece:
        offset += len(piece)
        text = decoder.decode(piece)
        broken = broken or "�" in text
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            page.take(line)
        if page.full:
            return broken, False
        short = len(piece) < _PIECE
        piece = b"" if short else await context.box.read(path, offset=offset, length=_PIECE)
    rest += decoder.decode(b"", final=True)
    if rest:
        page.take(rest)
    return broken or "�" in rest, not page.full


def _output(
    context: ToolContext, path: str, page: _Page, *, broken: bool, known: bool
) -> ToolOutput:
    if not page.lines:
        text = "(empty file)" if page.number == 0 else f"(the file ends at line {page.number})"
        return done(text, lines=0, total=page.number)
    notes: list[str] = []
    if page.start > 1 or not known:
        span = f"lines {page.start} to {page.end}"
        more = f"of {page.number}" if known else f"; go on with offset {page.end + 1}"
        notes.append(f"{span} {more}" if known else span + more)
    if page.crlf:
        notes.append("lines end in CRLF, which edit_file must match")
    if broken:
        notes.append("not valid UTF-8: some bytes are shown as �")
    head = f"[{shown(context, path)}: {'; '.join(notes)}]\n" if notes else ""
    return done(head + "\n".join(page.lines), lines=len(page.lines), cut=page.cut, whole=not notes)


def _binary(data: bytes) -> str:
    """What kind of binary file this is, or empty for text."""
    for magic, kind in _KINDS:
        if data.startswith(magic):
            return kind
    if b"\0" in data[:8192]:
        return "a binary file"
    return ""
