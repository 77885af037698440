"""What a box may use and touch, as the body of one create request.

The body is written here whole, by the Engine API's own names (1.41, `ContainerCreate`):
a wall that is not in this file does not stand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from harness.errors import SandboxRefused
from harness.sandbox.engine import Facts, flag_at, items_at, mapping_at, number_at, text_at
from harness.values.limits import HOME, MIB, WORKSPACE, BoxSpec, Enforcement, Limits

USER = "agent"
UID = 1000
SUPERVISOR_MOUNT = "/.harness"
SUPERVISOR = f"{SUPERVISOR_MOUNT}/supervisor"
HEADROOM = 32 * MIB
"""Memory of the supervisor and the kernel's own books, on top of everything else."""
SCRATCH_INODES = 65_536
VOLUME_SIZE = 64 * MIB
"""Bound of one tmpfs that covers a VOLUME of the image."""
VOLUMES_MOST = 16
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SYSTEM = ("/proc", "/sys", "/dev", SUPERVISOR_MOUNT)


@dataclass(frozen=True, slots=True)
class BoxPlan:
    """All that goes into one box. `image` is a digest, `image_facts` what the engine says of it.

    `held` is how the engine enforces each limit; what it cannot enforce is not asked of it.
    """

    spec: BoxSpec
    image: str
    image_facts: Facts
    volume: str
    command: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    held: Mapping[str, Enforcement] = field(default_factory=dict[str, Enforcement])

    def enforces(self, limit: str) -> bool:
        return self.held.get(limit) is not Enforcement.NONE

    @property
    def volumes(self) -> tuple[str, ...]:
        """Places of the image's own VOLUMEs that need a cover."""
        return image_volumes(self.image_facts)


def supervisor_command(orphan_seconds: float) -> tuple[str, ...]:
    """`orphan_seconds` bounds also the time before the first word of a controller."""
    wait = str(round(orphan_seconds * 1000))
    return (SUPERVISOR, "--uid", str(UID), "--gid", str(UID), "--orphan-ms", wait)


def home_size(limits: Limits) -> int:
    return min(limits.scratch, 256 * MIB)


def memory_total(limits: Limits, volumes: int = 0) -> int:
    """Bytes of memory and swap together for the whole box: files in it live in memory too."""
    files = limits.disk + limits.scratch + home_size(limits) + limits.shm + volumes * VOLUME_SIZE
    return limits.memory + files + HEADROOM


