"""Tables fit the terminal, and are plain values when piped."""

from __future__ import annotations

import pytest

from harness.approvers.escape import columns
from harness.cli import screen, table


@pytest.fixture
def printed(capsys, monkeypatch):
    def run(rows, width=None):
        monkeypatch.setattr("sys.stdout.isatty", lambda: width is not None)
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("TERM", "dumb")
        monkeypatch.setattr(screen, "terminal_width", lambda: width)
        table.print_table(("name", "state", "task"), rows)
        return capsys.readouterr().out.splitlines()

    return run


def test_piped_rows_are_values_between_tabs_without_a_head(printed):
    assert printed([("a", "b", "c d")]) == ["a\tb\tc d"]


def test_columns_line_up_and_the_last_one_is_cut(printed):
    lines = printed([("数数", "ok", "x" * 100), ("b", "failed", "short")], width=40)
    assert lines == [
        "name  state   task",
        "数数  ok      " + "x" * 25 + "…",
        "b     failed  short",
    ]
    assert max(map(columns, lines)) <= 41


def test_cells_are_escaped(printed):
    assert printed([("a\x1b[2J", "b\tc", "d\ne")]) == ["a<U+001B>[2J\tb<U+0009>c\td<U+000A>e"]
