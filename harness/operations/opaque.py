"""Search text that nobody could read for what it may still name.

What a shell may remove (continuations, quotes, the opening of an expansion) is marked, and each
word is searched with the marked places closed and as borders. What is found only ever adds
classes: text that cannot be read is never less risky for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from harness.operations.control import is_control_path
from harness.operations.deletions import OPENING, find_deletions
from harness.operations.paths import MAX_PATH, absolute, normal
from harness.operations.places import Places
from harness.operations.secrets import is_secret_path
from harness.operations.specifications import Commands, InText
from harness.values.operations import Op, Operation, Origin

JOINED, QUOTE = "\x01", "\x02"
"""Marks. Shell text that holds control characters is refused before it comes here."""
_MARKS = (JOINED, QUOTE, OPENING)
_QUOTES = re.compile(r"\$?['\"]|\\")
_DEFAULT = re.compile(r"\$\{[!#]?\w+(?:\[[^\]\s]*\])?:?[-=+?]([^${}]*)\}")
_OPENING = re.compile(
    r"\$\{[!#]?\w+(?:\[[^\]\s]*\])?:?[-=+?]|\$\{\w+\}|\$\w+(?=[\x01-\x03])|\$[@*]"
)
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|[uU]([0-9A-Fa-f]{1,8})|([0-7]{1,3})|.)", re.DOTALL)
_TOKEN = re.compile(
    r"[^\s;&|<>()`,\[\]{}]+|[;&|\n()`]|(?<![^\s;&|()])[{}](?![^\s;&|()])"
)  # fmt: skip
_BORDER = re.compile(r"[=:!@$?+#]")
_ATTRIBUTE = re.compile(r"\w+(\.\w+)*\.(key|env)")
_STEMS = frozenset(
    {
        "app", "ca", "client", "dev", "development", "local", "private", "prod", "production",
        "server", "ssl", "staging", "test", "tls",
    }
)  # fmt: skip
_COMMONLY_READ = ("/etc/passwd", "/etc/group", "/etc/hosts", "/etc/apt", "/etc/profile")
SEPARATORS = frozenset(";&|\n(){}`")
_LEFT_OUT = re.compile(r"(?:--(?:exclude|ignore)(?:-[a-z]+)*=|-g!|:?!)[\w.*?/-]+")
_FINDING = re.compile(r"(?:^|(?<=[;&|\n]))[ \t]*find\b[^;&|\n<>]*")
_NAMED = re.compile(
    r"(-i?name|-i?path|-i?wholename)[ \t]+(['\"]?)[\w.*?/@-]+\2(?=[ \t\n;&|]|$)"
)  # fmt: skip
_ACTING = re.compile(r"-(?:exec|ok|delete|fprint|fls)")
_ODDLY_QUOTED = re.compile(r"[\\$`()]")
_SIMPLE_QUOTES = re.compile(r"'[\w.*?/@%+=~^-]*'|\"[\w.*?/@%+=~^-]*\"")
_ENDING = "*?"


def _variable(name: str) -> re.Pattern[str]:
    letters = f"{JOINED}*".join(name)
    return re.compile(rf"\${JOINED}*(?:{letters}\b|\{{{letters}\b[^${{}}]*\}})")


_HOME, _BLANK, _WORKSPACE = _variable("HOME"), _variable("IFS"), _variable("PWD")


@dataclass(frozen=True, slots=True)
class Text:
    """Marked text: its words in order, separators among them. `wholes` are the words each may
    be, `pieces` what stands in those between borders."""

    marked: str
    tokens: tuple[str, ...]
    wholes: Mapping[str, tuple[str, ...]]
    pieces: Mapping[str, tuple[str, ...]]

    @property
    def words(self) -> Iterator[str]:
        """Everything the text may hold as a word."""
        for token, wholes in self.wholes.items():
            yield from wholes
            yield from self.pieces[token]

    def forms(self, token: str) -> tuple[str, ...]:
        return self.wholes.get(token, ()) + self.pieces.get(token, ())


def clean(text: str, home: str, root: str) -> Text:
    """The text as it is searched."""
    plain = _ANSI.sub(lambda found: _ESCAPE.sub(_character, found[0]), text)
    marked = _QUOTES.sub(QUOTE, plain.replace("\\\n", JOINED))
    marked = _BLANK.sub(" ", _WORKSPACE.sub(lambda _: root, _HOME.sub(lambda _: home, marked)))
    for _ in range(3):
        marked, count = _DEFAULT.subn(rf"{OPENING}\1{OPENING}", marked)
        if not count:
            break
    marked = _OPENING.sub(OPENING, marked)
    tokens = tuple(_TOKEN.findall(marked))
    wholes = {token: _wholes(token) for token in dict.fromkeys(tokens) if token not in SEPARATORS}
    return Text(marked, tokens, wholes, {token: _pieces(of) for token, of in wholes.items()})


def _character(found: re.Match[str]) -> str:
    """What an escape of `$'…'` stands for; others stay, as does what no text may hold."""
    if found[1] is None and found[2] is None and found[3] is None:
        return found[0]
    code = int(found[3], 8) if found[3] is not None else int(found[1] or found[2], 16)
    return chr(code) if 0x20 <= code < 0xD800 else " "


def _wholes(token: str) -> tuple[str, ...]:
    """The words a token may be: each kind of mark once closed and once a border."""
    present = [mark for mark in _MARKS if mark in token]
    if not present:
        return (token,)
    found: dict[str, None] = {}
    for fillings in product(("", " "), repeat=len(present)):
        shown = token
        for mark, filling in zip(present, fillings, strict=True):
            shown = shown.replace(mark, filling)
        found.update(dict.fromkeys(shown.split(" ")))
    return tuple(word for word in found if word)


def _pieces(wholes: tuple[str, ...]) -> tuple[str, ...]:
    """What stands between borders, also without leading dashes and behind a short option."""
    found: dict[str, None] = {}
    for whole in wholes:
        for piece in _BORDER.split(whole):
            found[piece] = None
            if piece[:1] == "-":
                found[piece.lstrip("-")] = None
                if piece[1:2] != "-":
                    found[piece[2:]] = None
    return tuple(piece for piece in found if piece)


def is_live(token: str) -> bool:
    """Whether a word may stand for another one when it runs."""
    return OPENING in token or "$" in token or any(c in token for c in "*?[{`")


def find_operations(text: str, commands: Commands, places: Places) -> tuple[Operation, ...]:
    """Operations of origin `text` for programs, secrets and control paths the text names."""
    found: dict[Op, str] = {}
    cleaned = clean(text, places.home, places.root)
    _programs(cleaned, commands, places, found)
    shorter = _without_names_to_find(text)
    written = cleaned if shorter == text else clean(shorter, places.home, places.root)
    _paths(cleaned, written, places, found)
    return tuple(
        Operation(op=op, reason=why, origin=Origin.TEXT, confidence="text")
        for op, why in found.items()
    )


def _programs(text: Text, commands: Commands, places: Places, found: dict[Op, str]) -> None:
    named: dict[str, list[tuple[str, tuple[str, ...], InText]]] = {}
    for token in text.wholes:
        for name in {form.rpartition("/")[2] for form in text.forms(token)}:
            for words, op in commands.in_text.get(name, ()):
                named.setdefault(token, []).append((name, words, op))
    every = [entry for entries in named.values() for entry in entries]
    deleters = frozenset(name for name, _, op in every if op == "operands")
    why = find_deletions(text.marked, deleters, places)
    if why is not None:
        found[Op.DESTROY_DATA] = why
    firsts = dict.fromkeys(words[0] for _, words, _ in every if words)
    wanted = {word: 1 << at for at, word in enumerate(firsts)}
    met = _met(text, wanted, named.keys()) if wanted else {}
    for token, entries in named.items():
        for name, words, op in entries:
            if op != "operands" and (not words or met[token] & wanted[words[0]]):
                found.setdefault(op, f"the text names `{' '.join((name, *words))}`")


def _met(text: Text, wanted: Mapping[str, int], named: Collection[str]) -> dict[str, int]:
    """For each of `named`, which of `wanted` follow it anywhere."""
    follows = _followers(text, wanted)
    met = dict.fromkeys(named, 0)
    for at, token in enumerate(text.tokens):
        if token in met:
            met[token] |= follows[at + 1]
    return met


def _followers(text: Text, wanted: Mapping[str, int]) -> list[int]:
    """For each place, which of `wanted` (a bit each) come next, options, what may be their
    values and unknown words set aside. One pass from the end: time is linear."""
    bits = {
        token: sum(wanted[form] for form in set(text.forms(token)) if form in wanted)
        for token in text.wholes
    }
    options = {token for token in text.wholes if token.lstrip(QUOTE)[:1] == "-"}
    lives = {token for token in text.wholes if "$" in token or OPENING in token}
    taking = lives | {token for token in options if "=" not in token}
    skipped = lives | options
    follows = [0] * (len(text.tokens) + 1)
    plain = valued = 0
    for at in range(len(text.tokens) - 1, -1, -1):
        token = text.tokens[at]
        if token in SEPARATORS:
            plain = valued = 0
            continue
        valued = bits[token] | (valued if token in taking else plain)
        plain = valued if token in skipped else bits[token]
        follows[at] = plain
    return follows


def _without_names_to_find(text: str) -> str:
    """The text without the names that `find` only looks for, where its reading is certain: no
    quoting that could hide where a command begins, and no action that writes."""
    if "find" not in text or _ODDLY_QUOTED.search(text):
        return text
    bare = _SIMPLE_QUOTES.sub("", text)
    if "'" in bare or '"' in bare:
        return text

    def shorten(found: re.Match[str]) -> str:
        return found[0] if _ACTING.search(found[0]) else _NAMED.sub(r"\1", found[0])

    return _FINDING.sub(shorten, text)


def _paths(text: Text, written: Text, places: Places, found: dict[Op, str]) -> None:
    for token, wholes in text.wholes.items():
        if ".." not in token and _LEFT_OUT.fullmatch(token.replace(QUOTE, "")):
            continue
        climbing = (whole for whole in wholes if ".." in whole)
        for piece in (*text.pieces[token], *climbing):
            _path(piece, places, found, written=token in written.wholes)


def _path(piece: str, places: Places, found: dict[Op, str], *, written: bool) -> None:
    shown = piece.rstrip(_ENDING)
    if (
        not shown
        or len(shown) > MAX_PATH
        or (_ATTRIBUTE.fullmatch(shown) and shown.partition(".")[0] not in _STEMS)
    ):
        return
    for form in _spellings(shown, places):
        if is_secret_path(form):
            found.setdefault(Op.READ_SECRET, f"the text names `{piece[:120]}`")
        if written and is_control_path(form) and not form.startswith(_COMMONLY_READ):
            found.setdefault(Op.WRITE_CONTROL, f"the text names `{piece[:120]}`")


def _spellings(shown: str, places: Places) -> Iterator[str]:
    """The path as typed and, where that may differ, as it lies below the workspace or the
    root, with a tilde expanded."""
    yield shown
    if "/" in shown:
        spelled = absolute(shown, places.cwd, places.home)
        if spelled is not None:
            path = normal(spelled)
            inside = places.relative(path)
            yield path if inside is None else inside
