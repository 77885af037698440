"""Sizes and durations as people write them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGT]?(?:i?B)?)", re.IGNORECASE)
_SPAN = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*(ms|s|m|h|d)?")
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def size(text: object) -> int:
    """Bytes: `4GiB`, `512M`, `1000`. Raises `ValueError`.

    `KB`, `MB` and `GB` are powers of 1000 (SI), `KiB` and plain `K` of 1024 (IEC 80000-13).
    """
    found = _SIZE.fullmatch(str(text).strip())
    if found is None or isinstance(text, bool):
        raise ValueError(f"`{text}` is no size; write for example `512MiB` or `4GiB`")
    unit = found[2].lower()
    base = 1000 if len(unit) == 2 else 1024
    return int(float(found[1]) * base ** _POWERS.get(unit[:1], 0))


def span(text: object) -> float:
    """Seconds above zero: `90`, `30m`, `1.5h`. Raises `ValueError`."""
    found = _SPAN.fullmatch(str(text).strip())
    if found is None or isinstance(text, bool):
        raise ValueError(f"`{text}` is no duration; write for example `90s`, `30m` or `2h`")
    seconds = float(found[1]) * _SECONDS[found[2] or ""]
    if not seconds:
        raise ValueError(f"`{text}` is no duration above zero")
    return seconds


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
