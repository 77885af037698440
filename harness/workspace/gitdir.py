"""A repository's `.git`, read as data: no git process, no hook, no filter, no include.

What a box gets is a fresh `.git` with the same HEAD, refs, index and objects, and a
configuration of ours. Layout: gitrepository-layout(5).
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO

from harness.values.commands import FileKind
from harness.workspace.ignore import LARGEST
from harness.workspace.notes import Notes
from harness.workspace.walk import UNREADABLE, Found, read_file

_SMALL = 1 << 20
_INDEX = 256 << 20

_OWN_FILES = re.compile(
    rb"HEAD|index|sharedindex\.[0-9a-f]+|ORIG_HEAD|MERGE_(HEAD|MSG|MODE)|CHERRY_PICK_HEAD|REVERT_HEAD"
)
_SHARED_FILES = re.compile(rb"packed-refs|shallow|info/exclude")
_OBJECTS = re.compile(
    rb"objects/([0-9a-f]{2}(/[0-9a-f]{38,62})?"
    rb"|pack(/(pack-[0-9a-f]+\.(pack|idx|rev|bitmap|mtimes|promisor|keep)|multi-pack-index))?"
    rb"|info(/(packs|commit-graph|commit-graphs(/[-.0-9a-z]+)?))?)"
)
_SUBMODULE = 0o160000
_LINKED = "links inside `.git`, left out"
_IN_PROGRESS = (b"rebase-merge", b"rebase-apply", b"sequencer")

_KEPT_SETTINGS: Mapping[tuple[str, str], frozenset[str]] = {
    ("core", "filemode"): frozenset({"true", "false"}),
    ("core", "autocrlf"): frozenset({"true", "false", "input"}),
    ("core", "eol"): frozenset({"lf", "crlf", "native"}),
    ("extensions", "objectformat"): frozenset({"sha1", "sha256"}),
    ("extensions", "refstorage"): frozenset({"files"}),
}

_DAMAGED = (ValueError, KeyError, IndexError, AssertionError, EOFError, OSError, struct.error)
"""What dulwich raises for an index that is none."""


@dataclass(frozen=True, slots=True)
class GitDir:
    """Where a repository keeps its git data. `common` is `own` unless it is a linked worktree."""

    own: bytes
    common: bytes
    settings: Mapping[tuple[str, str], str]

    @property
    def hashes(self) -> str:
        """Name of the repository's hash: `sha1` or `sha256`."""
        return self.settings.get(("extensions", "objectformat"), "sha1")


def find(root: bytes, notes: Notes) -> GitDir | None:
    """The git folder of a work tree, or None where there is none that may be copied."""
    path = os.path.join(root, b".git")  # noqa: PTH118 - bytes
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        own = _pointed_to(root, path)
        if own is None:
            notes.say(
                "`.git` names a folder that does not name this one back: history is not copied"
            )
            return None
    elif stat.S_ISDIR(mode):
        own = path
    else:
        notes.say("`.git` is a link or no folder: history is not copied")
        return None
    common = _common(own)
    settings = _settings(read_file(os.path.join(common, b"config"), _SMALL) or b"")  # noqa: PTH118
    if settings.get(("extensions", "refstorage"), "files") != "files":
        notes.say("`.git` keeps its refs in another format than files: history is not copied")
        return None
    if read_file(os.path.join(own, b"HEAD"), _SMALL) is None:  # noqa: PTH118 - bytes
        notes.say("`.git` has no readable HEAD: history is not copied")
        return None
    return GitDir(own, common, settings)


def _line(path: bytes) -> bytes:
    return (read_file(path, 4096) or b"").strip()


def _pointed_to(root: bytes, file: bytes) -> bytes | None:
    """The folder a `.git` file names, if that folder names this work tree back.

    Without the second half, a repository could have any other one's history copied.
    """
    text = _line(file)
    if not text.startswith(b"gitdir: "):
        return None
    own = os.path.realpath(os.path.join(root, text.removeprefix(b"gitdir: ")))  # noqa: PTH118
    back = _line(os.path.join(own, b"gitdir"))  # noqa: PTH118 - bytes
    if back and os.path.realpath(os.path.join(own, back)) == os.path.realpath(file):  # noqa: PTH118
        return own
    settings = _settings(read_file(os.path.join(own, b"config"), _SMALL) or b"")  # noqa: PTH118
    tree = settings.get(("core", "worktree"))
    if tree is None:
        return None
    there = os.path.join(own, tree.encode("utf-8", "surrogateescape"))  # noqa: PTH118 - bytes
    return own if os.path.realpath(there) == os.path.realpath(root) else None


def _common(own: bytes) -> bytes:
    named = _line(os.path.join(own, b"commondir"))  # noqa: PTH118 - bytes
    if not named:
        return own
    common = os.path.realpath(os.path.join(own, named))  # noqa: PTH118 - bytes
    # A linked worktree lies in its repository's `worktrees`; anything else is not git's doing.
    inside = os.path.dirname(os.path.dirname(os.path.realpath(own)))  # noqa: PTH120 - bytes
    return common if common == inside else own


def _settings(config: bytes) -> dict[tuple[str, str], str]:
    """Plain `key = value` lines of a git configuration; includes are not followed."""
    found: dict[tuple[str, str], str] = {}
    section = ""
    for raw in config.decode("utf-8", "surrogateescape").splitlines():
        line = raw.strip()
        if line.startswith("["):
            section = line.strip("[]").strip().lower()
            continue
        key, equals, value = line.partition("=")
        if equals:
            found[section, key.strip().lower()] = value.strip().strip('"')
    return found


