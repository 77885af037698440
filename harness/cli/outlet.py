"""Writing to streams that may be slow, without making the event loop wait.

A terminal that is held, or a pipe nobody reads, must not stop the pings that keep a box alive.
So one thread writes, and the loop only hands over. What waits is bounded by what a command may
print.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Generator
from typing import BinaryIO, TextIO

from harness.cli.filter import TerminalFilter
from harness.errors import HarnessError

_END = ("", b"")


class Outlet:
    """`stdout` and `stderr` behind one thread.

    Bytes to a terminal pass a filter unless `raw`; bytes to anything else stay as they are. A
    reader that goes away is no fault: the rest is dropped. Any other failure is kept in `fault`.
    """

    def __init__(self, out: TextIO, err: TextIO, *, raw: bool = False) -> None:
        self._streams: dict[str, BinaryIO] = {"stdout": out.buffer, "stderr": err.buffer}
        self._filters = {
            name: TerminalFilter()
            for name, stream in (("stdout", out), ("stderr", err))
            if stream.isatty() and not raw
        }
        self._encodings = {"stdout": out.encoding, "stderr": err.encoding}
        self._queue: queue.SimpleQueue[tuple[str, bytes] | threading.Event] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="outlet", daemon=True)
        self._thread.start()
        self.fault = ""

    def sink(self, stream: str, data: bytes) -> None:
        """An `OutputSink`: output of a command, filtered for terminals."""
        held = self._filters.get(stream)
        if held is not None:
            data = held.feed(data).encode(self._encodings[stream], "replace")
        self.write(stream, data)

    def write(self, stream: str, data: bytes) -> None:
        """Our own bytes, as they are."""
        if data:
            self._queue.put((stream, data))

    def note(self, text: str) -> None:
        """A line of progress for people, on stderr."""
        from harness.approvers.escape import visible

        self.write("stderr", f"harness: {visible(text)}\n".encode("utf-8", "replace"))

    def drain(self) -> None:
        """Wait until everything handed over so far is written."""
        done = threading.Event()
        self._queue.put(done)
        done.wait()

    def close(self) -> None:
        """Write what is left, and end the thread."""
        for name, held in self._filters.items():
            self.write(name, held.close().encode(self._encodings[name], "replace"))
        self._queue.put(_END)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not _END:
            if isinstance(item, threading.Event):
                item.set()
                continue
            stream, data = item
            try:
                self._streams[stream].write(data)
                self._streams[stream].flush()
            except BrokenPipeError:
                pass
            except (OSError, ValueError) as fault:  # a full disk, or closed under us
                self.fault = str(fault)


@contextlib.contextmanager
def outlet(*, raw: bool = False) -> Generator[Outlet]:
    """The process's own streams, written to the end on every way out.

    Raises `HarnessError` when something could not be written.
    """
    made = Outlet(sys.stdout, sys.stderr, raw=raw)
    try:
        yield made
    finally:
        made.close()
    if made.fault:
        raise HarnessError(f"the output could not be written: {made.fault}")
