"""Which files git would ignore, by the repository's own `.gitignore` files.

Follows gitignore(5) and git's wildmatch, on bytes. Patterns come from repositories nobody
vouches for, so they run in RE2, where no pattern takes exponential time.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.values.limits import MIB
from harness.workspace.globs import Pattern, read_pattern
from harness.workspace.notes import Notes

LARGEST = 1 << 20
"""Bytes of one ignore file that are read."""
MOST_PATTERNS = 5_000
LONGEST_PATTERN = 1024
_LINES_AT_ONCE = 500
_CHUNK = 64 << 10
"""Bytes of expressions in one automaton; more automata are smaller than one large one."""
_BASE_MEMORY = 256 << 10
_MEMORY_A_BYTE = 96
"""Bytes RE2 may take for each byte of expression: the program, and some states of it."""

SECONDS = 20.0


@dataclass
class Budget:
    """What one repository's ignore rules may still take: seconds of CPU, bytes of expressions,
    patterns, and bytes of memory for the automata that are kept."""

    seconds: float = SECONDS
    size: int = 2 * MIB
    patterns: int = 50_000
    memory: int = 96 * MIB

    @property
    def spent(self) -> bool:
        return self.seconds <= 0

    @contextmanager
    def timed(self) -> Generator[None, None, None]:
        started = time.thread_time()
        try:
            yield
        finally:
            self.seconds -= time.thread_time() - started

    def admits(self, pattern: Pattern) -> bool:
        """Take a pattern's share, if there is as much left."""
        if self.patterns < 1 or self.size < len(pattern.expression):
            return False
        self.patterns -= 1
        self.size -= len(pattern.expression)
        return True


@dataclass(frozen=True, slots=True)
class _Automaton:
    """Patterns `first` to before `end` of a file. `found` is an RE2 set, in which one pattern
    more matches everything, so that no match at all tells that RE2 gave up."""

    first: int
    end: int
    found: Any
    memory: int


def _chunks(patterns: Sequence[Pattern]) -> Iterator[tuple[int, Sequence[Pattern]]]:
    """Runs of patterns with at most `_CHUNK` bytes of expressions, the last run first."""
    end = len(patterns)
    while end:
        first, size = end, 0
        while first and (first == end or size + len(patterns[first - 1].expression) <= _CHUNK):
            first -= 1
            size += len(patterns[first].expression)
        yield first, patterns[first:end]
        end = first


def _compiled(first: int, patterns: Sequence[Pattern]) -> _Automaton | None:
    """One automaton for some patterns, or None if RE2 finds them too big."""
    # Loaded by the runs that need it; it ships no types.
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.dot_nl = True
    options.never_capture = True
    options.max_mem = _BASE_MEMORY + _MEMORY_A_BYTE * sum(len(p.expression) for p in patterns)
    found = re2.Set.FullMatchSet(options)
    try:
        for pattern in patterns:
            found.Add(pattern.expression)
        found.Add(b".*")
        found.Compile()
    except re2.error:
        return None
    return _Automaton(first, first + len(patterns), found, options.max_mem)


