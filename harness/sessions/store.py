"""Sessions on disk: one directory each, outside every workspace.

::

    <state>/sessions/<id>/           0700
        events.jsonl                 0600, append-only, each record chained to the one before
        blobs/sha256/<hex>           0600, written once
        quarantine/<n>               bytes that were cut off the end of a torn log
        lock                         held by flock for as long as a process writes
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from harness.errors import SessionCorrupt, SessionLocked, SessionStorage, UserError
from harness.ports import Clock
from harness.sessions.codec import decode, digest, encode
from harness.values.events import Event, Record

_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class FileLog:
    """The log of one session, held under its lock until `close`.

    A record is in the file whole or not at all: what a failed write left is cut off again.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        """Open or create. Raises `SessionLocked`, `SessionCorrupt`, `SessionStorage`."""
        self._folder = folder
        self._clock = clock
        with _storage(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise SessionLocked(
                f"session `{folder.name}` is in use by another process; wait for it or end it"
            ) from None
        self._file = -1
        with ExitStack() as undo:
            undo.callback(self.close)
            self._open(folder / "events.jsonl")
            undo.pop_all()

    def _open(self, path: Path) -> None:
        with _storage(self._folder):
            self._repair(path)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o600)
            _sync_folder(self._folder)
            _sync_folder(self._folder.parent)
        self._records, self._prev = _read(path)
        self._size = os.fstat(self._file).st_size

    @property
    def session(self) -> str:
        return self._folder.name

    @property
    def folder(self) -> Path:
        """The session's own directory."""
        return self._folder

    async def append(self, event: Event, *, turn: int, durable: bool = False) -> Record:
        record = Record(
            len(self._records), self._clock.now(), self.session, turn, event, self._prev
        )
        line = encode(record)
        with _storage(self._folder):
            try:
                _write_all(self._file, line)
                if durable:
                    os.fdatasync(self._file)
            except OSError:
                os.ftruncate(self._file, self._size)
                raise
        self._size += len(line)
        self._prev = digest(line)
        self._records.append(record)
        return record

    def records(self) -> Sequence[Record]:
        return tuple(self._records)

    async def put_blob(self, data: bytes) -> str:
        name = sha256(data).hexdigest()
        path = self._folder / "blobs" / "sha256" / name
        if path.exists():
            return name
        with _storage(self._folder):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = path.with_name(f"{name}.{secrets.token_hex(4)}")
            try:
                _write_durably(temporary, data)
                temporary.rename(path)
            finally:
                temporary.unlink(missing_ok=True)
            _sync_folder(path.parent)
        return name

    async def get_blob(self, digest: str) -> bytes:
        return read_blob(self._folder, digest)

    def close(self) -> None:
        """Flush and give up the lock. May be called twice."""
        if self._file >= 0:
            with suppress(OSError):
                os.fsync(self._file)
            os.close(self._file)
        if self._lock >= 0:
            os.close(self._lock)
        self._file = self._lock = -1

    def _repair(self, path: Path) -> None:
        """A last line without its LF was torn by a crash: keep it aside, cut it off."""
        if not path.exists():
            return
        data = path.read_bytes()
        whole = data.rstrip(b"\0")
        end = whole.rfind(b"\n") + 1
        if end == len(data):
            return
        aside = self._folder / "quarantine"
        aside.mkdir(mode=0o700, exist_ok=True)
        (aside / f"{end}-{secrets.token_hex(4)}").write_bytes(data[end:])
        os.truncate(path, end)


