"""A `Sandbox` over a supervisor's link: what Docker boxes and local ones have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from harness.errors import FileFault
from harness.ports import OutputSink
from harness.sandbox.frames import FrameType
from harness.sandbox.link import Link
from harness.sandbox.messages import (
    EVERY,
    INPUT_FOLLOWS,
    KEEP_MODE,
    MAX_FILE,
    MAX_PATH,
    STAT_LIMIT,
    ExecOptions,
    FileOp,
    FileRequest,
    Reply,
    exec_request,
    pack_paths,
    parts_of,
    pieces,
    read_paths,
    read_stats,
    streamed,
    upload_stream,
)
from harness.sandbox.running import (
    CANCELLED,
    FILE_RATE,
    FILE_SECONDS,
    NO_ROOM,
    PATIENCE,
    Command,
    FileCall,
    NoRoom,
    settle,
    watchdog,
)
from harness.values.commands import (
    Captured,
    ExecRequest,
    ExecResult,
    ExecUsage,
    ExitReason,
    Stat,
    Upload,
)
from harness.values.limits import Capabilities
from harness.values.operations import Links

_UNRESOLVED = "/proc/unresolved"
COMMANDS = 128
FILES = 64
"""Calls at once; more wait. Below what a supervisor takes, which counts what is left running."""
_ANSWER_LIMIT = 1 << 28
_MOST_NOTES = 20
_MESSAGES = {
    "missing": "`{}` does not exist",
    "denied": "`{}` may not be accessed by the workload's user",
    "link": "`{}` is, or lies behind, a symbolic link, which is not followed",
    "directory": "`{}` is a directory, or one that is not empty",
    "not_directory": "`{}` lies below something that is not a directory",
    "not_file": "`{}` is not a regular file",
    "exists": "`{}` exists already",
    "too_large": "`{}` is too large",
    "no_space": "there is no space left for `{}`",
    "no_match": "the text to replace does not occur in `{}`",
    "many_matches": "the text to replace occurs more than once in `{}`",
    "name": "`{}` is not a path that can be used",
    "io": "`{}` could not be read or written",
}


def _fault(code: str, path: str) -> FileFault:
    return FileFault(code, path, _MESSAGES[code].format(path))


def _bytes(path: str) -> bytes | None:
    """A path as the box gets it; None when no file system could hold it."""
    try:
        data = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
    return data if data and len(data) <= MAX_PATH and b"\0" not in data else None


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _not_started(reason: str) -> ExecResult:
    """A command that could not be started, told as a shell tells it."""
    text = f"{reason}\n".encode()
    return ExecResult(
        code=126,
        signal=None,
        reason=ExitReason.EXITED,
        stdout=Captured(),
        stderr=Captured(head=text, total=len(text)),
        usage=ExecUsage(wall=0.0),
    )


class SupervisedSandbox:
    """`ports.Sandbox` over an open `Link`.

    `root` is the workspace in the box (absolute, no links in it). `env` is what every command
    gets, below what a request sets. `output_limit` bounds in bytes what one command may print,
    whatever it asks. `on_close` runs once, after the link is closed: the backend removes its
    container or directory there.
    """

    def __init__(  # noqa: PLR0913 - the parts of a box, each by name
        self,
        link: Link,
        *,
        root: str,
        capabilities: Capabilities,
        image: str,
        on_close: Callable[[], Awaitable[None]] | None = None,
        env: Mapping[str, str] | None = None,
        output_limit: int | None = None,
    ) -> None:
        self._link = link
        self._root = root
        self._capabilities = capabilities
        self._image = image
        self._on_close = on_close
        self._env = dict(env or {})
        self._output_limit = output_limit
        self._closing: asyncio.Task[None] | None = None
        self._quieting: asyncio.Task[None] | None = None
        self._notes: list[str] = []
        self._commands = asyncio.Semaphore(COMMANDS)
        self._files = asyncio.Semaphore(FILES)

    @property
    def root(self) -> str:
        return self._root

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def image(self) -> str:
        return self._image

    @property
    def notes(self) -> tuple[str, ...]:
        """What listings so far could not show, each told once; bounded."""
        return tuple(self._notes)

    async def exec(self, request: ExecRequest, sink: OutputSink | None = None) -> ExecResult:
        """See `ports.Sandbox.exec`. The sink is called in the event loop, in order."""
        try:
            body = self._encode(request)
        except ValueError as error:
            return _not_started(str(error))
        async with self._commands:
            return await self._exec(request, body, sink)

    async def _exec(self, request: ExecRequest, body: bytes, sink: OutputSink | None) -> ExecResult:
        command = Command(self._link, request, self._limit(request), sink)
        deadline = None if request.timeout is None else request.timeout + request.grace + PATIENCE
        alarm = watchdog(deadline, lambda: self._link.lost("the supervisor missed a deadline"))
        feeder: asyncio.Task[None] | None = None
        try:
            self._link.request(FrameType.EXEC, command.number, body)
            if request.stdin is not None:
                feeder = asyncio.create_task(
                    self._link.send_input(command.number, parts_of(request.stdin))
                )
            return command.result(await asyncio.shield(command.exit))
        except NoRoom:
            return _not_started(NO_ROOM)
        except asyncio.CancelledError:
            await self._end(command, request.grace)
            raise
        finally:
            if alarm is not None:
                alarm.cancel()
            self._link.detach(command.number)
            if feeder is not None:
                feeder.cancel()

    async def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if offset < 0 or (length is not None and length < 0):
            raise ValueError("offset and length are not negative")
        want = 2**64 - 1 if length is None else length
        request = self._request(FileOp.READ, path, a=offset, b=want)
        _, data = await self._run(request, path, room=min(want, MAX_FILE))
        return data

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        bits = KEEP_MODE if mode is None else mode & 0o7777
        request = self._request(FileOp.WRITE, path, mode=bits, a=len(data))
        await self._run(request, path, pieces(data), size=len(data))

    async def edit(self, path: str, old: bytes, new: bytes, *, every: bool = False) -> int:
        flags = EVERY if every else 0
        request = self._request(FileOp.EDIT, path, flags=flags, a=len(old), b=len(new))
        data = old + new
        reply, _ = await self._run(request, path, pieces(data), size=len(data))
        return reply.value

    async def list(self, path: str, *, depth: int = 1, limit: int = 10_000) -> tuple[Stat, ...]:
        limit = max(limit, 0)
        request = self._request(FileOp.LIST, path, a=max(depth, 1), b=limit)
        room = min(limit * STAT_LIMIT, _ANSWER_LIMIT)
        reply, data = await self._run(request, path, room=room)
        if reply.value:
            self._note(f"{reply.value} paths below `{path}` are too long and were left out")
        return tuple(read_stats(data, limit))

    async def stat(self, path: str) -> Stat:
        request = self._request(FileOp.STAT, path)
        reply, _ = await self._run(request, path)
        found = tuple(read_stats(reply.extra, 1))
        if len(found) != 1:
            raise _fault("io", path)
        stat = found[0]
        return Stat(
            path=request.path,
            kind=stat.kind,
            size=stat.size,
            mode=stat.mode,
            mtime=stat.mtime,
            ctime=stat.ctime,
            inode=stat.inode,
            target=stat.target,
        )

    async def remove(self, path: str) -> None:
        request = self._request(FileOp.REMOVE, path)
        await self._run(request, path)

    async def upload(self, entries: Sequence[Upload]) -> None:
        for entry in entries:
            if not entry.path or len(entry.path) > MAX_PATH:
                raise _fault("name", _text(entry.path[:MAX_PATH]))
        request = self._request(FileOp.UPLOAD, self._root, a=len(entries))
        size = sum(len(entry.data) for entry in entries)
        await self._run(request, self._root, upload_stream(entries), size=size)

    async def resolve_links(self, paths: Sequence[str]) -> Links:
        links = {path: f"{_UNRESOLVED}/{path.lstrip('/')}" for path in paths}
        absolute = (path for path in links if path.startswith("/"))
        known = [(path, data) for path in absolute if (data := _bytes(path)) is not None]
        if not known:
            return links
        packed = pack_paths(data for _, data in known)
        request = self._request(FileOp.REALPATH, "/", a=len(known))
        room = min(len(known) * (MAX_PATH + len(_UNRESOLVED) + 4), _ANSWER_LIMIT)
        try:
            _, data = await self._run(request, "/", pieces(packed), room=room, size=len(packed))
        except FileFault:
            return links  # no process can look now, so nothing is known, and nothing allowed
        real = read_paths(data, len(known))
        links.update((path, _text(data)) for (path, _), data in zip(known, real, strict=True))
        return links

    async def quiet(self) -> None:
        """See `ports.Sandbox.quiet`. Needs no process in the box, so it works in a full one."""
        if self._quieting is None or self._quieting.done():
            self._quieting = asyncio.create_task(self._quiet())
        await asyncio.shield(self._quieting)

    async def _quiet(self) -> None:
        call = FileCall(self._link, 0)
        try:
            self._link.request(FrameType.QUIET, call.number, b"")
            if not await settle(call.reply, PATIENCE):
                self._link.lost("the supervisor did not end what commands left running")
            await call.reply
        finally:
            self._link.detach(call.number)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._link.close()
        if self._on_close is not None:
            await self._on_close()

    def _note(self, text: str) -> None:
        if text not in self._notes and len(self._notes) < _MOST_NOTES:
            self._notes.append(text)

    def _limit(self, request: ExecRequest) -> int | None:
        limits = [x for x in (request.limit, self._output_limit) if x is not None]
        return min(limits, default=None)

    def _encode(self, request: ExecRequest) -> bytes:
        def code(word: str) -> bytes:
            try:
                return word.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                raise ValueError("a word is not text that can be encoded") from None

        env = {**self._env, **request.env}
        options = ExecOptions(
            stdin=request.stdin is not None,
            merge=request.merge,
            kill_left=request.kill_left,
            timeout=request.timeout,
            grace=request.grace,
        )
        return exec_request(
            [code(word) for word in request.argv],
            {code(name): code(value) for name, value in env.items()},
            code(self._root if request.cwd is None else request.cwd),
            options,
        )

    async def _end(self, command: Command, grace: float) -> None:
        """Cancelled: the tree is gone when this returns, or the box counts as lost."""
        if command.exit.done():
            return
        self._link.cancel(command.number, CANCELLED)
        if not await settle(command.exit, grace + PATIENCE):
            self._link.lost("the supervisor did not end a cancelled command")

    def _request(
        self, op: FileOp, path: str, *, flags: int = 0, mode: int = 0, a: int = 0, b: int = 0
    ) -> FileRequest:
        data = _bytes(path)
        if data is None:
            raise _fault("name", path)
        return FileRequest(op, data, flags, mode, a, b)

    async def _run(
        self,
        request: FileRequest,
        path: str,
        data: Iterable[bytes] | None = None,
        *,
        room: int = 0,
        size: int = 0,
    ) -> tuple[Reply, bytes]:
        """Send a request and its data of `size` bytes, wait for the reply and at most `room`
        bytes; a fault becomes `FileFault`."""
        if data is not None:
            request = replace(request, flags=request.flags | INPUT_FOLLOWS)
        async with self._files:
            call = FileCall(self._link, room, bounded=room == _ANSWER_LIMIT)
            call.allow(FILE_SECONDS + size / FILE_RATE)
            reply = await self._reply(call, request, path, data)
        if call.overflowed:
            raise _fault("too_large", path)
        if reply.fault and call.late:
            raise FileFault("io", path, f"`{path}`: this took too long and was given up")
        if reply.fault:
            raise _fault(reply.fault, _text(reply.extra) if reply.extra else path)
        return reply, call.data

    async def _reply(
        self, call: FileCall, request: FileRequest, path: str, data: Iterable[bytes] | None
    ) -> Reply:
        feeder: asyncio.Task[None] | None = None
        try:
            self._link.request(FrameType.FILE, call.number, request.encode())
            if data is not None:
                feeder = asyncio.create_task(self._link.send_input(call.number, streamed(data)))
            return await asyncio.shield(call.reply)
        except NoRoom as fault:
            raise FileFault("io", path, f"`{path}`: {NO_ROOM}") from fault
        except asyncio.CancelledError:
            self._link.cancel(call.number, CANCELLED)
            if not await settle(call.reply, PATIENCE):
                self._link.lost("the supervisor did not end a cancelled file operation")
            raise
        finally:
            call.stop_clock()
            self._link.detach(call.number)
            if feeder is not None:
                feeder.cancel()
