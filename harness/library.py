"""The embeddable harness: what every front end calls.

A front end makes a `Config`, gives a `Harness` what is its own (who answers, who watches), and
awaits one run. Nothing here prints, handles signals or configures logging.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from harness.ports import Approver, OutputSink
from harness.values.changes import Changes
from harness.values.commands import ExecResult
from harness.values.decisions import Decision
from harness.values.events import Record
from harness.values.outcomes import Outcome
from harness.wiring import Config

Observer: TypeAlias = Callable[[Record], None]
"""Sees each record once it is in the log. Must not block and must not raise."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run that ended in an outcome. Changes are the last checkpoint."""

    session: str
    outcome: Outcome
    changes: Changes


@dataclass(frozen=True, slots=True)
class ExecReport:
    """One command a person typed. `result` is None when the policy refused it."""

    session: str
    decision: Decision
    result: ExecResult | None
    changes: Changes


class Harness:
    """One configuration, any number of runs, one after another.

    `approver` None denies whatever would have to be asked. `observer` gets every record,
    `sink` the live output of commands.
    """

    def __init__(
        self,
        config: Config,
        *,
        approver: Approver | None = None,
        observer: Observer | None = None,
        sink: OutputSink | None = None,
    ) -> None:
        self._config = config
        self._approver = approver
        self._observer = observer
        self._sink = sink

    async def run(self, task: str) -> RunReport:
        """Work on a task until it stops. Raises `HarnessError`; the session is closed and its
        last record written by then. Cancelling settles the run first."""
        raise NotImplementedError

    async def exec(self, argv: tuple[str, ...], stdin: bytes | None = None) -> ExecReport:
        """One command in a box on the repository, judged and recorded; no model."""
        raise NotImplementedError
