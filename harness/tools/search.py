"""The search tool: ripgrep where the box has it, else grep; never through a shell."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.errors import FileFault
from harness.operations.secrets import is_secret_path
from harness.ports import ToolContext
from harness.tools.arguments import done, failed, failure, flag_arg, real, shown, text_arg
from harness.tools.text import MODEL_TEXT, decode, first, size
from harness.values.calls import Args, Status, ToolOutput
from harness.values.commands import ExecRequest, ExecResult, ExitReason
from harness.values.items import ToolSpec
from harness.values.limits import MIB

_SHOWN = 200
_LINE = 300
_SECONDS = 60.0
_MISSING = (126, 127)

_DESCRIPTION = f"""\
Search files below `path` (the workspace root if absent) for a regular expression, line by \
line, and get `path:line:text`. `glob` names the files to look at, as in .gitignore: `*.py` at \
any depth, `src/**/*.c`. Binary files, links and `.git` are skipped, and files \
that may hold credentials are withheld. At most {_SHOWN} lines, \
each cut at {_LINE} characters; a last line in brackets says if there was more. Keep to plain \
syntax (groups, classes, `\\b`, `\\d`, `|`): lookaround is not there on every image.\
"""

_SCHEMA: Args = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "description": "a regular expression"},
        "path": {"type": "string", "minLength": 1, "description": "a directory or file"},
        "glob": {"type": "string", "minLength": 1, "description": "which files, such as *.py"},
        "ignore_case": {"type": "boolean"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Query:
    pattern: str
    path: str
    glob: str
    ignore_case: bool

    def programs(self) -> Iterator[tuple[str, ...]]:
        """Commands to try in turn. The pattern and the path can never be taken for options."""
        case = ("--ignore-case",) if self.ignore_case else ()
        end = ("-e", self.pattern, "--", self.path)
        yield (
            *("rg", "--no-config", "--no-messages", "--color=never", "--no-heading", "--hidden"),
            *("--with-filename", "--line-number", "--null", "--sort=path", "--glob=!.git"),
            *((f"--glob={self.glob}",) if self.glob else ()),
            *case,
            *end,
        )
        name_glob = posixpath.basename(self.glob.rstrip("/"))
        only = (f"--include={name_glob}",) if name_glob not in ("", "**") else ()
        plain = ("-r", "-n", "-H", "-I", "-Z", "-s", "--exclude-dir=.git", *only, *case)
        yield ("grep", "-P", *plain, *end)
        yield ("grep", "-E", *plain, *end)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which matches to show. `secrets`: what was judged was itself a place of credentials."""

    by_glob: Callable[[str], bool]
    secrets: bool


class Search:
    """`read_only`: it starts a process, but one that only reads below a judged path."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("search", _DESCRIPTION, _SCHEMA)

    @property
    def read_only(self) -> bool:
        return True

    async def run(self, args: Args, context: ToolContext) -> ToolOutput:
        glob = text_arg(args, "glob")
        if glob.startswith("!"):
            return failed("a glob that begins with ! is not taken; say which files to look at")
        try:
            path = real(context, text_arg(args, "path", "."))
            await context.box.stat(path)
        except FileFault as fault:
            return failure(fault)
        query = _Query(text_arg(args, "pattern"), path, glob, flag_arg(args, "ignore_case"))
        limit = _SECONDS if context.timeout is None else min(_SECONDS, context.timeout)
        result = await _first_that_works(query, max(limit, 0.001), context)
        if result is None:
            return failed("the image has neither rg nor grep: search with shell", code=127)
        return _output(result, _Wanted(_matcher(glob), is_secret_path(path)), context)


async def _first_that_works(
    query: _Query, timeout: float, context: ToolContext
) -> ExecResult | None:
    """The first program that is there and takes the pattern; else the first complaint. They
    share one time limit."""
    complaint: ExecResult | None = None
    deadline = time.monotonic() + timeout
    for argv in query.programs():
        request = ExecRequest(
            argv=argv,
            env={"LC_ALL": "C.UTF-8"},
            timeout=max(deadline - time.monotonic(), 0.001),
            head=MIB,
            tail=0,
            limit=MIB,
            kill_left=True,
        )
        result = await context.box.exec(request)
        if result.reason is ExitReason.EXITED and result.code in _MISSING:
            continue
        refused = result.code == 2 and result.stderr.head and not result.stdout.total
        if not refused:
            return result
        complaint = complaint or result
    return complaint


def _output(result: ExecResult, wanted: _Wanted, context: ToolContext) -> ToolOutput:
    if result.code == 2 and not result.stdout.total:
        if result.stderr.head:
            said = first(decode(result.stderr.head), 1000).strip()
            return failed(f"the search was refused: {said}", code=2)
        return done("no matches (some files could not be read)", matches=0)
    lines, more, withheld = _lines(result.stdout.head, wanted, context)
    more = more or result.stdout.truncated or result.reason is ExitReason.OUTPUT_LIMIT
    matches = len(lines)
    late = result.reason is ExitReason.TIMEOUT
    if result.reason in (ExitReason.OOM, ExitReason.KEEPER_LOST, ExitReason.CANCELLED):
        return failed(f"the search was ended early ({result.reason.value})")
    if late:
        lines.append("[… the search took too long and was ended: name a smaller path …]")
    elif more:
        lines.append("[… there are more matches: use a narrower pattern, path or glob …]")
    if withheld:
        lines.append(f"[… {withheld} lines withheld: their files may hold credentials …]")
    text = "\n".join(lines) or "no matches"
    status = Status.TIMEOUT if late else Status.OK
    return ToolOutput(status, text, {"matches": matches, "truncated": more or late})


def _lines(data: bytes, wanted: _Wanted, context: ToolContext) -> tuple[list[str], bool, int]:
    """Matches as `path:line:text`, whether some are not shown, and how many are withheld."""
    lines: list[str] = []
    used = withheld = 0
    for raw in data.split(b"\n"):
        path, nul, rest = raw.partition(b"\0")
        number, colon, text = rest.partition(b":")
        if not (nul and colon and number.isdigit()):
            continue
        where = path.decode("utf-8", "surrogateescape")
        if not wanted.by_glob(where.removeprefix(context.box.root.rstrip("/") + "/")):
            continue
        if not wanted.secrets and is_secret_path(where):
            withheld += 1
            continue
        line = f"{shown(context, where)}:{number.decode()}:{_short(text)}"
        used += size(line) + 1
        if len(lines) >= _SHOWN or used > MODEL_TEXT:
            return lines, True, withheld
        lines.append(line)
    return lines, False, withheld


def _short(text: bytes) -> str:
    line = decode(text[: 4 * _LINE]).replace("\n", " ")
    return line if len(line) <= _LINE else f"{line[:_LINE]} [… cut]"


def _matcher(glob: str) -> Callable[[str], bool]:
    """grep knows globs of base names only; one with a slash is held against whole paths here."""
    if "/" not in glob:
        return lambda _: True
    import pathspec  # noqa: PLC0415 - start-up time

    return pathspec.PathSpec.from_lines("gitignore", [glob]).match_file
