"""A container engine's HTTP side on a socket, answering from a table."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.sandbox.endpoint import Endpoint

Answer = tuple[int, object]
Answers = Mapping[str, Answer | Callable[[], Answer]]

VERSION: Answer = (200, {"Version": "20.10.24", "ApiVersion": "1.41", "MinAPIVersion": "1.12"})


@dataclass
class TableEngine:
    """`answers` maps `METHOD /path` (without version and query) to status and JSON.

    What is not in the table is a 404. `seen` lists what was asked, `bodies` what was sent.
    """

    answers: dict[str, Any]
    seen: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    writers: set[asyncio.StreamWriter] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.writers.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"(?i)content-length: (\d+)", head)
                self.bodies.append(await reader.readexactly(int(length[1]) if length else 0))
                method, target = head.split(" ")[:2]
                path = re.sub(r"^/v[\d.]+", "", target.split("?")[0])
                self.seen.append(f"{method} {path}")
                writer.write(self._reply(f"{method} {path}"))
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def close(self) -> None:
        for writer in self.writers:
            writer.close()
        await asyncio.gather(*self.tasks)

    def _reply(self, key: str) -> bytes:
        answer = self.answers.get(key, (404, {"message": f"no {key}"}))
        status, value = answer() if callable(answer) else answer
        body = b"" if status == 204 else json.dumps(value).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@contextlib.asynccontextmanager
async def serving(folder: Path, answers: Answers) -> AsyncIterator[tuple[TableEngine, Endpoint]]:
    fake = TableEngine({"GET /version": VERSION, **answers})
    path = folder / "engine.sock"
    server = await asyncio.start_unix_server(fake.handle, path)
    async with server:
        try:
            yield fake, Endpoint("unix", "test", path=str(path))
        finally:
            await fake.close()
