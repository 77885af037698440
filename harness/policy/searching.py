"""Deny rows against text that nobody could read: whatever they name, by whole word."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from harness.operations.lower import Surroundings
from harness.operations.opaque import SEPARATORS, Text, clean, is_live
from harness.operations.paths import MAX_PATH, absolute, below, normal
from harness.operations.places import Places
from harness.operations.specifications import spellings
from harness.operations.spelling import fold_path
from harness.policy.patterns import HostPattern, PathPattern, TokenPattern, glob, is_literal
from harness.policy.rows import Flags, Row, Setting


@dataclass(frozen=True, slots=True)
class _Searched:
    """Text prepared once for all rows: base names, and every word folded, as it stands and as
    the absolute path it may be."""

    text: Text
    names: frozenset[str]
    paths: tuple[str, ...]
    joined: str


@functools.lru_cache(maxsize=16)
def _searched(text: str, places: Places) -> _Searched:
    cleaned = clean(text, places.home, places.root)
    words = tuple(dict.fromkeys(cleaned.words))
    paths: dict[str, None] = {}
    for word in words:
        for typed in (word, f"./{word}") if word[0] == "~" else (word,):
            spelled = absolute(typed, places.cwd, places.home)
            if spelled is not None:
                paths[fold_path(normal(spelled))] = None
    raw = (fold_path(word) if len(word) <= MAX_PATH else word.casefold() for word in words)
    return _Searched(
        cleaned,
        frozenset(_base(word) for word in words),
        tuple(paths),
        "\n".join((*paths, *raw)),
    )


def _base(word: str) -> str:
    """The program a word may name."""
    return word.rpartition("/")[2]


def named_in(row: Row, text: str, around: Surroundings, setting: Setting) -> bool:
    """Whether a deny row's program, path or host stands in the text.

    Only for rows that name one of them, and whose other conditions on the call hold.
    """
    matcher = row.matcher
    if matcher.command is None and matcher.path is None and matcher.host is None:
        return False
    if not matcher.holds(setting):
        return False
    searched = _searched(text, around.places)
    if matcher.command is not None and not any(
        _names(pattern, searched)
        and _command(pattern, _aliases(pattern, matcher.flags, around), searched.text)
        for pattern in matcher.command
    ):
        return False
    if matcher.path is not None and not any(
        _path(pattern, searched, around.places) for pattern in matcher.path
    ):
        return False
    return matcher.host is None or any(_host(pattern, searched) for pattern in matcher.host)


def _names(pattern: TokenPattern, searched: _Searched) -> bool:
    return pattern.program is None or pattern.program in searched.names


_Aliases = tuple[tuple[frozenset[str], ...], tuple[frozenset[str], ...]]


def _aliases(pattern: TokenPattern, flags: Flags | None, around: Surroundings) -> _Aliases | None:
    """For each flag of a row, `any` and `all`, its spellings by the program's specification."""
    if flags is None:
        return None
    command = around.commands.by_name.get(pattern.program or "")

    def spelled(names: tuple[str, ...]) -> tuple[frozenset[str], ...]:
        if command is None:
            return tuple(frozenset({name}) for name in names)
        return tuple(spellings(command, name) for name in names)

    return spelled(flags.any), spelled(flags.all)


def _command(pattern: TokenPattern, flags: _Aliases | None, text: Text) -> bool:
    first, *others = pattern.tokens
    program = glob(first.rpartition("/")[2])
    wanted = [token for token in others if token not in {"*", "**"}]
    if first in {"*", "**"}:
        return True
    tokens = text.tokens
    fits = [frozenset(t for t in text.wholes if _fits(word, t, text)) for word in wanted]
    named = {t for t in text.wholes if any(program(_base(form)) for form in text.forms(t))}
    latest = _latest(fits, tokens)
    end = 0
    for at, token in enumerate(tokens):
        if at < end or token not in named:
            continue
        met, end = _meet(fits, tokens, at + 1)
        if met == len(wanted) or latest[met] >= end:
            return flags is None or _flags(flags, tokens[at + 1 :], text)
    return False


