"""The shell tool: one command line in the box, its ends for the model, the whole kept there."""

from __future__ import annotations

import signal
import weakref

from harness.errors import FileFault
from harness.operations.places import KEPT_OUTPUT
from harness.ports import Sandbox, ToolContext
from harness.tools.arguments import text_arg
from harness.tools.facts import exec_facts
from harness.tools.text import MODEL_TEXT, Cut, ends
from harness.values.calls import Args, Status, ToolOutput
from harness.values.commands import ExecRequest, ExecResult, ExitReason
from harness.values.items import ToolSpec

_MISSING = 127

_DESCRIPTION = f"""\
Run a command line with bash (sh where the image has no bash) in the box, from the workspace \
root. Each call is a new shell: cwd and variables do not last, files do. stdin is empty, there \
is no terminal, and usually no network. stdout and stderr come back in one stream, then a last \
line with the exit code or how the command ended. A non-zero exit code is reported, not an \
error of the tool. Above {MODEL_TEXT // 1024} KiB the middle is left out and the whole output \
is kept in a file that read_file can show in parts. Colours, cursor movement and overwritten \
progress lines are removed. `timeout` is in seconds; at that time everything the command \
started is killed. Run servers in the background, with their output sent to a file.\
"""

_SCHEMA: Args = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "description": "the command line"},
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "seconds before it is killed",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}

_STATUS = {
    ExitReason.EXITED: Status.OK,
    ExitReason.TIMEOUT: Status.TIMEOUT,
    ExitReason.CANCELLED: Status.INTERRUPTED,
    ExitReason.OOM: Status.ERROR,
    ExitReason.OUTPUT_LIMIT: Status.ERROR,
    ExitReason.KEEPER_LOST: Status.ERROR,
}


class Shell:
    """Runs `bash -c`. `timeout` bounds one command in seconds, `output` what it may print.

    A command that ran is `ok` whatever its exit code: the code stands in text and facts. Being
    killed at the deadline is `timeout`; by lack of memory or too much output, `error`.
    """

    def __init__(self, timeout: float, output: int) -> None:
        self._timeout = timeout
        self._output = output
        self._shells: weakref.WeakKeyDictionary[Sandbox, str] = weakref.WeakKeyDictionary()

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("shell", _DESCRIPTION, _SCHEMA)

    @property
    def read_only(self) -> bool:
        return False

    async def run(self, args: Args, context: ToolContext) -> ToolOutput:
        result = await self._exec(text_arg(args, "command"), self._limit(args, context), context)
        cut = ends(result.stdout)
        place = "" if cut.whole else await _keep(result, context)
        text = _text(result, cut, place, self._output)
        return ToolOutput(_STATUS[result.reason], text, _facts(result, place))

    def _limit(self, args: Args, context: ToolContext) -> float:
        asked = args.get("timeout")
        limits = [self._timeout]
        if isinstance(asked, int | float) and not isinstance(asked, bool):
            limits.append(float(asked))
        if context.timeout is not None:
            limits.append(context.timeout)
        return max(min(limits), 0.001)

    async def _exec(self, command: str, timeout: float, context: ToolContext) -> ExecResult:
        """Bash at first; if that gives 127 and it turns out not to be there, sh."""
        box = context.box
        known = self._shells.get(box)
        request = self._request(known or "bash", command, timeout)
        result = await box.exec(request, context.sink)
        if known is not None:
            return result
        if result.code != _MISSING or await _has_bash(box):
            self._shells[box] = "bash"
            return result
        self._shells[box] = "sh"
        return await box.exec(self._request("sh", command, timeout), context.sink)

    def _request(self, shell: str, command: str, timeout: float) -> ExecRequest:
        half = self._output // 2
        return ExecRequest(
            argv=(shell, "-c", "--", command),  # else a leading `-` makes it an option
            timeout=timeout,
            merge=True,
            head=half,
            tail=self._output - half,
            limit=self._output,
        )


async def _has_bash(box: Sandbox) -> bool:
    return (await box.exec(ExecRequest(argv=("bash", "-c", "--", ":"), timeout=10.0))).code == 0


async def _keep(result: ExecResult, context: ToolContext) -> str:
    """Write the whole output into the box; where it is, or empty when there was no room."""
    path = f"{KEPT_OUTPUT}/{context.call_id}.log"
    try:
        await context.box.write(path, result.stdout.data)
    except FileFault:
        return ""
    return path


def _text(result: ExecResult, cut: Cut, place: str, limit: int) -> str:
    parts = [cut.head or ("" if cut.tail else "(no output)")]
    if not cut.whole:
        parts += [_gap(result, place), cut.tail]
    parts.append(_ending(result, limit))
    lines = "\n".join(p.rstrip("\n") for p in parts if p)
    if result.left_running:
        left = "1 background process is"
        if result.left_running > 1:
            left = f"{result.left_running} background processes are"
        lines += f"\n[{left} still running]"
    return lines


def _gap(result: ExecResult, place: str) -> str:
    total = f"the command printed {result.stdout.total:,} bytes"
    if not place:
        return f"[… the middle is left out: {total}, and the box had no room to keep them …]"
    lost = f" without the middle {result.stdout.dropped:,} bytes" if result.stdout.dropped else ""
    return (
        f"[… the middle is left out: {total}; the whole output{lost} is in {place}, "
        "read it with read_file offset and limit …]"
    )


def _ending(result: ExecResult, limit: int) -> str:
    seconds = f"{result.usage.wall:.1f} s"
    match result.reason:
        case ExitReason.TIMEOUT:
            return f"[killed after {seconds}: time limit; the output above is partial]"
        case ExitReason.OOM:
            return "[killed: out of memory; use less memory or fewer parallel jobs]"
        case ExitReason.OUTPUT_LIMIT:
            return f"[killed: it printed more than {limit:,} bytes; send output to a file]"
        case ExitReason.CANCELLED:
            return "[cancelled; what it did up to here has taken effect]"
        case ExitReason.KEEPER_LOST:
            return "[it was killed together with its supervisor; its exit code is not known]"
        case ExitReason.EXITED:
            if result.signal is not None:
                return f"[killed by {_signal(result.signal)}]"
            return f"exit code {result.code}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _facts(result: ExecResult, place: str) -> Args:
    return {**exec_facts(result), "kept_in": place} if place else exec_facts(result)
