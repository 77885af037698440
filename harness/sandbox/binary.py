"""Where the supervisor's binary lies in an installed package."""

from __future__ import annotations

import platform
from pathlib import Path

from harness.errors import SandboxError

_NAMES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def supervisor_binary(machine: str | None = None) -> Path:
    """The supervisor for a machine type as `uname -m` or Docker names it; None is this one.

    Raises `SandboxError` when this installation has none for it.
    """
    machine = platform.machine() if machine is None else machine
    name = _NAMES.get(machine.lower(), machine)
    path = Path(__file__).parent / "bin" / f"harness-supervisor-{name}"
    if not path.is_file():
        raise SandboxError(
            f"no supervisor for `{machine}` in this installation; "
            "in a checkout run `python sandbox_images/supervisor/build.py`"
        )
    return path
