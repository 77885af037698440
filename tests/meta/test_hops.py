"""How far it is from `run` to a started process: the length of what one has to read."""

from __future__ import annotations

import asyncio
import inspect
import sys
from types import FrameType
from typing import Any

from harness.loop.run import run
from harness.ports import OutputSink
from harness.sandbox.memory import MemorySandbox, Reply
from harness.tools.shell import Shell
from harness.values.commands import ExecRequest, ExecResult
from tests.fakes import call_of, parts, script

MOST = 5


class Watched(MemorySandbox):
    """Notes who called whom, at the moment a process would start."""

    calls: list[str]

    async def exec(self, request: ExecRequest, sink: OutputSink | None = None) -> ExecResult:
        if request.argv[-1] == "true":
            self.calls = chain()
        return await super().exec(request, sink)


def chain() -> list[str]:
    """From `run` down to here, each coroutine where one made the next.

    A task begins a new stack; the way up goes on at the function that made its coroutine.
    """
    task = asyncio.current_task()
    assert task is not None
    names = running(sys._getframe(1))
    while (made_by := maker(task)) is not None:
        task, above = next(
            (other, stack)
            for other in asyncio.all_tasks()
            if made_by in (stack := suspended(other)) and other is not task
        )
        names = above[: above.index(made_by) + 1] + names
    return names


def running(frame: FrameType | None) -> list[str]:
    """The coroutines on the stack of the running task, outermost first."""
    names: list[str] = []
    while frame is not None and frame.f_code.co_flags & inspect.CO_COROUTINE:
        names.insert(0, frame.f_code.co_name)
        frame = frame.f_back
    return names


def suspended(task: asyncio.Task[Any]) -> list[str]:
    """The coroutines of a waiting task, outermost first."""
    names: list[str] = []
    current: Any = task.get_coro()
    while inspect.iscoroutine(current):
        names.append(current.__name__)
        current = current.cr_await
    return names


def maker(task: asyncio.Task[Any]) -> str | None:
    """The function that made a task's coroutine; None for the run itself."""
    coroutine: Any = task.get_coro()
    if coroutine.__name__ == "run":
        return None
    return next(name for _, _, name in coroutine.cr_origin if not name.startswith("<"))


def test_from_run_to_a_process_are_at_most_five_calls() -> None:
    box = Watched(commands=[(lambda request: True, Reply())])
    wire = script({"calls": [call_of("shell", command="true")]}, {"text": "done"})

    async def go() -> None:
        sys.set_coroutine_origin_tracking_depth(3)
        try:
            await asyncio.create_task(run("task", parts(wire, [Shell(10.0, 1000)], box=box)))
        finally:
            sys.set_coroutine_origin_tracking_depth(0)

    asyncio.run(go())
    assert box.calls[0] == "run"
    assert box.calls[-1] == "exec"
    assert len(box.calls) - 1 <= MOST, " → ".join(box.calls)
