"""The data side of a container: its attached stdin, stdout and stderr over one raw socket.

A POST with `Upgrade: tcp` turns the connection into a stream (Docker Engine API 1.41,
`ContainerAttach`). Without a terminal, what comes back is framed: a stream number, three
zeros, a big-endian length of 32 bits, then that many bytes.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from harness.errors import EngineUnavailable
from harness.sandbox.endpoint import Endpoint
from harness.sandbox.streams import BUFFER, Stream

HEAD_LIMIT = 16 * 1024
"""Bytes of a reply's head. The engine is trusted, and still gets no unbounded buffer."""
DIAGNOSTICS = 4 * 1024
"""Bytes kept of what the supervisor last wrote to its stderr."""

Feed = Callable[[memoryview], None]
"""Must copy what it keeps: the buffer is used again."""
Lost = Callable[[str], None]


class Frames:
    """Takes Docker's framing off a stream. Knows no socket."""

    def __init__(self, stdout: Feed, stderr: Feed) -> None:
        self._sinks = {1: stdout, 2: stderr}
        self._head = bytearray()
        self._left = 0
        self._sink: Feed | None = None

    def feed(self, data: memoryview) -> None:
        """Raises `ValueError` for bytes that are no frame."""
        at = 0
        while at < len(data):
            if self._left:
                piece = data[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                if self._sink is not None:
                    self._sink(piece)
                continue
            piece = data[at : at + 8 - len(self._head)]
            at += len(piece)
            self._head += piece
            if len(self._head) == 8:
                self._open(bytes(self._head))
                self._head.clear()

    def _open(self, head: bytes) -> None:
        if head[0] > 2 or head[1:4] != b"\0\0\0":
            raise ValueError(f"the engine sent {head.hex()} where a frame begins")
        self._sink = self._sinks.get(head[0])
        self._left = int.from_bytes(head[4:8], "big")


class AttachProtocol(Stream):
    """The attached stream, without its head and its framing."""

    def __init__(self, request: bytes) -> None:
        super().__init__()
        self._request = request
        self._feed: Feed | None = None
        self._lost: Lost | None = None
        self._reason = ""
        self._early = bytearray()
        self._head: bytearray | None = bytearray()
        self._diagnostics = bytearray()
        self._frames = Frames(self._out, self._diagnose)
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def diagnostics(self) -> str:
        """The last words on the supervisor's stderr, of bounded length."""
        return bytes(self._diagnostics).decode("utf-8", "backslashreplace")

    def listen(self, feed: Feed, lost: Lost) -> None:
        self._feed, self._lost = feed, lost
        early, self._early = self._early, bytearray()
        if early:
            feed(memoryview(early))
        if self._reason:
            lost(self._reason)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.write(self._request)

    def taken(self, data: memoryview) -> None:
        try:
            if self._head is not None:
                data = self._read_head(data)
            self._frames.feed(data)
        except ValueError as fault:
            self._fail(str(fault))

    def ended(self, exc: Exception | None) -> None:
        self._fail("the engine closed the stream" if exc is None else f"the stream broke: {exc}")

    def _read_head(self, data: memoryview) -> memoryview:
        head = self._head
        assert head is not None
        before = len(head)
        head += data
        end = head.find(b"\r\n\r\n")
        if end < 0:
            if len(head) > HEAD_LIMIT:
                raise ValueError("the engine's reply to attach has no end of head")
            return data[:0]
        self._head = None
        status = head.split(b"\r\n", 1)[0].decode("latin-1")
        code = status.split(" ")[1] if status.count(" ") else ""
        if code not in {"101", "200"}:
            body = bytes(head[end + 4 :]).decode("utf-8", "replace").strip()
            raise ValueError(f"the engine refused to attach: {status[:100]} {body[:300]}")
        if not self.opened.done():
            self.opened.set_result(None)
        return data[end + 4 - before :]

    def _out(self, data: memoryview) -> None:
        if self._feed is not None:
            self._feed(data)
        elif len(self._early) + len(data) > BUFFER:
            raise ValueError("the box spoke too much before anybody listened")
        else:
            self._early += data

    def _diagnose(self, data: memoryview) -> None:
        self._diagnostics += data
        del self._diagnostics[:-DIAGNOSTICS]

    def _fail(self, reason: str) -> None:
        if not self.opened.done():
            self.opened.set_exception(EngineUnavailable(reason))
        if not self._reason:
            self._reason = reason
            if self._lost is not None:
                self._lost(reason)
        self.close()


class AttachPipe:
    """Write end of an attached box, as `link` wants it."""

    def __init__(self, protocol: AttachProtocol) -> None:
        self._protocol = protocol

    @property
    def diagnostics(self) -> str:
        return self._protocol.diagnostics

    def write(self, data: bytes) -> None:
        self._protocol.write(data)

    async def drain(self) -> None:
        await self._protocol.drain()

    def listen(self, feed: Feed, lost: Lost) -> None:
        """`feed` gets stdout as it comes, `lost` one reason when the stream ends; neither may
        block. What came before the call is given at once."""
        self._protocol.listen(feed, lost)

    def close(self) -> None:
        self._protocol.close()

    async def closed(self) -> None:
        """Returns when the socket is gone, which must be before the box is removed: an engine
        with a client that no longer reads hangs on removal."""
        await self._protocol.closed.wait()


async def attach(endpoint: Endpoint, api: str, container: str) -> AttachPipe:
    """Attach to a created or running container. Raises `EngineUnavailable`."""
    query = "stream=1&stdin=1&stdout=1&stderr=1"
    request = http_request("POST", f"/v{api}/containers/{container}/attach?{query}", upgrade=True)
    protocol = AttachProtocol(request)
    try:
        async with asyncio.timeout(10):
            await connect(endpoint, lambda: protocol)
            await protocol.opened
    except TimeoutError as fault:
        _drop(protocol)
        raise EngineUnavailable("the engine did not answer to attach within 10 s") from fault
    except (asyncio.CancelledError, EngineUnavailable):
        _drop(protocol)
        raise
    return AttachPipe(protocol)


def _drop(protocol: AttachProtocol) -> None:
    protocol.opened.cancel()
    protocol.close()


async def connect(
    endpoint: Endpoint, factory: Callable[[], asyncio.BaseProtocol]
) -> asyncio.WriteTransport:
    """Open a raw connection to an engine. Raises `EngineUnavailable`."""
    loop = asyncio.get_running_loop()
    try:
        if endpoint.scheme == "unix":
            made, _ = await loop.create_unix_connection(factory, endpoint.path)
            return made
        if endpoint.scheme == "tcp" and endpoint.port is not None:
            secure = None if endpoint.tls is None else endpoint.tls.context()
            made, _ = await loop.create_connection(
                factory, endpoint.host, endpoint.port, ssl=secure
            )
            return made
        raise EngineUnavailable(f"no direct connection to {endpoint.url} is possible")
    except (OSError, ssl.SSLError) as fault:
        raise EngineUnavailable(f"cannot connect to {endpoint.url}: {fault}") from fault


def http_request(method: str, target: str, *, upgrade: bool = False) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: docker", "User-Agent: sandbox-harness"]
    if upgrade:
        lines += ["Connection: Upgrade", "Upgrade: tcp"]
    return "\r\n".join([*lines, "Content-Length: 0", "", ""]).encode("latin-1")
