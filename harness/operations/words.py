"""Decode the words of one plain command, as bash would, or say that it is not plain.

Plain: quotes, `$'…'` and backslash escapes; no operator, expansion, redirection, glob,
brace, tilde other than a leading `~/`, assignment or comment.
"""

from __future__ import annotations

import re

_BARE = re.compile(r"[A-Za-z0-9_@%+=:,./^~-]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[^\]]*\])?\+?=")
_KEYWORDS = frozenset(
    {
        "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until",
        "do", "done", "in", "function", "time", "coproc", "{", "}", "!", "[[", "]]",
    }
)  # fmt: skip
_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r",
    "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_HEX = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|([0-7]{1,3})")


class NotPlain(Exception):
    """The text is more than one plain command; the message says where it stops being one."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def word(self) -> str:
        pieces: list[str] = []
        text = self.text
        while self.at < len(text) and text[self.at] not in " \t\n":
            found = _BARE.match(text, self.at)
            if found is not None:
                piece = found[0]
                self._check_tilde(piece, first=not pieces)
                pieces.append(piece)
                self.at = found.end()
            else:
                pieces.append(self._special(text[self.at]))
        return "".join(pieces)

    def _check_tilde(self, piece: str, *, first: bool) -> None:
        if first and piece.startswith("~") and piece != "~" and not piece.startswith("~/"):
            raise NotPlain("the home of another user")
        if ":~" in piece or "=~" in piece:
            raise NotPlain("a tilde inside a word")

    def _special(self, char: str) -> str:
        if char == "'":
            return self._until("'")
        if char == '"':
            return self._double()
        if char == "\\":
            return self._escape()
        if char == "$" and self.text.startswith("$'", self.at):
            return self._ansi()
        raise NotPlain(f"`{char}`")

    def _until(self, end: str) -> str:
        stop = self.text.find(end, self.at + 1)
        if stop < 0:
            raise NotPlain("a quote that is not closed")
        piece = self.text[self.at + 1 : stop]
        self.at = stop + 1
        return piece

    def _escape(self) -> str:
        char = self.text[self.at + 1 : self.at + 2]
        if char in {"", "\n"}:
            raise NotPlain("a line continuation")
        self.at += 2
        return char

    def _double(self) -> str:
        pieces: list[str] = []
        at = self.at + 1
        while True:
            if at >= len(self.text):
                raise NotPlain("a quote that is not closed")
            char = self.text[at]
            if char == '"':
                self.at = at + 1
                return "".join(pieces)
            if char in "$`":
                raise NotPlain(f"`{char}` in double quotes")
            if char == "\\":
                after = self.text[at + 1 : at + 2]
                if after == "\n":
                    raise NotPlain("a line continuation")
                pieces.append(after if after in {"$", "`", '"', "\\"} else char + after)
                at += 2
            else:
                pieces.append(char)
                at += 1

    def _ansi(self) -> str:
        pieces: list[str] = []
        at = self.at + 2
        while at < len(self.text):
            char = self.text[at]
            if char == "'":
                self.at = at + 1
                return "".join(pieces)
            if char != "\\":
                pieces.append(char)
                at += 1
                continue
            piece, at = self._ansi_escape(at + 1)
            pieces.append(piece)
        raise NotPlain("a quote that is not closed")

    def _ansi_escape(self, at: int) -> tuple[str, int]:
        char = self.text[at : at + 1]
        if char in _SIMPLE:
            return _SIMPLE[char], at + 1
        found = _HEX.match(self.text, at)
        if found is None:
            raise NotPlain(f"the escape `\\{char}`")
        code = int(found[1] or found[2], 16) if found[3] is None else int(found[3], 8)
        if not 0 < code < 128:
            raise NotPlain("an escape outside ASCII")
        return chr(code), found.end()


def _tilde(raw: str) -> bool:
    return raw == "~" or raw.startswith("~/")


def plain_words(text: str, home: str) -> tuple[str, ...]:
    """The argv bash would build. Raises `NotPlain`."""
    reader = _Reader(text)
    words: list[str] = []
    end = len(text.rstrip(" \t\n"))
    while True:
        while reader.at < end and text[reader.at] in " \t":
            reader.at += 1
        if reader.at >= end:
            break
        if text[reader.at] == "\n":
            if words:
                raise NotPlain("more than one line")
            reader.at += 1
            continue
        begin = reader.at
        word = reader.word()
        raw = text[begin : reader.at]
        if not words:
            _check_first(raw, word)
        words.append(home + word[1:] if _tilde(raw) else word)
        if len(words) > 4096:
            raise NotPlain("more than 4096 words")
    if not words:
        raise NotPlain("no command")
    return tuple(words)


def _check_first(raw: str, word: str) -> None:
    if raw in _KEYWORDS:
        raise NotPlain(f"the keyword `{raw}`")
    if _ASSIGNMENT.match(raw):
        raise NotPlain("an assignment")
    if not word:
        raise NotPlain("an empty program name")
