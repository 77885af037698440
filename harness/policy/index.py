"""Rows in order, found without asking each one: by program and by class."""

from __future__ import annotations

from harness.operations.places import reals
from harness.operations.spelling import fold_path
from harness.policy.rows import Row
from harness.values.operations import Access, Links, Op, Operation, Origin


class RowIndex:
    """Rows that may concern an operation, in their order.

    A row whose every `command` fixes a program is kept under that program; else a row that
    names classes under those; else one that names paths under their fixed parts, or hosts
    with the operations that have any. All others are asked each time.
    """

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self.rows = rows
        self._by_program: dict[str, list[int]] = {}
        self._by_op: dict[Op, list[int]] = {}
        self._by_path: dict[str, list[int]] = {}
        self._with_paths: list[int] = []
        self._with_hosts: list[int] = []
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
        elif matcher.path is not None:
            self._with_paths.append(at)
            for fixed in {pattern.fixed for pattern in matcher.path}:
                self._by_path.setdefault(fixed, []).append(at)
        elif matcher.host is not None:
            self._with_hosts.append(at)
        else:
            self._others.append(at)

    def candidates(self, operation: Operation, links: Links) -> list[Row]:
        found = [self._others, self._by_op.get(operation.op, [])]
        if operation.hosts:
            found.append(self._with_hosts)
        if operation.paths and self._with_paths:
            found.extend(self._at_paths(operation, links))
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
        return [rows[at] for at in sorted({at for places in filled for at in places})]

    def _at_paths(self, operation: Operation, links: Links) -> list[list[int]]:
        """Rows whose fixed part is a form of a path, or a folder above one; all of them where
        what lies below may be touched."""
        if any(use.unknown or (use.tree and use.access is not Access.READ)
               for use in operation.paths):  # fmt: skip
            return [self._with_paths]
        found: list[list[int]] = []
        for form in {form for use in operation.paths for form in (use.path, *reals(use, links))}:
            shown = fold_path(form)
            while shown:
                found.append(self._by_path.get(shown, []))
                shown = shown.rpartition("/")[0]
            found.append(self._by_path.get("/", []))
        return found
