"""Parts for tests, each satisfying its port. What ships with the package is used as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.loop.parts import Parts
from harness.loop.session import Session
from harness.ports import Approval, EventLog, Sandbox, Tool, ToolContext, Wire
from harness.sessions.clock import FixedClock
from harness.sessions.memory import MemoryLog
from harness.values.calls import Args, Call, Status, ToolOutput
from harness.values.changes import Changes
from harness.values.decisions import Decision, Effect, Match
from harness.values.items import ToolSpec
from harness.values.limits import Budgets
from harness.values.operations import Draft, Links, Op, Operation
from harness.wires.scripted import Script, ScriptedWire

SCHEMA: Args = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "additionalProperties": False,
}


@dataclass
class FixedPolicy:
    """Gives each tool the effect it is told, `allow` where it is told nothing."""

    effects: Mapping[str, Effect] = field(default_factory=dict)
    name: str = "fixed"
    mode: str = "fixed"
    attended: bool = False

    def lower(self, call: Call) -> Draft:
        return Draft(call, (Operation(Op.EXEC_CODE, program=call.tool),))

    def judge(self, draft: Draft, links: Links) -> Decision:
        effect = self.effects.get(draft.call.tool, Effect.ALLOW)
        match = Match(effect, "rule:test/fixed", why="because the test says so")
        return Decision(effect, (match,), draft.operations, advice="do something else")


@dataclass
class FunctionTool:
    """A tool that is one async function of its arguments."""

    name: str
    function: Callable[[Args], Awaitable[ToolOutput]]
    read_only: bool = False
    seen: list[Args] = field(default_factory=list)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, f"the {self.name} tool", SCHEMA)

    async def run(self, args: Args, context: ToolContext) -> ToolOutput:
        self.seen.append(args)
        return await self.function(args)


def echo(name: str = "echo", *, read_only: bool = False) -> FunctionTool:
    async def function(args: Args) -> ToolOutput:
        return ToolOutput(Status.OK, str(args.get("word", "")), {})

    return FunctionTool(name, function, read_only)


def sleeper(name: str = "sleep", *, read_only: bool = False) -> FunctionTool:
    async def function(args: Args) -> ToolOutput:
        await asyncio.sleep(3600)
        return ToolOutput(Status.OK, "slept", {})

    return FunctionTool(name, function, read_only)


@dataclass
class FixedApprover:
    """Answers every question the same way."""

    approved: bool
    asked: list[Call] = field(default_factory=list)

    async def ask(self, call: Call, decision: Decision) -> Approval:
        self.asked.append(call)
        return Approval(self.approved, "person", "" if self.approved else "not today")


class PlainBox:
    """A box whose paths are what they say; it runs nothing."""

    root = "/workspace"

    async def resolve_links(self, paths: Sequence[str]) -> Links:
        return {path: path for path in paths}

    async def quiet(self) -> None:
        self.quieted = True

    quieted = False


class UnchangedWorkspace:
    """A workspace in which nothing ever changes; `asked` counts checkpoints."""

    def __init__(self) -> None:
        self.asked = 0

    async def load(self, box: Sandbox) -> tuple[str, ...]:
        return ()

    async def changes(self, box: Sandbox) -> Changes:
        self.asked += 1
        return Changes()


def script(*replies: Mapping[str, object]) -> ScriptedWire:
    return ScriptedWire(Script.model_validate({"replies": replies}), "test")


def call_of(tool: str, **args: object) -> dict[str, object]:
    return {"tool": tool, "args": args}


def parts(
    wire: Wire,
    tools: Sequence[Tool] = (),
    *,
    log: EventLog | None = None,
    **others: object,
) -> Parts:
    """Parts that allow everything and have no bounds, but for what is given."""
    clock = others.pop("clock", None) or FixedClock()
    given: dict[str, object] = {
        "session": Session(log or MemoryLog("s", clock), clock),
        "wire": wire,
        "policy": FixedPolicy(),
        "tools": {tool.spec.name: tool for tool in tools or (echo(),)},
        "box": PlainBox(),
        "workspace": UnchangedWorkspace(),
        "approver": FixedApprover(approved=False),
        "clock": clock,
        "budgets": Budgets(turns=None, duration=None),
        "system": "work",
    }
    return Parts(**(given | others))  # type: ignore[arg-type]
