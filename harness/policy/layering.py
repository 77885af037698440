"""Files of all layers, merged to what judgement reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harness.errors import PolicyError
from harness.operations.lower import Surroundings
from harness.policy.examples import failing_example
from harness.policy.files import (
    LAYERS,
    Cell,
    Fault,
    PolicyFile,
    PolicySource,
    Table,
    load_file,
    widen_row,
)
from harness.policy.index import RowIndex
from harness.policy.rows import Row
from harness.policy.searching import DeniedRows
from harness.values.decisions import Effect
from harness.values.operations import Op, Risk

MAX_EXTENDS = 16
MAX_FILES = 256
Resolve: TypeAlias = Callable[[str, PolicySource], PolicySource | None]
"""The file that `extends` names, seen from the file that extends; None if there is none."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Rules in order of precedence, and the table under them."""

    rules: RowIndex
    table: Table

    def cell(self, op: Op, risk: Risk) -> tuple[str, Cell] | None:
        """A class beats a level; a level covers only itself."""
        for key in (op.value, risk.word):
            found = self.table.get(key)
            if found is not None:
                return key, found
        return None


@dataclass(frozen=True, slots=True)
class Rules:
    """All layers of a run, compiled once. `project` is the ladder of project files that are
    not trusted: it only raises. `ceiling` is what runs unattended at most, None if no file
    sets one (then nothing does)."""

    name: str
    mode: str
    ladder: Ladder
    project: Ladder | None
    floors: RowIndex
    ceiling: Risk
    ceiling_cell: Cell | None
    limits: Mapping[str, float]
    files: tuple[PolicyFile, ...]
    faults: tuple[Fault, ...]
    around: Surroundings
    denied: DeniedRows


@dataclass(frozen=True, slots=True)
class _Chain:
    """A file and everything it extends, the extending file first."""

    file: PolicyFile
    bases: tuple[_Chain, ...]

    def files(self) -> Iterable[PolicyFile]:
        yield self.file
        for base in self.bases:
            yield from base.files()

    def table(self, mode: str) -> dict[str, Cell]:
        """The file's table for `mode`, key by key over its bases'; a base that does not know
        the mode gives the table of its own name."""
        merged: dict[str, Cell] = {}
        for base in reversed(self.bases):
            merged.update(base.table(mode if base.knows(mode) else base.file.name))
        merged.update(self.file.tables.get(mode, {}))
        return merged

    def knows(self, mode: str) -> bool:
        return mode in self.file.tables or any(base.knows(mode) for base in self.bases)

    def offers(self, mode: str) -> bool:
        return self.file.name == mode or self.knows(mode)

    def says(self) -> bool:
        """Whether it has a table for the mode of its own name."""
        return self.knows(self.file.name) or any(base.says() for base in self.bases)


def load(
    sources: Sequence[PolicySource],
    around: Surroundings,
    *,
    built_in: Mapping[str, PolicySource],
    resolve: Resolve | None = None,
    mode: str | None = None,
) -> Rules:
    """Merge policy files of all layers; of one layer, later sources are nearer.

    `built_in` are the policies `extends` may name; `resolve` finds other files. The mode
    defaults to the name of the nearest policy outside the project that has a table. Raises
    `PolicyError` with file and line for a file that cannot be used.
    """
    loader = _Loader(around, built_in, resolve)
    chains = [loader.chain(source, ()) for source in sources]
    order = sorted(
        range(len(chains)), key=lambda i: (LAYERS.index(sources[i].layer), i), reverse=True
    )
    nearest = [chains[i] for i in order]
    full = [c for c in nearest if _counts_fully(c.file.source)]
    apart = [c for c in nearest if not _counts_fully(c.file.source)]
    name = next((c.file.name for c in full if c.says()), sources[-1].name if sources else "none")
    chosen = mode or name
    files = tuple(_unique(file for chain in nearest for file in chain.files()))
    if mode is not None and not any(chain.offers(mode) for chain in full):
        raise PolicyError(f"no policy has a table for the mode `{mode}`")
    level, cell = _lowest_ceiling(nearest)
    floors = tuple(row for file in files for row in file.floor)
    rules = _rules(full)
    project = _rules(apart)
    denied = DeniedRows(r for r in (*rules, *project, *floors) if r.effect is Effect.DENY)
    return Rules(
        name=name,
        mode=chosen,
        ladder=Ladder(RowIndex(rules), _merged(full, chosen)),
        project=Ladder(RowIndex(project), _merged(apart, chosen)) if apart else None,
        floors=RowIndex(floors),
        ceiling=level,
        ceiling_cell=cell,
        limits=_lowest_limits(nearest),
        files=files,
        faults=tuple(fault for file in files for fault in file.faults),
        around=around,
        denied=denied,
    )


