"""Who a box belongs to, and whether that process still lives.

Identity is a kernel's boot id, a PID namespace, a PID and its start time: enough to say *dead*
with certainty on the same kernel, and to say *unknown* everywhere else. Beside it stands a
lease: a locked file per box, which the kernel lets go of when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.errors import SandboxError

SETTLED = 60.0
"""Seconds after which a lease's file is certainly locked, if its holder lives."""


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
        if len(parts) != 5 or not parts[3].isdecimal():
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
        return Life.ALIVE if started == self.started and started else Life.DEAD


class Lease:
    """A held lock on one box. Dies with the process."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor: int | None = descriptor
        self._path = path

    def release(self) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        self._path.unlink(missing_ok=True)
        os.close(descriptor)


class Leases:
    """Locks of this user on this machine, one file a box."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _runtime_folder()

    def take(self, box: str) -> Lease:
        """Raises `SandboxError` when it cannot be had."""
        path = self._folder / box
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _require_own(self._folder)
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise SandboxError(f"cannot keep a lease in {self._folder}: {fault}") from fault
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            os.close(descriptor)
            raise SandboxError(f"another process holds the box `{box}`") from fault
        return Lease(descriptor, path)

    def held(self, box: str) -> bool:
        """Whether a living process of this machine holds the box."""
        if not box or not all(c.isalnum() for c in box):
            return False
        try:
            descriptor = os.open(self._folder / box, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    def sweep(self, now: float) -> None:
        """Remove files of dead holders. `now` is Unix time in seconds."""
        try:
            found = [p for p in self._folder.iterdir() if now - p.lstat().st_mtime > SETTLED]
        except OSError:
            return
        for path in found:
            if not self.held(path.name):
                self.forget(path.name)

    def forget(self, box: str) -> None:
        """Remove what a dead holder left."""
        if box and all(c.isalnum() for c in box):
            (self._folder / box).unlink(missing_ok=True)


def _runtime_folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime:
        return Path(runtime) / "harness-boxes"
    return Path(tempfile.gettempdir()) / f"harness-boxes-{os.geteuid()}"


def _require_own(folder: Path) -> None:
    """A shared temporary folder lets others make this one first."""
    facts = folder.lstat()
    if facts.st_uid != os.geteuid() or not stat.S_ISDIR(facts.st_mode) or facts.st_mode & 0o022:
        raise PermissionError(f"{folder} is writable by others")


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


def _started(pid: int) -> str:
    """Field 22 of `/proc/PID/stat` (proc(5)): ticks since boot. Empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    # a zombie has ended: nothing of it can hold a box
    return "" if len(fields) < 20 or fields[0] in "ZX" else fields[19]
