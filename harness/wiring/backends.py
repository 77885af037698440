"""The backends by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from harness.errors import ConfigError, SandboxError
from harness.sandbox.backends import Backend
from harness.sandbox.binary import supervisor_binary
from harness.sandbox.docker import DockerBackend
from harness.sandbox.doctor import Finding, examine
from harness.sandbox.endpoint import discover
from harness.sandbox.local import LocalBackend
from harness.wiring.data import data

BACKENDS = ("docker", "local")


def make_backend(name: str, progress: Callable[[str], None] | None = None) -> Backend:
    """`progress` gets a line at a time while an image is made.

    Raises `ConfigError` for a name that is none, `SandboxError` without what the backend needs.
    """
    match name:
        case "docker":
            return docker_backend(progress)
        case "local":
            return LocalBackend()
        case _:
            known = ", ".join(f"`{each}`" for each in BACKENDS)
            raise ConfigError(f"there is no backend `{name}`; there are {known}")


def docker_backend(progress: Callable[[str], None] | None = None) -> DockerBackend:
    """The engine of this user. Raises `SandboxError`."""
    return DockerBackend(recipes=data("sandbox_images"), progress=progress)


async def examine_engine() -> tuple[Finding, ...]:
    """What `doctor` shows of the engine. Never raises a `SandboxError`."""
    endpoint = discover(os.environ, Path.home())
    try:
        binary = supervisor_binary().read_bytes()
    except SandboxError:
        binary = None
    return await examine(endpoint, binary, data("sandbox_images"))
