"""A repository's `.git`, read as data: no git process, no hook, no filter, no include.

What a box gets is a fresh `.git` with the same HEAD, refs, index and objects, and a
configuration of ours. Layout: gitrepository-layout(5).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.values.commands import FileKind
from harness.workspace.ignore import LARGEST
from harness.workspace.index import BadIndex, Index, read_index
from harness.workspace.notes import Notes
from harness.workspace.refs import LARGEST_REF, READ_AS, is_ref, ref
from harness.workspace.walk import UNREADABLE, Found, read_file

_SMALL = 1 << 20
_INDEX = 128 << 20

_OWN_FILES = re.compile(
    rb"HEAD|index|sharedindex\.([0-9a-f]{40}|[0-9a-f]{64})"
    rb"|ORIG_HEAD|MERGE_(HEAD|MSG|MODE)|CHERRY_PICK_HEAD|REVERT_HEAD"
)
_SHARED_FILES = re.compile(rb"packed-refs|shallow|info/exclude")
_OBJECTS = re.compile(
    rb"objects/([0-9a-f]{2}(/[0-9a-f]{38,62})?"
    rb"|pack(/(pack-[0-9a-f]+\.(pack|idx|rev|bitmap|mtimes|promisor|keep)|multi-pack-index))?"
    rb"|info(/(packs|commit-graph|commit-graphs(/[-.0-9a-z]+)?))?)"
)
_SUBMODULE = 0o160000
_LINKED = "links inside `.git`, left out"
_NO_REF = "files in `.git` that do not say what git writes there, left out"
_IN_PROGRESS = (b"rebase-merge", b"rebase-apply", b"sequencer")

_KEPT_SETTINGS: Mapping[tuple[str, str], frozenset[str]] = {
    ("core", "filemode"): frozenset({"true", "false"}),
    ("core", "autocrlf"): frozenset({"true", "false", "input"}),
    ("core", "eol"): frozenset({"lf", "crlf", "native"}),
    ("extensions", "objectformat"): frozenset({"sha1", "sha256"}),
    ("extensions", "refstorage"): frozenset({"files"}),
}


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

    @property
    def digits(self) -> int:
        """Hexadecimal digits of a hash."""
        return 64 if self.hashes == "sha256" else 40


def find(root: bytes, notes: Notes) -> GitDir | None:
    """The git folder of a work tree, or None where there is none that may be copied."""
    path = os.path.join(root, b".git")  # noqa: PTH118 - bytes
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        own = _pointed_to(root, path)
        common = None if own is None else _common(own, path) or own
    elif stat.S_ISDIR(mode):
        own = common = path
        if os.path.lexists(os.path.join(path, b"commondir")):  # noqa: PTH118 - bytes
            notes.say("`.git/commondir` is not followed: a `.git` folder has its own history")
    else:
        notes.say("`.git` is a link or no folder: history is not copied")
        return None
    if own is None or common is None:
        notes.say("`.git` names a folder that does not name this one back: history is not copied")
        return None
    return _usable(own, common, notes)


def _usable(own: bytes, common: bytes, notes: Notes) -> GitDir | None:
    settings = _settings(read_file(os.path.join(common, b"config"), _SMALL) or b"")  # noqa: PTH118
    if settings.get(("extensions", "refstorage"), "files") != "files":
        notes.say("`.git` keeps its refs in another format than files: history is not copied")
        return None
    git = GitDir(own, common, settings)
    head = read_file(os.path.join(own, b"HEAD"), LARGEST_REF)  # noqa: PTH118 - bytes
    if head is None or ref(head, git.digits) is None:
        notes.say("`.git` has no readable HEAD: history is not copied")
        return None
    return git


def _line(path: bytes) -> bytes:
    return (read_file(path, 4096) or b"").strip()


def _real(folder: bytes, name: bytes) -> bytes | None:
    """Where a path a file names really leads, or None if it is no path."""
    if not name or b"\0" in name:
        return None
    return os.path.realpath(os.path.join(folder, name))  # noqa: PTH118 - bytes


def _pointed_to(root: bytes, file: bytes) -> bytes | None:
    """The folder a `.git` file names, if that folder is a git folder and names this work tree.

    Without the second half, a repository could have any other one's history copied.
    """
    text = _line(file)
    own = _real(root, text.removeprefix(b"gitdir: ")) if text.startswith(b"gitdir: ") else None
    if own is None:
        return None
    if _common(own, file) is not None:
        return own
    settings = _settings(read_file(os.path.join(own, b"config"), _SMALL) or b"")  # noqa: PTH118
    tree = settings.get(("core", "worktree"), "").encode("utf-8", "surrogateescape")
    return own if _is_git_folder(own) and _real(own, tree) == os.path.realpath(root) else None


def _common(own: bytes, file: bytes) -> bytes | None:
    """The repository a linked worktree's folder `own` belongs to, or None if it is no such one.

    Such a folder lies in the `worktrees` of a git folder, and it names the work tree's `.git`.
    `own` has no links in it, so only who can write to that git folder can have made it.
    """
    above, name = os.path.split(own)
    common = os.path.dirname(above)  # noqa: PTH120 - bytes
    back = _real(own, _line(os.path.join(own, b"gitdir")))  # noqa: PTH118 - bytes
    named = _real(own, _line(os.path.join(own, b"commondir")))  # noqa: PTH118 - bytes
    is_linked = (
        name
        and os.path.basename(above) == b"worktrees"  # noqa: PTH119 - bytes
        and named == common
        and back == os.path.realpath(file)
        and not _overlap(own, os.path.dirname(os.path.realpath(file)))  # noqa: PTH120 - bytes
        and not os.path.lexists(os.path.join(own, b".git"))  # noqa: PTH118 - bytes
        and _is_git_folder(common)
    )
    return common if is_linked else None


def _overlap(one: bytes, other: bytes) -> bool:
    """Whether one folder is the other or lies in it: a work tree holds a stranger's files."""
    return (one + b"/").startswith(other + b"/") or (other + b"/").startswith(one + b"/")


