"""A box against what the engine itself offers, and against a bare process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import docker

from bench.perf.rows import Row, Watch, median
from harness.ports import Sandbox
from harness.sandbox.backends import Backend
from harness.values.commands import ExecRequest, FileKind, Upload
from harness.values.limits import GIB, BoxSpec, Limits
from harness.wiring.backends import make_backend

TRUE = ExecRequest(("true",))
LABEL = {"harness.bench": "peer"}
FILES = 10_000
FILE_BYTES = 10_000


async def measure() -> list[Row]:
    backend = make_backend("docker")
    client = docker.from_env()
    try:
        async with a_box(backend) as box:
            image = box.image
            rows = [await round_trip(box, client, image), await upload(box)]
        return [*rows, await cold_start(backend, client, image)]
    finally:
        await backend.close()
        client.close()


@asynccontextmanager
async def a_box(backend: Backend) -> AsyncGenerator[Sandbox, None]:
    limits = Limits(disk=GIB, memory=GIB)
    box = await backend.create(BoxSpec(limits=limits), run="bench")
    try:
        yield box
    finally:
        await box.close()


async def round_trip(box: Sandbox, client: Any, image: str) -> Row:
    """`true` in a warm box; peers and floor alternate with it, so they share the weather."""
    ours, sdk, command, floor = Watch(), Watch(), Watch(), Watch()
    for _ in range(20):
        await box.exec(TRUE)
    peer = client.containers.run(
        image, ["sleep", "600"], detach=True, network_mode="none", labels=LABEL
    )
    try:
        for _ in range(20):
            for _ in range(10):
                with ours:
                    await box.exec(TRUE)
                with floor:
                    process = os.posix_spawn("/bin/true", ["true"], {})
                    os.waitpid(process, 0)
            with sdk:
                peer.exec_run(["true"])
            if command_line := _docker_command():
                with command:
                    subprocess.run([command_line, "exec", peer.id, "true"], check=True)
    finally:
        peer.remove(force=True)
    mine = median(ours.laps)
    peers = {"docker exec (SDK)": median(sdk.laps)}
    if command.laps:
        peers["docker exec (command)"] = median(command.laps)
    peers["fork and exec on the host"] = median(floor.laps)
    met = mine <= 2.5 and mine * 30 <= peers["docker exec (SDK)"]
    target = "≤ 2.5 ms and ≤ 1/30 of docker exec"
    return Row("exec round trip, warm box, p50", mine, "ms", target, met, peers)


def _docker_command() -> str | None:
    for folder in os.environ.get("PATH", "").split(":"):
        if os.access(f"{folder}/docker", os.X_OK):
            return f"{folder}/docker"
    return None


async def upload(box: Sandbox) -> Row:
    watch = Watch()
    data = os.urandom(FILE_BYTES)
    for attempt in range(3):
        entries = [Upload(f"up{attempt}".encode(), FileKind.DIRECTORY, 0o755)]
        for n in range(FILES // 100):
            folder = f"up{attempt}/{n}"
            entries.append(Upload(folder.encode(), FileKind.DIRECTORY, 0o755))
            for m in range(100):
                entries.append(Upload(f"{folder}/{m}".encode(), FileKind.FILE, 0o644, data))
        with watch:
            await box.upload(entries)
    mine = median(watch.laps, 1)
    return Row("upload of 10,000 files, 100 MB", mine, "s", "≤ 3 s", mine <= 3)


async def cold_start(backend: Backend, client: Any, image: str) -> Row:
    """Until the first command has run, against the engine's create and start alone."""
    ours, theirs = Watch(), Watch()
    for _ in range(5):
        with ours:
            box = await backend.create(BoxSpec(), run="bench")
            await box.exec(TRUE)
        await box.close()
        with theirs:
            peer = client.containers.create(
                image, ["sleep", "60"], network_mode="none", labels=LABEL
            )
            peer.start()
        peer.remove(force=True)
    mine, peer_time = median(ours.laps), median(theirs.laps)
    return Row(
        "cold start to the end of the first command",
        mine,
        "ms",
        "≤ 1.15 × docker create and start",
        mine <= 1.15 * peer_time,
        {"docker create and start": peer_time},
    )
