# ruff: noqa: ASYNC240 - small files of the test's own folder
"""A box that is a folder of this machine: real processes, no isolation, for the tools' tests."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.errors import FileFault
from harness.ports import OutputSink, ToolContext
from harness.values.commands import (
    Captured,
    ExecRequest,
    ExecResult,
    ExecUsage,
    ExitReason,
    FileKind,
    Stat,
    Upload,
)
from harness.values.limits import Capabilities

KINDS = {stat.S_IFREG: FileKind.FILE, stat.S_IFDIR: FileKind.DIRECTORY, stat.S_IFLNK: FileKind.LINK}


def ended(
    code: int | None = 0,
    out: bytes = b"",
    err: bytes = b"",
    *,
    reason: ExitReason = ExitReason.EXITED,
    signal: int | None = None,
    left_running: int = 0,
) -> ExecResult:
    return ExecResult(
        code,
        signal,
        reason,
        Captured(out, b"", len(out)),
        Captured(err, b"", len(err)),
        ExecUsage(0.1),
        left_running,
    )


@dataclass(eq=False)
class FolderBox:
    """`root` is a folder. `script` answers an exec in place of a process, where it is given."""

    root: str
    script: Callable[[ExecRequest], ExecResult] | None = None
    absent: frozenset[str] = frozenset()
    asked: list[ExecRequest] = field(default_factory=list)
    written: dict[str, bytes] = field(default_factory=dict)
    full: bool = False
    image: str = "folder"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities("folder", isolated=False, limits={})

    async def resolve_links(self, paths: Sequence[str]) -> Mapping[str, str]:
        return {p: os.path.realpath(p) for p in paths}

    async def exec(self, request: ExecRequest, sink: OutputSink | None = None) -> ExecResult:
        self.asked.append(request)
        if request.argv[0] in self.absent:
            return ended(127, err=b"no such program")
        if self.script is not None:
            return self.script(request)
        begun = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *request.argv,
            cwd=self.root,
            env={**os.environ, **request.env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT if request.merge else asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        if sink is not None:
            sink("stdout", out)
        code = process.returncode
        assert code is not None
        return ExecResult(
            code if code >= 0 else None,
            -code if code < 0 else None,
            ExitReason.EXITED,
            kept(out, request),
            kept(err or b"", request),
            ExecUsage(time.monotonic() - begun),
        )

    async def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        data = self._at(path).read_bytes()[offset:]
        return data if length is None else data[:length]

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        if self.full:
            raise FileFault("no_space", path, "no space left on device")
        self.written[path] = data
        if path.startswith(self.root):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data)

    async def edit(self, path: str, old: bytes, new: bytes, *, every: bool = False) -> int:
        data = self._at(path).read_bytes()
        count = data.count(old)
        if count == 0:
            raise FileFault("no_match", path, "no match")
        if count > 1 and not every:
            raise FileFault("many_matches", path, "many matches")
        Path(path).write_bytes(data.replace(old, new))
        return count

    async def list(self, path: str, *, depth: int = 1, limit: int = 10_000) -> tuple[Stat, ...]:
        top = self._at(path)
        found = [p for p in sorted(top.rglob("*")) if len(p.relative_to(top).parts) <= depth]
        return tuple(self._stat(p, os.fsencode(p.relative_to(top))) for p in found)[:limit]

    async def stat(self, path: str) -> Stat:
        return self._stat(self._at(path), os.fsencode(path))

    async def remove(self, path: str) -> None:
        self._at(path).unlink()

    async def upload(self, entries: Sequence[Upload]) -> None:
        raise NotImplementedError

    async def quiet(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def _at(self, path: str) -> Path:
        found = Path(path)
        if not os.path.lexists(found):
            raise FileFault("missing", path, "no such file or directory")
        return found

    def _stat(self, path: Path, shown: bytes) -> Stat:
        found = path.lstat()
        kind = KINDS.get(stat.S_IFMT(found.st_mode), FileKind.OTHER)
        target = os.fsencode(path.readlink()) if kind is FileKind.LINK else b""
        return Stat(shown, kind, found.st_size, stat.S_IMODE(found.st_mode), target=target)


def kept(data: bytes, request: ExecRequest) -> Captured:
    if len(data) <= request.head + request.tail:
        return Captured(data, b"", len(data))
    tail = data[-request.tail :] if request.tail else b""
    return Captured(data[: request.head], tail, len(data))


@pytest.fixture
def box(tmp_path: Path) -> FolderBox:
    return FolderBox(str(tmp_path.resolve()))


@pytest.fixture
def context(box: FolderBox) -> Callable[..., ToolContext]:
    """A context in which the named paths have been judged."""

    def make(*paths: str, timeout: float | None = None) -> ToolContext:
        lexical = [os.path.normpath(f"{box.root}/{p}") for p in paths]
        links = {p: os.path.realpath(p) for p in lexical}
        return ToolContext(box, links, timeout, "call-1")

    return make


@pytest.fixture
def result() -> Callable[..., ExecResult]:
    return ended
