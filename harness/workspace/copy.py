"""Copy mode: the repository is streamed into a box, and what changed there comes back as data."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.errors import FileFault, SandboxError, UserError
from harness.ports import Sandbox
from harness.values.changes import Changes
from harness.values.commands import FileKind, Upload
from harness.values.limits import MIB
from harness.workspace import gitdir
from harness.workspace.compare import Comparison, Loaded
from harness.workspace.hidden import visible_name
from harness.workspace.ignore import IgnoreRules
from harness.workspace.listing import LATER, Listing, uploaded
from harness.workspace.names import parents, raw_path
from harness.workspace.notes import Notes
from harness.workspace.sections import FILE, LINK, PROGRAM
from harness.workspace.store import Baseline
from harness.workspace.walk import UNREADABLE, CopyLimits, Found, Walk, read_file

_BATCH_BYTES = 8 * MIB
_BATCH_ENTRIES = 500
_TICK = 0.015
"""Seconds, more than one tick of the slowest kernel's clock for files (100 Hz)."""
_DEFAULT = CopyLimits()


class CopyWorkspace:
    """A repository on the host, copied into a box (the `Workspace` port).

    `repo` is a plain folder or a git work tree; `store` is a folder of the session's own, where
    the loaded contents are kept for the diff. No git process is started.
    """

    def __init__(self, repo: Path, store: Path, limits: CopyLimits = _DEFAULT) -> None:
        self._repo = repo
        self._limits = limits
        self._store = store
        self._loaded: Loaded | None = None

    async def load(self, box: Sandbox) -> tuple[str, ...]:
        """Copy the repository into the box; what a person should know about the copy.

        Raises `UserError` for a repository that is not there, cannot be read or is too large,
        `SessionStorage` if the store cannot be written, `SandboxError`.
        """
        root = await asyncio.to_thread(_root, self._repo)
        copy = _Copy(root, self._limits, Baseline(self._store))
        batches = copy.batches()
        while True:
            uploads = await asyncio.to_thread(next, batches, None)
            if uploads is None:
                break
            await _upload(box, uploads)
        # A later change must get another time stamp than what was just uploaded.
        await asyncio.sleep(_TICK)
        listing = Listing(box)
        await listing.run()
        uploaded(listing.here, copy.paths, listing.notes)
        ours = frozenset(copy.paths)
        self._loaded = Loaded(copy.kept, copy.rules, listing.here, ours, self._limits)
        return copy.report()

    async def changes(self, box: Sandbox) -> Changes:
        """What differs in the box from what was loaded, as sections of one patch.

        Files are read only where their metadata moved. What cannot be listed or read is left out
        and noted. Raises `SandboxError`, `SessionStorage`.
        """
        if self._loaded is None:
            return Changes()
        self._loaded.rules.renew()
        listing = Listing(box, self._loaded.there, LATER)
        await listing.run()
        changes = await Comparison(self._loaded, box, listing.here).changes()
        more = (*listing.notes.lines(), *self._loaded.rules.notes())
        return replace(changes, notes=(*changes.notes, *more))


async def _upload(box: Sandbox, uploads: list[Upload]) -> None:
    try:
        await box.upload(uploads)
    except FileFault as refusal:
        if refusal.code == "no_space":
            raise UserError(
                "the repository does not fit into the box's disk; raise `limits.disk` in the "
                "policy, or have `.gitignore` leave files out"
            ) from refusal
        name = visible_name(raw_path(refusal.path))
        raise SandboxError(f"the box cannot take `{name}`: {refusal}") from refusal


def _root(repo: Path) -> bytes:
    root = os.fsencode(os.path.realpath(repo))
    if not os.path.isdir(root):  # noqa: PTH112 - bytes
        what = "is not a folder" if os.path.lexists(root) else "does not exist"
        raise UserError(f"the repository `{repo}` {what}; name one with `--repo`")
    return root


class _Copy:
    """One copying of a repository: batches to upload, and what is remembered of them."""

    def __init__(self, root: bytes, limits: CopyLimits, kept: Baseline) -> None:
        self._root = root
        self._limits = limits
        self._notes = Notes()
        self._total = 0
        self.kept = kept
        self.rules = IgnoreRules()
        self.paths: dict[bytes, None] = {}
        self._tracked: dict[bytes, str] = {}
        self._nested: set[bytes] = set()
        self._git: gitdir.GitDir | None = None

    def batches(self) -> Iterator[list[Upload]]:
        """Uploads in batches of at most 500 entries and about 8 MiB."""
        batch: list[Upload] = []
        size = 0
        for found in self._found():
            self._bound(found)
            upload = self._read(found)
            if upload is None:
                self._notes.add(UNREADABLE, found.path)
                continue
            if batch and (size + len(upload.data) > _BATCH_BYTES or len(batch) == _BATCH_ENTRIES):
                yield batch
                batch, size = [], 0
            batch.append(upload)
            size += len(upload.data)
            self.paths[upload.path] = None
        if batch:
            yield batch

    def _found(self) -> Iterator[Found]:
        self._git = gitdir.find(self._root, self._notes)
        if self._git is not None:
            self._tracked = gitdir.tracked(self._git, self._notes)
            exclude = gitdir.excluded(self._git)
            if exclude:
                self.rules.exclude(exclude)
        walk = Walk(self._root, self._limits, self.rules, self._tracked, self._notes)
        self._nested = walk.nested
        yield from walk.entries()
        if self._git is not None:
            yield from gitdir.entries(self._git, self._notes)

    def _bound(self, found: Found) -> None:
        self._total += found.size
        if self._total > self._limits.total:
            raise UserError(
                f"the repository is larger than the box's disk ({self._limits.total // MIB} MiB); "
                "raise `limits.disk` in the policy, or have `.gitignore` leave files out"
            )
        if len(self.paths) >= self._limits.entries:
            raise UserError(
                f"the repository holds more than {self._limits.entries} files and folders; "
                "have `.gitignore` leave some out, or copy a part of it"
            )

    def _read(self, found: Found) -> Upload | None:
        data: bytes | None = found.data
        if found.source is not None:
            most = self._limits.total if found.path.startswith(b".git/") else self._limits.file
            data = read_file(found.source, most)
        if data is None:
            return None
        if found.kind is not FileKind.DIRECTORY and not found.path.startswith(b".git/"):
            self.kept.keep(found.path, _git_mode(found.kind, found.mode), data)
        return Upload(found.path, found.kind, found.mode, data)

    def report(self) -> tuple[str, ...]:
        if not len(self.kept):
            self._notes.say("the repository holds no files")
        if self._git is not None:
            self._report_state()
        return (*self._notes.lines(), *self.rules.notes())

    def _report_state(self) -> None:
        if self._git is None or self._git.hashes != "sha1":
            return
        here = {path: self.kept.get(path) for path in self._tracked}
        changed = sum(1 for p, k in here.items() if k is not None and k.blob != self._tracked[p])
        gone = sum(1 for kept in here.values() if kept is None)
        new = sum(1 for path in self.kept if path not in here and not self._is_nested(path))
        if changed or gone or new:
            self._notes.say(
                f"the work tree is copied as it is: {changed} files differ from the git index, "
                f"{gone} are not there, {new} are not tracked"
            )

    def _is_nested(self, path: bytes) -> bool:
        return any(above in self._nested for above in parents(path))


def _git_mode(kind: FileKind, mode: int) -> int:
    if kind is FileKind.LINK:
        return LINK
    return PROGRAM if mode & 0o100 else FILE
