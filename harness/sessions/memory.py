"""A log that is gone when the process is."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from harness.errors import SessionCorrupt
from harness.ports import Clock
from harness.sessions.codec import digest, encode
from harness.values.events import Event, Record


class MemoryLog:
    """Keeps records and blobs in lists; chains them as a file would."""

    def __init__(self, session: str, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._records: list[Record] = []
        self._blobs: dict[str, bytes] = {}
        self._prev = ""

    @property
    def session(self) -> str:
        return self._session

    async def append(self, event: Event, *, turn: int, durable: bool = False) -> Record:  # noqa: ARG002 # memory has one durability
        record = Record(
            len(self._records), self._clock.now(), self._session, turn, event, self._prev
        )
        self._prev = digest(encode(record))
        self._records.append(record)
        return record

    def records(self) -> Sequence[Record]:
        return tuple(self._records)

    async def put_blob(self, data: bytes) -> str:
        name = sha256(data).hexdigest()
        self._blobs[name] = data
        return name

    async def get_blob(self, digest: str) -> bytes:
        try:
            return self._blobs[digest]
        except KeyError:
            raise SessionCorrupt(f"there is no blob `{digest}`") from None
