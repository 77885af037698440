"""Patterns of rows, compiled: tokens of a command, paths, hosts.

Each answers two questions: *may* it match (for ask and deny) and *must* it (for allow).
"""

from __future__ import annotations

import fnmatch
import functools
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.operations.commands import base_name
from harness.operations.hosts import HostFault, is_special, parse_host, parse_port, split_port
from harness.operations.paths import absolute, below, normal
from harness.operations.spelling import fold_path
from harness.values.operations import HostUse, Operation

_GLOB = re.compile(r"[*?\[]")


@functools.lru_cache(maxsize=4096)
def glob(pattern: str) -> Callable[[str], bool]:
    """A glob over one string (`*`, `?`, `[…]`), compiled."""
    if not _GLOB.search(pattern):
        return pattern.__eq__
    compiled = re.compile(fnmatch.translate(pattern))
    return lambda text: compiled.match(text) is not None


def is_literal(pattern: str) -> bool:
    return not _GLOB.search(pattern)


@dataclass(frozen=True, slots=True)
class TokenPattern:
    """`git push **`: `*` is one token, `**` any number, globs work inside a token."""

    tokens: tuple[str, ...]

    @property
    def program(self) -> str | None:
        """The program's base name, if the pattern fixes it."""
        first = self.tokens[0]
        return first.rpartition("/")[2] if is_literal(first) else None

    def may(self, operation: Operation) -> bool:
        argv = operation.argv
        if not argv or not self._program(argv[0], exact=False):
            return False
        aside = operation.aside if operation.flags is not None else _guessed_aside(argv)
        return _walk(self.tokens, argv, aside, self._begin)

    def must(self, operation: Operation) -> bool:
        argv = operation.argv
        if not argv or not self._program(argv[0], exact=True):
            return False
        return _walk(self.tokens, argv, None, self._begin)

    @property
    def _begin(self) -> int:
        """Where the walk begins: behind the program, unless `**` stands for it and more."""
        return 0 if self.tokens[0] == "**" else 1

    def _program(self, word: str | None, *, exact: bool) -> bool:
        first = self.tokens[0]
        if word is None:
            return not exact
        if first == "**" or "/" in first:
            return first == "**" or glob(first)(word)
        return glob(first)(base_name(word) if exact else word.rpartition("/")[2])


def _guessed_aside(argv: tuple[str | None, ...]) -> frozenset[int]:
    """Without a specification: words that look like options, and what may be their values."""
    found: set[int] = set()
    for at, word in enumerate(argv):
        if word is None or at == 0:
            continue
        if word == "--":
            break
        if word.startswith("-"):
            found.add(at)
            if "=" not in word and at + 1 < len(argv):
                found.add(at + 1)
    return frozenset(found)


def _walk(
    tokens: tuple[str, ...],
    argv: tuple[str | None, ...],
    aside: frozenset[int] | None,
    begin: int,
) -> bool:
    """Match `tokens[begin:]` to `argv[begin:]`; words in `aside` may be skipped (None: none may).

    One pass over the words with the set of tokens that may be next: time is the product of
    both lengths, whatever the pattern.
    """
    may = aside is not None
    nexts = _with_gaps(tokens, {begin})
    for at in range(begin, len(argv)):
        passed = {
            i if tokens[i] == "**" else i + 1
            for i in nexts
            if i < len(tokens) and (tokens[i] == "**" or _token(tokens[i], argv[at], may=may))
        }
        if aside is not None and at in aside:
            passed |= nexts
        if not passed:
            return False
        nexts = _with_gaps(tokens, passed)
    return len(tokens) in nexts


def _with_gaps(tokens: tuple[str, ...], nexts: set[int]) -> set[int]:
    """A `**` may also stand for nothing."""
    reached = set(nexts)
    for i in sorted(nexts):
        while i < len(tokens) and tokens[i] == "**":
            i += 1
            reached.add(i)
    return reached


def _token(token: str, word: str | None, *, may: bool) -> bool:
    return may if word is None else glob(token)(word)


def compile_tokens(text: str) -> TokenPattern:
    """Raises `ValueError` with the reason."""
    tokens = tuple(shlex.split(text))
    if not tokens:
        raise ValueError("a `command` names no program")
    if len(tokens) > 64:
        raise ValueError("a `command` has more than 64 tokens")
    return TokenPattern(tokens)


