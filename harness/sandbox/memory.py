"""A box without a machine: a copy-on-write file tree, and commands that follow a script.

For tests of tools and of the loop. It keeps the file rules of a real box (links are never
followed, every `FileFault` code, limits of bytes and entries) and isolates by having nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from harness.errors import FileFault, SandboxLost
from harness.ports import OutputSink
from harness.sandbox import tree
from harness.sandbox.admission import require
from harness.sandbox.tree import Node
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
from harness.values.limits import HOME, MIB, WORKSPACE, BoxSpec, Capabilities, Enforcement, Limits
from harness.values.operations import Links

READ_MOST = 64 * MIB
WRITABLE = ("/tmp", HOME)  # noqa: S108 - paths of the tree, not of this machine
LIST_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Reply:
    """What a scripted command does: prints this, takes `seconds`, ends so.

    Exactly one of `code` and `signal` is set.
    """

    code: int | None = 0
    stdout: bytes = b""
    stderr: bytes = b""
    signal: int | None = None
    reason: ExitReason = ExitReason.EXITED
    seconds: float = 0.0
    left_running: int = 0


Script: TypeAlias = Callable[[ExecRequest, "MemorySandbox"], Reply | Awaitable[Reply]]
"""A command that looks at its request and may use the box, for one that changes files."""

Matches: TypeAlias = Callable[[ExecRequest], bool]


class MemorySandbox:
    """`ports.Sandbox` over a tree.

    `files` maps a path (relative ones lie below `root`) to content, or to a `Node`. `commands`
    are tried in order: an argv, or a predicate on the request, and a reply or a function that
    makes one. What matches nothing is a missing program: code 127. `executed` lists requests.
    """

    def __init__(
        self,
        files: Mapping[str, bytes | Node] | None = None,
        commands: Sequence[tuple[Sequence[str] | Matches, Reply | Script]] = (),
        *,
        root: str = WORKSPACE,
        limits: Limits | None = None,
    ) -> None:
        self._root = root
        self._limits = limits or Limits()
        self._commands = tuple(commands)
        self._tree = tree.directory()
        self._inodes = 1
        self._ticks = 0
        self._closed = False
        self.executed: list[ExecRequest] = []
        for place in (root, *WRITABLE):
            self._put(place, tree.directory())
        for path, content in (files or {}).items():
            whole = path if path.startswith("/") else f"{root}/{path}"
            node = content if isinstance(content, Node) else Node(FileKind.FILE, 0o644, content)
            self._put(whole, node)

    @property
    def root(self) -> str:
        return self._root

    @property
    def image(self) -> str:
        return "memory"

    @property
    def capabilities(self) -> Capabilities:
        held = {f.name: Enforcement.NONE for f in fields(Limits)}
        held |= {"disk": Enforcement.HARD, "inodes": Enforcement.HARD, "output": Enforcement.SOFT}
        return Capabilities("memory", isolated=True, limits=held, features={"exec": "scripted"})

    def fork(self) -> MemorySandbox:
        """A box with the same files and script. Nothing is copied until one of them changes."""
        made = MemorySandbox(None, self._commands, root=self._root, limits=self._limits)
        made._tree, made._inodes = self._tree, self._inodes
        return made

    async def exec(self, request: ExecRequest, sink: OutputSink | None = None) -> ExecResult:
        self._require_open()
        self.executed.append(request)
        reply = await self._reply(request)
        started = time.monotonic()
        late = request.timeout is not None and reply.seconds > request.timeout
        await asyncio.sleep(request.timeout or 0 if late else reply.seconds)
        if late:
            reply = replace(reply, code=None, signal=15, reason=ExitReason.TIMEOUT)
        stdout, stderr = reply.stdout, reply.stderr
        if request.merge:
            stdout, stderr = stdout + stderr, b""
        if request.limit is not None and len(stdout) + len(stderr) > request.limit:
            stdout = stdout[: request.limit]
            stderr = stderr[: request.limit - len(stdout)]
            reply = replace(reply, code=None, signal=9, reason=ExitReason.OUTPUT_LIMIT)
        for stream, data in (("stdout", stdout), ("stderr", stderr)):
            if sink is not None and data:
                sink(stream, data)
        return ExecResult(
            code=reply.code,
            signal=reply.signal,
            reason=reply.reason,
            stdout=captured(stdout, request.head, request.tail),
            stderr=captured(stderr, request.head, request.tail),
            usage=ExecUsage(wall=time.monotonic() - started),
            left_running=reply.left_running,
        )

    async def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        node = self._file(path)
        wanted = len(node.data) - offset if length is None else length
        if wanted > READ_MOST:
            raise FileFault("too_large", path, f"`{path}` is larger than 64 MiB; read it in parts")
        return node.data[offset : offset + max(0, wanted)]

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        self._writable(path)
        try:
            kept = self._file(path, need=0).mode
        except FileFault as fault:
            if fault.code != "missing":
                raise
            kept = 0o644
        self._put(path, Node(FileKind.FILE, kept if mode is None else mode & 0o777, bytes(data)))

    async def edit(self, path: str, old: bytes, new: bytes, *, every: bool = False) -> int:
        self._writable(path)
        node = self._file(path)
        found = node.data.count(old) if old else 0
        if found == 0:
            raise FileFault("no_match", path, f"`{path}` does not hold the text to replace")
        if found > 1 and not every:
            raise FileFault("many_matches", path, f"the text occurs {found} times in `{path}`")
        self._put(path, replace(node, data=node.data.replace(old, new)))
        return found

    async def list(self, path: str, *, depth: int = 1, limit: int = 10_000) -> tuple[Stat, ...]:
        node = self._find(path)
        if node.kind is FileKind.LINK:
            raise FileFault("link", path, f"`{path}` is a link")
        if node.kind is not FileKind.DIRECTORY:
            raise FileFault("not_directory", path, f"`{path}` is not a directory")
        if not node.mode & 0o400:
            raise FileFault("denied", path, f"`{path}`: permission denied")
        entries = tuple(tree.walk(node, max(1, depth)))
        return tuple(n.stat(name) for name, n in entries[: min(limit, LIST_MOST)])

    async def stat(self, path: str) -> Stat:
        return self._find(path).stat(path.encode("utf-8", "surrogateescape"))

    async def remove(self, path: str) -> None:
        self._writable(path)
        node = self._find(path)
        if node.children:
            raise FileFault("directory", path, f"`{path}` is a directory that is not empty")
        self._put(path, None)

    async def upload(self, entries: Sequence[Upload]) -> None:
        for entry in entries:
            path = f"{self._root}/{entry.path.decode('utf-8', 'surrogateescape')}"
            if not entry.path or not set(entry.path.split(b"/")).isdisjoint({b"", b".", b".."}):
                raise FileFault("name", path, f"`{path}` is no relative path")
            self._upload(path, entry)

    async def resolve_links(self, paths: Sequence[str]) -> Links:
        self._require_open()
        return {path: tree.real_path(self._tree, path) for path in paths}

    async def quiet(self) -> None:
        """Nothing runs beside a scripted command."""
        self._require_open()

    async def close(self) -> None:
        self._closed = True

    async def _reply(self, request: ExecRequest) -> Reply:
        for pattern, answer in self._commands:
            hit = pattern(request) if callable(pattern) else tuple(pattern) == request.argv
            if hit:
                reply = answer(request, self) if callable(answer) else answer
                return reply if isinstance(reply, Reply) else await reply
        name = request.argv[0] if request.argv else ""
        return Reply(code=127, stderr=f"{name}: not found\n".encode())

    def _upload(self, path: str, entry: Upload) -> None:
        present = tree.find(self._tree, tree.split(path)[:-1], path).children.get(
            tree.split(path)[-1]
        )
        if entry.kind is FileKind.DIRECTORY:
            if present is not None and present.kind is not FileKind.DIRECTORY:
                raise FileFault("exists", path, f"`{path}` is there already and no directory")
            made = present or tree.directory()
            self._put(path, replace(made, mode=entry.mode & 0o777))
            return
        if present is not None and present.kind is FileKind.DIRECTORY:
            raise FileFault("directory", path, f"`{path}` is a directory")
        mode = 0o777 if entry.kind is FileKind.LINK else entry.mode & 0o777
        self._put(path, Node(entry.kind, mode, entry.data))

    def _file(self, path: str, *, need: int = 0o400) -> Node:
        node = self._find(path)
        if node.kind is FileKind.LINK:
            raise FileFault("link", path, f"`{path}` is a link")
        if node.kind is FileKind.DIRECTORY:
            raise FileFault("directory", path, f"`{path}` is a directory")
        if node.kind is not FileKind.FILE:
            raise FileFault("not_file", path, f"`{path}` is not a regular file")
        if need and not node.mode & need:
            raise FileFault("denied", path, f"`{path}`: permission denied")
        return node

    def _find(self, path: str) -> Node:
        self._require_open()
        return tree.find(self._tree, tree.split(path), path)

    def _writable(self, path: str) -> None:
        self._require_open()
        parts = tree.split(path)
        places = [tree.split(p) for p in (self._root, *WRITABLE)]
        if not any(parts[: len(p)] == p and len(parts) > len(p) for p in places):
            raise FileFault("denied", path, f"`{path}`: read-only file system")

    def _put(self, path: str, node: Node | None) -> None:
        """Swap in the changed tree; a fault leaves the old one."""
        self._inodes += 1
        self._ticks += 1
        stamped = None if node is None else replace(node, inode=self._inodes, mtime=self._ticks)
        made = tree.put(self._tree, tree.split(path), stamped, path)
        size, entries = tree.count(made)
        if node is not None and (size > self._limits.disk or entries > self._limits.inodes):
            raise FileFault("no_space", path, f"`{path}`: no space left")
        self._tree = made

    def _require_open(self) -> None:
        if self._closed:
            raise SandboxLost("the box was closed")


class MemoryBackend:
    """Boxes in memory, all with the same files and script. `image` and `runtime` are ignored."""

    def __init__(
        self,
        files: Mapping[str, bytes | Node] | None = None,
        commands: Sequence[tuple[Sequence[str] | Matches, Reply | Script]] = (),
    ) -> None:
        self._files = files
        self._commands = commands
        self.boxes: list[MemorySandbox] = []

    async def create(self, spec: BoxSpec, *, run: str) -> MemorySandbox:  # noqa: ARG002 - as the others
        box = MemorySandbox(self._files, self._commands, limits=spec.limits)
        require(spec, box.capabilities)
        self.boxes.append(box)
        return box

    async def close(self) -> None:
        for box in self.boxes:
            await box.close()


def captured(data: bytes, head: int, tail: int) -> Captured:
    """What an output cap keeps of a whole output."""
    if len(data) <= head:
        return Captured(data, b"", len(data))
    rest = data[head:]
    return Captured(data[:head], rest[-tail:] if tail else b"", len(data))
