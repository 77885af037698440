"""What makes boxes, whatever they are made of."""

from __future__ import annotations

from typing import Protocol

from harness.ports import Sandbox
from harness.values.limits import BoxSpec


class Backend(Protocol):
    """Makes boxes of one kind: `DockerBackend`, `LocalBackend`, `MemoryBackend`."""

    async def create(self, spec: BoxSpec, *, run: str) -> Sandbox:
        """A new box, ready for use. `run` names its run in the engine's list.

        Raises `SandboxRefused`, `ImageMissing`, `EngineUnavailable` or another `SandboxError`.
        """
        ...

    async def close(self) -> None:
        """Let go of the backend's connections. Boxes are closed by those who hold them."""
        ...
