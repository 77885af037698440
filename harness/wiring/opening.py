"""Opening what a run needs, and closing it again whatever happens."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from shutil import rmtree
from typing import TypeAlias

from harness.approvers import DenyAll
from harness.loop.parts import Parts
from harness.loop.session import Session
from harness.ports import Approver, OutputSink, Policy, Sandbox
from harness.sessions.clock import SystemClock
from harness.sessions.store import FileLog, Store
from harness.values.events import BoxStarted, Event, Record, Warned, WorkspaceLoaded
from harness.values.limits import WORKSPACE, BoxSpec
from harness.wiring.backends import make_backend
from harness.wiring.plan import Plan
from harness.wiring.policies import load_policy
from harness.wiring.system import system_text
from harness.workspace.copy import CopyWorkspace
from harness.workspace.walk import CopyLimits

Observer: TypeAlias = Callable[[Record], None]
"""Sees each record once it is in the log. Must not block and must not raise."""

CLOSING = 120.0
"""Seconds a box outlives its run's time budget, for the last checkpoint."""


class ObservedLog:
    """A log that shows each record to an observer once it is written."""

    def __init__(self, log: FileLog, observer: Observer | None) -> None:
        self._log = log
        self._observer = observer

    @property
    def session(self) -> str:
        return self._log.session

    async def append(self, event: Event, *, turn: int, durable: bool = False) -> Record:
        record = await self._log.append(event, turn=turn, durable=durable)
        if self._observer is not None:
            self._observer(record)
        return record

    def records(self) -> Sequence[Record]:
        return self._log.records()

    async def put_blob(self, data: bytes) -> str:
        return await self._log.put_blob(data)

    async def get_blob(self, digest: str) -> bytes:
        return await self._log.get_blob(digest)


@dataclass(frozen=True, slots=True)
class Opening:
    """What a front end brings: who answers, who watches, where live output goes."""

    approver: Approver | None = None
    observer: Observer | None = None
    sink: OutputSink | None = None
    progress: Callable[[str], None] | None = None

    def unrecorded(self, session: Session, event: Event) -> None:
        """Show a last record that the log could not take."""
        if self.observer is not None:
            records = session.log.records()
            clock = SystemClock()
            self.observer(Record(len(records), clock.now(), session.log.session, 0, event, ""))

    @asynccontextmanager
    async def parts(self, plan: Plan, session: Session) -> AsyncGenerator[Parts, None]:
        """A box with the repository in it, and everything else a run is made of.

        Raises `HarnessError`. The box is gone when this is left.
        """
        config = plan.config
        base = Store(config.state).folder(session.log.session) / "base"
        backend = make_backend(config.backend, self.progress)
        try:
            box = await backend.create(_spec(plan), run=session.log.session)
            try:
                await session.append(_box_started(plan, box))
                for fault in plan.faults:
                    await session.append(Warned("policy_row", fault))
                workspace = CopyWorkspace(
                    config.repo, base, CopyLimits(config.limits.disk, entries=config.limits.inodes)
                )
                notes = await workspace.load(box)
                await session.append(WorkspaceLoaded(box.root, notes))
                session.start_clock()
                yield Parts(
                    session=session,
                    wire=plan.wire,
                    policy=_policy(plan, box),
                    tools=plan.tools,
                    box=box,
                    workspace=workspace,
                    approver=self.approver or DenyAll(),
                    clock=SystemClock(),
                    budgets=config.budgets,
                    system=system_text(box.root),
                    sink=self.sink,
                )
            finally:
                await box.close()
        finally:
            rmtree(base, ignore_errors=True)
            await backend.close()


def _spec(plan: Plan) -> BoxSpec:
    config = plan.config
    limits, duration = config.limits, config.budgets.duration
    if plan.policy.attended:
        limits = replace(limits, wall=math.inf)  # a person may take any time to answer
    elif duration is not None:
        limits = replace(limits, wall=min(limits.wall, duration) + CLOSING)
    need = plan.needs_box and not config.assume_isolated
    return BoxSpec(
        config.image,
        config.runtime,
        config.network,
        limits,
        config.env,
        frozenset({"isolated"} if need else ()),
    )


def _policy(plan: Plan, box: Sandbox) -> Policy:
    """The policy as seen from the box: one that is not at the usual place is judged anew."""
    if box.root == WORKSPACE:
        return plan.policy
    return load_policy(plan.config, root=box.root).gate


def _box_started(plan: Plan, box: Sandbox) -> BoxStarted:
    given = box.capabilities
    return BoxStarted(
        backend=plan.config.backend,
        image=box.image,
        isolated=given.isolated,
        limits={name: how.value for name, how in given.limits.items()},
        features=dict(given.features),
    )


@contextmanager
def open_session(plan: Plan, opening: Opening) -> Generator[Session, None, None]:
    """A new session under its lock. Raises `SessionStorage`."""
    clock = SystemClock()
    log = Store(plan.config.state).create(clock)
    try:
        yield Session(ObservedLog(log, opening.observer), clock)
    finally:
        log.close()
