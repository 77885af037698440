"""Blocking jobs beside the event loop, in threads that keep nobody from leaving.

A pool's threads are joined when the interpreter ends, so that one slow answer, such as that of
an image build, would hold up the whole program. These are not.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """At most `most` jobs that somebody waits for at once; each has a thread of its own."""

    def __init__(self, most: int, name: str) -> None:
        self._places = asyncio.Semaphore(most)
        self._name = name

    async def run(self, job: Callable[[], T]) -> T:
        """The job's result, or what it raises. When the call is cancelled the thread goes on,
        unheard, and dies with the process."""
        async with self._places:
            outcome: Future[T] = Future()
            thread = threading.Thread(
                target=_work, args=(job, outcome), name=self._name, daemon=True
            )
            thread.start()
            return await asyncio.wrap_future(outcome)


def _work(job: Callable[[], T], outcome: Future[T]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        result = job()
    except BaseException as fault:  # noqa: BLE001 - handed to whoever waits for it
        outcome.set_exception(fault)
    else:
        outcome.set_result(result)
