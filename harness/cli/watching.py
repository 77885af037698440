"""What a run's records become: JSON Lines for programs, or a screen for people."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.cli.outlet import Outlet
    from harness.library import Observer
    from harness.values.events import Record


@dataclass(frozen=True, slots=True)
class Watch:
    """An observer, and whether it has already told a person how a run broke."""

    observe: Observer
    told: Callable[[], bool]


@contextlib.contextmanager
def watched(out: Outlet, *, as_json: bool) -> Generator[Watch]:
    """A watch over one run. On the way out, whatever it is, people get the card."""
    if as_json:
        yield Watch(json_lines(out), lambda: False)
        return
    from harness.cli.screen import Screen, terminal_width
    from harness.values.events import Failed

    encoding = sys.stdout.encoding or "utf-8"
    terminal = sys.stdout.isatty()

    def write(text: str) -> None:
        out.write("stdout", text.encode(encoding, "backslashreplace"))

    screen = Screen(write, width=terminal_width(), colour=terminal)
    try:
        yield Watch(screen.observe, lambda: terminal and isinstance(screen.seen.end, Failed))
    finally:
        if screen.seen.session:
            screen.end()


def json_lines(out: Outlet) -> Callable[[Record], None]:
    """The event stream, one record a line, as the session's log has it."""
    from harness.library import encode

    def observe(record: Record) -> None:
        out.write("stdout", encode(record).rstrip(b"\n") + b"\n")

    return observe
