"""The `harness` command as a user types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.meta.source import ROOT

INSTALLED = Path(sys.executable).with_name("harness")


def harness(
    *words: str, cwd: Path, state: Path, program: Path | None = None, patience: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run it with nothing on standard input and no setting but where sessions are kept."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("HARNESS_")}
    env |= {"HARNESS_STATE": str(state), "NO_COLOR": "1"}
    command = [str(program or INSTALLED)]
    if program is None and not INSTALLED.exists():
        command = [sys.executable, "-m", "harness.cli.main"]
        env["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [*command, *words],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