def _counts_fully(source: PolicySource) -> bool:
    return source.layer != "project" or source.trusted


def _unique(files: Iterable[PolicyFile]) -> Iterable[PolicyFile]:
    seen: set[int] = set()
    for file in files:
        if id(file) not in seen:
            seen.add(id(file))
            yield file


def _rules(chains: Sequence[_Chain]) -> tuple[Row, ...]:
    files = list(_unique(file for chain in chains for file in chain.files()))
    files.sort(key=lambda file: LAYERS.index(file.source.layer), reverse=True)
    return tuple(row for file in files for row in file.rules)


def _merged(chains: Sequence[_Chain], mode: str) -> Table:
    merged: dict[str, Cell] = {}
    for chain in reversed(chains):
        if chain.offers(mode):
            merged.update(chain.table(mode))
        elif not _counts_fully(chain.file.source):
            merged.update(chain.table(chain.file.name))
    return merged


def _layers(chains: Sequence[_Chain]) -> Iterable[list[PolicyFile]]:
    """Files by the layer that brought them in, the nearest first: a base counts for the layer
    of the file that extends it, so that no file can stand before another layer's."""
    by_layer: dict[str, list[PolicyFile]] = {}
    for chain in chains:
        by_layer.setdefault(chain.file.source.layer, []).extend(chain.files())
    return by_layer.values()


def _lowest_ceiling(chains: Sequence[_Chain]) -> tuple[Risk, Cell | None]:
    best: tuple[Risk, Cell] | None = None
    for files in _layers(chains):
        for file in files:
            if file.ceiling_level is not None and file.ceiling is not None:
                if best is None or file.ceiling_level < best[0]:
                    best = (file.ceiling_level, file.ceiling)
                break
    return best if best is not None else (Risk.NONE, None)


def _lowest_limits(chains: Sequence[_Chain]) -> Mapping[str, float]:
    lowest: dict[str, float] = {}
    for files in _layers(chains):
        nearest: dict[str, float] = {}
        for file in files:
            for key, value in file.limits.items():
                nearest.setdefault(key, value)
        for key, value in nearest.items():
            lowest[key] = min(value, lowest.get(key, value))
    return lowest


class _Loader:
    def __init__(
        self,
        around: Surroundings,
        built_in: Mapping[str, PolicySource],
        resolve: Resolve | None,
    ) -> None:
        self.around = around
        self.built_in = built_in
        self.resolve = resolve
        self.loaded: dict[tuple[str, str, str], PolicyFile] = {}
        self.count = 0

    def chain(self, source: PolicySource, above: tuple[str, ...]) -> _Chain:
        file = self._file(source)
        shown = source.path or source.name
        if shown in above:
            path = " → ".join((*above, shown))
            raise PolicyError(f"`extends` goes in a circle: {path}", file=shown)
        self.count += 1
        if len(above) >= MAX_EXTENDS or self.count > MAX_FILES:
            raise PolicyError(f"`extends` goes deeper than {MAX_EXTENDS} files, or reaches more "
                              f"than {MAX_FILES}", file=shown)  # fmt: skip
        bases = tuple(
            self.chain(self._base(reference, source), (*above, shown)) for reference in file.extends
        )
        return _Chain(file, bases)

    def _base(self, reference: str, source: PolicySource) -> PolicySource:
        found = self.built_in.get(reference)
        if found is None and self.resolve is not None:
            found = self.resolve(reference, source)
        if found is None:
            names = ", ".join(sorted(self.built_in))
            raise PolicyError(
                f"`extends` names `{reference[:80]}`, which is no built-in policy ({names}) "
                "and no file",
                file=source.path or source.name,
            )
        return found

    def _file(self, source: PolicySource) -> PolicyFile:
        key = (source.layer, source.path, source.name)
        if key not in self.loaded:
            self.loaded[key] = _checked(load_file(source, self.around.places), self.around)
        return self.loaded[key]


def _checked(file: PolicyFile, around: Surroundings) -> PolicyFile:
    """Replace rows that their own examples contradict, as rows that cannot load."""
    faults: list[Fault] = []

    def kept(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        made: list[Row] = []
        for row in rows:
            message = failing_example(row, around) if row.examples else None
            if message is None:
                made.append(row)
                continue
            widened, became = widen_row(row, message)
            faults.append(Fault(row.file, row.line, row.id, message, became))
            if widened is not None:
                made.append(widened)
        return tuple(made)

    rules, floor = kept(file.rules), kept(file.floor)
    if not faults:
        return file
    return PolicyFile(
        file.source, file.name, file.extends, file.tables, rules, floor, file.ceiling,
        file.ceiling_level, file.limits, (*file.faults, *faults),
    )  # fmt: skip
