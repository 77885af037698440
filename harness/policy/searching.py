"""Deny rows against text that nobody could read: whatever they name, by whole word."""

from __future__ import annotations

import functools

from harness.operations.opaque import Text, clean, is_live
from harness.operations.places import Places
from harness.operations.spelling import fold_path
from harness.policy.patterns import HostPattern, PathPattern, TokenPattern, glob, is_literal
from harness.policy.rows import Flags, Row, Setting

_SEPARATORS = frozenset(";&|\n(){}`")


@functools.lru_cache(maxsize=64)
def _cleaned(text: str, home: str, root: str) -> Text:
    return clean(text, home, root)


def named_in(row: Row, text: str, places: Places, setting: Setting) -> bool:
    """Whether a deny row's program, path or host stands in the text.

    Only for rows that name one of them, and whose other conditions on the call hold.
    """
    matcher = row.matcher
    if matcher.command is None and matcher.path is None and matcher.host is None:
        return False
    if not matcher.holds(setting):
        return False
    cleaned = _cleaned(text, places.home, places.root)
    if matcher.command is not None and not any(
        _command(pattern, matcher.flags, cleaned) for pattern in matcher.command
    ):
        return False
    if matcher.path is not None and not any(
        _path(pattern, cleaned, places) for pattern in matcher.path
    ):
        return False
    return matcher.host is None or any(_host(pattern, cleaned) for pattern in matcher.host)


def _command(pattern: TokenPattern, flags: Flags | None, text: Text) -> bool:
    first, *others = pattern.tokens
    program = glob(first.rpartition("/")[2])
    wanted = [token for token in others if token not in {"*", "**"}]
    if first in {"*", "**"}:
        return True
    for at, token in enumerate(text.tokens):
        name = token.rpartition("/")[2].rpartition("=")[2]
        if program(name) and _follow(wanted, text.tokens[at + 1 :]):
            return flags is None or _flags(flags, text.tokens[at + 1 :])
    return False


def _follow(wanted: list[str], tokens: tuple[str, ...]) -> bool:
    """Whether the tokens come in this order; before the next separator a word that may stand
    for another counts for any."""
    at, near = 0, True
    for token in tokens:
        if at == len(wanted):
            break
        near = near and token not in _SEPARATORS
        if glob(wanted[at])(token) or (near and is_live(token)):
            at += 1
    return at == len(wanted)


def _flags(flags: Flags, tokens: tuple[str, ...]) -> bool:
    def given(flag: str) -> bool:
        for token in tokens:
            if is_live(token) or token.partition("=")[0] == flag:
                return True
            if flag.startswith("--") and len(token) > 3 and flag.startswith(token):
                return True
            if len(flag) == 2 and token[:1] == "-" and token[:2] != "--" and flag[1] in token:
                return True
        return False

    return (not flags.any or any(map(given, flags.any))) and all(map(given, flags.all))


def _path(pattern: PathPattern, text: Text, places: Places) -> bool:
    """Whether a word of the text leads to the pattern, or holds its fixed part."""
    inside = pattern.fixed.removeprefix(fold_path(places.root) + "/")
    needle = inside if len(inside) > 1 else pattern.fixed
    named = [part for part in pattern.folded if is_literal(part)]
    if not named:
        return True
    for word in text.words:
        folded = fold_path(word)
        shown = fold_path(places.home) + folded[1:] if folded.startswith("~/") else folded
        if _holds(shown, needle.strip("/")) or _leads(pattern, word, places):
            return True
    return False


def _holds(word: str, needle: str) -> bool:
    """Whether `needle` stands in the word at component borders."""
    at = word.find(needle) if needle else -1
    while at >= 0:
        before, after = word[at - 1 : at], word[at + len(needle) : at + len(needle) + 1]
        if not (before.isalnum() or before in {"-", "_", "."}) and not (
            after.isalnum() or after in {"-", "_", "."}
        ):
            return True
        at = word.find(needle, at + 1)
    return False


def _leads(pattern: PathPattern, word: str, places: Places) -> bool:
    from_cwd = word if word.startswith(("/", "~/")) else f"{places.cwd}/{word}"
    shown = places.home + from_cwd[1:] if from_cwd.startswith("~/") else from_cwd
    return pattern.may((shown,), wide=False)


def _host(pattern: HostPattern, text: Text) -> bool:
    if pattern.host == "*":
        return True
    needle = pattern.suffix or pattern.host
    return any(needle in word.lower() for word in text.words)
