"""Runs every measurement, and writes `results.json` and the table in `docs/performance.md`."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import docker

from bench.perf import boxes, judgement, starting, turns
from bench.perf.rows import Row, machine
from docs.generate import between
from harness.wiring.config import Config

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "perf" / "results.json"
PAGE = ROOT / "docs" / "performance.md"


def main() -> int:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as name:
        scratch = Path(name)
        config = Config(repo=scratch, state=scratch / "state", policy="full-auto")
        rows = [
            *asyncio.run(boxes.measure()),
            *judgement.measure(config, scratch),
            *asyncio.run(turns.measure(config)),
            *starting.measure(scratch),
        ]
    client: Any = docker.from_env()
    version = client.version()["Version"]
    client.close()
    on, at = (
        machine(f"Docker {version}"),
        datetime.fromtimestamp(time.time(), UTC).date().isoformat(),
    )
    records = [row.record(on, at) for row in rows]
    RESULTS.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text = table(rows, on, at)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between(page, "results", text), encoding="utf-8")
    print(text)
    print(f"\nbench: done in {time.monotonic() - started:.0f} s")
    return 0


def table(rows: list[Row], on: str, at: str) -> str:
    lines = [f"{at}, {on}.", "", "| what | ours | target | met | beside it, in the same run |"]
    lines.append("|---|---|---|---|---|")
    for row in rows:
        peers = ", ".join(f"{name} {shown(value)} {row.unit}" for name, value in row.peers.items())
        met = {True: "yes", False: "**no**", None: "not yet measurable"}[row.met]
        lines.append(
            f"| {row.name} | {shown(row.ours)} {row.unit} | {row.target} | {met} | {peers} |"
        )
    return "\n".join(lines)


def shown(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
