from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.sandbox.backends import Backend
from harness.sandbox.docker import DockerBackend
from harness.sandbox.local import LocalBackend
from harness.sandbox.memory import MemoryBackend
from tests.contract.stations import SPEC, Station

DOCKER = pytest.param("docker", marks=pytest.mark.sandbox)
LOCAL = pytest.param("local", marks=pytest.mark.local)


def backend(kind: str) -> Backend:
    if kind == "docker":
        return DockerBackend()
    return LocalBackend() if kind == "local" else MemoryBackend()


def open_station(kind: str) -> Iterator[Station]:
    """One box for a test module; tests keep to folders of their own in it."""
    spec = SPEC if kind == "docker" else replace(SPEC, image=None)
    with asyncio.Runner() as runner:
        # an adapter may bind to the loop, so it is made on it
        async def start() -> Backend:
            return backend(kind)

        maker = runner.run(start())
        box = runner.run(maker.create(spec, run="contract"))
        try:
            yield Station(kind, box, runner)
        finally:
            runner.run(box.close())
            runner.run(maker.close())


@pytest.fixture(scope="module", params=["memory", LOCAL, DOCKER])
def station(request: pytest.FixtureRequest) -> Iterator[Station]:
    """Every backend."""
    yield from open_station(request.param)


@pytest.fixture(scope="module", params=[LOCAL, DOCKER])
def real(request: pytest.FixtureRequest) -> Iterator[Station]:
    """Backends with processes."""
    yield from open_station(request.param)


@pytest.fixture(scope="module", params=["memory", DOCKER])
def fenced(request: pytest.FixtureRequest) -> Iterator[Station]:
    """Backends whose user is never root on this machine."""
    yield from open_station(request.param)


@pytest.fixture(scope="module")
def boxed() -> Iterator[Station]:
    """A box with walls."""
    yield from open_station("docker")
