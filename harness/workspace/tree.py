"""A folder of the user's, changed without following a link anywhere below it."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.errors import UserError
from harness.values.limits import GIB
from harness.workspace.names import parents
from harness.workspace.sections import FILE, LINK, PROGRAM, Side

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LARGEST = GIB
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}
"""What file systems without hard links answer."""

Identity = tuple[int, int, int, int, int]


class Refused(Exception):
    """A path cannot be used as it is; the message says why."""


@dataclass(frozen=True, slots=True)
class Present:
    """A file or link on disk: its content, and what tells whether it is still the same."""

    side: Side
    identity: Identity
    bits: int


def _identity(info: os.stat_result) -> Identity:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_mode


class Tree:
    """One folder, held open. Paths are relative bytes without `.` and `..`."""

    def __init__(self, root: Path) -> None:
        try:
            self._root = os.open(os.path.realpath(root), _FOLDER)
        except OSError as fault:
            reason = fault.strerror
            raise UserError(f"the repository `{root}` cannot be opened: {reason}") from fault

    def close(self) -> None:
        os.close(self._root)

    def folder(self, path: bytes, *, make: bool = False) -> int:
        """Open the folder at `path`, one component after the other; the caller closes it.

        Raises `FileNotFoundError`, and `Refused` where a component is no folder.
        """
        here = os.dup(self._root)
        for part in path.split(b"/") if path else []:
            try:
                if make:
                    _make(part, here)
                deeper = os.open(part, _FOLDER, dir_fd=here)
            except OSError as fault:
                if fault.errno in {errno.ELOOP, errno.ENOTDIR}:
                    raise Refused("it lies behind a link, or below a file") from fault
                raise
            finally:
                os.close(here)
            here = deeper
        return here

    def names(self, path: bytes) -> list[tuple[bytes, bool]]:
        """Names in a folder, and whether each is a folder; empty where there is none."""
        try:
            folder = self.folder(path)
        except (FileNotFoundError, Refused):
            return []
        try:
            with os.scandir(folder) as entries:
                return [
                    (os.fsencode(entry.name), entry.is_dir(follow_symlinks=False))
                    for entry in entries
                ]
        finally:
            os.close(folder)

    def is_folder(self, path: bytes) -> bool:
        try:
            os.close(self.folder(path))
        except (OSError, Refused):
            return False
        return True

    def look(self, path: bytes) -> Present | None:
        """The file or link at `path`, or None. Raises `Refused` for anything else there."""
        above, _, name = path.rpartition(b"/")
        try:
            folder = self.folder(above)
        except FileNotFoundError:
            return None
        try:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(info.st_mode):
                target = os.readlink(name, dir_fd=folder)
                return Present(Side(LINK, target), _identity(info), 0o777)
            if not stat.S_ISREG(info.st_mode):
                raise Refused("there is a folder or another special thing in its place")
            return self._file(name, folder)
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise Refused(f"it cannot be read: {fault.strerror}") from fault
        finally:
            os.close(folder)

    def _file(self, name: bytes, folder: int) -> Present:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(name, flags, dir_fd=folder)
        try:
            info = os.fstat(file)
            if not stat.S_ISREG(info.st_mode) or info.st_size > _LARGEST:
                raise Refused("it is no ordinary file, or larger than 1 GiB")
            with os.fdopen(os.dup(file), "rb") as stream:
                data = stream.read(_LARGEST)
        finally:
            os.close(file)
        bits = stat.S_IMODE(info.st_mode)
        return Present(Side(PROGRAM if bits & 0o100 else FILE, data), _identity(info), bits)


def _make(name: bytes, folder: int) -> None:
    try:
        os.mkdir(name, 0o777, dir_fd=folder)
    except FileExistsError:
        return


@dataclass(frozen=True, slots=True)
class Write:
    """One path to change: what is there now, and what shall be (None: nothing)."""

    path: bytes
    old: Present | None
    new: Side | None


class Writing:
    """All writes of one patch, or none: old files are moved to a folder of ours and come back
    if anything fails. What was written is on disk before the old files go."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._name = b".harness-apply-" + secrets.token_hex(6).encode()
        self._undo: list[Callable[[], None]] = []
        self._count = 0

    def run(self, writes: Sequence[Write]) -> None:
        """Make the writes. Raises `UserError` if that fails, after everything was put back."""
        done = False
        self._stage = -1
        try:
            root = self._tree.folder(b"")
            try:
                os.mkdir(self._name, 0o700, dir_fd=root)
            finally:
                os.close(root)
            self._stage = self._tree.folder(self._name)
            self._write(writes)
            self._sync(writes)
            done = True
        except (OSError, Refused) as fault:
            reason = fault.strerror if isinstance(fault, OSError) else str(fault)
            raise UserError(f"the patch could not be written, nothing was changed: {reason}") from (
                fault
            )
        finally:
            if not done:
                self._roll_back()
            self._clear()

    def _write(self, writes: Sequence[Write]) -> None:
        for write in writes:
            if write.old is not None:
                self._take_away(write.path, write.old)
        made = {path for write in writes if write.new for path in parents(write.path)}
        for write in writes:
            if write.new is None:
                self._drop_empty(write.path, made)
        for write in writes:
            if write.new is not None:
                self._put(write.path, write.new, write.old)

    def _sync(self, writes: Sequence[Write]) -> None:
        """Files, then the folders that name them."""
        folders = {b""}
        for write in writes:
            above, _, name = write.path.rpartition(b"/")
            folders |= {above, *parents(write.path)}
            if write.new is None or write.new.is_link:
                continue
            folder = self._tree.folder(above)
            try:
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            finally:
                os.close(folder)
            _flush(file)
        for path in folders:
            if self._tree.is_folder(path):
                _flush(self._tree.folder(path))

    def _take_away(self, path: bytes, old: Present) -> None:
        above, _, name = path.rpartition(b"/")
        kept = self._fresh(b"old")
        folder = self._tree.folder(above)
        try:
            os.rename(name, kept, src_dir_fd=folder, dst_dir_fd=self._stage)
        finally:
            os.close(folder)
        self._undo.append(partial(self._put_back, path, kept))
        info = os.stat(kept, dir_fd=self._stage, follow_symlinks=False)
        if _identity(info) != old.identity:
            raise Refused("a file changed while the patch was applied; try again")

    def _put_back(self, path: bytes, kept: bytes) -> None:
        above, _, name = path.rpartition(b"/")
        folder = self._tree.folder(above, make=True)
        try:
            self._move(kept, name, folder)
        finally:
            os.close(folder)

    def _put(self, path: bytes, new: Side, old: Present | None) -> None:
        above, _, name = path.rpartition(b"/")
        made = self._fresh(b"new")
        if new.is_link:
            os.symlink(new.data, made, dir_fd=self._stage)
        else:
            self._fill(made, new, old)
        self._make_folders(above)
        folder = self._tree.folder(above)
        try:
            self._move(made, name, folder)
        except FileExistsError as fault:
            raise Refused("a file appeared while the patch was applied; try again") from fault
        finally:
            os.close(folder)
        self._undo.append(partial(self._remove, path))

    def _move(self, staged: bytes, name: bytes, folder: int) -> None:
        """Out of our folder, over nothing. Raises `FileExistsError`."""
        try:
            os.link(staged, name, src_dir_fd=self._stage, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as fault:
            if fault.errno not in _NO_LINKS:
                raise
            if _exists(name, folder):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from fault
            os.rename(staged, name, src_dir_fd=self._stage, dst_dir_fd=folder)
        else:
            os.unlink(staged, dir_fd=self._stage)

    def _fill(self, name: bytes, new: Side, old: Present | None) -> None:
        program = new.mode == PROGRAM
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, 0o777 if program else 0o666, dir_fd=self._stage)
        with os.fdopen(file, "wb") as stream:
            stream.write(new.data)
            if old is not None and not old.side.is_link:
                os.fchmod(stream.fileno(), _bits(new.mode, old))

    def _make_folders(self, path: bytes) -> None:
        for above in [*parents(path), path] if path else []:
            parent, _, name = above.rpartition(b"/")
            folder = self._tree.folder(parent)
            try:
                os.mkdir(name, 0o777, dir_fd=folder)
            except FileExistsError:
                continue
            finally:
                os.close(folder)
            self._undo.append(partial(self._remove_made, above))

    def _drop_empty(self, path: bytes, kept: set[bytes]) -> None:
        """Remove folders that a deletion left empty, as git does."""
        for above in reversed(list(parents(path))):
            if above in kept:
                return
            try:
                folder = self._tree.folder(above)
                bits = stat.S_IMODE(os.fstat(folder).st_mode)
                os.close(folder)
                self._remove(above)
            except OSError:
                return
            self._undo.append(partial(self._make_again, above, bits))

    def _make_again(self, path: bytes, bits: int) -> None:
        folder = self._tree.folder(path, make=True)
        os.fchmod(folder, bits)
        os.close(folder)

    def _remove_made(self, path: bytes) -> None:
        """Take back a folder of ours, unless somebody put something into it since."""
        try:
            self._remove(path)
        except OSError as fault:
            if fault.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise

    def _remove(self, path: bytes) -> None:
        above, _, name = path.rpartition(b"/")
        folder = self._tree.folder(above)
        try:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)

    def _fresh(self, suffix: bytes) -> bytes:
        self._count += 1
        return b"%d.%s" % (self._count, suffix)

    def _roll_back(self) -> None:
        failed = False
        for undo in reversed(self._undo):
            try:
                undo()
            except (OSError, Refused):
                failed = True
        if failed:
            kept, self._stage = self._stage, -1
            os.close(kept)
            raise UserError(
                "the patch could not be written, and not everything could be put back: "
                f"the old files are in `{self._name.decode()}`"
            )

    def _clear(self) -> None:
        if self._stage < 0:
            return
        for name in os.listdir(self._stage):  # noqa: PTH208 - below a descriptor
            os.unlink(name, dir_fd=self._stage)
        os.close(self._stage)
        self._stage = -1
        self._remove(self._name)


def _bits(mode: int, old: Present) -> int:
    """Permission bits after a change: the old ones, with the executable bits turned if git's
    mode turns; whoever may read may then execute."""
    if mode == old.side.mode:
        return old.bits & 0o777
    return (old.bits | (old.bits & 0o444) >> 2 if mode == PROGRAM else old.bits & ~0o111) & 0o777


def _flush(file: int) -> None:
    """To the disk, and closed. A file system that cannot do it for folders is no fault."""
    try:
        os.fsync(file)
    except OSError as fault:
        if fault.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(file)


def _exists(name: bytes, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
