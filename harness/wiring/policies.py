"""Policy files of every layer, read and compiled to the gate of a run.

Layers: built-in, `/etc/harness/policy.yaml` (org), `policy.yaml` beside the user's
configuration (user), `.harness/policy.yaml` in the repository (project, which only raises).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

from harness.errors import PolicyError
from harness.operations.lower import Surroundings
from harness.operations.places import Places
from harness.operations.specification_files import load_commands
from harness.operations.spelling import fold_path
from harness.policy import Gate, PolicySource, Rules, Situation, load
from harness.policy.files import LayerName
from harness.values.decisions import Effect
from harness.values.limits import Limits
from harness.values.operations import Op, Risk
from harness.wiring.config import Config, user_folder
from harness.wiring.data import data

ORG_FILE = Path("/etc/harness/policy.yaml")
PROJECT_FILE = Path(".harness/policy.yaml")
ATTENDED = "ask-before-write"
UNATTENDED = "full-auto"
WORKSPACE = "/workspace"
HOME = "/home/agent"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A gate, the limits it leaves, and whether it counts on a box.

    `needs_box`: it lets text run that it could not read, so something else must hold it.
    `faults` are rows that were dropped or widened, each with file and line.
    """

    gate: Gate
    limits: Limits
    needs_box: bool
    faults: tuple[str, ...]


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
    gate = Gate(rules, Situation(attended=config.attended))
    faults = tuple(f"{f.file}:{f.line}: {f.message}; {f.became}" for f in rules.faults)
    return LoadedPolicy(gate, _lowered(config.limits, rules.limits), _needs_box(rules), faults)


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
    """A policy file as a source. Raises `PolicyError` when it cannot be read."""
    try:
        content = _bytes(path)
    except OSError as fault:
        words = f"cannot be read: {fault.strerror or 'not a regular file'}"
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


def _bytes(path: Path) -> bytes:
    """A regular file's content. A repository's link, pipe or huge file is not followed."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as stream:
        return stream.read(_MAX_BYTES + 1)


def beside(name: str, origin: PolicySource) -> PolicySource | None:
    """What `extends` names: a file beside the one that extends it."""
    if not origin.path:
        return None
    path = Path(origin.path).parent / name
    if not path.is_file():
        return None
    return replace(policy_file(path), layer=origin.layer)


def _lowered(limits: Limits, bounds: Mapping[str, float]) -> Limits:
    names = {f.name for f in fields(Limits)}
    tighter = {
        name: type(getattr(limits, name))(min(bound, getattr(limits, name)))
        for name, bound in bounds.items()
        if name in names
    }
    return replace(limits, **tighter)


def _needs_box(rules: Rules) -> bool:
    found = rules.ladder.cell(Op.OPAQUE, Risk.HIGH)
    return found is not None and found[1].effect is Effect.ALLOW
