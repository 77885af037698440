"""Runs, and single commands, from a configuration to a report."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from harness.errors import SessionStorage, UserError
from harness.loop.parts import Parts
from harness.loop.resolve import Refused
from harness.loop.run import run
from harness.loop.session import Session
from harness.loop.settle import last_record, outcome
from harness.loop.single import run_one
from harness.ports import Approver, OutputSink
from harness.values.calls import Call
from harness.values.commands import ExecResult, Input
from harness.values.events import Failed, Finished, WorkspaceChanged
from harness.values.outcomes import LoopStop, Outcome
from harness.wiring import Config, Observer, Opening, Plan, open_session, plan_exec, plan_run


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run that ended in an outcome. `changes` is the last checkpoint; None: nothing changed."""

    session: str
    outcome: Outcome
    changes: WorkspaceChanged | None


@dataclass(frozen=True, slots=True)
class ExecReport:
    """One command a person typed. It ran, or `refused` says why it did not."""

    session: str
    result: ExecResult | None
    refused: str | None
    changes: WorkspaceChanged | None


class Harness:
    """One configuration, any number of runs, one after another.

    `approver` None denies whatever would have to be asked. `observer` gets every record,
    `sink` the live output of commands, `progress` a line at a time while an image is made.
    """

    def __init__(
        self,
        config: Config,
        *,
        approver: Approver | None = None,
        observer: Observer | None = None,
        sink: OutputSink | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._config = config
        self._opening = Opening(approver, observer, sink, progress)

    async def run(self, task: str) -> RunReport:
        """Work on a task until it stops.

        Raises `HarnessError`. By then, and on every other way out, the session's last record is
        written and the box is gone. Cancelling settles the run first.
        """
        if not task.strip():
            raise UserError("the task is empty; say what is to be done")
        plan = plan_run(self._config)
        async with self._session(plan, task) as session:
            async with self._opening.parts(plan, session) as parts:
                outcome = await run(task, parts)
            return RunReport(session.log.session, outcome, session.state.changed)

    async def exec(self, argv: tuple[str, ...], stdin: Input | None = None) -> ExecReport:
        """One command in a box on the repository, judged and recorded; no model.

        Raises `HarnessError`.
        """
        if not argv:
            raise UserError("there is no command; write it after `--`")
        if any("\0" in word for word in argv):
            raise UserError("the command holds a NUL byte, which no program can be given")
        plan, tool = plan_exec(self._config, stdin)
        text = shlex.join(argv)
        async with self._session(plan, text) as session:
            async with self._opening.parts(plan, session) as parts:
                refused = await _typed(text, parts)
            return ExecReport(
                session.log.session,
                tool.result,
                refused.text if refused else None,
                session.state.changed,
            )

    @asynccontextmanager
    async def _session(self, plan: Plan, task: str) -> AsyncGenerator[Session, None]:
        """The session of one run; whatever breaks before its loop begins is its last record."""
        with open_session(plan, self._opening) as session:
            try:
                await session.append(plan.started(task), durable=True)
                yield session
            except SessionStorage as fault:
                self._opening.unrecorded(session, _ending(session, fault))
                raise
            except BaseException as fault:
                if not session.state.ended:
                    await session.append(_ending(session, fault), durable=True)
                raise


async def _typed(text: str, parts: Parts) -> Refused | None:
    call = Call("call-1", "shell", {"command": text}, text)
    _, refused = await run_one(call, text, parts)
    return refused


def _ending(session: Session, fault: BaseException) -> Finished | Failed:
    return last_record(outcome(session, LoopStop.CANCELLED), fault)
