"""The list_files tool."""

from __future__ import annotations

from harness.errors import FileFault
from harness.ports import ToolContext
from harness.tools.arguments import done, failure, int_arg, real, shown, text_arg
from harness.tools.text import MODEL_TEXT, name, size
from harness.values.calls import Args, ToolOutput
from harness.values.commands import FileKind, Stat
from harness.values.items import ToolSpec

_SHOWN = 500
_ASKED = 10_000
_DEEPEST = 10

_DESCRIPTION = f"""\
List what a directory holds, down to `depth` levels (2 unless given), one path a line relative \
to it, sorted. Directories end in `/`, links show `-> target` and are not followed. What lies \
in `.git` is left out. At most {_SHOWN} entries; a last line in brackets says if there are more.\
"""

_SCHEMA: Args = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "description": "a directory, from the workspace root; the root itself if absent",
        },
        "depth": {"type": "integer", "minimum": 1, "maximum": _DEEPEST},
    },
    "additionalProperties": False,
}


class ListFiles:
    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("list_files", _DESCRIPTION, _SCHEMA)

    @property
    def read_only(self) -> bool:
        return True

    async def run(self, args: Args, context: ToolContext) -> ToolOutput:
        depth = max(1, min(int_arg(args, "depth", 2), _DEEPEST))
        try:
            path = real(context, text_arg(args, "path", "."))
            found = await context.box.list(path, depth=depth, limit=_ASKED + 1)
        except FileFault as fault:
            return failure(fault)
        entries = [e for e in found if not _in_git(e.path)]
        if not entries:
            return done(f"{shown(context, path)} is empty", entries=0)
        return _output(entries, more=len(found) > _ASKED)


def _in_git(path: bytes) -> bool:
    return path.startswith(b".git/") or b"/.git/" in path


def _output(entries: list[Stat], *, more: bool) -> ToolOutput:
    lines: list[str] = []
    used = 0
    for entry in entries[:_SHOWN]:
        line = _line(entry)
        used += size(line) + 1
        if used > MODEL_TEXT:
            break
        lines.append(line)
    left = len(entries) - len(lines)
    if left or more:
        count = f"more than {left:,}" if more else f"{left:,}"
        lines.append(f"[… {count} further entries; list a directory below, or a smaller depth …]")
    return done("\n".join(lines), entries=len(entries), truncated=bool(left or more))


def _line(entry: Stat) -> str:
    path = name(entry.path)
    match entry.kind:
        case FileKind.DIRECTORY:
            return path + "/"
        case FileKind.LINK:
            return f"{path} -> {name(entry.target)}"
        case FileKind.OTHER:
            return f"{path} (device, socket or pipe)"
        case FileKind.FILE:
            return path
