"""Commands and files in a box."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

Input: TypeAlias = bytes | AsyncIterable[bytes]
"""What a command reads: all of it, or pieces as they come."""


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """One process to run in a box.

    `cwd` None is the workspace root. `stdin` None is `/dev/null`; pieces that are still to come
    do not keep a command that has ended. `timeout` and `grace` in
    seconds: at `timeout` the whole tree gets TERM, `grace` later KILL. `merge` sends stderr
    down the same pipe as stdout, in the order written. `head` and `tail` bound in bytes what
    is kept of each stream; `limit` ends the command when it has printed more (None: never).
    `kill_left` ends background children with the command; otherwise they live on.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    stdin: Input | None = None
    timeout: float | None = None
    grace: float = 2.0
    merge: bool = False
    head: int = 1 << 20
    tail: int = 1 << 20
    limit: int | None = None
    kill_left: bool = False


class ExitReason(StrEnum):
    """Why a command ended. Never guessed."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    OOM = "oom"
    OUTPUT_LIMIT = "output_limit"
    KEEPER_LOST = "keeper_lost"


@dataclass(frozen=True, slots=True)
class Captured:
    """What was kept of one output stream: the first and the last bytes, and how many there were.

    `tail` is empty when everything fits in `head`. `dropped` bytes lie between the two.
    """

    head: bytes = b""
    tail: bytes = b""
    total: int = 0

    @property
    def dropped(self) -> int:
        return self.total - len(self.head) - len(self.tail)

    @property
    def truncated(self) -> bool:
        return self.dropped > 0

    @property
    def data(self) -> bytes:
        """Head and tail joined; whole when nothing was dropped."""
        return self.head + self.tail


@dataclass(frozen=True, slots=True)
class ExecUsage:
    """Resources of a command and its reaped descendants: seconds, and peak RSS in bytes.

    A None was not measured and is not zero.
    """

    wall: float
    user: float | None = None
    system: float | None = None
    max_rss: int | None = None


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended.

    Exactly one of `code` and `signal` is set unless `reason` is `keeper_lost`, when neither
    is. `left_running` counts background processes that live on. A program that is missing or
    not executable is code 127 or 126, as in a shell, with the reason on stderr.
    """

    code: int | None
    signal: int | None
    reason: ExitReason
    stdout: Captured
    stderr: Captured
    usage: ExecUsage
    left_running: int = 0

    @property
    def ok(self) -> bool:
        return self.reason is ExitReason.EXITED and self.code == 0


class FileKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Stat:
    """One entry, never followed through a link. `mode` holds permission bits only.

    `path` is bytes as the file system has them; `target` is a link's text. `mtime` and `ctime`
    are nanoseconds since the epoch.
    """

    path: bytes
    kind: FileKind
    size: int
    mode: int
    mtime: int = 0
    ctime: int = 0
    inode: int = 0
    target: bytes = b""


@dataclass(frozen=True, slots=True)
class Upload:
    """One entry to create below the workspace root: `path` relative, no `.` or `..` parts.

    Directories come before what they hold. `data` is a file's bytes or a link's target.
    """

    path: bytes
    kind: FileKind
    mode: int = 0o644
    data: bytes = b""
