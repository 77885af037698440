"""Rows, compiled: what one row of a policy matches and says."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from harness.operations.places import Places, reals
from harness.policy.expressions import Expression, compile_expression
from harness.policy.grammar import MatcherModel, RowModel
from harness.policy.patterns import (
    HostPattern,
    PathPattern,
    TokenPattern,
    compile_host,
    compile_path,
    compile_tokens,
    glob,
    special,
)
from harness.values.calls import Args, Call, Json
from harness.values.decisions import Effect
from harness.values.operations import RISK, Access, Links, Op, Operation, Origin, Risk


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known about a judgement beside the operation itself."""

    call: Call
    mode: str
    attended: bool
    agent: str
    links: Links


@dataclass(frozen=True, slots=True)
class Flags:
    any: tuple[str, ...]
    all: tuple[str, ...]
    none: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matcher:
    """Compiled fields of one row; a field that is None says nothing."""

    tool: tuple[str, ...] | None = None
    ops: frozenset[Op] | None = None
    risks: frozenset[Risk] | None = None
    command: tuple[TokenPattern, ...] | None = None
    flags: Flags | None = None
    path: tuple[PathPattern, ...] | None = None
    host: tuple[HostPattern, ...] | None = None
    server: tuple[str, ...] | None = None
    server_tool: tuple[str, ...] | None = None
    args: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] | None = None
    agent: tuple[str, ...] | None = None
    mode: tuple[str, ...] | None = None
    attended: bool | None = None
    private: bool = False
    regex: Expression | None = None

    @property
    def names_class(self) -> bool:
        return self.ops is not None or self.risks is not None

    def concerns(self, ops: frozenset[Op]) -> bool:
        """Whether an operation of these classes, in any call, could be meant."""
        if self.ops is not None:
            return bool(self.ops & ops)
        if self.risks is not None and not any(RISK[op] in self.risks for op in ops):
            return False
        return self.path is None and self.host is None and self.server is None

    def may(self, operation: Operation, setting: Setting) -> bool:
        """For ask and deny: whether the row may concern the operation."""
        return self.holds(setting) and self._plain(operation) and self._may_parts(
            operation, setting
        )  # fmt: skip

    def must(self, operation: Operation, setting: Setting) -> bool:
        """For allow: whether the row concerns the operation for certain, and all of it."""
        if not (self.holds(setting) and self._plain(operation)):
            return False
        if special(operation) and not self.private:
            return False
        return self._must_parts(operation, setting)

    def holds(self, setting: Setting) -> bool:
        return (
            _any(self.tool, setting.call.tool)
            and _any(self.agent, setting.agent)
            and _any(self.mode, setting.mode)
            and self.attended in {None, setting.attended}
        )

    def _plain(self, operation: Operation) -> bool:
        if self.ops is not None and operation.op not in self.ops:
            return False
        if self.risks is not None and operation.risk not in self.risks:
            return False
        if self.server is None and self.server_tool is None:
            return True
        use = operation.mcp
        return use is not None and _any(self.server, use.server) and _any(
            self.server_tool, use.tool
        )  # fmt: skip

    def _may_parts(self, operation: Operation, setting: Setting) -> bool:
        if self.command is not None and not (
            operation.origin is Origin.COMMAND and any(p.may(operation) for p in self.command)
        ):
            return False
        if self.flags is not None and not _flags(self.flags, operation, may=True):
            return False
        if self.path is not None and not self._may_path(operation, setting.links):
            return False
        if self.host is not None and not any(
            p.may(use) for p in self.host for use in operation.hosts
        ):
            return False
        if self.args is not None and not _args(self.args, setting.call.args):
            return False
        return self.regex is None or self.regex.search(call_text(setting.call)) is not None

    def _may_path(self, operation: Operation, links: Links) -> bool:
        assert self.path is not None, "asked only of rows with a path"
        for use in operation.paths:
            forms = (use.path, *reals(use, links))
            wide = use.unknown or (use.tree and use.access is not Access.READ)
            if any(pattern.may(forms, wide=wide) for pattern in self.path):
                return True
        return False

    def _must_parts(self, operation: Operation, setting: Setting) -> bool:
        if self.command is not None and not (
            operation.origin is Origin.COMMAND and any(p.must(operation) for p in self.command)
        ):
            return False
        if self.flags is not None and not _flags(self.flags, operation, may=False):
            return False
        if self.path is not None and not self._must_path(operation, setting.links):
            return False
        if self.host is not None and not (
            operation.hosts and all(any(p.must(use) for p in self.host) for use in operation.hosts)
        ):
            return False
        if self.args is None:
            return True
        return operation.origin is Origin.TOOL and _args(self.args, setting.call.args)

    def _must_path(self, operation: Operation, links: Links) -> bool:
        assert self.path is not None, "asked only of rows with a path"
        if not operation.paths or any(use.unknown for use in operation.paths):
            return False
        return all(
            any(pattern.must((use.path, *reals(use, links))) for pattern in self.path)
            for use in operation.paths
        )


def _any(patterns: tuple[str, ...] | None, text: str) -> bool:
    return patterns is None or any(glob(pattern)(text) for pattern in patterns)


