"""Boxes begin, end and are found again; what a dead controller leaves goes away."""

from __future__ import annotations

import asyncio
import contextlib
import io
import math
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import (
    EngineUnavailable,
    ImageMissing,
    SandboxError,
    SandboxLost,
    SandboxRefused,
)
from harness.sandbox import reaper
from harness.sandbox.binary import supervisor_binary
from harness.sandbox.delivery import LABEL, volume_name
from harness.sandbox.docker import DockerBackend
from harness.sandbox.endpoint import Endpoint, discover
from harness.sandbox.images import Images
from harness.sandbox.owner import Owner
from harness.sandbox.supervised import SupervisedSandbox
from harness.values.commands import ExecRequest
from tests.contract.stations import SMALL, SPEC

pytestmark = pytest.mark.sandbox

HERE = discover(os.environ, Path.home())
SLEEP = ExecRequest(("sleep", "60"), timeout=50.0)


def play(scene: Callable[[DockerBackend], Awaitable[None]], **options: object) -> None:
    async def go() -> None:
        backend = DockerBackend(**options)  # type: ignore[arg-type]
        try:
            await scene(backend)
        finally:
            await backend.close()

    asyncio.run(go())


async def containers(backend: DockerBackend, run: str) -> list[reaper.BoxRow]:
    return [row for row in await backend.list_boxes() if row.run == run]


def test_a_closed_box_is_gone_and_may_be_closed_again() -> None:
    async def scene(backend: DockerBackend) -> None:
        box = await backend.create(SPEC, run="closing")
        (row,) = await containers(backend, "closing")
        assert (row.state, row.leased, row.life.value) == ("running", True, "alive")
        assert row.deadline is not None
        assert row.deadline > time.time() + SMALL.wall
        await box.close()
        assert await containers(backend, "closing") == []
        await box.close()
        with pytest.raises(SandboxError):
            await box.exec(SLEEP)
        with pytest.raises(SandboxError):
            await box.read("/etc/passwd")

    play(scene)


def test_closing_ends_what_still_runs() -> None:
    async def scene(backend: DockerBackend) -> None:
        box = await backend.create(SPEC, run="busy")
        running = asyncio.create_task(box.exec(SLEEP))
        await asyncio.sleep(0.3)
        started = time.monotonic()
        await box.close()
        assert time.monotonic() - started < 5
        with pytest.raises(SandboxError):
            await running

    play(scene)


def test_a_box_that_is_killed_is_lost_with_evidence() -> None:
    async def scene(backend: DockerBackend) -> None:
        box = await backend.create(SPEC, run="killed")
        (row,) = await containers(backend, "killed")
        running = asyncio.create_task(box.exec(SLEEP))
        await asyncio.sleep(0.3)
        assert await reaper.remove(backend.engine, row.container)
        with pytest.raises(SandboxLost) as told:
            await running
        assert any("ended with code 137" in line for line in told.value.evidence)
        with pytest.raises(SandboxLost):
            await box.stat("/workspace")
        await box.close()

    play(scene)


def test_a_box_without_a_wall_limit_waits_for_a_person_for_days() -> None:
    async def scene(backend: DockerBackend) -> None:
        spec = replace(SPEC, limits=replace(SMALL, wall=math.inf))
        box = await backend.create(spec, run="patient")
        (row,) = await containers(backend, "patient")
        assert row.deadline is not None
        assert row.deadline > time.time() + 365 * 86400
        assert (await box.exec(ExecRequest(("true",)))).ok
        await box.close()
        assert await containers(backend, "patient") == []

    play(scene)


def test_a_box_ends_at_its_wall_limit() -> None:
    async def scene(backend: DockerBackend) -> None:
        spec = replace(SPEC, limits=replace(SMALL, wall=1.0))
        box = await backend.create(spec, run="wall")
        with pytest.raises(SandboxLost, match="limit of 1 s"):
            await box.exec(SLEEP)
        await box.close()
        assert await containers(backend, "wall") == []

    play(scene)


