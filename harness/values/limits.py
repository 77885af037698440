"""What a box may use, and what a backend does about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

WORKSPACE = "/workspace"
"""Where the repository is in a box whose paths are its own."""

HOME = "/home/agent"
"""The home of the workload's user there."""

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one box. Sizes in bytes, times in seconds.

    `disk` and `inodes` bound the workspace, `scratch` bounds `/tmp`, `shm` bounds `/dev/shm`.
    `memory` is for processes alone: a backend that keeps files in memory adds their sizes.
    `wall` bounds the life of the box, and is infinite for one that waits for a person; `output`
    bounds what one command may print.
    """

    cpus: float = 2.0
    memory: int = 2 * GIB
    pids: int = 512
    disk: int = 2 * GIB
    inodes: int = 500_000
    scratch: int = 512 * MIB
    shm: int = 64 * MIB
    nofile: int = 4096
    wall: float = 3600.0
    output: int = 10 * MIB


class Enforcement(StrEnum):
    """How a backend holds a limit: the kernel does, we do after the fact, or nobody does."""

    HARD = "hard"
    SOFT = "soft"
    NONE = "none"


class Network(StrEnum):
    """What a box can reach. `none` is loopback alone."""

    NONE = "none"
    PROXY = "proxy"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class BoxSpec:
    """A box to be made. `image` is a reference or digest; None is the built-in base image.

    `env` is what every command in the box gets. `labels` go to the engine as they are.
    """

    image: str | None = None
    runtime: str | None = None
    network: Network = Network.NONE
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    require: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend really gives.

    `isolated` is whether a command is kept from the host at all. `limits` names every field of
    `Limits`. `features` are facts for people (`tree_kill: full`, `oom: counter`, `users: two`).
    """

    backend: str
    isolated: bool
    limits: Mapping[str, Enforcement]
    features: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Budgets:
    """Bounds of a run; None is no bound. Equality binds.

    `duration` is wall clock in seconds, also given to a running tool.
    """

    turns: int | None = 100
    duration: float | None = 3600.0
    output_tokens: int | None = None
    turn_tokens: int | None = None