@dataclass(frozen=True, slots=True)
class PathPattern:
    """Components of an absolute path, `**` any number of them. `covers` says that the pattern
    ended in `/` or `/**`, so that an allow reaches what lies below."""

    parts: tuple[str, ...]
    folded: tuple[str, ...]
    covers: bool
    fixed: str

    def may(self, forms: tuple[str, ...], *, wide: bool) -> bool:
        """Whether any form lies at or below the pattern; `wide` for what may touch anything
        below its path."""
        for form in forms:
            shown = fold_path(form)
            if any(_accepts(self.folded, _split(shown))):
                return True
            if wide and below(self.fixed, shown):
                return True
        return False

    def must(self, forms: tuple[str, ...]) -> bool:
        return all(self._exact(form) for form in forms)

    def _exact(self, form: str) -> bool:
        *above, whole = _accepts(self.parts, _split(form))
        return any(above) if self.covers else whole


def _split(path: str) -> tuple[str, ...]:
    return tuple(path[1:].split("/")) if path != "/" else ()


def _accepts(pattern: tuple[str, ...], parts: tuple[str, ...]) -> Iterator[bool]:
    """Whether the pattern matches the first 0, 1, 2, … components; one pass, whatever `**`."""
    states = _with_stars(pattern, {0})
    yield len(pattern) in states
    for part in parts:
        reached: set[int] = set()
        for at in states:
            if at < len(pattern):
                if pattern[at] == "**":
                    reached.add(at)
                elif glob(pattern[at])(part):
                    reached.add(at + 1)
        states = _with_stars(pattern, reached)
        yield len(pattern) in states


def _with_stars(pattern: tuple[str, ...], states: set[int]) -> set[int]:
    """A `**` may stand for no component at all."""
    todo = list(states)
    while todo:
        at = todo.pop()
        if at < len(pattern) and pattern[at] == "**" and at + 1 not in states:
            states.add(at + 1)
            todo.append(at + 1)
    return states


def compile_path(text: str, root: str, home: str) -> PathPattern:
    """Raises `ValueError` with the reason."""
    spelled = absolute(text, root, home)
    if spelled is None:
        raise ValueError("a `path` is empty, too long or holds NUL")
    covers = spelled.endswith(("/", "/**"))
    parts = tuple(part for part in normal(spelled)[1:].split("/") if part)
    if covers and parts and parts[-1] == "**":
        parts = parts[:-1]
    fixed: list[str] = []
    for part in parts:
        if not is_literal(part):
            break
        fixed.append(part)
    return PathPattern(
        parts, tuple(fold_path(part) for part in parts), covers, fold_path("/" + "/".join(fixed))
    )


@dataclass(frozen=True, slots=True)
class HostPattern:
    """`name:port`, `*.name:port` or `*`; `port` None is every port."""

    host: str
    suffix: str
    port: int | None

    def _name(self, host: str) -> bool:
        if self.suffix:
            return host.endswith(self.suffix) and len(host) > len(self.suffix)
        return self.host in {"*", host}

    def may(self, use: HostUse) -> bool:
        return self._name(use.host) and (
            self.port is None or use.port is None or self.port == use.port
        )

    def must(self, use: HostUse) -> bool:
        return self._name(use.host) and use.port is not None and self.port in {None, use.port}


def compile_host(text: str, *, allow: bool) -> HostPattern:
    """Raises `ValueError` with the reason."""
    try:
        host, port = split_port(text)
        number = None if port is None or port == "*" else parse_port(port)
        if allow and port is None:
            raise ValueError("a host without a port cannot be allowed; write `host:443`")
        if host == "*":
            return HostPattern("*", "", number)
        if host.startswith("*."):
            return HostPattern("", "." + parse_host(host[2:]), number)
        return HostPattern(parse_host(host), "", number)
    except HostFault as fault:
        raise ValueError(str(fault)) from None


def special(operation: Operation) -> bool:
    """Whether the operation connects to an address of a special-purpose range."""
    return any(is_special(use.host) for use in operation.hosts)
