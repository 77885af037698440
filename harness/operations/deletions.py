"""Deletions in text that nobody could read: which of them would destroy data.

A word that is not known before it runs may be any path, so deleting what lies below it is
`destroy.data`, as is deleting a folder that another working folder makes fatal.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.operations.paths import absolute, normal
from harness.operations.places import Places
from harness.values.operations import Access, Op, PathUse

OPENING = "\x03"
"""Stands where an expansion did; `opaque` makes it and the other marks."""
_MARKS = re.compile(r"[\x01-\x03]")
_SPLIT = re.compile(r"[^\s;&|<>()`,\[\]{}]+|[;&|\n()`]|(?<![^\s;&|()])[{}](?![^\s;&|()])")
_KEPT = re.compile(r"[^\s;&|<>()`]+|[;&|\n()`]")
_ENDS = frozenset(";&|\n()`{}")
_BORDER = re.compile(r"[=:!@$?+#/\x01-\x03{},\[\]]|--?")
_MOVE = re.compile(
    r"(?<![\w-])(?:cd|pushd|chdir|-C|--chdir|--directory)(?![\w-])"
    r"[ \t=(\x01-\x03]*([^\s;&|<>()`,]*)"
)
_BRACES = re.compile(r"([^{}]*)\{([^{}]*)\}([^{}]*)")
_MAX_MOVES = 32
_MAX_JUDGED = 8192
_ENDING = "*?"


@dataclass(frozen=True, slots=True)
class _Folders:
    """Where the text may stand when it deletes; `unknown` if that cannot be told."""

    known: tuple[str, ...]
    unknown: bool


def find_deletions(marked: str, programs: frozenset[str], places: Places) -> str | None:
    """Why the text destroys data, or None. `marked` is text with what a shell removes marked."""
    if not programs:
        return None
    folders = _folders(marked, places)
    judged = 0
    for pattern in (_SPLIT, _KEPT):
        tokens = pattern.findall(marked)
        named = {token for token in set(tokens) if _is_program(token, programs)}
        seen: set[tuple[str, ...]] = set()
        until, ticks = -1, 0
        for at, token in enumerate(tokens):
            ticks += token == "`"
            if at <= until or token not in named:
                continue
            until = _end(tokens, at + 1)
            opens = tokens[until : until + 1] == ["`"] and ticks % 2 == 0
            words = tuple(tokens[at + 1 : until])
            if words in seen and not opens:
                continue
            seen.add(words)
            judged += 1 + len(set(words))
            if judged > _MAX_JUDGED:
                return "the text deletes more than is looked at"
            why = _segment(words, opens, folders, places)
            if why is not None:
                return why
    return None


def _is_program(token: str, programs: frozenset[str]) -> bool:
    bare = _MARKS.sub("", token)
    return bare in programs or any(
        piece in programs for text in (bare, token) for piece in _BORDER.split(text)
    )


def _end(tokens: list[str], at: int) -> int:
    while at < len(tokens) and tokens[at] not in _ENDS:
        at += 1
    return at


def _segment(words: tuple[str, ...], opens: bool, folders: _Folders, places: Places) -> str | None:
    """`opens`: a substitution stands behind the words, and is one of them."""
    forms = {word: tuple(_forms(word)) for word in words}
    tree = any(_recurses(form) for of in forms.values() for form in of)
    if tree and opens:
        return "the text deletes what a substitution names"
    anything = tree or any(map(_is_unknown, words))
    for word, of in forms.items():
        if tree and _is_unknown(word) and not of[0].startswith("-"):
            return "the text deletes a path that is not known before it runs"
        for form in of:
            if form.startswith("-"):
                continue
            if any(_fatal(path, anything, folders, places) for path in _braces(form)):
                return f"the text deletes `{form[:120]}`"
    return None


def _is_unknown(word: str) -> bool:
    return "$" in word or OPENING in word


def _forms(word: str) -> Iterator[str]:
    """A marked word with its marks closed, and what stands between them."""
    yield _MARKS.sub("", word)
    if _MARKS.search(word):
        yield from (part for part in _MARKS.split(word) if part)


def _recurses(word: str) -> bool:
    if word.startswith("--"):
        return word.startswith("--r")
    return word.startswith("-") and ("r" in word or "R" in word)


def _braces(word: str) -> Iterator[str]:
    """A word with one pair of braces to the words it stands for; `{}` is what `find` found."""
    found = _BRACES.fullmatch(word)
    if found is None:
        yield word
    elif found[2]:
        yield from (found[1] + part + found[3] for part in found[2].split(","))


def _fatal(word: str, tree: bool, folders: _Folders, places: Places) -> bool:
    if not word:
        return False
    parts = word.split("/")
    if tree and any(part[:1] == "." and fnmatch.fnmatchcase(".git", part) for part in parts):
        return True
    bare = word.rstrip(_ENDING) or "."
    if tree and folders.unknown and _reaches_up(parts, places):
        return True
    for folder in (places.cwd, *folders.known):
        spelled = absolute(bare, folder, places.home)
        if spelled is None:
            continue
        path = normal(spelled)
        if places.classify(path, PathUse(path, Access.DELETE, tree=tree)) is Op.DESTROY_DATA:
            return True
    return False


def _reaches_up(parts: list[str], places: Places) -> bool:
    """Whether a relative path is the workspace, or above it, from some folder."""
    return parts[0] != "" and (
        ".." in parts or parts[-1] in {"", "*"} or parts[0] in places.root.split("/")
    )


def _folders(marked: str, places: Places) -> _Folders:
    known: dict[str, None] = {}
    unknown = False
    running = places.cwd
    for count, found in enumerate(_MOVE.finditer(marked)):
        target = _MARKS.sub("", found[1]) or "~"
        if count == _MAX_MOVES:
            return _Folders(tuple(known), unknown=True)
        if "$" in target or target == "-" or any(c in target for c in "*?[{"):
            unknown = True
            continue
        for folder in (places.cwd, running):
            spelled = absolute(target, folder, places.home)
            if spelled is not None:
                running = normal(spelled)
                known[running] = None
    return _Folders(tuple(known), unknown)
