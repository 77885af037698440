"""Numbers as people read them."""

from __future__ import annotations

import time

from harness.values.limits import GIB, KIB, MIB


def size(count: int) -> str:
    """Bytes: `512 MiB`, `1.5 GiB`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{count} B"


def duration(seconds: float) -> str:
    """Seconds: `0.4 s`, `12 s`, `3 m 20 s`, `1 h`."""
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    parts = [(whole // 3600, "h"), (whole // 60 % 60, "m"), (whole % 60, "s")]
    return " ".join(f"{n} {unit}" for n, unit in parts if n) or "0 s"


def many(count: int, one: str, more: str = "") -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def moment(timestamp: float) -> str:
    """Unix time in seconds as local date and time, to the minute."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(timestamp))
    except (OverflowError, ValueError, OSError):
        return "?"
