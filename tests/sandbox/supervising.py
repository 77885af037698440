"""What the supervisor's tests share: the binary, local boxes, a raw conversation."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.util
import os
import secrets
import socket
import struct
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from harness.sandbox.frames import FrameDecoder, FrameType, frame
from harness.sandbox.link import Link
from harness.sandbox.local import LocalSandbox, SocketPipe
from harness.sandbox.messages import lease
from harness.values.commands import ExecRequest, ExecResult

ROOT = Path(__file__).resolve().parents[2]
TOKEN = b"t" * 32


@functools.cache
def builder() -> ModuleType:
    path = ROOT / "sandbox_images" / "supervisor" / "build.py"
    spec = importlib.util.spec_from_file_location("supervisor_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def supervisor() -> Path:
    """The binary as the sources are now."""
    module = builder()
    try:
        return Path(module.build(module.this_machine()))
    except module.BuildError as error:
        pytest.skip(str(error))


@contextlib.asynccontextmanager
async def local_box() -> AsyncIterator[LocalSandbox]:
    box = await LocalSandbox.start(binary=supervisor())
    try:
        yield box
    finally:
        await box.close()


def shell(script: str, **options: object) -> ExecRequest:
    return ExecRequest(("sh", "-c", script), **options)  # type: ignore[arg-type]


async def run(box: LocalSandbox, script: str, **options: object) -> ExecResult:
    return await box.exec(shell(script, **options))


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def processes_with(mark: str) -> list[int]:
    """Processes whose environment holds `mark`, zombies aside."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes() and alive(int(folder.name)):
                found.append(int(folder.name))
    return found


class Raw:
    """A supervisor spoken to in bytes."""

    def __init__(self, *arguments: str, command: tuple[str, ...] = ()) -> None:
        ours, theirs = socket.socketpair()
        self.socket = ours
        self.socket.settimeout(5)
        program = [*command, str(supervisor()), "--orphan-ms", "15000", *arguments]
        self.process = subprocess.Popen(program, stdin=theirs, stdout=theirs)
        theirs.close()
        self._decoder = FrameDecoder()
        self._frames: list[tuple[FrameType, int, bytes]] = []

    def send(self, kind: FrameType, channel: int = 0, payload: bytes = b"") -> None:
        self.socket.sendall(frame(kind, channel, payload))

    def lease(self, token: bytes = TOKEN, orphan: float = 15.0) -> bytes:
        nonce = secrets.token_bytes(16)
        self._decoder.expect(nonce)
        self._frames.clear()
        self.send(FrameType.LEASE, 0, lease(token, nonce, orphan))
        kind, _, payload = self.next()
        assert kind is FrameType.HELLO
        return payload

    def next(self) -> tuple[FrameType, int, bytes]:
        while not self._frames:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError("the supervisor has ended")
            self._frames.extend(self._decoder.feed(data))
        return self._frames.pop(0)

    def until(self, kind: FrameType, channel: int) -> list[tuple[FrameType, int, bytes]]:
        """Frames up to and with the wanted one."""
        seen = [self.next()]
        while seen[-1][:2] != (kind, channel):
            seen.append(self.next())
        return seen

    def close(self) -> int:
        self.socket.close()
        try:
            return self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def raw(*arguments: str, command: tuple[str, ...] = ()) -> Iterator[Raw]:
    talk = Raw(*arguments, command=command)
    try:
        yield talk
    finally:
        talk.close()


def exec_payload(*argv: str, flags: int = 0, timeout_ms: int = 0, grace_ms: int = 0) -> bytes:
    strings = [b"/", *(os.fsencode(word) for word in argv), b"PATH=/usr/bin:/bin"]
    head = struct.pack("<IIIHH", flags, timeout_ms, grace_ms, len(argv), 1)
    return head + b"".join(struct.pack("<I", len(s)) + s + b"\0" for s in strings)


@contextlib.asynccontextmanager
async def linked(*command: str) -> AsyncIterator[tuple[Link, asyncio.subprocess.Process]]:
    """An open link to a supervisor started by `command`."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=theirs.fileno(), stdout=theirs.fileno()
        )
    pipe = SocketPipe()
    await asyncio.get_running_loop().create_connection(lambda: pipe, sock=ours)
    link = pipe.link = Link(pipe)
    try:
        await link.open(token=TOKEN)
        yield link, process
    finally:
        await link.close()
        async with asyncio.timeout(10):
            await process.wait()