@contextlib.asynccontextmanager
async def relay(path: Path) -> AsyncIterator[Callable[[], None]]:
    """A socket that leads to the engine until it is cut."""
    writers: list[asyncio.StreamWriter] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(HERE.path)
        writers.extend((writer, back))
        await asyncio.gather(pump(reader, back), pump(there, writer))

    server = await asyncio.start_unix_server(handle, path)

    def cut() -> None:
        server.close()
        path.unlink(missing_ok=True)
        for writer in writers:
            writer.transport.abort()

    try:
        yield cut
    finally:
        cut()
        await asyncio.sleep(0.05)


def test_an_engine_that_goes_away_loses_the_box_and_leaves_none(tmp_path: Path) -> None:
    async def go() -> None:
        here = DockerBackend()
        async with relay(tmp_path / "engine") as cut:
            far = Endpoint("unix", "test", path=str(tmp_path / "engine"))
            backend = DockerBackend(endpoint=far, orphan_seconds=3.0)
            box = await backend.create(SPEC, run="cut")
            running = asyncio.create_task(box.exec(SLEEP))
            await asyncio.sleep(0.3)
            cut()
            with pytest.raises(SandboxLost):
                await asyncio.wait_for(running, 10)
            started = time.monotonic()
            await box.close()
            assert time.monotonic() - started < 12
            with pytest.raises(EngineUnavailable, match="no container engine answers"):
                await backend.create(SPEC, run="cut")
            await backend.close()
        await gone(here, "cut", within=40)
        await here.close()

    asyncio.run(go())


async def gone(backend: DockerBackend, run: str, *, within: float) -> None:
    end = time.monotonic() + within
    while await containers(backend, run):
        assert time.monotonic() < end, f"a box is left after {within} s"
        await asyncio.sleep(0.2)


CONTROLLER = """
import asyncio, sys
from harness.sandbox.docker import DockerBackend
from harness.values.commands import ExecRequest
from tests.contract.stations import SPEC
async def main():
    backend = DockerBackend()
    box = await backend.create(SPEC, run=sys.argv[1])
    print("ready", flush=True)
    await box.exec(ExecRequest(("sleep", "300")))
asyncio.run(main())
"""


def killed_controller(run: str) -> None:
    """Start a process that makes a box and works in it; SIGKILL it."""
    child = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, run],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.2)
        child.kill()


def test_a_killed_controller_leaves_no_box_with_nobody_looking() -> None:
    killed_controller("orphan")

    async def scene(backend: DockerBackend) -> None:
        assert await containers(backend, "orphan")
        await gone(backend, "orphan", within=55)

    play(scene)


def test_a_dead_controllers_box_is_reaped_at_once() -> None:
    killed_controller("reaped")

    async def scene(backend: DockerBackend) -> None:
        (row,) = await containers(backend, "reaped")
        assert (row.leased, row.life.value) == (False, "dead")
        mine = await backend.create(SPEC, run="living")
        await backend.reap()
        assert await containers(backend, "reaped") == []
        assert len(await containers(backend, "living")) == 1
        await mine.close()

    play(scene)


def test_a_box_whose_controller_died_before_starting_it_is_reaped() -> None:
    """It runs nothing and has no timer: the next controller on this machine takes it."""

    async def scene(backend: DockerBackend) -> None:
        owner = replace(Owner.current(), pid=2**22 + 1, started="1")
        image = (await backend.images.resolve(SPEC.image)).digest
        labels = {reaper.OWNER: str(owner), reaper.RUN: "unstarted", reaper.BOX: "unstarted"}
        await backend.engine.call(
            "prepare",
            lambda c: c.create_container_from_config(
                {"Image": image, "Cmd": ["x"], "Labels": {**labels, reaper.DEADLINE: "9" * 12}}
            ),
        )
        (row,) = await containers(backend, "unstarted")
        assert row.state == "created"
        assert [r.gone for r in await backend.reap() if r.row.run == "unstarted"] == [True]
        assert await containers(backend, "unstarted") == []

    play(scene)


