"""Arguments against a tool's schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from jsonschema import Draft202012Validator, ValidationError

from harness.values.calls import Args
from harness.values.items import ToolSpec

_MAX_WORDS = 300


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
