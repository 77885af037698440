"""The tools that change files: write_file replaces one, edit_file replaces text in one."""

from __future__ import annotations

import difflib

from harness.errors import FileFault
from harness.ports import ToolContext
from harness.tools.arguments import done, failed, failure, flag_arg, real, shown, text_arg
from harness.tools.text import clean
from harness.values.calls import Args, ToolOutput
from harness.values.items import ToolSpec
from harness.values.limits import KIB

_LOOKED_AT = 512 * KIB
_COMPARED = 2000
_CLOSE = 0.6

_PATH: Args = {"type": "string", "minLength": 1, "description": "from the workspace root"}

_WRITE = """\
Create a file or replace all of it with `content`. Parent directories are made, and an existing \
file keeps its mode. Use edit_file for a small change to a file that is there.\
"""

_EDIT = """\
Replace `old` by `new` in a file. `old` must stand in the file exactly once, whitespace \
included; take it from read_file with enough lines around it. With `all` true every occurrence \
is replaced. When nothing matches, the file is left alone and the nearest lines are named.\
"""


class WriteFile:
    """One step: a reader sees the old content or the new."""

    @property
    def spec(self) -> ToolSpec:
        schema: Args = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "path": dict(_PATH),
                "content": {"type": "string", "description": "the whole new content"},
            },
            "required": ["path", "content"],
            "additionalProperties": False,
        }
        return ToolSpec("write_file", _WRITE, schema)

    @property
    def read_only(self) -> bool:
        return False

    async def run(self, args: Args, context: ToolContext) -> ToolOutput:
        try:
            path = real(context, text_arg(args, "path"))
            data = _bytes(text_arg(args, "content"), path)
            before = await _size(path, context)
            await context.box.write(path, data)
        except FileFault as fault:
            return failure(fault)
        what = "created" if before is None else f"replaced, it had {before:,} bytes"
        text = f"wrote {len(data):,} bytes to {shown(context, path)} ({what})"
        return done(text, bytes=len(data), created=before is None)


class EditFile:
    """The count of occurrences is checked in the box, in the step that replaces them."""

    @property
    def spec(self) -> ToolSpec:
        schema: Args = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "path": dict(_PATH),
                "old": {"type": "string", "minLength": 1, "description": "exact text to replace"},
                "new": {"type": "string", "description": "what stands there afterwards"},
                "all": {"type": "boolean", "description": "replace every occurrence"},
            },
            "required": ["path", "old", "new"],
            "additionalProperties": False,
        }
        return ToolSpec("edit_file", _EDIT, schema)

    @property
    def read_only(self) -> bool:
        return False

    async def run(self, args: Args, context: ToolContext) -> ToolOutput:
        old, new = text_arg(args, "old"), text_arg(args, "new")
        if old == new:
            return failed("`old` and `new` are the same; nothing was changed", fault="no_change")
        path = text_arg(args, "path")
        try:
            path = real(context, path)
            count = await context.box.edit(
                path, _bytes(old, path), _bytes(new, path), every=flag_arg(args, "all")
            )
        except FileFault as fault:
            if fault.code == "no_match":
                return await _no_match(path, old, context)
            if fault.code == "many_matches":
                return await _many(path, old, context)
            return failure(fault)
        times = "once" if count == 1 else f"{count} times"
        return done(f"replaced {times} in {shown(context, path)}", count=count)


def _bytes(text: str, path: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        reason = f"the text holds a lone surrogate at character {exc.start}, not UTF-8"
        raise FileFault("name", path, reason) from exc


async def _size(path: str, context: ToolContext) -> int | None:
    try:
        return (await context.box.stat(path)).size
    except FileFault as fault:
        if fault.code == "missing":
            return None
        raise


async def _lines(path: str, context: ToolContext) -> list[str]:
    data = await context.box.read(path, length=_LOOKED_AT)
    return data.decode("utf-8", "replace").split("\n")


async def _no_match(path: str, old: str, context: ToolContext) -> ToolOutput:
    try:
        lines = await _lines(path, context)
    except FileFault as fault:
        return failure(fault)
    where = shown(context, path)
    text = f"`old` does not stand in {where}; nothing was changed. {_nearest(lines, old)}"
    return failed(text, fault="no_match")


def _nearest(lines: list[str], old: str) -> str:
    """Where the file comes closest to the first line of `old` that says something."""
    if "\n" in old.replace("\r\n", "") and any(line.endswith("\r") for line in lines):
        return "its lines end in CRLF: put \\r\\n into old and new"
    wanted = next((line.strip() for line in old.split("\n") if line.strip()), "")
    same = [i for i, line in enumerate(lines, 1) if line.strip() == wanted]
    if wanted and same:
        at = ", ".join(str(i) for i in same[:5])
        return (
            f"its first line stands at line {at}, so what follows it or the whitespace "
            "differs: read those lines again"
        )
    head = [line.strip()[:200] for line in lines[:_COMPARED]]
    close = difflib.get_close_matches(wanted[:200], head, n=1, cutoff=_CLOSE)
    if not close:
        return "no line is like its first line: read the file again"
    number = head.index(close[0]) + 1
    return f"the nearest line is {number}: {clean(lines[number - 1][:200])}"


async def _many(path: str, old: str, context: ToolContext) -> ToolOutput:
    try:
        text = "\n".join(await _lines(path, context))
    except FileFault as fault:
        return failure(fault)
    at: list[int] = []
    found = text.find(old)
    while found >= 0 and len(at) < 10:
        at.append(text.count("\n", 0, found) + 1)
        found = text.find(old, found + len(old))
    places = ", ".join(str(i) for i in at)
    message = (
        f"`old` stands more than once in {shown(context, path)} (lines {places}); nothing was "
        "changed. Add lines around it to make it unique, or set all to true"
    )
    return failed(message, fault="many_matches")
