"""Search text that nobody could read for what it may still name.

Continuations, quotes and backslashes are removed, and the rest is taken word by word. What
is found only ever adds classes: text that cannot be read is never less risky for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from harness.operations.control import is_control_path
from harness.operations.paths import MAX_PATH
from harness.operations.places import Places
from harness.operations.secrets import is_secret_path
from harness.operations.specifications import Commands
from harness.values.operations import Access, Op, Operation, Origin

_TOKEN = re.compile(r"[^\s;&|<>()`,\[\]{}]+|[;&|\n]|[(){}`]")
_HOME = re.compile(r"\$HOME\b|\$\{HOME\}")
_BLANK = re.compile(r"\$IFS\b|\$\{IFS\}")
_SHAPE = re.compile(r"[^\s;&|<>(){}`,=:\[\]]+")
_URL = re.compile(r"\b(?:https?|git|ssh|ftp)://\S+")
_ATTRIBUTE = re.compile(r"\w+(\.\w+)*\.(key|env)")
_STEMS = frozenset(
    {
        "app", "ca", "client", "dev", "development", "local", "private", "prod", "production",
        "server", "ssl", "staging", "test", "tls",
    }
)  # fmt: skip
_COMMONLY_READ = ("/etc/passwd", "/etc/group", "/etc/hosts", "/etc/apt", "/etc/profile")
_WORKSPACE = re.compile(r"\$PWD\b|\$\{PWD\}")
SEPARATORS = frozenset(";&|\n(){}`")
_NAMING = frozenset({"-path", "-ipath", "-name", "-iname", "-wholename", "-iwholename"})
_LEAVING_OUT = ("--exclude", "--ignore", "-g!", "!", ":!")
_ENDING = "*?"
_REACH = 16
"""How many words options may take before a subcommand."""


@dataclass(frozen=True, slots=True)
class Text:
    """Cleaned text: its words in order, separators among them."""

    tokens: tuple[str, ...]

    @property
    def words(self) -> Iterator[str]:
        return (token for token in self.tokens if token not in SEPARATORS)

    def segment(self, at: int) -> Iterator[str]:
        """The words from `at` to the next separator."""
        while at < len(self.tokens) and self.tokens[at] not in SEPARATORS:
            yield self.tokens[at]
            at += 1


def clean(text: str, home: str, root: str) -> Text:
    """The text as it is searched."""
    bare = text.replace("\\\n", "")
    bare = bare.replace("'", "").replace('"', "").replace("\\", "")
    bare = _BLANK.sub(" ", _WORKSPACE.sub(root, _HOME.sub(home, bare)))
    return Text(tuple(_TOKEN.findall(bare)))


def is_live(token: str) -> bool:
    """Whether a word may stand for another one when it runs."""
    return "$" in token or any(c in token for c in "*?[{`")


def find_operations(text: Text, commands: Commands, places: Places) -> tuple[Operation, ...]:
    """Operations of origin `text` for programs, secrets and control paths the text names."""
    found: dict[Op, str] = {}
    _programs(text, commands, places, found)
    _paths(text, places, found)
    return tuple(
        Operation(op=op, reason=why, origin=Origin.TEXT, confidence="text")
        for op, why in found.items()
    )


def _programs(text: Text, commands: Commands, places: Places, found: dict[Op, str]) -> None:
    deleted_to = -1
    for at, token in enumerate(text.tokens):
        name = token.rpartition("/")[2].rpartition("=")[2]
        for words, op in commands.in_text.get(name, ()):
            if op == "operands":
                if at > deleted_to:
                    segment = tuple(text.segment(at + 1))
                    deleted_to = at + len(segment)
                    _deleted(segment, places, found)
            elif op not in found and _follow(words, islice(text.segment(at + 1), _REACH)):
                found[op] = f"the text names `{' '.join((name, *words))}`"


def _follow(words: tuple[str, ...], segment: Iterator[str]) -> bool:
    """Whether `words` come next, options and what may be their values set aside."""
    for word in words:
        option = False
        for token in segment:
            if token == word:
                break
            if not (option or token.startswith("-")):
                return False
            option = token.startswith("-") and "=" not in token
        else:
            return False
    return True


def _deleted(segment: tuple[str, ...], places: Places, found: dict[Op, str]) -> None:
    tree = any(
        (w.startswith("--r") or (w[:1] == "-" and w[:2] != "--" and ("r" in w or "R" in w)))
        for w in segment
    )
    for word in set(segment):
        if word.startswith("-") or "$" in word:
            continue
        use = places.use(word.rstrip(_ENDING) or ".", Access.DELETE, tree=tree)
        if use is not None and places.classify(use.path, use) is Op.DESTROY_DATA:
            found.setdefault(Op.DESTROY_DATA, f"the text deletes `{word[:120]}`")


def _paths(text: Text, places: Places, found: dict[Op, str]) -> None:
    before = ""
    seen: set[tuple[str, bool]] = set()
    for token in text.words:
        last, before = before, token
        looked = (token, last in _NAMING)
        if looked in seen or token.startswith(_LEAVING_OUT):
            continue
        seen.add(looked)
        for piece in _SHAPE.findall(_URL.sub(" ", token)):
            _path(piece, places, found, named=last in _NAMING)


def _path(piece: str, places: Places, found: dict[Op, str], *, named: bool) -> None:
    """`named` after `-name` and its like: finding a control file is no write to it."""
    shown = piece.removeprefix("@").rstrip(_ENDING)
    if (
        not shown
        or len(shown) > MAX_PATH
        or (_ATTRIBUTE.fullmatch(shown) and shown.partition(".")[0] not in _STEMS)
    ):
        return
    if shown.startswith("~/"):
        shown = places.home + shown[1:]
    inside = shown[len(places.root) + 1 :] if shown.startswith(places.root + "/") else shown
    if is_secret_path(inside):
        found.setdefault(Op.READ_SECRET, f"the text names `{piece[:120]}`")
    if not named and is_control_path(inside) and not inside.startswith(_COMMONLY_READ):
        found.setdefault(Op.WRITE_CONTROL, f"the text names `{piece[:120]}`")
