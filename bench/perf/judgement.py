"""How long a verdict takes, with few rules and with many."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from bench.perf.rows import Row, median, percentile
from harness.ports import Policy
from harness.values.calls import Call
from harness.values.decisions import Decision, Effect
from harness.wiring.config import Config
from harness.wiring.policies import load_policy

CALL = Call("1", "shell", {"command": "git diff --stat HEAD~3 -- src/app/main.py"})
ROUNDS = 3000


def measure(config: Config, scratch: Path) -> list[Row]:
    few, many, lots = (laps(policy_of(n, config, scratch)) for n in (10, 100, 1000))
    middle, tail = median(many, 1e6), percentile(many, 0.99, 1e6)
    growth = median(lots, 1e6)
    floor = median(few, 1e6)
    return [
        Row("decision on a shell call, 100 rules, p50", middle, "µs", "≤ 150 µs", middle <= 150),
        Row("decision on a shell call, 100 rules, p99", tail, "µs", "≤ 2 ms", tail <= 2000),
        Row(
            "decision on a shell call, 1,000 rules, p50",
            growth,
            "µs",
            "≤ 1.5 × 10 rules",
            growth <= 1.5 * floor,
            {"10 rules": floor},
        ),
    ]


def policy_of(rules: int, config: Config, scratch: Path) -> Policy:
    """Rules on many programs, none of which is the one that is called."""
    lines = ["version: 1", "name: bench-rules", "extends: [full-auto]", "rules:"]
    for n in range(rules):
        effect = ("allow", "ask", "deny")[n % 3]
        lines.append(f"- id: rule-{n}")
        lines.append(f'  {effect}: {{command: "tool{n} sub{n % 7} **"}}')
        lines.append("  why: a row of a real file")
    file = scratch / f"rules-{rules}.yaml"
    file.write_text("\n".join(lines) + "\n")
    loaded = load_policy(replace(config, policy=str(file), mode="full-auto"))
    assert not loaded.faults, loaded.faults
    return loaded.gate


def laps(policy: Policy) -> list[float]:
    """Seconds from a call to its decision: lowered, links given, judged."""
    for _ in range(200):
        assert decide(policy).effect is Effect.ALLOW
    spent: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        decide(policy)
        spent.append(time.perf_counter() - started)
    return spent


def decide(policy: Policy) -> Decision:
    draft = policy.lower(CALL)
    return policy.judge(draft, {path: path for path in draft.paths})
