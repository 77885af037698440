"""The engine's events: counted per box, over odd cuts and lost connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.errors import EngineUnavailable
from harness.sandbox.endpoint import Endpoint
from harness.sandbox.watch import EventWatch

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def event(action: str, container: str = "c1", **attributes: str) -> bytes:
    value = {"Action": action, "id": container, "time": 7, "Actor": {"Attributes": attributes}}
    return json.dumps(value).encode() + b"\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@contextlib.asynccontextmanager
async def events(
    folder: Path, *answers: list[bytes]
) -> AsyncIterator[tuple[EventWatch, list[str]]]:
    """An engine that sends one list of pieces per connection, then hangs up."""
    asked: list[str] = []
    done = asyncio.Event()
    writers: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().split(" ")[1])
        number = len(asked) - 1
        for piece in answers[number] if number < len(answers) else []:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        if number >= len(answers) - 1:
            await done.wait()
        writer.close()

    server = await asyncio.start_unix_server(handle, folder / "s")
    watch = EventWatch(Endpoint("unix", "test", path=str(folder / "s")), "1.41", "me")
    async with server:
        try:
            yield watch, asked
        finally:
            await watch.close()
            done.set()
            await asyncio.sleep(0.02)
            for writer in writers:
                writer.transport.abort()
            await asyncio.sleep(0.02)


def test_memory_kills_and_the_end_are_counted_per_box(tmp_path: Path) -> None:
    async def go() -> None:
        end = event("die", exitCode="137")
        pieces = [
            HEAD,
            chunk(event("oom") + event("oom", "other")),
            chunk(event("oom")),
            chunk(end),
        ]
        async with events(tmp_path, pieces) as (watch, asked):
            seen = watch.of("c1")
            await watch.start()
            await asyncio.wait_for(seen.died.wait(), 5)
            assert (seen.ooms, seen.exit_code) == (2, 137)
            assert seen.words() == (
                "the engine reported 2 kills for want of memory",
                "the container's first process ended with code 137",
            )
            assert "harness.owner%3Dme" in asked[0]

    asyncio.run(go())


def test_an_event_may_be_cut_over_chunks(tmp_path: Path) -> None:
    async def go() -> None:
        whole = event("die", exitCode="0")
        stream = HEAD + chunk(whole[:20]) + chunk(whole[20:])
        pieces = [bytes([b]) for b in stream[:70]] + [stream[70:]]
        async with events(tmp_path, pieces) as (watch, _):
            seen = watch.of("c1")
            await watch.start()
            await asyncio.wait_for(seen.died.wait(), 5)
            assert seen.exit_code == 0

    asyncio.run(go())


def test_a_lost_connection_is_made_again_from_where_it_was(tmp_path: Path) -> None:
    async def go() -> None:
        first = [HEAD, chunk(event("oom"))]
        second = [HEAD, chunk(event("die", exitCode="1"))]
        async with events(tmp_path, first, second) as (watch, asked):
            seen = watch.of("c1")
            await watch.start()
            await asyncio.wait_for(seen.died.wait(), 5)
            assert seen.ooms == 1
            assert asked[1].endswith("&since=7")

    asyncio.run(go())


def timed(action: str, nanoseconds: int, **attributes: str) -> bytes:
    value = json.loads(event(action, **attributes))
    return json.dumps({**value, "timeNano": nanoseconds}).encode() + b"\n"


def test_an_event_that_comes_again_after_a_reconnection_counts_once(tmp_path: Path) -> None:
    async def go() -> None:
        moment = 7_000_000_123
        last = timed("oom", moment)
        first = [HEAD, chunk(timed("oom", moment - 5)), chunk(last)]
        second = [HEAD, chunk(last), chunk(timed("oom", moment + 1)), chunk(event("die"))]
        async with events(tmp_path, first, second) as (watch, asked):
            seen = watch.of("c1")
            await watch.start()
            await asyncio.wait_for(seen.died.wait(), 5)
            assert seen.ooms == 3
            assert asked[1].endswith("&since=7.000000123")

    asyncio.run(go())


@pytest.mark.parametrize("endless", [b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000])
def test_an_answer_without_an_end_of_head_does_not_end_the_watch(
    tmp_path: Path, endless: bytes
) -> None:
    async def go() -> None:
        good = [HEAD, chunk(event("die", exitCode="3"))]
        async with events(tmp_path, [endless], good) as (watch, _):
            seen = watch.of("c1")
            await watch.start()
            await asyncio.wait_for(seen.died.wait(), 5)
            assert seen.exit_code == 3

    asyncio.run(go())


@pytest.mark.parametrize(
    "noise",
    [
        b"zz\r\n",
        chunk(b"[" * 100_000 + b"\n"),
        chunk(b"not json\n"),
        chunk(b"[]\n"),
        b"ffffffff\r\n",
        chunk(b'{"id": 3}\n'),
    ],
)
def test_noise_does_not_end_the_watch(tmp_path: Path, noise: bytes) -> None:
    async def go() -> None:
        good = [HEAD, noise, chunk(event("die", exitCode="3"))]
        async with events(tmp_path, good, [HEAD, chunk(event("die", exitCode="3"))]) as (watch, _):
            seen = watch.of("c1")
            await watch.start()
            await asyncio.wait_for(seen.died.wait(), 5)
            assert seen.exit_code == 3

    asyncio.run(go())


def test_an_engine_that_sends_no_events_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.sandbox.watch.PATIENCE", 0.2)

    async def go() -> None:
        async with events(tmp_path, [b"HTTP/1.1 500 X\r\n\r\n"]) as (watch, _):
            with pytest.raises(EngineUnavailable, match="sends no events"):
                await watch.start()

    asyncio.run(go())
