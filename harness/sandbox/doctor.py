"""What is known of the engine here, held against what is known to be bad."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.errors import SandboxError
from harness.sandbox.admission import available_memory, docker_capabilities
from harness.sandbox.delivery import has_volume
from harness.sandbox.endpoint import Endpoint
from harness.sandbox.engine import (
    Engine,
    Facts,
    items_at,
    mapping_at,
    numbers,
    text_at,
)
from harness.sandbox.hardening import memory_total
from harness.sandbox.images import Images, base_reference, recipes_folder
from harness.values.limits import MIB, BoxSpec, Enforcement

TRIED_ENGINES = ((20, 10),)
"""Engine versions this release was tried on; others work by the API's own promises."""

FIXED_2025: dict[tuple[int, ...], tuple[int, ...]] = {(1, 2): (1, 2, 8), (1, 3): (1, 3, 3)}
"""First fixed runc of each line for CVE-2025-31133, -52565 and -52881; from 1.4.0-rc.3 on too."""


class State(StrEnum):
    OK = "ok"
    WARN = "warn"
    BAD = "bad"
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True)
class Finding:
    """One row. `hint` is the next step, or empty."""

    name: str
    value: str
    state: State = State.OK
    hint: str = ""


async def examine(
    endpoint: Endpoint, supervisor: bytes | None, recipes: Path | None = None
) -> tuple[Finding, ...]:
    """All rows. Never raises a `SandboxError`: an engine that does not answer is a row."""
    rows = [Finding("endpoint", f"{endpoint.url} (from {endpoint.origin})", _endpoint(endpoint))]
    engine = Engine(endpoint)
    try:
        info = await engine.info()
        version = await engine.version()
    except SandboxError as fault:
        return (*rows, Finding("engine", "no answer", State.BAD, str(fault)))
    else:
        rows += engine_rows(info, version)
        rows += limit_rows(info)
        rows += await _stored(engine, supervisor, recipes or recipes_folder())
    finally:
        await engine.close()
    return tuple(rows)


def engine_rows(info: Facts, version: Facts) -> list[Finding]:
    """Rows that follow from what the engine says of itself."""
    options = [str(o) for o in items_at(info, "SecurityOptions")]
    joined = " ".join(options)
    return [
        _engine(version),
        runc_finding(text_at(info, "RuncCommit", "ID"), _component(version, "runc")),
        Finding("kernel", text_at(info, "KernelVersion")),
        Finding("cgroup", f"v{text_at(info, 'CgroupVersion') or '1'}"),
        Finding("storage", text_at(info, "Driver")),
        _runtimes(info),
        Finding(
            "user namespaces",
            "rootless engine"
            if "rootless" in joined
            else "remapped"
            if "userns" in joined
            else "no",
            hint=""
            if "rootless" in joined or "userns" in joined
            else "root in a box is the host's root, held by the other walls",
        ),
        _seccomp(joined),
        Finding("apparmor", "on" if "apparmor" in joined else "not on this engine"),
    ]


def runc_finding(commit: str, version: str) -> Finding:
    """Judge runc by its number; a distribution's package may hold fixes its number hides."""
    have = numbers(version)
    shown = version or commit[:60] or "unknown"
    if not have:
        return Finding("runc", shown, State.UNVERIFIED, "the engine does not name runc's version")
    if have < (1, 1, 12):
        unfixed = "CVE-2024-21626, CVE-2025-31133, CVE-2025-52565, CVE-2025-52881"
    elif have < FIXED_2025.get(have[:2], (1, 2, 8)) or _early_candidate(version, have):
        unfixed = "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881"
    else:
        return Finding("runc", shown)
    if version != ".".join(map(str, have)):
        hint = (
            f"by its number it lacks the fixes for {unfixed}; a distribution may have added them "
            "to its package: see its changelog"
        )
        return Finding("runc", shown, State.WARN, hint)
    return Finding("runc", shown, State.BAD, f"upgrade to 1.2.8, 1.3.3 or later: {unfixed}")


def limit_rows(info: Facts) -> list[Finding]:
    """How each limit of a box is enforced on this engine, by its default runtime."""
    held = docker_capabilities(info, BoxSpec()).limits
    rows = [
        Finding(
            f"limit {name}",
            how.value,
            State.OK if how is not Enforcement.NONE else State.WARN,
            "" if how is not Enforcement.NONE else "the engine does not enforce it",
        )
        for name, how in held.items()
    ]
    available = available_memory(info)
    needed = memory_total(BoxSpec().limits)
    if available is not None:
        enough = available >= needed
        rows.append(
            Finding(
                "memory",
                f"{available // MIB} MiB available, {needed // MIB} MiB for a box by default",
                State.OK if enough else State.WARN,
                "" if enough else "lower `memory`, `disk` or `scratch` in the policy's limits",
            )
        )
    return rows


def _endpoint(endpoint: Endpoint) -> State:
    if endpoint.scheme == "unix":
        return State.OK
    if endpoint.scheme == "tcp" and endpoint.tls is None:
        return State.WARN
    return State.UNVERIFIED


def _engine(version: Facts) -> Finding:
    name = text_at(version, "Version")
    api = text_at(version, "ApiVersion")
    tried = numbers(name)[:2] in TRIED_ENGINES
    return Finding(
        "engine",
        f"{name}, API {api}",
        State.OK if tried else State.UNVERIFIED,
        "" if tried else "this release was not tried on this engine version",
    )


def _early_candidate(version: str, have: tuple[int, ...]) -> bool:
    early = ("-rc.1", "-rc.2", "-rc1", "-rc2")
    return have == (1, 4, 0) and any(mark in version for mark in early)


def _component(version: Facts, name: str) -> str:
    for component in items_at(version, "Components"):
        if text_at(component, "Name") == name:
            return text_at(component, "Version")
    return ""


def _runtimes(info: Facts) -> Finding:
    names = sorted(mapping_at(info, "Runtimes"))
    default = text_at(info, "DefaultRuntime")
    return Finding("runtimes", f"{', '.join(names)} (default {default})")


def _seccomp(options: str) -> Finding:
    if "seccomp" in options and "unconfined" not in options:
        return Finding("seccomp", "the engine's default list")
    return Finding("seccomp", "off", State.BAD, "boxes run without a system call filter")


async def _stored(engine: Engine, supervisor: bytes | None, recipes: Path) -> Iterable[Finding]:
    rows: list[Finding] = []
    try:
        reference = base_reference(recipes)
        found = await Images(engine, recipes).find(reference)
        rows.append(
            Finding("base image", reference if found else "not made yet",
                    State.OK if found else State.WARN,
                    "" if found else "it is built on first use, or by `make image`")
        )  # fmt: skip
        if supervisor is None:
            hint = f"reinstall on {platform.machine()} with a C compiler"
            rows.append(Finding("supervisor", "no binary for this machine", State.BAD, hint))
        else:
            there = await has_volume(engine, supervisor)
            rows.append(Finding("supervisor", "delivered" if there else "delivered on first use"))
    except SandboxError as fault:
        rows.append(Finding("images", "cannot be read", State.BAD, str(fault)))
    return rows
