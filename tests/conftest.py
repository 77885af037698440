"""What holds for every test: a clean environment, and no way out for the default ones."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Rules on seconds say how busy the machine is, not how good the code. `make test` looks longer
# for counterexamples than a plain `pytest` does.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", PATIENT, max_examples=20)
settings.register_profile("whole", PATIENT, max_examples=200)
settings.load_profile("quick")

REACHES_OUT = ("sandbox", "live", "slow")


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the person who runs the tests, and no trace in their home."""
    for name in os.environ:
        if name.startswith("HARNESS_"):
            monkeypatch.delenv(name)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Default tests reach loopback and sockets in the file system, nothing else."""
    if any(request.node.get_closest_marker(mark) for mark in REACHES_OUT):
        yield
        return
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            host = str(address[0])
            assert host.startswith("127.") or host in {"::1", "localhost"}, (
                f"a default test connects to {host}; mark it `sandbox`, `live` or `slow`"
            )
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    yield
