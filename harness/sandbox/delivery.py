"""How the supervisor gets into a box: a read-only volume, filled through the engine alone.

The binary is imported as a one-file image. Creating a container on that image with an empty
volume at the same place makes the engine copy the file into the volume; the container is never
started. So it works on an engine of another machine, and for images that hold nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import tarfile

from harness.errors import SandboxError
from harness.sandbox.engine import Client, Engine, is_status, text_at
from harness.sandbox.hardening import SUPERVISOR, SUPERVISOR_MOUNT

REPOSITORY = "sandbox-harness/supervisor"
LABEL = "harness.supervisor"
_NOT_THERE = ("no such file or directory", "executable file not found", "not found: no such file")


def volume_name(binary: bytes) -> str:
    return f"harness-supervisor-{hashlib.sha256(binary).hexdigest()[:16]}"


def supervisor_tar(binary: bytes) -> bytes:
    """The same binary gives the same bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        folder = tarfile.TarInfo(SUPERVISOR_MOUNT.lstrip("/"))
        folder.type = tarfile.DIRTYPE
        folder.mode = 0o755
        archive.addfile(folder)
        entry = tarfile.TarInfo(f"{folder.name}/supervisor")
        entry.mode = 0o555
        entry.size = len(binary)
        archive.addfile(entry, io.BytesIO(binary))
    return out.getvalue()


async def has_volume(engine: Engine, binary: bytes) -> bool:
    """The engine makes a missing volume silently, so this is asked before each create."""
    name = volume_name(binary)
    try:
        await engine.call("look at a volume", lambda c: c.inspect_volume(name))
    except SandboxError as fault:
        if is_status(fault, 404):
            return False
        raise
    return True


async def ensure_volume(engine: Engine, binary: bytes) -> str:
    """The name of the filled volume, made if need be. Raises `SandboxError`."""
    if not await has_volume(engine, binary):
        await engine.call("deliver the supervisor", lambda c: _fill(c, binary), deadline=60.0)
    return volume_name(binary)


def lacks_supervisor(fault: SandboxError) -> bool:
    """Whether a box could not start because the volume is empty. The engine answers 400 or 404,
    and passes on its runtime's words: the quoted path, and that there is no such file."""
    words = str(fault).lower()
    return (
        is_status(fault, 400, 404, 500)
        and any(f"{quote}{SUPERVISOR}{quote}" in words for quote in '"`')
        and any(told in words for told in _NOT_THERE)
    )


async def refill(engine: Engine, binary: bytes) -> None:
    """Fill a volume that turned out empty: its maker died half-way. Harmless if it is full."""
    await engine.call("deliver the supervisor", lambda c: _fill(c, binary), deadline=60.0)


def _fill(client: Client, binary: bytes) -> None:
    from docker.errors import APIError  # noqa: PLC0415 - the SDK is loaded when used

    name = volume_name(binary)
    tag = name.rpartition("-")[2]
    status = client.import_image_from_data(supervisor_tar(binary), REPOSITORY, tag)
    image = _imported(status)
    try:
        client.create_volume(name, labels={LABEL: tag})
        made = client.create_container_from_config(
            {
                "Image": image,
                "Cmd": ["/never-started"],
                "NetworkDisabled": True,
                "HostConfig": {
                    "NetworkMode": "none",
                    "Mounts": [{"Type": "volume", "Source": name, "Target": SUPERVISOR_MOUNT}],
                },
            }
        )
        client.remove_container(str(made["Id"]), force=True)
    finally:
        # another controller may be at the same, and a left image of one file harms nobody
        with contextlib.suppress(APIError):
            client.remove_image(f"{REPOSITORY}:{tag}", force=True)


def _imported(status: str) -> str:
    """The engine's answer is JSON lines; the last names the image."""
    lines = [line for line in status.splitlines() if line.strip()]
    try:
        image = text_at({"last": json.loads(lines[-1])}, "last", "status")
    except (IndexError, ValueError):
        image = ""
    if not image.startswith("sha256:"):
        raise SandboxError(f"the engine did not import the supervisor: {status[:200]}")
    return image