def test_a_create_that_is_cancelled_leaves_nothing() -> None:
    async def scene(backend: DockerBackend) -> None:
        await (await backend.create(SPEC, run="warm")).close()
        for pause in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3):
            task = asyncio.create_task(backend.create(SPEC, run="cancelled"))
            await asyncio.sleep(pause)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await (await task).close()
            assert await containers(backend, "cancelled") == []

    play(scene)


def test_a_volume_that_was_never_filled_is_filled() -> None:
    program = supervisor_binary().read_bytes() + os.urandom(8)
    name = volume_name(program)

    async def scene(backend: DockerBackend) -> None:
        await backend.engine.call("prepare", lambda c: c.create_volume(name, labels={LABEL: "t"}))
        try:
            box = await backend.create(SPEC, run="unfilled")
            assert (await box.exec(ExecRequest(("true",)))).ok
            await box.close()
        finally:
            await backend.engine.call("clean up", lambda c: c.remove_volume(name))

    play(scene, supervisor=program)


def test_an_image_without_any_program_still_makes_a_box() -> None:
    """Volumes of the image are covered, its own files are not needed."""

    async def scene(backend: DockerBackend) -> None:
        empty = io.BytesIO()
        with tarfile.open(fileobj=empty, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("hello"))
        tag = f"t{os.getpid()}"
        await backend.engine.call(
            "import",
            lambda c: c.import_image_from_data(
                empty.getvalue(), "harness-test/empty", tag, changes=["VOLUME /data"]
            ),
        )
        try:
            box = await backend.create(
                replace(SPEC, image=f"harness-test/empty:{tag}"), run="empty"
            )
            assert (await box.exec(ExecRequest(("sh",)))).code == 127
            await box.write("/data/x", b"1")
            assert await box.read("/data/x") == b"1"
            names = [s.path for s in await box.list("/")]
            assert b"hello" in names
            await box.close()
        finally:
            await backend.engine.call(
                "clean up", lambda c: c.remove_image(f"harness-test/empty:{tag}", force=True)
            )

    play(scene)


def test_what_cannot_be_had_is_refused_before_anything_is_made() -> None:
    async def scene(backend: DockerBackend) -> None:
        with pytest.raises(SandboxRefused, match="no runtime `nope`"):
            await backend.create(replace(SPEC, runtime="nope"), run="refused")
        with pytest.raises(ImageMissing, match="docker pull no/such:image"):
            await backend.create(replace(SPEC, image="no/such:image"), run="refused")
        huge = replace(SPEC, limits=replace(SMALL, memory=1 << 50))
        with pytest.raises(SandboxRefused, match="available"):
            await backend.create(huge, run="refused")
        assert await containers(backend, "refused") == []

    play(scene)


def test_a_first_create_that_fails_does_not_keep_the_backend_open() -> None:
    async def go() -> None:
        backend = DockerBackend()
        with pytest.raises(ImageMissing):
            await backend.create(replace(SPEC, image="no/such:image"), run="refused")
        async with asyncio.timeout(10):
            await backend.close()

    for _ in range(10):
        asyncio.run(go())


def test_boxes_are_made_side_by_side() -> None:
    async def scene(backend: DockerBackend) -> None:
        made = await asyncio.gather(*(backend.create(SPEC, run="many") for _ in range(3)))
        assert len(await containers(backend, "many")) == 3
        words = await asyncio.gather(*(_word(box, str(n)) for n, box in enumerate(made)))
        assert words == [b"0", b"1", b"2"]
        await asyncio.gather(*(box.close() for box in made))
        assert await containers(backend, "many") == []

    play(scene)


async def _word(box: SupervisedSandbox, word: str) -> bytes:
    await box.write("/workspace/w", word.encode())
    return (await box.exec(ExecRequest(("cat", "w")))).stdout.data


def test_the_base_image_is_there_or_was_made() -> None:
    async def scene(backend: DockerBackend) -> None:
        found = await Images(backend.engine).base()
        assert found.digest.startswith("sha256:")

    play(scene)