def _flags(flags: Flags, operation: Operation, *, may: bool) -> bool:
    given = operation.flags if operation.flags is not None else _literal(operation.argv)
    if None in operation.argv:
        if may:
            return not any(flag in given for flag in flags.none)
        if flags.none:
            return False
    if flags.any and not any(flag in given for flag in flags.any):
        return False
    if not all(flag in given for flag in flags.all):
        return False
    return not any(flag in given for flag in flags.none)


def _literal(argv: tuple[str | None, ...]) -> frozenset[str]:
    found: set[str] = set()
    for word in argv[1:]:
        if word == "--":
            break
        if word is not None and word.startswith("-"):
            found.add(word)
            found.add(word.partition("=")[0])
    return frozenset(found)


def _args(wanted: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...], args: Args | None) -> bool:
    return all(
        (text := _find(args, path)) is not None and any(glob(p)(text) for p in patterns)
        for path, patterns in wanted
    )


def _find(args: Args | None, path: tuple[str, ...]) -> str | None:
    found: Json = dict(args) if args is not None else None
    for step in path:
        found = _step(found, step)
    if found is None:
        return None
    return found if isinstance(found, str) else json.dumps(found, sort_keys=True)


def _step(found: Json, step: str) -> Json:
    if isinstance(found, dict):
        return cast("dict[str, Json]", found).get(step)
    if not isinstance(found, list):
        return None
    items = cast("list[Json]", found)
    if step.isdigit() and len(step) < 8 and int(step) < len(items):
        return items[int(step)]
    return None


def call_text(call: Call) -> str:
    """What `regex` searches: the command of a shell call, else the arguments as JSON."""
    command = call.args.get("command") if call.args is not None else None
    if call.tool == "shell" and isinstance(command, str):
        return command
    return json.dumps(dict(call.args or {}), sort_keys=True, ensure_ascii=True)


@dataclass(frozen=True, slots=True)
class Row:
    """One row with its origin. `layer`, `file` and `line` say where it is written."""

    id: str
    effect: Effect
    matcher: Matcher
    why: str
    layer: str
    file: str
    line: int
    unattended: bool = False
    examples: tuple[tuple[str, bool], ...] = ()
    source: str = field(default="")

    def matches(self, operation: Operation, setting: Setting) -> bool:
        if self.effect is Effect.ALLOW:
            return self.matcher.must(operation, setting)
        return self.matcher.may(operation, setting)


_LEVELS = {risk.word: risk for risk in Risk}
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    "": lambda a, b: a == b,
}


@functools.lru_cache(maxsize=64)
def _risks(text: str) -> frozenset[Risk]:
    sign = text.rstrip("abcdefghijklmnopqrstuvwxyz").strip()
    level = _LEVELS[text[len(text) - len(text.lstrip("<>= ")) :].strip()]
    return frozenset(risk for risk in Risk if _COMPARE[sign](risk, level))


def effect_of(model: RowModel) -> tuple[Effect, MatcherModel]:
    """The one effect a row has. Raises `ValueError`."""
    given = [
        (effect, matcher)
        for effect, matcher in (
            (Effect.ALLOW, model.allow),
            (Effect.ASK, model.ask),
            (Effect.DENY, model.deny),
        )
        if matcher is not None
    ]
    if len(given) != 1:
        raise ValueError("a row has exactly one of `allow`, `ask` and `deny`")
    return given[0]


def compile_matcher(model: MatcherModel, effect: Effect, places: Places) -> Matcher:
    """Raises `ValueError` with what is wrong."""
    if not model.model_fields_set - {"private"}:
        raise ValueError("a matcher names nothing; name at least one field, such as `tool`")
    if model.regex is not None and effect is Effect.ALLOW:
        raise ValueError("`regex` is for ask and deny rows only")
    if model.private and model.host is None:
        raise ValueError("`private` goes with a `host`")
    mcp = model.mcp
    if mcp is not None and mcp.server is None and mcp.tool is None:
        raise ValueError("`mcp` names a server or a tool")
    return Matcher(
        tool=model.tool,
        ops=None if model.op is None else frozenset(model.op),
        risks=None if model.risk is None else frozenset[Risk]().union(*map(_risks, model.risk)),
        command=None if model.command is None else tuple(map(compile_tokens, model.command)),
        flags=_compile_flags(model),
        path=None
        if model.path is None
        else tuple(compile_path(text, places.root, places.home) for text in model.path),
        host=None
        if model.host is None
        else tuple(compile_host(text, allow=effect is Effect.ALLOW) for text in model.host),
        server=None if mcp is None else mcp.server,
        server_tool=None if mcp is None else mcp.tool,
        args=None
        if model.args is None
        else tuple((tuple(key.split(".")), globs) for key, globs in model.args.items()),
        agent=model.agent,
        mode=model.mode,
        attended=model.attended,
        private=bool(model.private),
        regex=None if model.regex is None else compile_expression(model.regex),
    )


def _compile_flags(model: MatcherModel) -> Flags | None:
    if model.flags is None:
        return None
    flags = Flags(model.flags.any or (), model.flags.all or (), model.flags.none or ())
    if not (flags.any or flags.all or flags.none):
        raise ValueError("`flags` names none")
    if not all(flag.startswith("-") for flag in flags.any + flags.all + flags.none):
        raise ValueError("a flag begins with `-`")
    return flags
