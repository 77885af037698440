"""Bytes from a box on their way to a terminal: text and colours pass, commands to it do not.

A terminal can be told to set its title, write the clipboard, answer with text as if it had been
typed, or load a font. None of that may come out of a box. Passed are printable text, line feed,
carriage return, tab, and select-graphic-rendition sequences (ECMA-48 8.3.117: colours).
"""

from __future__ import annotations

import codecs
import re

_SGR = r"\x1b\[[0-9;:]{0,64}m"
# Any control sequence, string or two-byte escape, whole; strings end at a newline or 4 KiB too,
# so that one without an end cannot hide what follows.
_WHOLE = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\n\x18\x1a]{0,4096}(?:\x07|\x1b\\|[\x18\x1a]|(?=\n))"
    r"|\x1b(?![\]PX^_\[])[ -/]{0,8}[0-~]"
)
_BEGUN = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}|[\]PX^_][^\x07\x1b\n\x18\x1a]{0,4096}\x1b?|[ -/]{0,8})?\Z"
)
_COLOUR = re.compile(_SGR)
_DROPPED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]+")
_RESET = "\x1b[0m"


class TerminalFilter:
    """One stream, fed in pieces; the result does not depend on where it was split."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held: str = ""
        self._coloured = False

    def feed(self, data: bytes) -> str:
        """What of this piece, and of what was held back before it, may be shown."""
        return self._pass(self._decoder.decode(data), last=False)

    def close(self) -> str:
        """What is left, and the colours set back if any were changed."""
        rest = self._pass(self._decoder.decode(b"", final=True), last=True)
        return rest + (_RESET if self._coloured else "")

    def _pass(self, text: str, *, last: bool) -> str:
        text = f"{self._held}{text}"
        self._held = ""
        out: list[str] = []
        at = 0
        while (escape := text.find("\x1b", at)) >= 0:
            out.append(_DROPPED.sub("", text[at:escape]))
            if _BEGUN.match(text, escape):
                self._held = "" if last else text[escape:]
                return "".join(out)
            whole = _WHOLE.match(text, escape)
            if whole is not None and _COLOUR.fullmatch(whole[0]):
                self._coloured = True
                out.append(whole[0])
            at = whole.end() if whole is not None else escape + 1
        out.append(_DROPPED.sub("", text[at:]))
        return "".join(out)