def _is_git_folder(folder: bytes) -> bool:
    """Whether a folder holds HEAD, objects and refs, and no links in their place."""
    head = read_file(os.path.join(folder, b"HEAD"), LARGEST_REF)  # noqa: PTH118 - bytes
    if head is None or (ref(head, 40) is None and ref(head, 64) is None):
        return False
    return all(_is_folder(os.path.join(folder, name)) for name in (b"objects", b"refs"))  # noqa: PTH118


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


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
    path = os.path.join(git.own, b"index")  # noqa: PTH118 - bytes
    if not os.path.lexists(path):
        return {}
    try:
        index = _index(git, b"index", Index())
        if index.base is not None:
            _index(git, b"sharedindex." + index.base.encode(), index)
    except BadIndex as fault:
        notes.say(
            f"the git index cannot be read ({fault}): "
            "files that are tracked and ignored are left out"
        )
        return {}
    return index.blobs


def _index(git: GitDir, name: bytes, into: Index) -> Index:
    data = read_file(os.path.join(git.own, name), _INDEX)  # noqa: PTH118 - bytes
    if data is None:
        raise BadIndex("it is no file, or too large")
    return read_index(data, git.digits // 2, into)


def entries(git: GitDir, notes: Notes) -> Iterator[Found]:
    """The `.git` of the box: folders before what they hold."""
    yield Found(b".git", FileKind.DIRECTORY, 0o755)
    yield Found(b".git/config", FileKind.FILE, 0o644, data=_config(git.settings))
    for name in (b"branches", b"info", b"objects", b"refs"):
        yield Found(b".git/" + name, FileKind.DIRECTORY, 0o755)
    for name in (b"refs/heads", b"refs/tags"):
        yield Found(b".git/" + name, FileKind.DIRECTORY, 0o755)
    yield from _checked(git, _below(git.own, b"", _OWN_FILES, notes), notes)
    for folder in (b"", b"info"):
        yield from _checked(git, _below(git.common, folder, _SHARED_FILES, notes), notes)
    seen = {b".git/refs/heads", b".git/refs/tags"}
    for base in dict.fromkeys((git.common, git.own)):
        for found in _checked(git, _tree(base, b"refs", _REFS, notes), notes):
            if found.path not in seen:
                seen.add(found.path)
                yield found
    yield from _tree(git.common, b"objects", _OBJECTS, notes)
    _report(git, notes)


_REFS = re.compile(rb"refs/.*(?<!\.lock)", re.DOTALL)


def _checked(git: GitDir, files: Iterator[Found], notes: Notes) -> Iterator[Found]:
    """Refs and other small files, as far as they say what git writes there."""
    for found in files:
        name = found.path.removeprefix(b".git/")
        most, read_as = READ_AS.get(name, (LARGEST_REF, ref))
        if name.startswith(b"refs/") and not is_ref(name):
            notes.add(_NO_REF, found.path)
        elif found.source is None or (name not in READ_AS and not name.startswith(b"refs/")):
            yield found
        else:
            data = read_file(found.source, most)
            said = None if data is None else read_as(data, git.digits)
            if said is None or (data and not said):
                notes.add(_NO_REF, found.path)
            else:
                yield Found(found.path, FileKind.FILE, found.mode, len(said), data=said)


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
