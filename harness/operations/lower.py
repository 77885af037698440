"""A tool call to a draft: the operations it stands for, before links are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from harness.operations.commands import asked_paths, path_operations
from harness.operations.hosts import HostFault, parse_url
from harness.operations.places import Places
from harness.operations.shell import lower_shell
from harness.operations.specifications import Commands
from harness.values.calls import Args, Call, Json
from harness.values.operations import (
    Access,
    Draft,
    HostUse,
    McpUse,
    Op,
    Operation,
    PathUse,
)

MAX_CONTENT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What reading a call depends on: the box's places, the specifications, and on which side
    each MCP server runs (one that is not listed counts as outside)."""

    places: Places = field(default_factory=Places)
    commands: Commands = field(default_factory=Commands)
    servers: Mapping[str, Literal["box", "outside"]] = field(
        default_factory=lambda: dict[str, Literal["box", "outside"]]()
    )


class Unreadable(Exception):
    """The call cannot be read; the message says why. It is denied in every policy."""


_Read: TypeAlias = Callable[[Call, Args, Surroundings], Draft]


def lower(call: Call, around: Surroundings) -> Draft:
    """Read a call into operations. Never raises for what a call holds: what cannot be read is
    a draft with `refused`."""
    try:
        if call.args is None:
            raise Unreadable("the arguments are not a JSON object")
        if call.tool.startswith("mcp:"):
            return _mcp(call, around)
        reader = _TOOLS.get(call.tool)
        if reader is None:
            raise Unreadable(f"no tool is called `{call.tool[:80]}`")
        return reader(call, call.args, around)
    except Unreadable as fault:
        return Draft(call, (), refused=str(fault))


def _text(args: Args, name: str, *, limit: int = 1024 * 1024) -> str:
    value: Json = args.get(name)
    if not isinstance(value, str):
        raise Unreadable(f"the argument `{name}` is missing or no text")
    if len(value) > limit:
        raise Unreadable(f"the argument `{name}` is longer than {limit} characters")
    if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        raise Unreadable(f"the argument `{name}` holds half a character")
    return value


def _shell(call: Call, args: Args, around: Surroundings) -> Draft:
    return lower_shell(call, _text(args, "command", limit=8 * 1024 * 1024), around.places,
                       around.commands)  # fmt: skip


def _use(args: Args, name: str, access: Access, places: Places, *, tree: bool = False) -> PathUse:
    text = _text(args, name, limit=4096)
    use = places.use(text, access, tree=tree)
    if use is None:
        raise Unreadable(f"the argument `{name}` is no path")
    return use


def _file(call: Call, uses: list[PathUse], places: Places) -> Draft:
    operations = tuple(path_operations(Operation(op=Op.INSPECT), uses, places))
    return Draft(call, operations, paths=asked_paths(operations))


def _read_file(call: Call, args: Args, around: Surroundings) -> Draft:
    return _file(call, [_use(args, "path", Access.READ, around.places)], around.places)


def _write_file(call: Call, args: Args, around: Surroundings) -> Draft:
    _text(args, "content", limit=MAX_CONTENT)
    return _file(call, [_use(args, "path", Access.WRITE, around.places)], around.places)


def _edit_file(call: Call, args: Args, around: Surroundings) -> Draft:
    read = _use(args, "path", Access.READ, around.places)
    write = _use(args, "path", Access.WRITE, around.places)
    return _file(call, [read, write], around.places)


def _look(call: Call, args: Args, around: Surroundings) -> Draft:
    if call.tool == "search":
        _text(args, "pattern", limit=64 * 1024)
    if args.get("path") is None:
        use = around.places.use(around.places.cwd, Access.READ, tree=True)
        assert use is not None, "the working directory is a path"
    else:
        use = _use(args, "path", Access.READ, around.places, tree=True)
    return _file(call, [use], around.places)


def _fetch(call: Call, args: Args, around: Surroundings) -> Draft:
    del around
    try:
        host: HostUse = parse_url(
            _text(args, "url", limit=8192), schemes=frozenset({"http", "https"})
        )
    except HostFault as fault:
        raise Unreadable(str(fault)) from None
    reason = f"connects to `{host.host}:{host.port}`"
    operation = Operation(
        op=Op.NET_READ, reason=reason, hosts=(host,), reversible=False, scope="public"
    )
    return Draft(call, (operation,))


def _mcp(call: Call, around: Surroundings) -> Draft:
    server, slash, tool = call.tool.removeprefix("mcp:").partition("/")
    if not slash or not server or not tool or len(call.tool) > 256:
        raise Unreadable("a tool of an MCP server is called `mcp:SERVER/TOOL`")
    inside = around.servers.get(server) == "box"
    operation = Operation(
        op=Op.EXEC_CODE if inside else Op.NET_SEND,
        reason=f"a tool of the server `{server}`, {'in' if inside else 'outside'} the box",
        mcp=McpUse(server, tool),
        reversible=False,
        scope="workspace" if inside else "public",
    )
    return Draft(call, (operation,))


_TOOLS: Mapping[str, _Read] = {
    "shell": _shell,
    "read_file": _read_file,
    "write_file": _write_file,
    "edit_file": _edit_file,
    "list_files": _look,
    "search": _look,
    "fetch": _fetch,
}
