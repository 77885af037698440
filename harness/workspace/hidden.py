"""Characters a reader of a patch would not see, or that would act on a terminal."""

from __future__ import annotations

import re

_RANGES = (
    (0x00, 0x08),
    (0x0B, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),  # zero width, and direction marks
    (0x2028, 0x202E),  # separators, bidirectional embeddings and overrides
    (0x2060, 0x206F),  # word joiner, invisible operators, isolates
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),  # tags and variation selectors
)
_MEMBERS = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in _RANGES)
_HIDDEN = re.compile(f"[{_MEMBERS}]")
_UNSHOWN = re.compile(f"[{_MEMBERS}\\ud800-\\udfff]")
_LINE_END = re.compile(r"\r(?=\n|\Z)")


def has_hidden(data: bytes) -> bool:
    """Whether text holds characters that are not seen; a carriage return before a line's end is
    ordinary, and so is a byte order mark at the very start."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    return _HIDDEN.search(_LINE_END.sub("", text)) is not None


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible(text: bytes) -> str:
    """Bytes as text that is safe to print: everything but printable characters, newlines and
    tabs is shown as an escape."""
    return _UNSHOWN.sub(_escape, text.decode("utf-8", "surrogateescape"))


def visible_name(path: bytes) -> str:
    """A path for one line of a message: newlines and tabs are escaped as well."""
    return visible(path).replace("\n", "\\n").replace("\t", "\\t")
