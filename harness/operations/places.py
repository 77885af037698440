"""What touching a path means: its operation class, by where it lies and what it holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.operations.control import is_control_path, is_policy_path
from harness.operations.paths import absolute, below, climbs, normal
from harness.operations.secrets import is_secret_path
from harness.operations.spelling import fold_name, fold_path
from harness.values.limits import HOME, WORKSPACE
from harness.values.operations import RISK, Access, Links, Op, PathUse

SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # names of places, none is opened
KEPT_OUTPUT = "/tmp/harness"  # noqa: S108  # in the box, whose one user owns it
"""Where the whole output of commands is kept for the model to read in parts: its own to read."""
_DEVICES = frozenset(
    f"/dev/{name}"
    for name in ("null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty")
)
UNRESOLVED = "/proc/unresolved"
_ORDER = {op: (RISK[op], at) for at, op in enumerate(Op)}


@dataclass(frozen=True, slots=True)
class Places:
    """The fixed points of a box: its workspace, its home, where relative paths begin.

    `policy_files` are absolute paths that judgement itself is read from.
    """

    root: str = WORKSPACE
    home: str = HOME
    cwd: str = WORKSPACE
    policy_files: frozenset[str] = field(default=frozenset())

    def use(self, text: str, access: Access, *, tree: bool = False) -> PathUse | None:
        """A path as typed to a `PathUse`; None when it can be no path."""
        spelled = absolute(text, self.cwd, self.home)
        if spelled is None:
            return None
        path = normal(spelled)
        if climbs(spelled):
            return PathUse(path, access, tree=tree, spelled=spelled)
        return PathUse(path, access, tree=tree)

    def relative(self, path: str) -> str | None:
        """The part below the workspace (`.` for itself), or None outside it."""
        if path == self.root:
            return "."
        if path.startswith(self.root + "/"):
            return path[len(self.root) + 1 :]
        return None

    def classify(self, path: str, use: PathUse) -> Op:
        """The class of doing to `path` (lexical or real) what `use` says."""
        if use.access is Access.READ:
            return self._read(path)
        return self._write(path, use)

    def _read(self, path: str) -> Op:
        if path in _DEVICES or below(path, "/dev/fd"):
            return Op.INSPECT
        inside = self.relative(path)
        if is_secret_path(path if inside is None else inside):
            return Op.READ_SECRET
        if path.startswith(KEPT_OUTPUT + "/"):
            return Op.READ_WORKSPACE
        return Op.READ_OUTSIDE if inside is None else Op.READ_WORKSPACE

    def _write(self, path: str, use: PathUse) -> Op:
        if path in _DEVICES or below(path, "/dev/fd"):
            return Op.INSPECT
        inside = self.relative(path)
        if use.tree and use.access is Access.DELETE and self._destroys(path, inside, use):
            return Op.DESTROY_DATA
        shown = path if inside is None else inside
        if fold_path(path) in self.policy_files or is_policy_path(shown):
            return Op.POLICY_CHANGE
        if is_control_path(shown):
            return Op.WRITE_CONTROL
        return Op.WRITE_OUTSIDE if inside is None else Op.WRITE_WORKSPACE

    def _destroys(self, path: str, inside: str | None, use: PathUse) -> bool:
        if use.unknown or below(self.root, path):
            return True
        if inside is None:
            return not any(below(path, place) for place in SCRATCH)
        return any(fold_name(part) == ".git" for part in inside.split("/"))


def reals(use: PathUse, links: Links) -> tuple[str, ...]:
    """The real paths behind a use; `UNRESOLVED` for what the box did not resolve."""
    first = links.get(use.path, UNRESOLVED)
    if not use.spelled:
        return (first,)
    return first, links.get(use.spelled, UNRESOLVED)


def riskier(one: Op, other: Op) -> Op:
    """The class with the higher level; between equals, the later in the table."""
    return one if _ORDER[one] >= _ORDER[other] else other
