"""From a configuration to parts: the only place that names concrete classes."""

from __future__ import annotations

from harness.wiring.backends import docker_backend, examine_engine, make_backend
from harness.wiring.config import Config, load_config
from harness.wiring.data import data
from harness.wiring.opening import Observer, Opening, open_session
from harness.wiring.plan import Plan, plan_exec, plan_run
from harness.wiring.policies import load_policy

__all__ = [
    "Config",
    "Observer",
    "Opening",
    "Plan",
    "data",
    "docker_backend",
    "examine_engine",
    "load_config",
    "load_policy",
    "make_backend",
    "open_session",
    "plan_exec",
    "plan_run",
]
