"""Policy text to plain data that still knows its lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from harness.errors import PolicyError

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 24

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"
Place: TypeAlias = tuple[int, int]
"""Line and column, both 1-based."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Located:
    """A value, where it stands, and the same of its parts by key or index."""

    value: Plain
    place: Place
    parts: dict[str | int, Located]

    def at(self, path: tuple[str | int, ...]) -> Place:
        """Where the innermost part on `path` stands that there is."""
        found = self
        for step in path:
            inner = found.parts.get(step)
            if inner is None:
                break
            found = inner
        return found.place


def read_source(text: str | bytes, file: str) -> Located:
    """One YAML document. Raises `PolicyError` with file and line: not UTF-8, too large, too
    deep, a key given twice, an alias, more than one document, no YAML at all."""
    decoded = _decode(text, file)
    try:
        node = yaml.compose(decoded, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        raise PolicyError(f"no YAML: {error.problem}", file=file, line=line) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise PolicyError(f"no YAML: {reason.splitlines()[0]}", file=file) from None
    if node is None:
        raise PolicyError("the file is empty; a policy begins with `version: 1`", file=file)
    return _Walker(file).walk(node, 0)


def _decode(text: str | bytes, file: str) -> str:
    if len(text) > MAX_BYTES:
        raise PolicyError(f"larger than {MAX_BYTES} bytes", file=file)
    if isinstance(text, str):
        decoded = text
    else:
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            line = text[: error.start].count(b"\n") + 1
            raise PolicyError("not UTF-8", file=file, line=line) from None
    _bound_depth(decoded, file)
    return decoded


def _bound_depth(text: str, file: str) -> None:
    """The C parser recurses without a bound of its own, so brackets are counted first."""
    depth = 0
    for line, content in enumerate(text.split("\n"), 1):
        for char in content:
            if char in "[{":
                depth += 1
                if depth > 10 * MAX_DEPTH:
                    raise PolicyError("nested too deep", file=file, line=line)
            elif char in "]}" and depth:
                depth -= 1
        if len(content) > 2 * MAX_DEPTH and content[: 4 * MAX_DEPTH].count("- ") > MAX_DEPTH:
            raise PolicyError("nested too deep", file=file, line=line)


class _Walker:
    def __init__(self, file: str) -> None:
        self.file = file
        self.seen: set[int] = set()
        self.scalars: Any = yaml.SafeLoader("")

    def _fail(self, message: str, node: Node) -> PolicyError:
        return PolicyError(message, file=self.file, line=node.start_mark.line + 1)

    def walk(self, node: Node, depth: int) -> Located:
        if depth > MAX_DEPTH:
            raise self._fail("nested too deep", node)
        if id(node) in self.seen:
            raise self._fail("aliases (`*name`) are not read; write the value out", node)
        self.seen.add(id(node))
        place = (node.start_mark.line + 1, node.start_mark.column + 1)
        if isinstance(node, MappingNode):
            return self._mapping(node, depth, place)
        if isinstance(node, SequenceNode):
            items: dict[str | int, Located] = {
                index: self.walk(item, depth + 1) for index, item in enumerate(node.value)
            }
            return Located([item.value for item in items.values()], place, items)
        return Located(self._scalar(node), place, {})

    def _mapping(self, node: MappingNode, depth: int, place: Place) -> Located:
        parts: dict[str | int, Located] = {}
        value: dict[str, Plain] = {}
        for key_node, item in node.value:
            key = self._key(key_node)
            if key in value:
                raise self._fail(f"the key `{key[:80]}` is given twice", key_node)
            located = self.walk(item, depth + 1)
            where = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            parts[key] = Located(located.value, where, located.parts)
            value[key] = located.value
        return Located(value, place, parts)

    def _key(self, node: Node) -> str:
        if not isinstance(node, ScalarNode) or node.tag == "tag:yaml.org,2002:merge":
            raise self._fail("a key is plain text", node)
        return str(node.value)

    def _scalar(self, node: Node) -> Plain:
        known = ("null", "bool", "int", "float", "str")
        if not isinstance(node, ScalarNode) or node.tag not in {
            f"tag:yaml.org,2002:{name}" for name in known
        }:
            if isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:timestamp":
                return str(node.value)
            raise self._fail(f"the tag `{node.tag[:80]}` is not read", node)
        try:
            value: Plain = self.scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
            raise self._fail("a value of no known type", node) from None
        return value
