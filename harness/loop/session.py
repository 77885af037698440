"""A session in memory: the log, and what the log adds up to."""

from __future__ import annotations

from harness.loop.fold import State, fold
from harness.ports import Clock, EventLog
from harness.values.events import Event, Record


class Session:
    """Appends events and keeps the fold over them. Events first: state follows the log.

    `checked` is how many of the state's `effects` the last checkpoint has seen.
    """

    def __init__(self, log: EventLog, clock: Clock) -> None:
        self.log = log
        self.clock = clock
        self.began = clock.monotonic()
        self.checked = 0
        self.state = State()
        for record in log.records():
            fold(self.state, record)

    async def append(self, event: Event, *, durable: bool = False) -> Record:
        """Log an event, then fold it. Raises `SessionStorage`, and then nothing has changed."""
        record = await self.log.append(event, turn=self.state.turns, durable=durable)
        fold(self.state, record)
        return record

    def start_clock(self) -> None:
        """Budgets of time count from here: when the work can begin."""
        self.began = self.clock.monotonic()

    def elapsed(self, *, attended: bool) -> float:
        """Seconds since its clock started; with a person there, without the waiting for them."""
        waited = self.state.waited if attended else 0.0
        return self.clock.monotonic() - self.began - waited
