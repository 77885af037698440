"""Arguments as a model sends them: read within bounds, held against a tool's schema."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, cast

from jsonschema import Draft202012Validator, ValidationError

from harness.values.calls import Args, Json
from harness.values.items import ToolSpec

MAX_DEPTH = 64
_MAX_WORDS = 300


def parse_arguments(raw: str) -> Args | None:
    """The JSON object that a model sent, or None for anything else (RFC 8259).

    Numbers that JSON has no form for, and nesting past `MAX_DEPTH`, count as anything else: a
    value that was read can be written again.
    """
    try:
        value: object = json.loads(raw, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    found = cast("dict[str, Json]", value)
    return None if _depth_passes(found) else found


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _no_number(text: str) -> float:
    raise ValueError(f"`{text[:20]}` is no number of JSON")


def _depth_passes(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def fault_in(args: Args, spec: ToolSpec) -> str | None:
    """The first fault of arguments, in words for a model; None when they fit.

    The schema is read as JSON Schema 2020-12.
    """
    validator = _validator(json.dumps(spec.schema, sort_keys=True))
    found = cast("Iterator[ValidationError]", validator.iter_errors(cast("Any", args)))  # pyright: ignore[reportUnknownMemberType] # an old overload has no types
    error = next(found, None)
    if error is None:
        return None
    place = "".join(f"[{part!r}]" for part in error.absolute_path)
    return f"invalid arguments{f' at {place}' if place else ''}: {error.message[:_MAX_WORDS]}"


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema))
