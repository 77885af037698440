"""Regular expressions of rows: RE2 only, so that no pattern and no text can make them slow."""

from __future__ import annotations

from typing import Any, Protocol

import re2  # pyright: ignore[reportMissingTypeStubs]  # google-re2 ships no types

_RE2: Any = re2
_MEMORY = 8 * 1024 * 1024


class Expression(Protocol):
    def search(self, text: str, /) -> object | None: ...


def compile_expression(text: str) -> Expression:
    """Raises `ValueError` for what is not RE2 syntax or too large."""
    options = _RE2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        compiled: Expression = _RE2.compile(text, options)
    except _RE2.error as error:
        raise ValueError(f"no regular expression of RE2: {error}") from None
    return compiled
