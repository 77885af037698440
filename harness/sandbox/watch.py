"""What the host sees of our boxes: the engine's own events of memory kills and deaths.

A box is removed by the engine as it dies, and what it says of itself is no evidence. So one
connection per controller listens all the time (Engine API 1.41, `SystemEvents`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote

from harness.errors import EngineUnavailable
from harness.sandbox.attach import connect, http_request
from harness.sandbox.endpoint import Endpoint
from harness.sandbox.reaper import OWNER

LINE_LIMIT = 256 * 1024
LAST = 64
"""Events remembered, so that one that comes twice counts once."""
PATIENCE = 10.0
"""Seconds for the engine to begin sending."""

_BROKEN = (
    EngineUnavailable,
    OSError,
    ValueError,
    EOFError,
    asyncio.LimitOverrunError,
    RecursionError,
)
"""What a connection may end with; `EOFError` covers asyncio's incomplete reads."""


@dataclass(slots=True)
class Sightings:
    """What was seen of one container. `exit_code` is the engine's number for PID 1."""

    ooms: int = 0
    exit_code: int | None = None
    died: asyncio.Event = field(default_factory=asyncio.Event)

    def words(self) -> tuple[str, ...]:
        found: list[str] = []
        if self.ooms:
            found.append(f"the engine reported {self.ooms} kills for want of memory")
        if self.exit_code is not None:
            found.append(f"the container's first process ended with code {self.exit_code}")
        return tuple(found)


class EventWatch:
    """Follows the events of one owner's containers, over reconnections."""

    def __init__(self, endpoint: Endpoint, api: str, owner: str) -> None:
        self._endpoint = endpoint
        filters = {"type": ["container"], "event": ["oom", "die"], "label": [f"{OWNER}={owner}"]}
        self._target = f"/v{api}/events?filters={quote(json.dumps(filters))}"
        self._since = ""
        self._last: deque[bytes] = deque(maxlen=LAST)
        self._seen: dict[str, Sightings] = {}
        self._task: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()

    def of(self, container: str) -> Sightings:
        """Sightings of a container, from now on. Call it before the container starts."""
        return self._seen.setdefault(container, Sightings())

    def forget(self, container: str) -> None:
        self._seen.pop(container, None)

    async def start(self) -> None:
        """Returns when the engine sends events. Raises `EngineUnavailable`."""
        if self._task is None or self._task.done():
            self._listening.clear()
            self._task = asyncio.create_task(self._follow())
        try:
            async with asyncio.timeout(PATIENCE):
                await self._listening.wait()
        except TimeoutError as fault:
            raise EngineUnavailable("the engine sends no events") from fault

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _follow(self) -> None:
        pause = 0.1
        while True:
            with contextlib.suppress(*_BROKEN):
                await self._listen()
                pause = 0.1
            self._listening.clear()
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)

    async def _listen(self) -> None:
        reader = asyncio.StreamReader(limit=LINE_LIMIT)
        transport = await connect(self._endpoint, lambda: asyncio.StreamReaderProtocol(reader))
        try:
            since = f"&since={self._since}" if self._since else ""
            transport.write(http_request("GET", self._target + since))
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n", 1)[0]:
                raise EngineUnavailable("the engine refused to send events")
            self._listening.set()
            pending = b""
            while data := await _piece(reader, chunked=b"chunked" in head.lower()):
                *lines, pending = (pending + data).split(b"\n")
                if len(pending) > LINE_LIMIT:
                    raise ValueError("an event is too long")
                for line in filter(None, lines):
                    self._note(line)
        finally:
            transport.abort()

    def _note(self, line: bytes) -> None:
        value: object = json.loads(line)
        if not isinstance(value, dict):
            return
        event = cast("dict[str, object]", value)
        if self._is_repeated(event, line):
            return
        seen = self._seen.get(str(event.get("id", "")))
        if seen is None:
            return
        if event.get("Action") == "oom":
            seen.ooms += 1
        elif event.get("Action") == "die":
            seen.exit_code = _exit_code(event)
            seen.died.set()

    def _is_repeated(self, event: dict[str, object], line: bytes) -> bool:
        """Whether it came before: a new connection begins with the event the last ended with."""
        moment = event.get("timeNano")
        if not isinstance(moment, int) or isinstance(moment, bool):
            self._since = str(event.get("time", ""))
            return False
        seconds, rest = divmod(moment, 1_000_000_000)
        self._since = f"{seconds}.{rest:09d}"
        if line in self._last:
            return True
        self._last.append(line)
        return False


async def _piece(reader: asyncio.StreamReader, *, chunked: bool) -> bytes:
    """The next bytes of the body; empty at its end."""
    if not chunked:
        return await reader.read(LINE_LIMIT)
    size = int(await reader.readline() or b"0", 16)
    if size > LINE_LIMIT:
        raise ValueError("an event is too long")
    data = await reader.readexactly(size)
    await reader.readexactly(2)
    return data


def _exit_code(event: dict[str, object]) -> int | None:
    actor = event.get("Actor")
    attributes = (
        cast("dict[str, object]", actor).get("Attributes") if isinstance(actor, dict) else None
    )
    if not isinstance(attributes, dict):
        return None
    text = str(cast("dict[str, object]", attributes).get("exitCode", ""))
    return int(text) if text.lstrip("-").isdecimal() else None
