"""What no shell text may hold, before anybody tries to read it."""

from __future__ import annotations

import re

MAX_READ = 64 * 1024
MAX_TEXT = 256 * 1024

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ODD = re.compile(
    "[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180e\u2000-\u200f\u2028-\u202f"
    "\u205f-\u206f\u3000\u3164\ufeff\uffa0]"
)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def fault_in(text: str) -> str | None:
    """Why this text is refused, or None.

    Control characters (tab and newline aside) and direction overrides are refused anywhere: a
    person who is shown the text must see what runs. Odd blanks and zero-width characters are
    refused outside quotes.
    """
    if len(text) > MAX_TEXT:
        return f"the text is longer than {MAX_TEXT} characters"
    found = _CONTROL.search(text)
    if found is not None:
        return f"the text holds the control character U+{ord(found[0]):04X}"
    if text.isascii():
        return None
    found = _BIDI.search(text)
    if found is not None:
        return f"the text holds U+{ord(found[0]):04X}, which changes the direction of writing"
    found = _ODD.search(_QUOTED.sub("''", text))
    if found is not None:
        return f"the text holds the invisible or odd blank U+{ord(found[0]):04X} outside quotes"
    return None