class Store:
    """All sessions of a user, in `<state>/sessions`."""

    def __init__(self, state: Path) -> None:
        self._root = state / "sessions"

    def create(self, clock: Clock) -> FileLog:
        """A new session. Its id sorts by time: `YYYYMMDD-HHMMSS-<8 hex>`, UTC, the first three
        of the hex digits being milliseconds."""
        now = datetime.fromtimestamp(clock.now(), UTC)
        tail = f"{now.microsecond // 1000:03x}{secrets.randbelow(1 << 20):05x}"
        return FileLog(self._root / f"{now:%Y%m%d-%H%M%S}-{tail}", clock)

    def folder(self, session: str) -> Path:
        """Where a session keeps what is its own."""
        return self._root / session

    def ids(self) -> tuple[str, ...]:
        """Newest first."""
        try:
            names = [each.name for each in self._root.iterdir()]
        except FileNotFoundError:
            return ()
        return tuple(sorted((n for n in names if _ID.fullmatch(n)), reverse=True))

    def find(self, prefix: str) -> str:
        """The one session whose id starts or ends with `prefix`. Raises `UserError`."""
        found = [i for i in self.ids() if i.startswith(prefix) or i.endswith(prefix)]
        if prefix and len(found) == 1:
            return found[0]
        fault = "no session matches" if not found else f"{len(found)} sessions match"
        raise UserError(f"{fault} `{prefix}`; `harness sessions list` shows them")

    def read(self, session: str) -> tuple[Record, ...]:
        """The records of a session without taking its lock; a torn last line is left out.

        Raises `SessionCorrupt`.
        """
        return tuple(_read(self._root / session / "events.jsonl")[0])

    def blob(self, session: str, digest: str) -> bytes:
        """Raises `SessionCorrupt` when it is not there or not what its name says."""
        return read_blob(self._root / session, digest)

    def verify(self, session: str) -> tuple[str, ...]:
        """Every fault of a session's log: unreadable lines, breaks in the chain, a torn end."""
        path = self._root / session / "events.jsonl"
        return tuple(fault for _, fault in _walk(path) if isinstance(fault, str))


def read_blob(folder: Path, name: str) -> bytes:
    """A blob of a session, checked against its name. Raises `SessionCorrupt`."""
    path = folder / "blobs" / "sha256" / name
    try:
        data = path.read_bytes() if _DIGEST.fullmatch(name) else None
    except OSError:
        data = None
    if data is None:
        raise SessionCorrupt(f"session `{folder.name}` has no blob `{name}`")
    if sha256(data).hexdigest() != name:
        raise SessionCorrupt(f"blob `{name}` of session `{folder.name}` was changed")
    return data


def _read(path: Path) -> tuple[list[Record], str]:
    records: list[Record] = []
    prev = ""
    for line, each in _walk(path):
        if isinstance(each, str):
            if line:
                raise SessionCorrupt(f"session `{path.parent.name}`: {each}")
            continue
        records.append(each)
        prev = digest(line)
    return records, prev


def _walk(path: Path) -> Iterator[tuple[bytes, Record | str]]:
    """Each line with its record, or with what is wrong; a torn end comes as an empty line."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise SessionCorrupt(f"session `{path.parent.name}` has no log") from None
    prev = ""
    for number, line in enumerate(lines[:-1], 1):
        try:
            record = decode(line)
        except SessionCorrupt as fault:
            yield line, f"line {number}: {fault}"
        else:
            broken = record.prev != prev or record.seq != number - 1
            yield line, f"line {number}: it does not follow the one before" if broken else record
        prev = digest(line)
    if lines[-1]:
        yield b"", f"line {len(lines)}: cut off before its end"


def _write_durably(path: Path, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_all(file, data)
        os.fdatasync(file)
    finally:
        os.close(file)


def _sync_folder(folder: Path) -> None:
    """A new name is on disk once its folder is."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


@contextmanager
def _storage(folder: Path) -> Generator[None, None, None]:
    """The one place where the file system's errors become ours."""
    try:
        yield
    except OSError as fault:
        words = fault.strerror or type(fault).__name__
        raise SessionStorage(
            f"cannot write session `{folder.name}` in `{folder.parent}`: {words.lower()}; "
            "free some space or set `HARNESS_STATE` to another folder"
        ) from fault
