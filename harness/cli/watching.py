"""What a run's records become: JSON Lines for programs, or a screen for people."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.cli.outlet import Outlet
    from harness.library import Observer
    from harness.values.events import Record


@contextlib.contextmanager
def watched(out: Outlet, *, as_json: bool) -> Generator[Observer]:
    """An observer for one run. On the way out, whatever it is, people get the card."""
    if as_json:
        yield json_lines(out)
        return
    from harness.cli.screen import Screen, terminal_width

    encoding = sys.stdout.encoding or "utf-8"

    def write(text: str) -> None:
        out.write("stdout", text.encode(encoding, "backslashreplace"))

    screen = Screen(write, width=terminal_width(), colour=sys.stdout.isatty())
    try:
        yield screen.observe
    finally:
        if screen.seen.session:
            screen.end()


def json_lines(out: Outlet) -> Callable[[Record], None]:
    """The event stream, one record a line, as the session's log has it."""
    from harness.sessions.codec import encode

    def observe(record: Record) -> None:
        out.write("stdout", encode(record).rstrip(b"\n") + b"\n")

    return observe
