"""Calls to an engine: which faults become which errors, in which words."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import time
from pathlib import Path

import docker.errors
import pytest
import requests.exceptions

from harness.errors import EngineUnavailable, ImageMissing, SandboxError
from harness.sandbox.endpoint import Endpoint
from harness.sandbox.engine import TRANSLATED, Engine, EngineStatus, numbers, translate
from tests.sandbox.engines import serving
from tests.sandbox.supervising import ROOT

HERE = Endpoint("unix", "test", path="/run/x.sock")


def test_every_error_class_of_the_sdk_is_translated() -> None:
    own = {
        name
        for name, cls in inspect.getmembers(docker.errors, inspect.isclass)
        if issubclass(cls, Exception) and cls.__module__ == "docker.errors"
    }
    assert own == set(TRANSLATED)


@pytest.mark.parametrize("cause", [FileNotFoundError(2, "x"), ConnectionRefusedError(111, "x")])
def test_no_engine_says_how_to_start_one(cause: OSError) -> None:
    wrapped = docker.errors.DockerException(
        "Error while fetching server API version",
        requests.exceptions.ConnectionError("Connection aborted.", cause),
    )
    told = translate("reach the engine", wrapped, HERE)
    assert isinstance(told, EngineUnavailable)
    assert "no container engine answers at unix:///run/x.sock" in str(told)
    assert "systemctl start docker" in str(told)


def test_no_permission_names_the_group() -> None:
    told = translate("reach the engine", PermissionError(13, "x"), HERE)
    assert isinstance(told, EngineUnavailable)
    assert "usermod -aG docker" in str(told)


def test_a_missing_image_is_told_apart_from_other_missing_things() -> None:
    assert isinstance(translate("x", docker.errors.ImageNotFound("gone"), HERE), ImageMissing)
    assert not isinstance(translate("x", docker.errors.NotFound("gone"), HERE), ImageMissing)


def test_messages_are_one_bounded_line() -> None:
    told = str(translate("x", docker.errors.DockerException("a\nb\x1b[31m" + "c" * 5000), HERE))
    assert "\n" not in told
    assert len(told) < 700


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20.10.24+dfsg1", (20, 10, 24)),
        ("1.4.0-rc.3", (1, 4, 0)),
        ("v2", (2,)),
        ("", ()),
        ("x", ()),
    ],
)
def test_versions_are_read_as_far_as_they_are_numbers(text: str, expected: tuple[int, ...]) -> None:
    assert numbers(text) == expected


def test_no_socket_at_all(tmp_path: Path) -> None:
    async def go() -> None:
        engine = Engine(Endpoint("unix", "test", path=str(tmp_path / "none")))
        try:
            with pytest.raises(EngineUnavailable, match="no container engine answers"):
                await engine.info()
        finally:
            await engine.close()

    asyncio.run(go())


def test_an_old_engine_is_refused_by_its_api(tmp_path: Path) -> None:
    async def go() -> None:
        old = (200, {"Version": "19.03", "ApiVersion": "1.40"})
        async with serving(tmp_path, {"GET /version": old}) as (_, endpoint):
            engine = Engine(endpoint)
            with pytest.raises(EngineUnavailable, match=r"API 1\.40, and 1\.41 \(Docker 20\.10\)"):
                await engine.info()
            await engine.close()

    asyncio.run(go())


def test_a_status_keeps_its_number(tmp_path: Path) -> None:
    async def go() -> None:
        answers = {"GET /info": (500, {"message": "disk full"})}
        async with serving(tmp_path, answers) as (_, endpoint):
            engine = Engine(endpoint)
            with pytest.raises(EngineStatus, match="cannot describe the engine: disk full") as told:
                await engine.info()
            assert told.value.status == 500
            await engine.close()

    asyncio.run(go())


def test_a_call_has_a_deadline(tmp_path: Path) -> None:
    async def go() -> None:
        async with serving(tmp_path, {}) as (_, endpoint):
            engine = Engine(endpoint)
            with pytest.raises(EngineUnavailable, match=r"did not dawdle within 0\.05 s"):
                await engine.call("dawdle", lambda _: time.sleep(0.3), deadline=0.05)
            await engine.close()

    asyncio.run(go())


LEAVING = """
import asyncio, sys, time
from pathlib import Path
from harness.sandbox.engine import Engine
from tests.sandbox.engines import serving

async def go():
    async with serving(Path(sys.argv[1]), {}) as (_, endpoint):
        engine = Engine(endpoint)
        await engine.api_version()
        build = asyncio.create_task(engine.call("build", lambda _: time.sleep(60), deadline=900))
        await asyncio.sleep(0.2)
        if sys.argv[2] == "cancelled":
            build.cancel()
        await engine.close()

asyncio.run(go())
"""


@pytest.mark.parametrize("build", ["cancelled", "running"])
def test_a_slow_answer_does_not_hold_up_the_end_of_the_program(tmp_path: Path, build: str) -> None:
    started = time.monotonic()
    command = (sys.executable, "-c", LEAVING, str(tmp_path), build)
    done = subprocess.run(
        command, check=False, cwd=ROOT, timeout=30, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - started < 15


def test_what_a_job_raises_reaches_who_waits_for_it(tmp_path: Path) -> None:
    async def go() -> None:
        async with serving(tmp_path, {}) as (_, endpoint):
            engine = Engine(endpoint)
            with pytest.raises(ZeroDivisionError):
                await engine.call("divide", lambda _: 1 / 0)
            await engine.close()

    asyncio.run(go())


def test_a_closed_engine_refuses_calls(tmp_path: Path) -> None:
    async def go() -> None:
        async with serving(tmp_path, {}) as (_, endpoint):
            engine = Engine(endpoint)
            await engine.api_version()
            await engine.close()
            with pytest.raises(SandboxError, match="was closed"):
                await engine.info()

    asyncio.run(go())
