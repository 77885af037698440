"""Text of unknown origin, made safe to show to a person.

What is shown holds no control character, no escape sequence, nothing that changes the direction
of writing and nothing that takes no room: each such character becomes `<U+XXXX>`. Text that
spells `<U+001B>` itself shows a danger that is not there, which is the harmless mistake.
Look-alike letters are left as they are.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator

# Default_Ignorable_Code_Point of Unicode 15, where Python calls them printable, and blanks that
# are letters or symbols.
_INVISIBLE = frozenset(
    {
        0x034F,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        *range(0x180B, 0x1810),
        0x2800,
        0x3164,
        *range(0xFE00, 0xFE10),
        0xFFA0,
        *range(0xE0000, 0xE1000),
    }
)
_STACKED = 2  # more combining marks than this on one character paint over other lines


def visible(text: str) -> str:
    """One line: every character is printable, takes room, and runs left to right or is a letter."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        yield char if _harmless(char) and marks <= _STACKED else f"<U+{ord(char):04X}>"


def _harmless(char: str) -> bool:
    return char.isprintable() and ord(char) not in _INVISIBLE


def lines(text: str, width: int) -> Iterator[str]:
    """Escaped lines of at most `width` columns, so that a terminal never wraps one itself."""
    for line in text.split("\n"):
        yield from wrapped(visible(line), max(width, 1))


def wrapped(line: str, width: int) -> Iterator[str]:
    """One escaped line in pieces of at most `width` columns (or one character), after a space
    where one is in the last half. The pieces joined are the line."""
    start, used, space = 0, 0, 0
    for i, char in enumerate(line):
        cells = columns(char)
        if used and used + cells > width:
            end = space if space > start and columns(line[start:space]) * 2 > width else i
            yield line[start:end]
            start, used = end, columns(line[end:i])
        used += cells
        if char == " ":
            space = i + 1
    yield line[start:]


def columns(text: str) -> int:
    """Columns a terminal needs, counted too high rather than too low (UAX #11)."""
    return sum(2 if unicodedata.east_asian_width(c) in "WFA" else 1 for c in text)


def shortened(text: str, limit: int) -> tuple[str, str]:
    """The text, or its two ends when it has more than `limit` characters, and what to say then."""
    if len(text) <= limit:
        return text, ""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    half = limit // 2
    note = (
        f"this is not shown whole: {len(text) - 2 * half:,} of {len(text):,} characters are left "
        f"out of the middle; sha256 {digest}"
    )
    return f"{text[:half]}\n[…]\n{text[-half:]}", note
