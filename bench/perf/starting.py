"""How long a person waits before anything happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.perf.rows import Row, Watch, median

HARNESS = str(Path(sys.executable).with_name("harness"))


def measure(scratch: Path) -> list[Row]:
    version, bare = Watch(), Watch()
    for _ in range(10):
        with version:
            subprocess.run([HARNESS, "--version"], check=True, capture_output=True)
        with bare:
            subprocess.run([sys.executable, "-c", "pass"], check=True)
    mine = median(version.laps, 1)
    first = sorted(until_first_request(scratch) for _ in range(3))[1]
    return [
        Row(
            "harness --version",
            mine,
            "s",
            "≤ 0.25 s",
            mine <= 0.25,
            {"python -c pass": median(bare.laps, 1)},
        ),
        Row("harness run until the first request, cold box", first, "s", "≤ 0.6 s, warm", None),
    ]


def until_first_request(scratch: Path) -> float:
    """Seconds from the start of the process to `request.sent` in its event stream."""
    repo = scratch / "repo"
    repo.mkdir(exist_ok=True)
    (repo / "a.txt").write_text("one\n")
    script = scratch / "script.yaml"
    script.write_text("replies: [{text: done}]\n")
    words = ["run", "look", "--repo", str(repo), "--model", f"scripted:{script}", "--json"]
    started = time.perf_counter()
    process = subprocess.Popen(
        [HARNESS, *words],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "HARNESS_STATE": str(scratch / "state")},
    )
    assert process.stdout is not None
    seen = 0.0
    for line in process.stdout:
        if not seen and json.loads(line)["kind"] == "request.sent":
            seen = time.perf_counter() - started
    if process.wait() != 0 or not seen:
        raise SystemExit("`harness run` sent no request; try it by hand")
    return seen
