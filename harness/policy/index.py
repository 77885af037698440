"""Rows in order, found without asking each one: by program and by class."""

from __future__ import annotations

from heapq import merge

from harness.policy.rows import Row
from harness.values.operations import Op, Operation, Origin


class RowIndex:
    """Rows that may concern an operation, in their order.

    A row whose every `command` fixes a program is kept under that program; else a row that
    names classes under those; all others are asked each time.
    """

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self.rows = rows
        self._by_program: dict[str, list[int]] = {}
        self._by_op: dict[Op, list[int]] = {}
        self._others: list[int] = []
        for at, row in enumerate(rows):
            self._place(at, row)

    def _place(self, at: int, row: Row) -> None:
        matcher = row.matcher
        if matcher.command is not None:
            programs = {pattern.program for pattern in matcher.command}
            if None not in programs:
                for program in programs:
                    self._by_program.setdefault(str(program), []).append(at)
                return
        if matcher.ops is not None:
            for op in matcher.ops:
                self._by_op.setdefault(op, []).append(at)
            return
        self._others.append(at)

    def candidates(self, operation: Operation) -> list[Row]:
        found = [self._others, self._by_op.get(operation.op, [])]
        if operation.origin is Origin.COMMAND and operation.argv:
            word = operation.argv[0]
            if word is None:
                found.extend(self._by_program.values())
            else:
                found.append(self._by_program.get(word.rpartition("/")[2], []))
        filled = [places for places in found if places]
        if not filled:
            return []
        rows = self.rows
        if len(filled) == 1:
            return [rows[at] for at in filled[0]]
        return [rows[at] for at in merge(*filled)]
