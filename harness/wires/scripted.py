"""A model that says what a file says.

`replies: [{text?, calls?: [{tool, args}], stop?, usage?}]`
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Annotated, Literal, TypeAlias, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import ConfigError, WireProtocol
from harness.loop.arguments import parse_arguments
from harness.values.calls import Call
from harness.values.items import AssistantTurn, Item
from harness.values.usage import TokenUsage
from harness.values.wire import Branch, Delta, Prompt, Reply, Request, WireEvent

_Count: TypeAlias = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptedCall(_Strict):
    """One call of a reply. `args` may be any text or object, for scripts of a faulty model."""

    tool: str
    args: dict[str, object] | str = Field(default_factory=dict[str, object])


class ScriptedUsage(_Strict):
    """Token counts a reply reports; what is left out is unknown."""

    input: _Count | None = None
    output: _Count | None = None
    cache_read: _Count | None = None
    cache_write: _Count | None = None


class ScriptedReply(_Strict):
    """One reply. `stop` defaults to what its content says: calls, else an end."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    stop: Literal["end", "tool_calls", "max_tokens", "pause", "refusal", "cut"] | None = None
    usage: ScriptedUsage = ScriptedUsage()


class Script(_Strict):
    """A file of replies, in order."""

    replies: tuple[ScriptedReply, ...]


def load_script(text: str, file: str, tools: Sequence[str]) -> Script:
    """Raises `ConfigError` with file and line: no YAML, unknown keys, a tool not in `tools`."""
    tree: yaml.Node | None = None
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        script = Script.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        line = None if mark is None else cast("int", mark.line) + 1
        problem = getattr(fault, "problem", None) or "not YAML"
        raise ConfigError(f"the script is no valid YAML: {problem}", file=file, line=line) from None
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        words = f"`{where or 'replies'}`: {first['msg'].lower()}"
        raise ConfigError(words, file=file, line=_line(tree, first["loc"])) from None
    for n, reply in enumerate(script.replies):
        for m, each in enumerate(reply.calls):
            if each.tool not in tools:
                known = ", ".join(f"`{name}`" for name in tools)
                words = f"there is no tool `{each.tool}`; the tools are {known}"
                line = _line(tree, ("replies", n, "calls", m, "tool"))
                raise ConfigError(words, file=file, line=line)
    return script


class ScriptedWire:
    """Replies of a script, the n-th to the n-th request of a session.

    Which reply is next follows from the request alone, so a resumed session goes on where it
    was. Running out of replies raises `WireProtocol`.
    """

    def __init__(self, script: Script, name: str) -> None:
        self._script = script
        self._name = f"scripted/{name}"
        self._texts: dict[int, tuple[Item, str]] = {}

    @property
    def name(self) -> str:
        return self._name

    def encode(self, prompt: Prompt) -> Request:
        """Canonical JSON of the whole prompt; an item met before costs nothing again."""
        turns = sum(isinstance(item, AssistantTurn) for item in prompt.items)
        items = ",".join(map(self._text, prompt.items))
        rest = _json({"max_tokens": prompt.max_tokens, "system": prompt.system})
        tools = _json([_fields(tool) for tool in prompt.tools])
        data = f'{{"items":[{items}],{rest[1:-1]},"tools":{tools},"turn":{turns}}}'.encode()
        return Request(data, sha256(data).hexdigest())

    def _text(self, item: Item) -> str:
        known = self._texts.get(id(item))
        if known is None:  # the entry keeps the item, so its id stays its own
            text = _json({"item": type(item).__name__, **_fields(item)})
            known = self._texts[id(item)] = (item, text)
        return known[1]

    async def stream(self, request: Request) -> AsyncIterator[WireEvent]:
        turn = int(request.body.rpartition(b":")[2].rstrip(b"}"))
        if turn >= len(self._script.replies):
            raise WireProtocol(f"the script has {len(self._script.replies)} replies and no more")
        reply = self._script.replies[turn]
        if reply.text:
            yield Delta(reply.text)
        if reply.stop == "cut":
            raise WireProtocol("the scripted stream was cut before its end")
        yield Reply(
            branch=_branch(reply),
            text=reply.text,
            calls=tuple(_call(each) for each in reply.calls),
            stop=reply.stop or ("tool_calls" if reply.calls else "end"),
            usage=TokenUsage(**reply.usage.model_dump()),
        )


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, default=_fields)


def _fields(value: object) -> dict[str, object]:
    assert is_dataclass(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _branch(reply: ScriptedReply) -> Branch:
    match reply.stop:
        case "max_tokens":
            return Branch.TRUNCATED
        case "pause":
            return Branch.PAUSED
        case "refusal":
            return Branch.REFUSED
        case "tool_calls":
            return Branch.TOOL_CALLS
        case _:
            pass
    if reply.calls and reply.stop is None:
        return Branch.TOOL_CALLS
    return Branch.FINAL if reply.text else Branch.EMPTY


def _call(each: ScriptedCall) -> Call:
    if isinstance(each.args, str):
        return Call("", each.tool, parse_arguments(each.args), each.args)
    raw = json.dumps(each.args)
    return Call("", each.tool, parse_arguments(raw), raw)


def _line(node: yaml.Node | None, path: Sequence[str | int]) -> int | None:
    """The line (1-based) of the deepest node along a path."""
    line = None if node is None else node.start_mark.line + 1
    for part in path:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
        elif isinstance(node, yaml.MappingNode):
            node = next((v for k, v in node.value if k.value == part), None)
        else:
            break
        if node is None:
            break
        line = node.start_mark.line + 1
    return line
