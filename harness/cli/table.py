"""Tables: aligned columns on a terminal, tabs between values when piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from harness.approvers.escape import visible


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str] = ()
) -> None:
    """Print rows of escaped cells. `styles` colours one row each. The last column may wrap."""
    cells = [[visible(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            print("\t".join(row))
        return
    from rich.table import Table
    from rich.text import Text

    from harness.cli.screen import make_console

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for number, name in enumerate(head):
        table.add_column(name, no_wrap=number < len(head) - 1, overflow="fold")
    for row, style in zip(cells, styles or [""] * len(cells), strict=True):
        table.add_row(*(Text(cell) for cell in row), style=style)
    make_console().print(table, soft_wrap=False)
