"""The raw stream to a container: framing, refusals, ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import EngineUnavailable
from harness.sandbox.attach import BUFFER, Frames, attach
from harness.sandbox.endpoint import Endpoint

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
UPGRADED = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"


def docker_frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


@given(
    frames=st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=12),
    cuts=st.lists(st.integers(min_value=1, max_value=17), min_size=1),
)
def test_framing_does_not_depend_on_where_bytes_are_cut(
    frames: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    got: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
    reader = Frames(got[1].extend, got[2].extend)
    stream = b"".join(docker_frame(*f) for f in frames)
    at = 0
    while at < len(stream):
        for cut in cuts:
            reader.feed(memoryview(stream)[at : at + cut])
            at += cut
    for number in (1, 2):
        assert bytes(got[number]) == b"".join(d for n, d in frames if n == number)


@pytest.mark.parametrize("head", [b"HTTP/1.1", b"\x03\0\0\0\0\0\0\1", b"\1\0\0\1\0\0\0\1"])
def test_bytes_that_are_no_frame_are_refused(head: bytes) -> None:
    with pytest.raises(ValueError, match="where a frame begins"):
        Frames(lambda _: None, lambda _: None).feed(memoryview(head))


@contextlib.asynccontextmanager
async def engine(path: Path, serve: Serve) -> AsyncIterator[Endpoint]:
    """A socket that answers one attach as told."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await serve(reader, writer)
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_unix_server(handle, path)
    async with server:
        yield Endpoint("unix", "test", path=str(path))


def test_what_comes_with_the_head_is_not_lost(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert request.startswith(b"POST /v1.41/containers/abc/attach?stream=1")
        assert b"Upgrade: tcp" in request
        writer.write(UPGRADED + docker_frame(1, b"first") + docker_frame(2, b"oops"))
        writer.write(docker_frame(1, await reader.readexactly(4)))
        await writer.drain()

    async def go() -> None:
        async with engine(tmp_path / "s", serve) as endpoint:
            got = bytearray()
            ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            pipe = await attach(endpoint, "1.41", "abc")
            pipe.listen(got.extend, ended.set_result)
            pipe.write(b"echo")
            await pipe.drain()
            assert await asyncio.wait_for(ended, 5) == "the engine closed the stream"
            await pipe.closed()
            assert bytes(got) == b"firstecho"
            assert pipe.diagnostics == "oops"

    asyncio.run(go())


def test_a_box_that_floods_before_anybody_listens_is_dropped(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(UPGRADED + docker_frame(1, bytes(4 * BUFFER)))
        await writer.drain()

    async def go() -> list[str]:
        async with engine(tmp_path / "s", serve) as endpoint:
            pipe = await attach(endpoint, "1.41", "abc")
            await asyncio.wait_for(pipe.closed(), 5)
            reasons: list[str] = []
            pipe.listen(lambda _: None, reasons.append)
            return reasons

    assert asyncio.run(go()) == ["the box spoke too much before anybody listened"]


def test_more_than_the_buffer_comes_through(tmp_path: Path) -> None:
    size = 5 * BUFFER

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(UPGRADED)
        await reader.readexactly(1)
        writer.write(docker_frame(1, bytes(size)))
        await writer.drain()

    async def go() -> None:
        async with engine(tmp_path / "s", serve) as endpoint:
            got = bytearray()
            pipe = await attach(endpoint, "1.41", "abc")
            pipe.listen(got.extend, lambda _: None)
            pipe.write(b"!")
            await asyncio.wait_for(pipe.closed(), 5)
            assert len(got) == size

    asyncio.run(go())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\nno such container", "404 Not Found no such container"),
        (b"HTTP/1.1 409 Conflict\r\n\r\n", "409"),
        (b"nonsense\r\n\r\n", "refused to attach"),
        (b"x" * 70_000, "no end of head"),
        (b"", "closed the stream"),
    ],
)
def test_a_refusal_is_an_engine_error(tmp_path: Path, answer: bytes, words: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    async def go() -> None:
        async with engine(tmp_path / "s", serve) as endpoint:
            with pytest.raises(EngineUnavailable, match=words):
                await attach(endpoint, "1.41", "abc")

    asyncio.run(go())


def test_no_socket_is_an_engine_error(tmp_path: Path) -> None:
    missing = Endpoint("unix", "test", path=str(tmp_path / "none"))
    with pytest.raises(EngineUnavailable, match="cannot connect"):
        asyncio.run(attach(missing, "1.41", "abc"))


def test_diagnostics_keep_the_end_and_stay_small(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(UPGRADED + docker_frame(2, b"\xff" * 100_000) + docker_frame(2, b"last"))
        await writer.drain()

    async def go() -> None:
        async with engine(tmp_path / "s", serve) as endpoint:
            pipe = await attach(endpoint, "1.41", "abc")
            await asyncio.wait_for(pipe.closed(), 5)
            assert pipe.diagnostics.endswith("last")
            assert len(pipe.diagnostics) < 20_000

    asyncio.run(go())


def test_a_listener_that_comes_late_learns_of_the_end(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(UPGRADED)
        await writer.drain()

    async def go() -> list[str]:
        async with engine(tmp_path / "s", serve) as endpoint:
            pipe = await attach(endpoint, "1.41", "abc")
            await asyncio.wait_for(pipe.closed(), 5)
            reasons: list[str] = []
            pipe.listen(lambda _: None, reasons.append)
            return reasons

    assert asyncio.run(go()) == ["the engine closed the stream"]