def spec_digest(spec: BoxSpec, image: str) -> str:
    """One word for boxes that are alike: SHA-256 over image, runtime, network and limits."""
    parts = {
        "image": image,
        "runtime": spec.runtime or "",
        "network": spec.network.value,
        "limits": asdict(spec.limits),
        "require": sorted(spec.require),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def environment(image_facts: Facts, spec: BoxSpec) -> dict[str, str]:
    """What every command gets: the image's own, then the user's home, then the box's."""
    found: dict[str, str] = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8"}
    for entry in items_at(image_facts, "Config", "Env"):
        if isinstance(entry, str) and "=" in entry:
            name, _, value = entry.partition("=")
            found[name] = value
    found |= {"HOME": HOME, "USER": USER, "LOGNAME": USER, "TMPDIR": "/tmp"}  # noqa: S108 - in the box
    return found | dict(spec.env)


def image_volumes(image_facts: Facts) -> tuple[str, ...]:
    """Mount points that the image declares.

    Raises `SandboxRefused` for one that would cover a part of the box itself.
    """
    found: list[str] = []
    for name in mapping_at(image_facts, "Config", "Volumes"):
        place = str(PurePosixPath("/", name))
        if place in tmpfs_places() or place.startswith(f"{WORKSPACE}/"):
            continue
        if ".." in PurePosixPath(place).parts or "," in place or ":" in place or place == "/":
            raise SandboxRefused(
                f"the image declares a volume at `{name[:200]}`; use another image"
            )
        if any(place == s or place.startswith(f"{s}/") for s in _SYSTEM):
            raise SandboxRefused(
                f"the image declares a volume at `{name[:200]}`; use another image"
            )
        found.append(place)
    if len(found) > VOLUMES_MOST:
        raise SandboxRefused(
            f"the image declares {len(found)} volumes, and {VOLUMES_MOST} are the most a box covers"
        )
    return tuple(sorted(found))


def tmpfs_places() -> tuple[str, ...]:
    return (WORKSPACE, "/tmp", HOME, "/dev/shm")  # noqa: S108 - paths in the box


def tmpfs_mounts(limits: Limits, volumes: Sequence[str] = ()) -> dict[str, str]:
    """Every writable place of a box, bounded in bytes and entries."""
    inodes = min(limits.inodes, SCRATCH_INODES)
    own = f"uid={UID},gid={UID}"
    mounts = {
        WORKSPACE: f"rw,exec,nosuid,nodev,size={limits.disk},nr_inodes={limits.inodes},"
        f"{own},mode=0755",
        "/tmp": f"rw,exec,nosuid,nodev,size={limits.scratch},nr_inodes={inodes},mode=1777",  # noqa: S108
        HOME: f"rw,exec,nosuid,nodev,size={home_size(limits)},nr_inodes={inodes},{own},mode=0700",
        "/dev/shm": f"rw,noexec,nosuid,nodev,size={limits.shm},nr_inodes={inodes},mode=1777",  # noqa: S108
    }
    for place in volumes:
        mounts[place] = f"rw,exec,nosuid,nodev,size={VOLUME_SIZE},nr_inodes={inodes},mode=1777"
    return mounts


def create_body(plan: BoxPlan) -> dict[str, Any]:
    """The request that makes a box."""
    limits = plan.spec.limits
    return {
        "Image": plan.image,
        "Entrypoint": list(plan.command),
        "Cmd": [],
        "User": "0:0",
        "WorkingDir": "/",
        "Hostname": "box",
        "Env": [],
        "Labels": dict(plan.labels),
        "OpenStdin": True,
        "StdinOnce": False,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": False,
        "StopSignal": "SIGKILL",
        # an image's health check would be a process outside every exec of ours
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": _host_config(plan, limits),
    }


def _host_config(plan: BoxPlan, limits: Limits) -> dict[str, Any]:
    memory = memory_total(limits, len(plan.volumes))
    body: dict[str, Any] = {
        "AutoRemove": True,
        "RestartPolicy": {"Name": "no"},
        "LogConfig": {"Type": "none"},
        "NetworkMode": "none",
        # without these the engine copies the host's resolver into the box
        "Dns": ["127.0.0.1"],
        "DnsSearch": ["."],
        "CapDrop": ["ALL"],
        "CapAdd": ["SETUID", "SETGID", "KILL"],
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        "ReadonlyRootfs": True,
        "IpcMode": "private",
        "Init": False,
        "Tmpfs": tmpfs_mounts(limits, plan.volumes),
        "Mounts": [
            {
                "Type": "volume",
                "Source": plan.volume,
                "Target": SUPERVISOR_MOUNT,
                "ReadOnly": True,
                "VolumeOptions": {"NoCopy": True},
            }
        ],
        "Memory": memory,
        "MemorySwap": memory,
        "PidsLimit": limits.pids,
        "Ulimits": [
            {"Name": "nofile", "Soft": limits.nofile, "Hard": limits.nofile},
            {"Name": "core", "Soft": 0, "Hard": 0},
        ],
        "ShmSize": limits.shm,
    }
    if plan.enforces("cpus"):
        body["NanoCpus"] = round(limits.cpus * 1e9)
    if plan.spec.runtime is not None:
        body["Runtime"] = plan.spec.runtime
    return body


def verify_created(facts: Facts, plan: BoxPlan) -> None:
    """Compare what the engine made with what was asked.

    Raises `SandboxRefused` naming the first wall that does not stand.
    """
    host = mapping_at(facts, "HostConfig")
    mounts = items_at(facts, "Mounts")
    checks = {
        "standard input stays open": flag_at(facts, "Config", "OpenStdin")
        and not flag_at(facts, "Config", "StdinOnce"),
        "no terminal": not flag_at(facts, "Config", "Tty"),
        "no network": text_at(host, "NetworkMode") == "none",
        "read-only root": flag_at(host, "ReadonlyRootfs"),
        "not privileged": not flag_at(host, "Privileged"),
        "no capabilities": list(items_at(host, "CapDrop")) == ["ALL"],
        "three capabilities of the supervisor": sorted(items_at(host, "CapAdd"))
        in (["KILL", "SETGID", "SETUID"], ["CAP_KILL", "CAP_SETGID", "CAP_SETUID"]),
        "no new privileges": any(
            str(o).startswith("no-new-privileges") for o in items_at(host, "SecurityOpt")
        ),
        "memory": not plan.enforces("memory")
        or number_at(host, "Memory") == memory_total(plan.spec.limits, len(plan.volumes)),
        "processes": not plan.enforces("pids")
        or number_at(host, "PidsLimit") == plan.spec.limits.pids,
        "no host devices": not items_at(host, "Devices"),
        "no binds": not items_at(host, "Binds"),
        "only the supervisor's volume": [(text_at(m, "Name"), flag_at(m, "RW")) for m in mounts]
        == [(plan.volume, False)],
        "automatic removal": flag_at(host, "AutoRemove"),
    }
    missing = [name for name, holds in checks.items() if not holds]
    if missing:
        raise SandboxRefused(f"the engine made a box without: {', '.join(missing)}")
