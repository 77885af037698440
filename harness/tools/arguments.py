"""Validated arguments, judged paths, and file faults as results."""

from __future__ import annotations

from harness.errors import FileFault
from harness.operations.paths import absolute, normal
from harness.operations.places import Places
from harness.ports import ToolContext
from harness.tools.text import clean, first, name
from harness.values.calls import Args, Json, Status, ToolOutput

_NEXT = {
    "missing": "list_files shows what is there",
    "link": "a link is in the way; name the file it points to",
    "directory": "list_files shows what it holds",
    "denied": "the box's user may not do this",
    "too_large": "use shell with head, tail or sed -n to see parts of it",
    "no_space": "the box's disk is full; remove what is not needed",
}


def text_arg(args: Args, key: str, default: str = "") -> str:
    value = args.get(key, default)
    return value if isinstance(value, str) else default


def int_arg(args: Args, key: str, default: int) -> int:
    """Whole numbers as the schema takes them, `3.0` included."""
    value = args.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return int(value)


def flag_arg(args: Args, key: str) -> bool:
    return args.get(key) is True


def real(context: ToolContext, path: str) -> str:
    """The judged real path behind a path argument. Raises `FileFault` if none was judged.

    The path is spelled out by the same rules as for judgement, so it is found there or nowhere.
    A `..` behind a name leads where the kernel would go, through a link if there is one.
    """
    root = context.box.root
    spelled = absolute(path, root, Places().home)
    found = None
    if spelled is not None:
        found = context.links.get(spelled) or context.links.get(normal(spelled))
    if found is None:
        raise FileFault("name", path, "this path was not resolved; use a plain path")
    return found


def shown(context: ToolContext, path: str) -> str:
    """A path relative to the workspace where it lies in it, escaped."""
    root = context.box.root.rstrip("/") + "/"
    return name(path.removeprefix(root))


def failure(fault: FileFault) -> ToolOutput:
    """What a model is told of a file operation that failed in an ordinary way."""
    hint = _NEXT.get(fault.code, "")
    message = first(clean(str(fault)), 512)
    text = message if fault.path in message else f"{name(fault.path[:1024])}: {message}"
    text += f"; {hint}" if hint else ""
    return ToolOutput(Status.ERROR, text, {"fault": fault.code})


def done(text: str, **facts: Json) -> ToolOutput:
    return ToolOutput(Status.OK, text, facts)


def failed(text: str, **facts: Json) -> ToolOutput:
    return ToolOutput(Status.ERROR, text, facts)
