"""Sizes and durations as people write them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B?|B)?", re.IGNORECASE)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_FACTORS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def size(text: object) -> int:
    """Bytes: `4GiB`, `512M`, `1000`; K, M, G and T are powers of 1024. Raises `ValueError`."""
    found = _SIZE.fullmatch(str(text).strip())
    if found is None or isinstance(text, bool):
        raise ValueError(f"`{text}` is no size; write for example `512MiB` or `4GiB`")
    unit = (found[2] or "").lower().rstrip("b").rstrip("i")
    return int(float(found[1]) * _FACTORS[unit])


def span(text: object) -> float:
    """Seconds: `90`, `30m`, `1.5h`. Raises `ValueError`."""
    found = _SPAN.fullmatch(str(text).strip())
    if found is None or isinstance(text, bool):
        raise ValueError(f"`{text}` is no duration; write for example `90s`, `30m` or `2h`")
    return float(found[1]) * _SECONDS[found[2] or ""]


def count(text: object) -> int:
    """A whole number that is not negative. Raises `ValueError`."""
    if isinstance(text, bool) or not re.fullmatch(r"\d{1,12}", str(text).strip()):
        raise ValueError(f"`{text}` is no whole number")
    return int(str(text))


def number(text: object) -> float:
    """A number above zero. Raises `ValueError`."""
    try:
        value = float(str(text)) if not isinstance(text, bool) else 0.0
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise ValueError(f"`{text}` is no number above zero")
    return value
