"""What the loop itself costs: everything but the model and the work of a tool."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator
from itertools import pairwise

from bench.perf.rows import Row
from harness.approvers import DenyAll
from harness.loop.parts import Parts
from harness.loop.run import run
from harness.loop.session import Session
from harness.ports import Sandbox
from harness.sandbox.memory import MemorySandbox
from harness.sessions.clock import SystemClock
from harness.sessions.memory import MemoryLog
from harness.tools import builtin_tools
from harness.values.changes import Changes
from harness.values.limits import Budgets
from harness.values.wire import Prompt, Request, WireEvent
from harness.wires.scripted import Script, ScriptedWire
from harness.wiring.config import Config
from harness.wiring.policies import load_policy

TURNS = 200
WINDOW = 10
RUNS = 3


class TimedWire:
    """A wire that notes the process's CPU time at each request."""

    def __init__(self, wire: ScriptedWire) -> None:
        self._wire = wire
        self.name = wire.name
        self.marks: list[float] = []

    def encode(self, prompt: Prompt) -> Request:
        return self._wire.encode(prompt)

    def stream(self, request: Request) -> AsyncIterator[WireEvent]:
        self.marks.append(time.process_time())
        return self._wire.stream(request)


class StillWorkspace:
    """Nothing to copy, nothing that changes."""

    async def load(self, box: Sandbox) -> tuple[str, ...]:
        return ()

    async def changes(self, box: Sandbox) -> Changes:
        return Changes()


async def measure(config: Config) -> list[Row]:
    early: list[float] = []
    late: list[float] = []
    for _ in range(RUNS):
        marks = await one_run(config)
        spent = [after - before for before, after in pairwise(marks)]
        early += spent[20 - WINDOW // 2 : 20 + WINDOW // 2]
        late += spent[-WINDOW:]
    first, last = statistics.median(early) * 1e3, statistics.median(late) * 1e3
    return [
        Row("loop overhead, turn 20, CPU", first, "ms", "≤ 5 ms", first <= 5),
        Row(
            "loop overhead, turn 200, CPU",
            last,
            "ms",
            "≤ 5 ms and ≤ 1.3 × turn 20",
            last <= 5 and last <= 1.3 * first,
            {"turn 20": first},
        ),
    ]


async def one_run(config: Config) -> list[float]:
    """Each turn reads one short file of a tree in memory."""
    turn = {"text": "next", "calls": [{"tool": "read_file", "args": {"path": "a.txt"}}]}
    replies = [turn] * (TURNS + 1) + [{"text": "done"}]
    wire = TimedWire(ScriptedWire(Script.model_validate({"replies": replies}), "bench"))
    clock = SystemClock()
    parts = Parts(
        session=Session(MemoryLog("bench", clock), clock),
        wire=wire,
        policy=load_policy(config).gate,
        tools=builtin_tools(),
        box=MemorySandbox({"a.txt": b"one line\n" * 20}),
        workspace=StillWorkspace(),
        approver=DenyAll(),
        clock=clock,
        budgets=Budgets(turns=None, duration=None),
        system="You work in a repository.",
    )
    await run("read", parts)
    return wire.marks