def _fits(wanted: str, token: str, text: Text) -> bool:
    return any(glob(wanted)(form) for form in text.forms(token))


def _meet(fits: list[frozenset[str]], tokens: tuple[str, ...], at: int) -> tuple[int, int]:
    """How many of the wanted words come in order up to the next separator, where a word that
    may stand for another counts for any, and where that separator is."""
    met = 0
    while at < len(tokens) and tokens[at] not in SEPARATORS:
        if met < len(fits) and (tokens[at] in fits[met] or is_live(tokens[at])):
            met += 1
        at += 1
    return met, at


def _latest(fits: list[frozenset[str]], tokens: tuple[str, ...]) -> list[int]:
    """For each wanted word, the latest token from which the rest still comes in order; -1 if
    it does not. A separator may be quoted, so it ends nothing here."""
    latest = [-1] * (len(fits) + 1)
    need = len(fits) - 1
    for at in range(len(tokens) - 1, -1, -1):
        if need < 0:
            break
        if tokens[at] in fits[need]:
            latest[need] = at
            need -= 1
    return latest


def _flags(flags: _Aliases, tokens: tuple[str, ...], text: Text) -> bool:
    unique = dict.fromkeys(tokens)

    def given(names: frozenset[str]) -> bool:
        return any(
            is_live(token) or any(_is_flag(word, name) for word in text.wholes.get(token, ()))
            for token in unique
            for name in names
        )

    wanted, needed = flags
    return (not wanted or any(map(given, wanted))) and all(map(given, needed))


def _is_flag(token: str, flag: str) -> bool:
    if token.partition("=")[0] == flag:
        return True
    if flag.startswith("--"):
        return len(token) > 2 and flag.startswith(token.partition("=")[0])
    return len(flag) == 2 and token[:1] == "-" and token[:2] != "--" and flag[1] in token


def _path(pattern: PathPattern, searched: _Searched, places: Places) -> bool:
    """Whether the text holds the pattern's fixed part or, where it has none below the
    workspace, a word that leads to the pattern."""
    if not any(is_literal(part) for part in pattern.folded):
        return True
    root = fold_path(places.root)
    if below(root, pattern.fixed):
        return any(pattern.may((path,), wide=False) for path in searched.paths)
    needle = pattern.fixed.removeprefix(root + "/").strip("/")
    return _holds(searched.joined, needle)


def _holds(word: str, needle: str) -> bool:
    """Whether `needle` stands in the text at component borders."""
    at = word.find(needle) if needle else -1
    while at >= 0:
        before, after = word[at - 1 : at], word[at + len(needle) : at + len(needle) + 1]
        if not (before.isalnum() or before in {"-", "_", "."}) and not (
            after.isalnum() or after in {"-", "_", "."}
        ):
            return True
        at = word.find(needle, at + 1)
    return False


def _host(pattern: HostPattern, searched: _Searched) -> bool:
    return pattern.host == "*" or (pattern.suffix or pattern.host) in searched.joined


class DeniedRows:
    """Deny rows that name a program, path or host, the first by program name."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._by_program: dict[str, list[Row]] = {}
        self._others: list[Row] = []
        for row in rows:
            programs = {pattern.program for pattern in row.matcher.command or ()}
            if programs and None not in programs:
                for program in programs:
                    self._by_program.setdefault(str(program), []).append(row)
            elif row.matcher.command or row.matcher.path or row.matcher.host:
                self._others.append(row)

    def named_in(self, text: str, around: Surroundings, setting: Setting) -> list[Row]:
        """The rows that text nobody could read names."""
        if not self._by_program and not self._others:
            return []
        searched = _searched(text, around.places)
        found = [row for name in searched.names for row in self._by_program.get(name, ())]
        return [row for row in (*found, *self._others) if named_in(row, text, around, setting)]
