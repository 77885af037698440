"""The local box: what it promises, what it refuses, what it leaves."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import os
from pathlib import Path

import pytest

from harness.errors import SandboxError, SandboxLost, SandboxRefused
from harness.sandbox.local import LocalBackend, LocalSandbox
from harness.values.commands import ExecRequest
from harness.values.limits import BoxSpec, Enforcement, Limits
from tests.sandbox.supervising import alive, local_box, run, shell, supervisor

pytestmark = pytest.mark.local


@pytest.mark.parametrize(
    "spec",
    [
        BoxSpec(require=frozenset({"memory"})),
        BoxSpec(require=frozenset({"isolation"})),
        BoxSpec(image="debian:12"),
        BoxSpec(runtime="runsc"),
    ],
)
def test_what_it_cannot_give_is_refused(spec: BoxSpec) -> None:
    with pytest.raises(SandboxRefused, match="local backend"):
        asyncio.run(LocalBackend().create(spec, run="r"))


def test_it_names_every_limit_and_isolates_nothing() -> None:
    async def go() -> None:
        async with local_box() as box:
            can = box.capabilities
            assert can.limits.keys() == {field.name for field in dataclasses.fields(Limits)}
            assert can.limits["nofile"] is Enforcement.HARD
            assert can.limits["memory"] is Enforcement.NONE
            assert (can.backend, can.isolated, box.image) == ("local", False, "local")
            assert can.features["network"] == "host"
            assert (await run(box, "ulimit -n; ulimit -c")).stdout.data == b"4096\n0\n"

    asyncio.run(go())


def test_the_environment_is_ours_the_specs_and_the_requests_in_that_order() -> None:
    async def go() -> bytes:
        spec = BoxSpec(env={"A": "spec", "B": "spec", "LANG": "C"})
        box = await LocalSandbox.start(spec, binary=supervisor())
        try:
            result = await box.exec(ExecRequest(("env",), env={"B": "call"}))
            assert f"HOME={Path(box.root).parent}/home".encode() in result.stdout.data
            return result.stdout.data
        finally:
            await box.close()

    os.environ["SECRET_OF_THE_HOST"] = "1"
    try:
        lines = set(asyncio.run(go()).split())
    finally:
        del os.environ["SECRET_OF_THE_HOST"]
    assert {b"A=spec", b"B=call", b"LANG=C"} <= lines
    assert not any(line.startswith(b"SECRET") for line in lines)


def test_closing_removes_every_process_and_the_directory() -> None:
    async def go() -> tuple[Path, int]:
        async with local_box() as box:
            result = await run(box, "setsid sleep 60 & echo $!; mkdir -p a/b; chmod 0 a")
            await box.close()
            with pytest.raises(SandboxError, match="closed"):
                await run(box, "true")
            return Path(box.root).parent, int(result.stdout.data)

    folder, pid = asyncio.run(go())
    assert not folder.exists()
    assert not alive(pid)


def test_closing_ends_a_command_that_runs() -> None:
    async def go() -> None:
        async with local_box() as box:
            running = asyncio.create_task(run(box, "trap '' TERM; sleep 60"))
            await asyncio.sleep(0.1)
            await box.close()
            with pytest.raises(SandboxError, match="closed"):
                await running

    asyncio.run(go())


def test_the_end_of_its_time_is_a_lost_box() -> None:
    async def go() -> None:
        box = await LocalSandbox.start(BoxSpec(limits=Limits(wall=0.2)), binary=supervisor())
        try:
            with pytest.raises(SandboxLost, match="end of its time"):
                await box.exec(shell("sleep 60"))
        finally:
            await box.close()

    asyncio.run(go())


def test_a_box_without_an_end_of_its_time_is_not_ended() -> None:
    async def go() -> None:
        box = await LocalSandbox.start(BoxSpec(limits=Limits(wall=math.inf)), binary=supervisor())
        try:
            assert (await box.exec(shell("sleep 0.3"))).ok
        finally:
            await box.close()

    asyncio.run(go())


def test_a_killed_supervisor_is_a_lost_box_and_leaves_nothing() -> None:
    async def go() -> tuple[Path, int]:
        async with local_box() as box:
            result = await run(box, "sleep 60 & echo $!")
            keeper = (await run(box, "echo $PPID")).stdout.data.decode().strip()
            assert int(keeper) > 0
            script = "kill -9 $(ps -o ppid= -p $PPID); sleep 60"
            with pytest.raises(SandboxLost, match="supervisor has ended"):
                await run(box, script)
            return Path(box.root).parent, int(result.stdout.data)

    folder, pid = asyncio.run(go())
    assert not folder.exists()
    for _ in range(100):
        if not alive(pid):
            break
        asyncio.run(asyncio.sleep(0.02))
    assert not alive(pid)


def test_a_program_that_is_no_supervisor_is_said() -> None:
    async def go(path: str) -> None:
        await LocalSandbox.start(binary=Path(path))

    with pytest.raises(SandboxError, match="cannot start"):
        asyncio.run(go("/no/such/program"))
    with pytest.raises(SandboxLost, match="has ended"):
        asyncio.run(go("/bin/true"))


def test_an_output_limit_of_the_box_binds_every_command() -> None:
    async def go() -> str:
        box = await LocalSandbox.start(BoxSpec(limits=Limits(output=1000)), binary=supervisor())
        try:
            return (await box.exec(shell("yes", grace=0.0))).reason
        finally:
            await box.close()

    assert asyncio.run(go()) == "output_limit"