def tracked(git: GitDir, notes: Notes) -> dict[bytes, str]:
    """Files the index names, with their blob ids; empty, with a note, if it cannot be read."""
    data = read_file(os.path.join(git.own, b"index"), _INDEX)  # noqa: PTH118 - bytes
    if data is None:
        return {}
    from dulwich.index import (  # noqa: PLC0415 - slow to load
        IndexEntry,
        UnsupportedIndexFormat,
        read_index_dict,
    )
    from dulwich.object_format import SHA1, SHA256  # noqa: PLC0415

    hashes = SHA256 if git.hashes == "sha256" else SHA1
    try:
        entries = read_index_dict(BytesIO(data), object_format=hashes)
    except (*_DAMAGED, UnsupportedIndexFormat):
        notes.say("the git index cannot be read: files that are tracked and ignored are left out")
        return {}
    return {
        path: entry.sha.decode("ascii", "replace") if isinstance(entry, IndexEntry) else ""
        for path, entry in entries.items()
        if not isinstance(entry, IndexEntry) or entry.mode != _SUBMODULE
    }


def entries(git: GitDir, notes: Notes) -> Iterator[Found]:
    """The `.git` of the box: folders before what they hold."""
    yield Found(b".git", FileKind.DIRECTORY, 0o755)
    yield Found(b".git/config", FileKind.FILE, 0o644, data=_config(git.settings))
    for name in (b"branches", b"info", b"objects", b"refs"):
        yield Found(b".git/" + name, FileKind.DIRECTORY, 0o755)
    for name in (b"refs/heads", b"refs/tags"):
        yield Found(b".git/" + name, FileKind.DIRECTORY, 0o755)
    seen = {b"refs/heads", b"refs/tags"}
    for found in _below(git.own, b"", _OWN_FILES, notes):
        yield found
    for folder in (b"", b"info"):
        yield from _below(git.common, folder, _SHARED_FILES, notes)
    for base in dict.fromkeys((git.common, git.own)):
        for found in _tree(base, b"refs", _REFS, notes):
            if found.path.removeprefix(b".git/") not in seen:
                seen.add(found.path.removeprefix(b".git/"))
                yield found
    yield from _tree(git.common, b"objects", _OBJECTS, notes)
    _report(git, notes)


_REFS = re.compile(rb"refs/(?!.*\.lock\Z).*", re.DOTALL)


def _config(settings: Mapping[tuple[str, str], str]) -> bytes:
    kept = {
        key: settings[key].lower()
        for key, values in _KEPT_SETTINGS.items()
        if settings.get(key, "").lower() in values
    }
    special = any(section == "extensions" for section, _ in kept)
    lines = ["[core]", f"\trepositoryformatversion = {int(special)}", "\tbare = false"]
    lines += ["\tlogallrefupdates = true"]
    lines += [f"\t{key} = {value}" for (section, key), value in kept.items() if section == "core"]
    lines += ["[user]", "\tname = harness", "\temail = harness@localhost"]
    if special:
        lines.append("[extensions]")
        lines += [f"\t{k} = {v}" for (section, k), v in kept.items() if section == "extensions"]
    return "\n".join(lines).encode() + b"\n"


def excluded(git: GitDir) -> bytes | None:
    """The text of `info/exclude`, if there is one and no link leads to it."""
    info = os.path.join(git.common, b"info")  # noqa: PTH118 - bytes
    if os.path.islink(info):  # noqa: PTH114 - bytes
        return None
    return read_file(os.path.join(info, b"exclude"), LARGEST, cut=True)  # noqa: PTH118 - bytes


def _scan(folder: bytes, notes: Notes) -> list[os.DirEntry[bytes]]:
    """Entries by name. A folder that is a link could lead to another repository's data."""
    if os.path.islink(folder):  # noqa: PTH114 - bytes
        notes.add(_LINKED, folder)
        return []
    try:
        with os.scandir(folder) as held:
            return sorted(held, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError:
        notes.add(UNREADABLE, folder)
        return []


def _below(base: bytes, folder: bytes, wanted: re.Pattern[bytes], notes: Notes) -> Iterator[Found]:
    """Wanted regular files of one folder."""
    for entry in _scan(os.path.join(base, folder), notes):  # noqa: PTH118 - bytes
        path = folder + b"/" + entry.name if folder else entry.name
        if wanted.fullmatch(path) and entry.is_file(follow_symlinks=False):
            yield _file(path, entry)


def _tree(base: bytes, top: bytes, wanted: re.Pattern[bytes], notes: Notes) -> Iterator[Found]:
    todo = [top]
    while todo:
        folder = todo.pop()
        for entry in _scan(os.path.join(base, folder), notes):  # noqa: PTH118 - bytes
            path = folder + b"/" + entry.name
            if entry.is_symlink():
                notes.add(_LINKED, b".git/" + path)
            elif wanted.fullmatch(path) is None:
                continue
            elif entry.is_dir(follow_symlinks=False):
                yield Found(b".git/" + path, FileKind.DIRECTORY, 0o755)
                todo.append(path)
            elif entry.is_file(follow_symlinks=False):
                yield _file(path, entry)


def _file(path: bytes, entry: os.DirEntry[bytes]) -> Found:
    size = entry.stat(follow_symlinks=False).st_size
    mode = 0o444 if path.startswith(b"objects/") else 0o644
    return Found(b".git/" + path, FileKind.FILE, mode, size, entry.path)


def _report(git: GitDir, notes: Notes) -> None:
    if _line(os.path.join(git.common, b"objects/info/alternates")):  # noqa: PTH118 - bytes
        notes.say(
            "`.git` borrows objects from another repository, which are not copied; "
            "`git repack -a -d` makes it whole"
        )
    for name in _IN_PROGRESS:
        if os.path.lexists(os.path.join(git.own, name)):  # noqa: PTH118 - bytes
            notes.say(f"`.git/{name.decode()}` (an operation in progress) is not copied")
