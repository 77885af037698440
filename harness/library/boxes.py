"""The engine and its boxes, seen from outside a run."""

from __future__ import annotations

from harness.sandbox.doctor import Finding
from harness.sandbox.reaper import BoxRow, Reaped
from harness.wiring import docker_backend, examine_engine


async def list_boxes() -> tuple[BoxRow, ...]:
    """All boxes of any harness on the engine. Raises `SandboxError`."""
    backend = docker_backend()
    try:
        return await backend.list_boxes()
    finally:
        await backend.close()


async def reap_boxes() -> tuple[Reaped, ...]:
    """Remove boxes whose owner is dead or whose deadline has passed. Raises `SandboxError`."""
    backend = docker_backend()
    try:
        return await backend.reap()
    finally:
        await backend.close()


async def doctor() -> tuple[Finding, ...]:
    """What is known of the engine, held against what is known to be bad."""
    return await examine_engine()
