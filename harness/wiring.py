"""From a configuration to parts: the only place that names concrete classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.values.limits import Budgets, Limits, Network


@dataclass(frozen=True, slots=True)
class Config:
    """A run as it was asked for, every value resolved.

    `policy` is a built-in name or a file; None is `ask-before-write` where a person answers and
    `full-auto` where nobody does. `mode` None is the policy's own. `model` is `provider/model`
    or `scripted:FILE`. `env` holds the variables that enter the box. `state` is where sessions
    are kept. `timeout` bounds one command, in seconds.
    """

    repo: Path
    state: Path
    model: str = ""
    policy: str | None = None
    mode: str | None = None
    attended: bool = False
    backend: str = "docker"
    image: str | None = None
    runtime: str | None = None
    network: Network = Network.NONE
    limits: Limits = field(default_factory=Limits)
    budgets: Budgets = field(default_factory=Budgets)
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float = 600.0
