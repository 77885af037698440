"""Sessions that were: listed, shown, verified, and their changes shown and applied."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.errors import SessionCorrupt, UserError
from harness.sessions.store import Store
from harness.values.events import Failed, Finished, Record, RunStarted, WorkspaceChanged
from harness.workspace.apply import Report, apply


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One line about a session.

    `end` is a `LoopStop`, `error: <LoopError>`, or `open` where no last record was written:
    it is still running, or was cut off. `fault` is why the log cannot be read.
    """

    session: str
    started: float
    task: str
    repo: str
    model: str
    end: str
    turns: int
    changed: int
    fault: str = ""


class History:
    """The sessions in a state folder."""

    def __init__(self, state: Path) -> None:
        self._store = Store(state)

    def summaries(self, limit: int = 50) -> tuple[SessionSummary, ...]:
        """The newest sessions first; one that cannot be read says why."""
        return tuple(self._summary(name) for name in self._store.ids()[:limit])

    def records(self, session: str) -> tuple[Record, ...]:
        """All records. `session` may be the start or the end of an id.

        Raises `UserError` for a name that fits none, `SessionCorrupt`.
        """
        return self._store.read(self._store.find(session))

    def verify(self, session: str) -> tuple[str, ...]:
        """Every fault of the log and of the blobs it names; empty when it is whole."""
        name = self._store.find(session)
        faults = self._store.verify(name)
        if faults:
            return faults
        try:
            for record in self._store.read(name):
                if isinstance(record.event, WorkspaceChanged):
                    self._store.blob(name, record.event.patch)
        except SessionCorrupt as fault:
            return (str(fault),)
        return ()

    def changes(self, session: str) -> tuple[WorkspaceChanged, bytes]:
        """The last checkpoint and its patch. Raises `UserError` where nothing changed."""
        name = self._store.find(session)
        changed = _changes(self._store.read(name))
        if changed is None:
            raise UserError(f"session `{name}` changed nothing")
        return changed, self._store.blob(name, changed.patch)

    def repo(self, session: str) -> Path:
        """The repository a session was about. Raises `SessionCorrupt`."""
        records = self.records(session)
        started = records[0].event if records else None
        if not isinstance(started, RunStarted):
            raise SessionCorrupt(f"session `{session}` does not begin with a run")
        return Path(started.repo)

    def apply(
        self, session: str, repo: Path, *, include: frozenset[str] = frozenset(), dry_run: bool
    ) -> Report:
        """Apply a session's patch; all of it or nothing. Held back are control paths that are
        not in `include`. Raises `UserError`."""
        _, patch = self.changes(session)
        return apply(patch, repo, include_control=include, dry_run=dry_run)

    def _summary(self, name: str) -> SessionSummary:
        try:
            records = self._store.read(name)
        except SessionCorrupt as fault:
            return SessionSummary(name, 0.0, "", "", "", "unreadable", 0, 0, str(fault))
        if not records or not isinstance(started := records[0].event, RunStarted):
            return SessionSummary(name, 0.0, "", "", "", "empty", 0, 0)
        changed = _changes(records)
        return SessionSummary(
            session=name,
            started=records[0].ts,
            task=started.task,
            repo=started.repo,
            model=started.model,
            end=_end(records[-1]),
            turns=max(record.turn for record in records),
            changed=len(changed.files) if changed else 0,
        )


def _end(record: Record) -> str:
    match record.event:
        case Finished(stop=stop):
            return stop
        case Failed(error=error):
            return f"error: {error}"
        case _:
            return "open"


def _changes(records: tuple[Record, ...]) -> WorkspaceChanged | None:
    found = (r.event for r in reversed(records) if isinstance(r.event, WorkspaceChanged))
    last = next(found, None)
    return last if last is not None and last.files else None
