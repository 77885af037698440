"""Payloads of the supervisor's protocol, to bytes and back.

What is read here comes from the box: every length is checked, and whatever does not fit raises
`SandboxLost`, since a supervisor that breaks its own format is of no more use.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from harness.errors import SandboxLost
from harness.sandbox.frames import MAX_PAYLOAD
from harness.values.commands import ExecUsage, ExitReason, FileKind, Input, Stat, Upload

MAX_REQUEST = 512 * 1024
MAX_STRINGS = 8192
MAX_PATH = 8192
MAX_FILE = 64 * 1024 * 1024
KEEP_MODE = 0xFFFFFFFF
STAT_LIMIT = 44 + 4096 + MAX_PATH

_EXEC = struct.Struct("<IIIHH")
_LENGTH = struct.Struct("<I")
_EXIT = struct.Struct("<BBBBIQQQQQQI12x")
_FILE = struct.Struct("<BBHIQQI")
_REPLY_SIZE = 16
_STAT = struct.Struct("<B3xIQqqQHH")
_UPLOAD = struct.Struct("<B3xIIQ")
_LEASE_TAIL = struct.Struct("<I")

_STDIN, _MERGE, _KILL_LEFT = 1, 2, 4
_MAX_MS = 0xFFFFFFFF

REASONS = (
    ExitReason.EXITED,
    ExitReason.TIMEOUT,
    ExitReason.CANCELLED,
    ExitReason.OOM,
    ExitReason.OUTPUT_LIMIT,
    ExitReason.KEEPER_LOST,
)
KINDS = (FileKind.FILE, FileKind.DIRECTORY, FileKind.LINK, FileKind.OTHER)
FAULTS = (
    "",
    "missing",
    "denied",
    "link",
    "directory",
    "not_directory",
    "not_file",
    "exists",
    "too_large",
    "no_space",
    "no_match",
    "many_matches",
    "name",
    "io",
)


class FileOp(IntEnum):
    READ = 1
    WRITE = 2
    EDIT = 3
    LIST = 4
    STAT = 5
    REMOVE = 6
    UPLOAD = 7
    REALPATH = 8


INPUT_FOLLOWS = 1
EVERY = 2


def lease(token: bytes, nonce: bytes, orphan_seconds: float) -> bytes:
    """Payload of a LEASE: 32 bytes of token, 16 of nonce, the orphan time in milliseconds."""
    return token + nonce + _LEASE_TAIL.pack(_milliseconds(orphan_seconds))


@dataclass(frozen=True, slots=True)
class Hello:
    """What a supervisor says of itself. `features`: `tree_kill`, `oom`, `users`, `init`."""

    version: int
    boot_id: bytes
    features: Mapping[str, str]


def read_hello(payload: bytes, nonce: bytes) -> Hello:
    if len(payload) < 34 or payload[:16] != nonce:
        raise SandboxLost("the supervisor's greeting is malformed")
    words: list[str] = []
    at = 34
    while at < len(payload):
        size = payload[at]
        word = payload[at + 1 : at + 1 + size]
        if len(word) != size or not word.isascii() or not word.decode("ascii").isprintable():
            raise SandboxLost("the supervisor's greeting is malformed")
        words.append(word.decode("ascii"))
        at += 1 + size
    if len(words) % 2 or len(words) > 64:
        raise SandboxLost("the supervisor's greeting is malformed")
    version = int.from_bytes(payload[32:34], "little")
    return Hello(version, payload[16:32], dict(zip(words[::2], words[1::2], strict=True)))


def _milliseconds(seconds: float) -> int:
    """In the wire's unit, within its bounds; what is no number of seconds is the longest time."""
    longest = _MAX_MS / 1000
    return round(max(seconds, 0.0) * 1000) if seconds < longest else _MAX_MS


