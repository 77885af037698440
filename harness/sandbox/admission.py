"""What an engine really enforces, and whether a box may be made on it."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

from harness.errors import SandboxRefused
from harness.sandbox.engine import Facts, flag_at, items_at, mapping_at, number_at, text_at
from harness.sandbox.hardening import memory_total
from harness.values.limits import MIB, BoxSpec, Capabilities, Enforcement, Limits, Network

HARD, SOFT, NONE = Enforcement.HARD, Enforcement.SOFT, Enforcement.NONE
RUNSC_PIDS = 1024
"""The least process limit under which runsc's own threads fit."""


def docker_capabilities(info: Facts, spec: BoxSpec) -> Capabilities:
    """Read from the engine's description and the runtime's name, without trying."""
    guest_kernel = runs_guest_kernel(info, spec)
    memory = HARD if flag_at(info, "MemoryLimit") else NONE
    if memory is HARD and not (flag_at(info, "SwapLimit") or _no_swap(info)):
        memory = SOFT
    pids = HARD if flag_at(info, "PidsLimit") else NONE
    if guest_kernel and spec.limits.pids < RUNSC_PIDS:
        pids = NONE
    limits = {
        "cpus": HARD if flag_at(info, "CpuCfsQuota") else NONE,
        "memory": memory,
        "pids": pids,
        "disk": HARD,
        "inodes": NONE if guest_kernel else HARD,
        "scratch": HARD,
        "shm": HARD,
        "nofile": HARD,
        "wall": SOFT,
        "output": SOFT,
    }
    options = " ".join(str(o) for o in items_at(info, "SecurityOptions"))
    return Capabilities(
        backend="docker",
        isolated=True,
        limits=limits,
        features={
            "runtime": spec.runtime or text_at(info, "DefaultRuntime"),
            "cgroup": text_at(info, "CgroupVersion") or "1",
            "seccomp": "runtime" if guest_kernel else "engine default"
            if "seccomp" in options and "unconfined" not in options else "none",
            "apparmor": "engine default" if "apparmor" in options else "none",
            "userns": "yes" if "userns" in options or "rootless" in options else "no",
            "oom_events": "engine",
        },
    )  # fmt: skip


def runs_guest_kernel(info: Facts, spec: BoxSpec) -> bool:
    runtime = spec.runtime or text_at(info, "DefaultRuntime")
    return runtime.startswith("runsc")


def admit(info: Facts, spec: BoxSpec, capabilities: Capabilities, volumes: int) -> None:
    """Raises `SandboxRefused` with what to change."""
    limits = spec.limits
    if spec.network is not Network.NONE:
        raise SandboxRefused(f"network `{spec.network.value}` is not available yet; only `none` is")
    runtimes = sorted(mapping_at(info, "Runtimes"))
    if spec.runtime is not None and spec.runtime not in runtimes:
        raise SandboxRefused(
            f"the engine has no runtime `{spec.runtime}`; it has: {', '.join(runtimes)}"
        )
    require(spec, capabilities)
    _sensible(limits)
    cores = number_at(info, "NCPU")
    if cores is not None and limits.cpus > cores:
        raise SandboxRefused(f"the box wants {limits.cpus:g} cpus and the engine has {cores}")
    total = memory_total(limits, volumes)
    available = available_memory(info)
    if available is not None and total > available:
        raise SandboxRefused(
            f"the box needs {total // MIB} MiB (memory {limits.memory // MIB}, disk "
            f"{limits.disk // MIB}, scratch {limits.scratch // MIB} and more: files in it live in "
            f"memory) and the engine's machine has {available // MIB} MiB available; "
            "lower `memory`, `disk` or `scratch`"
        )


def require(spec: BoxSpec, capabilities: Capabilities) -> None:
    """Each name in `require` is a limit that must be hard, or `isolated`."""
    for name in sorted(spec.require):
        if name == "isolated":
            held = capabilities.isolated
        elif name in {f.name for f in fields(Limits)}:
            held = capabilities.limits.get(name) is HARD
        else:
            raise SandboxRefused(f"`{name}` is required, and no limit has this name")
        if not held:
            raise SandboxRefused(
                f"`{name}` is required, and the {capabilities.backend} backend here enforces it "
                f"{capabilities.limits.get(name, NONE).value}; drop the requirement or use "
                "another engine"
            )


def available_memory(info: Facts) -> int | None:
    """Bytes. The kernel's own estimate when the engine runs on this kernel, else its total."""
    total = number_at(info, "MemTotal")
    here = _meminfo()
    same = text_at(info, "KernelVersion") == os.uname().release and total == here.get("MemTotal")
    return here.get("MemAvailable", total) if same else total


def _sensible(limits: Limits) -> None:
    for field in fields(Limits):
        value = getattr(limits, field.name)
        if not value > 0:
            raise SandboxRefused(f"the limit `{field.name}` must be above zero")
    if limits.memory < 16 * MIB:
        raise SandboxRefused("the limit `memory` must be at least 16 MiB")


def _no_swap(info: Facts) -> bool:
    here = _meminfo()
    return number_at(info, "MemTotal") == here.get("MemTotal") and here.get("SwapTotal") == 0


def _meminfo() -> dict[str, int]:
    """proc(5): kibibytes per line; empty elsewhere than on Linux."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines)
    return {p[0].rstrip(":"): int(p[1]) * 1024 for p in pairs if len(p) >= 2 and p[1].isdecimal()}
