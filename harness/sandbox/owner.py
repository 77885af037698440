"""Who a box belongs to, and whether that process still lives.

Identity is a kernel's boot id, a PID namespace, a PID and its start time: enough to say *dead*
with certainty on the same kernel, and to say *unknown* everywhere else. Beside it stands a
lease: a locked file per box, which the kernel lets go of when its holder dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
import stat
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.errors import SandboxError

SETTLED = 60.0
"""Seconds after which a lease's file is certainly locked, if its holder lives."""
_NAME = re.compile(r"[0-9a-f]{32}")
_PID_DIGITS = 10


class Life(StrEnum):
    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Owner:
    """One controlling process. `host` is for people only; clones of a machine share names."""

    host: str
    boot: str
    namespace: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> Owner:
        pid = os.getpid()
        return cls(
            host=socket.gethostname()[:64].replace(" ", "-"),
            boot=_text(Path("/proc/sys/kernel/random/boot_id")),
            namespace=_namespace(),
            pid=pid,
            started=_started(pid),
        )

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The reverse of `str`; None for anything else."""
        parts = text.split(" ")
        if len(parts) != 5 or not parts[3].isdecimal() or len(parts[3]) > _PID_DIGITS:
            return None
        host, boot, namespace, pid, started = parts
        return cls(host, boot, namespace, int(pid), started)

    def __str__(self) -> str:
        return f"{self.host} {self.boot} {self.namespace} {self.pid} {self.started}"

    def life(self, here: Owner) -> Life:
        """Judged from the process that is `here`."""
        if not self.boot or self.boot != here.boot or self.namespace != here.namespace:
            return Life.UNKNOWN
        started = _started(self.pid)
        if not started:
            return Life.ALIVE if _is_hidden(self.pid) else Life.DEAD
        return Life.ALIVE if started == self.started else Life.DEAD


class Lease:
    """A held lock on one box. Dies with the process."""

    def __init__(self, descriptor: int, folder: int, box: str) -> None:
        """Takes both descriptors over: the file's and its folder's."""
        self._descriptor: int | None = descriptor
        self._folder = folder
        self._box = box

    def release(self) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        _unlink(self._folder, self._box)
        os.close(self._folder)
        os.close(descriptor)


class Leases:
    """Locks of this user on this machine, one file a box.

    A shared temporary folder lets others make ours first, so each visit opens the folder itself
    and looks whose it is; in it only names of boxes (32 hex digits) are touched.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _runtime_folder()

    def take(self, box: str) -> Lease:
        """Raises `SandboxError` when it cannot be had."""
        if _NAME.fullmatch(box) is None:
            raise SandboxError(f"`{box[:80]}` is not the name of a box")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened() as folder:
                flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
                descriptor = os.open(box, flags, 0o600, dir_fd=folder)
                kept = os.dup(folder)
        except OSError as fault:
            raise SandboxError(f"cannot keep a lease in {self._folder}: {fault}") from fault
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            os.close(descriptor)
            os.close(kept)
            raise SandboxError(f"another process holds the box `{box}`") from fault
        return Lease(descriptor, kept, box)

    def held(self, box: str) -> bool:
        """Whether a living process of this machine holds the box."""
        with contextlib.suppress(OSError), self._opened() as folder:
            return _is_locked(folder, box)
        return False

    def sweep(self, now: float) -> None:
        """Remove files of dead holders. `now` is Unix time in seconds. Never raises."""
        with contextlib.suppress(OSError), self._opened() as folder:
            for name in os.listdir(folder):  # noqa: PTH208 - pathlib knows no descriptors
                if _is_old(folder, name, now) and not _is_locked(folder, name):
                    _unlink(folder, name)

    def forget(self, box: str) -> None:
        """Remove what a dead holder left. Never raises."""
        if _NAME.fullmatch(box) is not None:
            with contextlib.suppress(OSError), self._opened() as folder:
                _unlink(folder, box)

    @contextlib.contextmanager
    def _opened(self) -> Generator[int]:
        """The folder, certainly ours. Raises `OSError`."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(self._folder, flags)
        try:
            facts = os.fstat(folder)
            if facts.st_uid != os.geteuid():
                raise PermissionError(f"{self._folder} belongs to another user")
            if facts.st_mode & 0o022:
                raise PermissionError(f"{self._folder} is writable by others")
            yield folder
        finally:
            os.close(folder)


def _is_locked(folder: int, box: str) -> bool:
    """Whether somebody has the lock. Raises `OSError` when there is no such file."""
    if _NAME.fullmatch(box) is None:
        return False
    descriptor = os.open(box, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _is_old(folder: int, name: str, now: float) -> bool:
    """Whether a name is a lease's whose holder, if it lives, has certainly locked it."""
    if _NAME.fullmatch(name) is None:
        return False
    try:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(facts.st_mode) and now - facts.st_mtime > SETTLED


def _unlink(folder: int, box: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(box, dir_fd=folder)


def _runtime_folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime:
        return Path(runtime) / "harness-boxes"
    return Path(tempfile.gettempdir()) / f"harness-boxes-{os.geteuid()}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    except OSError:
        return ""


def _is_hidden(pid: int) -> bool:
    """Whether /proc keeps a process of another user from us (`hidepid`, proc(5))."""
    if pid < 1 or os.access(f"/proc/{pid}/stat", os.R_OK):
        return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError) as fault:
        return isinstance(fault, PermissionError)
    return True


def _started(pid: int) -> str:
    """Field 22 of `/proc/PID/stat` (proc(5)): ticks since boot. Empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    # a zombie has ended: nothing of it can hold a box
    return "" if len(fields) < 20 or fields[0] in "ZX" else fields[19]
