"""Policy files of every layer, read and compiled to the gate of a run.

Layers: built-in, `/etc/harness/policy.yaml` (org), `policy.yaml` beside the user's
configuration (user), `.harness/policy.yaml` in the repository (project, which only raises).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from harness.errors import PolicyError
from harness.operations.lower import Surroundings
from harness.operations.places import Places
from harness.operations.specification_files import load_commands
from harness.operations.spelling import fold_path
from harness.policy import Gate, PolicySource, Rules, Situation, load
from harness.policy.files import LayerName
from harness.values.decisions import Effect
from harness.values.limits import HOME, WORKSPACE, Limits
from harness.values.operations import RISK, Op
from harness.wiring.config import Config, user_folder
from harness.wiring.data import data

ORG_FILE = Path("/etc/harness/policy.yaml")
PROJECT_FILE = Path(".harness/policy.yaml")
ATTENDED = "ask-before-write"
UNATTENDED = "full-auto"
UNREAD = frozenset(
    {Op.OPAQUE, Op.EXEC_CODE, Op.EXEC_TASK, Op.PKG_INSTALL, Op.PROC_CONTROL, Op.EXEC_REMOTE}
)
"""What runs text or programs that no policy has read: only a box holds it."""

_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A gate, the limits it leaves, and whether it counts on a box.

    `needs_box`: it lets text run that it could not read, so something else must hold it.
    `faults` are rows that were dropped or widened, each with file and line; `files` what was
    read, as `sha256:<hex> <path>`.
    """

    gate: Gate
    limits: Limits
    needs_box: bool
    faults: tuple[str, ...]
    files: tuple[str, ...]


def load_policy(config: Config, *, root: str = WORKSPACE, home: str = HOME) -> LoadedPolicy:
    """The policy of a run, as seen from a workspace at `root`. Raises `PolicyError`."""
    sources = [*_layers(config)]
    rules = load(
        sources,
        surroundings(root, home, _inside(config.repo, sources, root)),
        built_in=built_in(),
        resolve=beside,
        mode=config.mode,
    )
    gate = Gate(rules, Situation(attended=config.attended, labels=labels(config)))
    faults = tuple(f"{f.file}:{f.line}: {f.message}; {f.became}" for f in rules.faults)
    limits = _lowered(config.limits, rules.limits)
    files = tuple(_digest(file.source) for file in rules.files)
    return LoadedPolicy(gate, limits, _needs_box(rules), faults, files)


def _digest(source: PolicySource) -> str:
    text = source.text.encode() if isinstance(source.text, str) else source.text
    return f"sha256:{sha256(text).hexdigest()} {source.path}"


def labels(config: Config) -> frozenset[str]:
    """What a session carries from its start: a repository is not trusted, and variables that
    were let into the box may be private."""
    return frozenset({"untrusted", "private"} if config.env else {"untrusted"})


@cache
def surroundings(
    root: str = WORKSPACE, home: str = HOME, policy_files: frozenset[str] = frozenset()
) -> Surroundings:
    """What calls are read against: the box's places and the packaged command specifications.

    `policy_files` are the paths in the box of files that this very judgement is read from.
    """
    folder = data("policies") / "commands"
    files = [(each.name, each.read_text()) for each in sorted(folder.glob("*.yaml"))]
    return Surroundings(Places(root, home, root, policy_files), load_commands(files))


@cache
def built_in() -> Mapping[str, PolicySource]:
    """The policies that come with the package, by name."""
    found = sorted(data("policies").glob("*.yaml"))
    return {
        path.stem: PolicySource("built-in", path.stem, path.read_bytes(), f"policies/{path.name}")
        for path in found
    }


def policy_file(path: Path, layer: LayerName = "user") -> PolicySource:
    """A policy file as a source. Raises `PolicyError` when it cannot be read.

    A repository's own file must be no link: what it leads to is not the repository's to show.
    """
    try:
        content = _bytes(path, os.O_NOFOLLOW if layer == "project" else 0)
    except OSError as fault:
        link = layer == "project" and path.is_symlink()
        words = "a repository's policy may not be a link" if link else _words(fault)
        raise PolicyError(words, file=str(path)) from None
    return PolicySource(layer, path.stem, content, str(path))


def _inside(repo: Path, sources: Sequence[PolicySource], root: str) -> frozenset[str]:
    """Where policy files that lie in the repository are in the box."""
    paths = (Path(each.path).resolve() for each in sources if each.layer != "built-in")
    inside = (path.relative_to(repo) for path in paths if path.is_relative_to(repo))
    return frozenset(fold_path(f"{root}/{path.as_posix()}") for path in inside)


def _layers(config: Config) -> Iterator[PolicySource]:
    name = config.policy or (ATTENDED if config.attended else UNATTENDED)
    known = built_in()
    if name in known:
        yield known[name]
    if ORG_FILE.exists():
        yield policy_file(ORG_FILE, "org")
    own = user_folder(os.environ) / "policy.yaml"
    if own.exists():
        yield policy_file(own)
    if name not in known:
        if not Path(name).exists():
            names = ", ".join(f"`{each}`" for each in known)
            raise PolicyError(f"there is no policy `{name}`; built in are {names}, or name a file")
        yield policy_file(Path(name))
    project = config.repo / PROJECT_FILE
    if project.is_symlink() or project.exists():
        yield policy_file(project, "project")


def _bytes(path: Path, flags: int) -> bytes:
    """At most one byte more than a policy may have; a pipe or a device gives an error."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    with os.fdopen(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return stream.read(_MAX_BYTES + 1)


def _words(fault: OSError) -> str:
    return f"cannot be read: {(fault.strerror or type(fault).__name__).lower()}"


def beside(name: str, origin: PolicySource) -> PolicySource | None:
    """What `extends` names: a file beside the one that extends it. A repository's own policy
    extends nothing outside its folder."""
    if not origin.path:
        return None
    folder = Path(origin.path).parent
    path = folder / name
    if origin.layer == "project" and not path.resolve().is_relative_to(folder.resolve()):
        return None
    return policy_file(path, origin.layer) if path.is_file() else None


def _lowered(limits: Limits, bounds: Mapping[str, float]) -> Limits:
    names = {f.name for f in fields(Limits)}
    tighter = {
        name: type(getattr(limits, name))(min(bound, getattr(limits, name)))
        for name, bound in bounds.items()
        if name in names
    }
    return replace(limits, **tighter)


def _needs_box(rules: Rules) -> bool:
    """Whether a table or a row lets code run that judgement has not read."""
    cells = (rules.ladder.cell(op, RISK[op]) for op in UNREAD)
    rows = (row for file in rules.files for row in file.rules)
    return any(found and found[1].effect is Effect.ALLOW for found in cells) or any(
        row.effect is Effect.ALLOW and row.matcher.concerns(UNREAD) for row in rows
    )
