"""A command that a person typed, run as it was typed: no shell in between."""

from __future__ import annotations

import shlex

from harness.ports import ToolContext
from harness.tools.facts import exec_facts
from harness.tools.text import ends
from harness.values.calls import Args, Status, ToolOutput
from harness.values.commands import Captured, ExecRequest, ExecResult, Input
from harness.values.items import ToolSpec


class TypedCommand:
    """The tool behind `harness exec`: one argv, its two streams apart, its result kept.

    It answers to the name `shell`, so that a policy judges it as the same text in a shell; the
    words of that text, which `shlex` quotes and reads back unchanged, are the argv that runs.
    `result` is None until it ran. `timeout` in seconds, `limit` in bytes of output.
    """

    def __init__(self, stdin: Input | None, timeout: float, limit: int) -> None:
        self._stdin = stdin
        self._timeout = timeout
        self._limit = limit
        self.result: ExecResult | None = None

    @property
    def spec(self) -> ToolSpec:
        schema: Args = {"type": "object", "properties": {"command": {"type": "string"}}}
        return ToolSpec("shell", "run the typed command", schema)

    @property
    def read_only(self) -> bool:
        return False

    async def run(self, args: Args, context: ToolContext) -> ToolOutput:
        left = context.timeout
        request = ExecRequest(
            tuple(shlex.split(str(args["command"]))),
            stdin=self._stdin,
            timeout=self._timeout if left is None else min(self._timeout, left),
            limit=self._limit,
        )
        result = await context.box.exec(request, context.sink)
        self.result = result
        return ToolOutput(Status.OK, _text(result), exec_facts(result))


def _text(result: ExecResult) -> str:
    """The bounded ends of both streams, for the record; what went to stderr stands last."""
    out, err = _stream(result.stdout), _stream(result.stderr)
    return "\n".join([out] * bool(out) + ["[stderr]", err] * bool(err))


def _stream(output: Captured) -> str:
    cut = ends(output)
    if cut.whole:
        return cut.head.rstrip("\n")
    gap = f"[… the middle is left out: {output.total:,} bytes were printed …]"
    return "\n".join(part.rstrip("\n") for part in (cut.head, gap, cut.tail) if part)