class IgnoreFile:
    """The patterns of one ignore file. Paths are relative to the folder it stands in.

    `cut` says what of the file is not used, or is empty.
    """

    def __init__(self, text: bytes, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._patterns: list[Pattern] = []
        self._automata: list[_Automaton] | None = None
        self.cut = "" if len(text) < LARGEST else f"larger than {LARGEST // MIB} MiB"
        lines = text[:LARGEST].removeprefix(b"\xef\xbb\xbf").split(b"\n", MOST_PATTERNS + 1)
        if len(lines) > MOST_PATTERNS + 1:
            self.cut = f"more than {MOST_PATTERNS} lines"
        for at in range(0, min(len(lines), MOST_PATTERNS), _LINES_AT_ONCE):
            if self._budget.spent:
                self.cut = "too slow"
                return
            with self._budget.timed():
                self._parse(lines[at : min(at + _LINES_AT_ONCE, MOST_PATTERNS)])

    def _parse(self, lines: list[bytes]) -> None:
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if len(line) > LONGEST_PATTERN:
                self.cut = self.cut or f"lines of more than {LONGEST_PATTERN} bytes"
                continue
            pattern = read_pattern(line)
            if pattern is None:
                continue
            if not self._budget.admits(pattern):
                self.cut = "too many patterns in one repository"
                return
            self._patterns.append(pattern)

    @property
    def memory(self) -> int:
        """Bytes the file's automata may take now."""
        return sum(automaton.memory for automaton in self._automata or ())

    def drop(self) -> None:
        """Give the automata up until they are needed again."""
        self._automata = None

    def verdict(self, path: bytes, *, folder: bool) -> bool | None:
        """True ignored, False taken back in by `!`, None when no pattern matches."""
        if not self._patterns:
            return None
        if self._automata is None:
            made = [_compiled(first, chunk) for first, chunk in _chunks(self._patterns)]
            self._automata = [automaton for automaton in made if automaton is not None]
            if len(self._automata) < len(made):
                self.cut = "too big"
        for automaton in self._automata:
            hits: list[int] | None = automaton.found.Match(path)
            if hits is None:
                self.cut = "too big"
                continue
            for number in sorted((automaton.first + hit for hit in hits), reverse=True):
                if number == automaton.end:
                    continue
                pattern = self._patterns[number]
                if folder or not pattern.folders_only:
                    return not pattern.negated
        return None


@dataclass
class IgnoreRules:
    """Every ignore file of a repository, by the folder it stands in (`b""` for the root)."""

    budget: Budget = field(default_factory=Budget)
    _exclude: IgnoreFile | None = None
    _files: dict[bytes, IgnoreFile] = field(default_factory=dict[bytes, IgnoreFile])
    _folders: dict[bytes, bool] = field(default_factory=dict[bytes, bool])
    _ready: dict[bytes, IgnoreFile] = field(default_factory=dict[bytes, IgnoreFile])
    _deepest: int = 0
    _slow: bool = False

    def add(self, folder: bytes, text: bytes) -> None:
        self._files[folder] = IgnoreFile(text, self.budget)
        self._deepest = max(self._deepest, len(folder))

    def file(self, folder: bytes) -> IgnoreFile | None:
        """The ignore file of a folder."""
        return self._files.get(folder)

    def exclude(self, text: bytes) -> None:
        """Use the text of `.git/info/exclude`, which every `.gitignore` overrules."""
        self._exclude = IgnoreFile(text, self.budget)

    def renew(self) -> None:
        """Give a new comparison the time that earlier ones had."""
        self.budget.seconds = max(self.budget.seconds, SECONDS)

    def notes(self) -> tuple[str, ...]:
        """What of the rules is not used, so that files git would ignore are copied."""
        notes = Notes()
        named = {_name(folder): file for folder, file in self._files.items()}
        if self._exclude is not None:
            named[b".git/info/exclude"] = self._exclude
        for name, file in named.items():
            if file.cut:
                notes.add(f"ignore rules not used in full ({file.cut})", name)
        slow = ("ignore rules are too slow: from some file on they were not used",)
        return notes.lines() + slow * self._slow

    def matches(self, path: bytes, *, folder: bool = False) -> bool:
        """Whether this very path is ignored, what lies above it set aside."""
        if not self._files and self._exclude is None:
            return False
        if self.budget.spent:
            self._slow = True
            return False
        with self.budget.timed():
            return self._matches(path, folder)

    def _matches(self, path: bytes, folder: bool) -> bool:
        # No folder below the deepest ignore file's is looked up: a path may have thousands.
        above = path[: max(path.rfind(b"/", 0, self._deepest + 1), 0)]
        while True:
            rules = self._files.get(above)
            if rules is not None:
                below = path[len(above) + 1 :] if above else path
                verdict = rules.verdict(below, folder=folder)
                self._keep(above, rules)
                if verdict is not None:
                    return verdict
            if not above:
                break
            above = above.rpartition(b"/")[0]
        if self._exclude is not None:
            return self._exclude.verdict(path, folder=folder) or False
        return False

    def _keep(self, folder: bytes, rules: IgnoreFile) -> None:
        """Of the automata, those used last stay, as far as the memory goes."""
        if self._ready.get(folder) is rules:
            return
        self._ready[folder] = rules
        left = self.budget.memory - sum(file.memory for file in self._ready.values())
        for oldest in list(self._ready)[:-1]:
            if left >= 0:
                break
            dropped = self._ready.pop(oldest)
            left += dropped.memory
            dropped.drop()

    def ignored(self, path: bytes, *, folder: bool = False) -> bool:
        """Whether git would ignore the path: it, or a folder above it, is matched."""
        inherited = False
        unknown: list[bytes] = []
        above = path.rpartition(b"/")[0]
        while above:
            known = self._folders.get(above)
            if known is not None:
                inherited = known
                break
            unknown.append(above)
            above = above.rpartition(b"/")[0]
        for above in reversed(unknown):
            inherited = self._folder(above, inherited)
        return self._folder(path, inherited) if folder else inherited or self.matches(path)

    def _folder(self, path: bytes, inherited: bool) -> bool:
        known = self._folders.get(path)
        if known is None:
            known = inherited or self.matches(path, folder=True)
            self._folders[path] = known
        return known


def _name(folder: bytes) -> bytes:
    return folder + b"/.gitignore" if folder else b".gitignore"
