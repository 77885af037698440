"""The `harness` command as a user types it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.meta.source import ROOT

INSTALLED = Path(sys.executable).with_name("harness")


def command(program: Path | None = None) -> list[str]:
    """What starts it: the installed command, else the module of this checkout."""
    if program is not None or INSTALLED.exists():
        return [str(program or INSTALLED)]
    return [sys.executable, "-m", "harness.cli.main"]


def settings(state: Path) -> dict[str, str]:
    """An environment without settings of its own but for where sessions are kept."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("HARNESS_")}
    env |= {"HARNESS_STATE": str(state), "NO_COLOR": "1"}
    return env if INSTALLED.exists() else env | {"PYTHONPATH": str(ROOT)}


def harness(
    *words: str,
    cwd: Path,
    state: Path,
    program: Path | None = None,
    env: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run it with nothing on standard input; `before` stands in front of the command."""
    return subprocess.run(
        [*before, *command(program), *words],
        cwd=cwd,
        env=settings(state) | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