def _string(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data + b"\0"


@dataclass(frozen=True, slots=True)
class ExecOptions:
    """How a command runs; times in seconds, `timeout` None for none."""

    stdin: bool = False
    merge: bool = False
    kill_left: bool = False
    timeout: float | None = None
    grace: float = 2.0


def exec_request(
    argv: Sequence[bytes], env: Mapping[bytes, bytes], cwd: bytes, options: ExecOptions
) -> bytes:
    """Payload of an EXEC. Raises `ValueError` for what no kernel would start."""
    strings = [cwd, *argv, *(name + b"=" + value for name, value in env.items())]
    if any(b"\0" in string for string in strings):
        raise ValueError("a word holds a NUL byte")
    if any(not name or b"=" in name for name in env):
        raise ValueError("a variable's name is empty or holds `=`")
    if not argv:
        raise ValueError("there is no program")
    if len(argv) > MAX_STRINGS or len(env) > MAX_STRINGS:
        raise ValueError("the argument list is too long")
    flags = (
        (_STDIN if options.stdin else 0)
        | (_MERGE if options.merge else 0)
        | (_KILL_LEFT if options.kill_left else 0)
    )
    timeout = 0 if options.timeout is None else max(_milliseconds(options.timeout), 1)
    head = _EXEC.pack(flags, timeout, _milliseconds(options.grace), len(argv), len(env))
    body = head + b"".join(map(_string, strings))
    if len(body) > MAX_REQUEST:
        raise ValueError("the argument list is too long")
    return body


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a command as the supervisor tells it."""

    reason: ExitReason
    code: int | None
    signal: int | None
    usage: ExecUsage
    left_running: int


def read_exit(payload: bytes) -> Exit:
    if len(payload) != _EXIT.size:
        raise SandboxLost("the supervisor's exit message is malformed")
    fields: tuple[int, ...] = _EXIT.unpack(payload)
    reason, kind, measured, _, value, wall, user, system, rss, _, _, left = fields
    lost = reason == REASONS.index(ExitReason.KEEPER_LOST)
    known = reason < len(REASONS) and kind == (0 if lost else kind) and (lost or kind in {1, 2})
    if not known or (kind == 1 and value > 255) or (kind == 2 and not 1 <= value <= 64):
        raise SandboxLost("the supervisor's exit message is malformed")
    return Exit(
        reason=REASONS[reason],
        code=value if kind == 1 else None,
        signal=value if kind == 2 else None,
        usage=ExecUsage(
            wall=wall / 1e6,
            user=user / 1e6 if measured else None,
            system=system / 1e6 if measured else None,
            max_rss=rss if measured else None,
        ),
        left_running=left,
    )


@dataclass(frozen=True, slots=True)
class FileRequest:
    """One file operation; what `mode`, `a` and `b` mean depends on `op` (see the docs)."""

    op: FileOp
    path: bytes
    flags: int = 0
    mode: int = 0
    a: int = 0
    b: int = 0
    inline: bytes = b""

    def encode(self) -> bytes:
        head = _FILE.pack(self.op, self.flags, 0, self.mode, self.a, self.b, len(self.path))
        return head + self.path + b"\0" + self.inline


@dataclass(frozen=True, slots=True)
class Reply:
    """How a file operation ended: "" or a code of `FileFault`, a number, and some bytes."""

    fault: str
    value: int
    extra: bytes


def read_reply(payload: bytes) -> Reply:
    if len(payload) < _REPLY_SIZE or payload[0] >= len(FAULTS):
        raise SandboxLost("the supervisor's reply is malformed")
    value = int.from_bytes(payload[8:16], "little")
    return Reply(FAULTS[payload[0]], value, payload[_REPLY_SIZE:])


def read_stats(data: bytes, most: int) -> Iterator[Stat]:
    """At most `most` stat records. `path` is as the supervisor wrote it."""
    at = 0
    count = 0
    while at < len(data):
        count += 1
        if count > most:
            raise SandboxLost("the supervisor listed more than was asked for")
        if len(data) - at < _STAT.size:
            raise SandboxLost("the supervisor's listing is cut short")
        fields: tuple[int, ...] = _STAT.unpack_from(data, at)
        kind, mode, size, mtime, ctime, inode, name, target = fields
        at += _STAT.size
        end = at + name + target
        if kind >= len(KINDS) or end > len(data):
            raise SandboxLost("the supervisor's listing is malformed")
        yield Stat(
            path=data[at : at + name],
            kind=KINDS[kind],
            size=size,
            mode=mode & 0o7777,
            mtime=mtime,
            ctime=ctime,
            inode=inode,
            target=data[at + name : end],
        )
        at = end


def pack_paths(paths: Iterable[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(path)) + path for path in paths)


def read_paths(data: bytes, count: int) -> list[bytes]:
    """Exactly `count` absolute paths."""
    paths: list[bytes] = []
    at = 0
    while at < len(data):
        if len(data) - at < _LENGTH.size:
            break
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        path = data[at : at + size]
        at += size
        if len(path) != size or not path.startswith(b"/") or b"\0" in path:
            break
        paths.append(path)
    if at != len(data) or len(paths) != count:
        raise SandboxLost("the supervisor's answer about links is malformed")
    return paths


def upload_stream(entries: Iterable[Upload]) -> Iterator[bytes]:
    """An upload's records, in pieces of at most a frame."""
    held = bytearray()
    for entry in entries:
        held += _UPLOAD.pack(
            KINDS.index(entry.kind), entry.mode & 0o7777, len(entry.path), len(entry.data)
        )
        held += entry.path
        held += entry.data
        if len(held) >= MAX_PAYLOAD:
            whole = len(held) - len(held) % MAX_PAYLOAD
            view = bytes(memoryview(held)[:whole])
            for at in range(0, whole, MAX_PAYLOAD):
                yield view[at : at + MAX_PAYLOAD]
            del held[:whole]
    if held:
        yield bytes(held)


async def parts_of(data: Input) -> AsyncIterator[bytes]:
    """Input in pieces of at most a frame, as it comes."""
    if isinstance(data, bytes):
        data = streamed((data,))
    async for part in data:
        for piece in pieces(part):
            yield piece


async def streamed(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    """What is here already, in the shape of what is still to come."""
    for part in parts:
        yield part


def pieces(data: bytes) -> Iterator[bytes]:
    """Bytes in pieces of at most a frame."""
    for at in range(0, len(data), MAX_PAYLOAD):
        yield data[at : at + MAX_PAYLOAD]
