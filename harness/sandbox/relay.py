"""An engine behind ssh, as a socket on this machine.

Each connection to the socket becomes `docker system dial-stdio` on the other side, which is how
the docker command itself does it. One ssh connection is shared by all (ControlMaster).
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from pathlib import Path

from harness.errors import EngineUnavailable
from harness.sandbox.endpoint import Endpoint

CHUNK = 256 * 1024
COMPLAINT = 500
"""Bytes kept of what ssh says on its stderr."""


class SshRelay:
    """Serves one ssh endpoint. ssh asks nobody anything: keys must be ready in an agent."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._folder = Path(tempfile.mkdtemp(prefix="harness-ssh-"))
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.complaint = ""
        """The last words of an ssh that failed, or empty."""

    @property
    def socket(self) -> Endpoint:
        return Endpoint("unix", self._endpoint.origin, path=str(self._folder / "engine"))

    async def start(self) -> None:
        """Raises `EngineUnavailable` without an ssh client."""
        if shutil.which("ssh") is None:
            raise EngineUnavailable(f"{self._endpoint.url} needs an ssh client; install one")
        self._server = await asyncio.start_unix_server(self._serve, self._folder / "engine")

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            with contextlib.suppress(OSError):
                leave = await asyncio.create_subprocess_exec(
                    *self._ssh("-O", "exit"),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                )
                await leave.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ssh(self, *options: str) -> tuple[str, ...]:
        port = () if self._endpoint.port is None else ("-p", str(self._endpoint.port))
        login = ("-l", self._endpoint.user) if self._endpoint.user else ()
        shared = (
            "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ControlMaster=auto",
            "-o", f"ControlPath={self._folder}/%C", "-o", "ControlPersist=60",
        )  # fmt: skip
        return ("ssh", "-T", *shared, *port, *login, *options, "--", self._endpoint.host)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            process = await asyncio.create_subprocess_exec(
                *self._ssh(),
                "docker system dial-stdio",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as fault:
            self.complaint = str(fault)
            writer.close()
            return
        try:
            await self._pump(process, reader, writer)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            writer.close()

    async def _pump(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        out = asyncio.create_task(_feed(reader, process.stdin))
        words = asyncio.create_task(process.stderr.read(COMPLAINT))
        try:
            await _copy(process.stdout, writer)
            # before the socket closes, for whoever then asks why it did
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2):
                    told = (await words).decode("utf-8", "backslashreplace")
                    if await process.wait() != 0:
                        self.complaint = " ".join(told.split()) or self.complaint
        finally:
            out.cancel()
            words.cancel()
            await asyncio.gather(out, words, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


async def _feed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _copy(reader, writer)
    writer.close()
