"""Bytes from a box as text for a model: bounded, valid, and without terminal tricks.

What a model gets must survive JSON and UTF-8 whatever a command printed. Cuts fall on line
borders where there is one near, else between code points.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.values.commands import Captured

MODEL_TEXT = 16 * 1024
"""Most bytes of UTF-8 that one result hands to a model."""

_HEAD = 6 * 1024
_TAIL = 10 * 1024
_WINDOW = 256 * 1024  # what is cleaned at each end, so that progress bars do not fill the cut

# ECMA-48: CSI, then OSC and the other strings up to their terminator, then two-byte escapes.
# A string is bounded, so that one without an end cannot swallow what follows it.
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-~]"
)
_CONTROL = {
    c: "�" for c in (*range(0x20), *range(0x7F, 0xA0)) if c not in (0x09, 0x0A)
} | dict.fromkeys(range(0xD800, 0xE000), "�")


def clean(text: str) -> str:
    """Text without control sequences; of a line that was overwritten, the last state.

    Other control characters (NUL too) and lone surrogates become U+FFFD. CRLF becomes LF.
    """
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return text.translate(_CONTROL)


def _last_state(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")


def decode(data: bytes) -> str:
    """UTF-8, each undecodable byte as U+FFFD, cleaned."""
    return clean(data.decode("utf-8", "replace"))


def name(path: str | bytes) -> str:
    """A path on one line: quoted and escaped when it could be taken for something else."""
    text = path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else path
    if text.isprintable() and '"' not in text:
        return text
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return char.encode("unicode_escape").decode() if code < 0xD800 or code > 0xDFFF else "�"


@dataclass(frozen=True, slots=True)
class Cut:
    """The two ends of a text; `whole` when nothing is missing and `tail` is empty."""

    head: str
    tail: str
    whole: bool


def ends(output: Captured) -> Cut:
    """The first 6 and the last 10 KiB of an output, cleaned, or all of it when it is short."""
    if not output.truncated and output.total <= 2 * _WINDOW:
        text = decode(output.data)
        if size(text) <= MODEL_TEXT:
            return Cut(text, "", whole=True)
        return Cut(first(text, _HEAD), last(text, _TAIL), whole=False)
    data = output.data
    head = decode(_whole_end(data[:_WINDOW]))
    tail = decode(_whole_start(data[-_WINDOW:]))
    return Cut(first(head, _HEAD), last(tail, _TAIL), whole=False)


def first(text: str, limit: int) -> str:
    """At most `limit` bytes from the start, up to a line border in the last half if any."""
    data = text.encode()
    if len(data) <= limit:
        return text
    part = _whole_end(data[:limit])
    border = part.rfind(b"\n", limit // 2)
    return (part[: border + 1] if border >= 0 else part).decode()


def last(text: str, limit: int) -> str:
    """At most `limit` bytes from the end, from a line border in the first half if any."""
    data = text.encode()
    if len(data) <= limit:
        return text
    part = _whole_start(data[-limit:])
    border = part.find(b"\n", 0, limit // 2)
    return (part[border + 1 :] if border >= 0 else part).decode()


def size(text: str) -> int:
    """Bytes of UTF-8. The text holds no lone surrogate."""
    return len(text.encode())


def _whole_start(data: bytes) -> bytes:
    """Without the rest of a character whose start was cut off."""
    for i, byte in enumerate(data[:3]):
        if byte & 0xC0 != 0x80:
            return data[i:]
    return data[3:]


def _whole_end(data: bytes) -> bytes:
    """Without the start of a character whose rest was cut off."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        need = 2 if byte >> 5 == 6 else 3 if byte >> 4 == 14 else 4 if byte >> 3 == 30 else 1
        return data[:-back] if need > back else data
    return data
