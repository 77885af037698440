"""A box that is none: the supervisor as a plain process, its workspace a private directory.

For tests, and for a harness that already runs inside a container. Commands run as the user who
runs the harness, see the host's files and network, and end when the box is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import secrets
import shutil
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from harness.errors import SandboxError, SandboxRefused
from harness.sandbox.binary import supervisor_binary
from harness.sandbox.link import Link
from harness.sandbox.running import expiry
from harness.sandbox.streams import Stream
from harness.sandbox.supervised import SupervisedSandbox
from harness.values.limits import BoxSpec, Capabilities, Enforcement, Limits

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENFORCED = {"nofile": Enforcement.HARD, "wall": Enforcement.SOFT, "output": Enforcement.SOFT}
_ORPHAN_SECONDS = 15.0
_CLOSE_SECONDS = 8.0


class SocketPipe(Stream):
    """A link's transport over a stream socket."""

    def __init__(self) -> None:
        super().__init__()
        self.link: Link | None = None

    def taken(self, data: memoryview) -> None:
        if self.link is not None:
            self.link.feed(data)

    def ended(self, exc: Exception | None) -> None:  # noqa: ARG002 - the reason is always the same
        if self.link is not None:
            self.link.lost("the supervisor has ended")

    def close(self) -> None:
        """What is on its way out still goes: the supervisor's own end is to be in order."""
        if self._transport is not None:
            self._transport.close()


class LocalSandbox(SupervisedSandbox):
    """A workspace in a temporary directory, commands on the host. Isolates nothing."""

    @classmethod
    async def start(
        cls, spec: BoxSpec | None = None, *, binary: Path | None = None
    ) -> LocalSandbox:
        """A new box. Raises `SandboxRefused` for a spec that asks for more than this can give."""
        spec = BoxSpec() if spec is None else spec
        _refuse(spec)
        program = supervisor_binary() if binary is None else binary
        root = await asyncio.to_thread(_make_root)
        started = False
        try:
            box = await cls._start_in(root, spec, program)
            started = True
        finally:
            if not started:
                await asyncio.to_thread(_remove, root)
        return box

    @classmethod
    async def _start_in(cls, root: Path, spec: BoxSpec, program: Path) -> LocalSandbox:
        pipe = SocketPipe()
        process = await _launch(program, pipe)
        _limit(process.pid, spec.limits)
        link = Link(pipe)
        pipe.link = link
        try:
            hello = await link.open(token=secrets.token_bytes(32), orphan_seconds=_ORPHAN_SECONDS)
        except BaseException:
            pipe.close()
            await _ended(process)
            raise
        end = expiry(spec.limits.wall, lambda: link.lost("the box has reached the end of its time"))

        async def on_close() -> None:
            if end is not None:
                end.cancel()
            await _ended(process)
            await asyncio.to_thread(_remove, root)

        return cls(
            link,
            root=str(root / "work"),
            capabilities=_capabilities(hello.features),
            image="local",
            on_close=on_close,
            env=_environment(root, spec),
            output_limit=spec.limits.output,
        )


class LocalBackend:
    """Makes local boxes; holds nothing between them."""

    async def create(self, spec: BoxSpec, *, run: str) -> LocalSandbox:  # noqa: ARG002 - no list to name it in
        """See `LocalSandbox.start`."""
        return await LocalSandbox.start(spec)

    async def close(self) -> None:
        """Nothing to let go of."""


def _make_root() -> Path:
    """A private directory whose path holds no link, as the file operations demand."""
    root = Path(tempfile.mkdtemp(prefix="harness-box-")).resolve()
    for name in ("work", "home", "tmp"):
        (root / name).mkdir(mode=0o700)
    return root


def _capabilities(features: Mapping[str, str]) -> Capabilities:
    said = dict(features)
    said.update(network="host", files="host")
    return Capabilities(
        backend="local",
        isolated=False,
        limits={
            field.name: _ENFORCED.get(field.name, Enforcement.NONE) for field in fields(Limits)
        },
        features=said,
    )


def _refuse(spec: BoxSpec) -> None:
    if spec.image is not None or spec.runtime is not None:
        raise SandboxRefused("the local backend has neither images nor runtimes; use docker")
    missing = sorted(spec.require - _ENFORCED.keys())
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise SandboxRefused(f"the local backend does not enforce {names}; use docker")


def _environment(root: Path, spec: BoxSpec) -> dict[str, str]:
    return {
        "PATH": _PATH,
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
        "LANG": "C.UTF-8",
        **spec.env,
    }


async def _launch(program: Path, pipe: SocketPipe) -> asyncio.subprocess.Process:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                "--one-user",
                "--orphan-ms",
                str(int(_ORPHAN_SECONDS * 1000)),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=asyncio.subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise SandboxError(f"cannot start `{program}`: {error.strerror}") from error
    await asyncio.get_running_loop().create_connection(lambda: pipe, sock=ours)
    return process


def _limit(pid: int, limits: Limits) -> None:
    for kind, value in ((resource.RLIMIT_NOFILE, limits.nofile), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):
            hard = resource.prlimit(pid, kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.prlimit(pid, kind, (value, value))


async def _ended(process: asyncio.subprocess.Process) -> None:
    """The supervisor ends its commands first; its keepers do where it cannot."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _remove(root: Path) -> None:
    """Remove what commands left, directories without permissions included. Never raises."""
    shutil.rmtree(root, ignore_errors=True)
    if not root.exists():
        return
    for folder, names, _ in os.walk(root):
        for place in (Path(folder, name) for name in names):
            if not place.is_symlink():
                with contextlib.suppress(OSError):
                    place.chmod(0o700)
    shutil.rmtree(root, ignore_errors=True)
