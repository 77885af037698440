"""Tables: aligned columns on a terminal, tabs between values when piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from harness.approvers.escape import columns, visible

_WIDEST = 48
_GAP = "  "


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of escaped cells. On a terminal the last column is cut where the line ends."""
    cells = [[visible(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            print("\t".join(row))
        return
    from rich.text import Text

    from harness.cli.screen import make_console, terminal_width

    console = make_console()
    room = [min(max(map(columns, column)), _WIDEST) for column in zip(head, *cells, strict=True)]
    width = terminal_width()
    console.print(Text(_line(head, room, width), "dim"))
    for row in cells:
        console.print(Text(_line(row, room, width)))


def _line(row: Sequence[str], room: Sequence[int], width: int) -> str:
    *first, last = row
    last = last[:1000]
    padded = [cell + " " * (size - columns(cell)) for cell, size in zip(first, room, strict=False)]
    start = _GAP.join(padded) + _GAP if padded else ""
    left = max(width - columns(start), 12)
    if columns(last) <= left:
        return start + last
    while columns(last) >= left:
        last = last[:-1]
    return start + last + "…"
