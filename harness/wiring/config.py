"""Settings of a run, from wherever they were written, each with its origin.

Defaults < `/etc/harness/config.yaml` < the user's file < the repository's `.harness.yaml`
(which may only lower limits and budgets) < `HARNESS_*` variables < options.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import cast

import platformdirs
import yaml

from harness.errors import ConfigError
from harness.values.limits import Budgets, Limits, Network
from harness.values.units import count, number, size, span

PROJECT_FILE = ".harness.yaml"
_MAX_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class Config:
    """A run as it was asked for, every value resolved.

    `policy` is a built-in name or a file; None is `ask-before-write` where a person answers and
    `full-auto` where nobody does. `mode` None is the policy's own. `model` is `provider/model`
    or `scripted:FILE`. `env` holds the variables that enter the box. `state` is where sessions
    are kept. `timeout` bounds one command, in seconds. `assume_isolated` says that this process
    is boxed already, so that a backend that isolates nothing will do. `origins` tells where
    each value that is not a default was written.
    """

    repo: Path
    state: Path
    model: str = ""
    policy: str | None = None
    mode: str | None = None
    attended: bool = False
    backend: str = "docker"
    image: str | None = None
    runtime: str | None = None
    network: Network = Network.NONE
    limits: Limits = field(default_factory=Limits)
    budgets: Budgets = field(default_factory=Budgets)
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float = 600.0
    assume_isolated: bool = False
    origins: Mapping[str, str] = field(default_factory=dict[str, str])


def _word(value: object) -> str:
    if not isinstance(value, str) or not value or len(value) > 4096:
        raise ValueError(f"`{value}` is no word")
    return value


def _network(value: object) -> str:
    if value not in {Network.NONE.value}:
        raise ValueError(f"network `{value}` is not built yet; a box has `none`")
    return str(value)


def _flag(value: object) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    found = words.get(str(value).lower())
    if found is None:
        raise ValueError(f"`{value}` is neither `true` nor `false`")
    return found


_LIMITS: Mapping[str, Callable[[object], object]] = {
    "cpus": number,
    "memory": size,
    "pids": count,
    "disk": size,
    "inodes": count,
    "scratch": size,
    "shm": size,
    "nofile": count,
    "wall": span,
    "output": size,
}
_BUDGETS: Mapping[str, Callable[[object], object]] = {
    "turns": count,
    "duration": span,
    "output_tokens": count,
    "turn_tokens": count,
}
SETTINGS: Mapping[str, Callable[[object], object]] = {
    "model": _word,
    "policy": _word,
    "mode": _word,
    "backend": _word,
    "image": _word,
    "runtime": _word,
    "network": _network,
    "state": _word,
    "timeout": span,
    "assume_isolated": _flag,
    **{f"limits.{name}": read for name, read in _LIMITS.items()},
    **{f"budgets.{name}": read for name, read in _BUDGETS.items()},
}
"""Every setting by its dotted name, with what reads it."""


@dataclass(slots=True)
class _Settings:
    """Values so far, and where each was written."""

    values: dict[str, object] = field(default_factory=dict[str, object])
    origins: dict[str, str] = field(default_factory=dict[str, str])

    def put(self, name: str, value: object, origin: str) -> None:
        self.values[name] = value
        self.origins[name] = origin

    def lower(self, name: str, value: object, origin: str, default: object) -> None:
        """Take a value only where it is tighter than what stands."""
        standing = self.values.get(name, default)
        if standing is None or cast("float", value) < cast("float", standing):
            self.put(name, value, origin)


def load_config(
    repo: Path,
    options: Mapping[str, object],
    environ: Mapping[str, str],
    *,
    attended: bool = False,
    env: Mapping[str, str] | None = None,
) -> Config:
    """Merge all places. `options` are by dotted name, None meaning not given.

    Raises `ConfigError` with file and line.
    """
    settings = _Settings()
    for path in (Path("/etc/harness/config.yaml"), user_folder(environ) / "config.yaml"):
        for name, (value, line) in _read_file(path, 0).items():
            settings.put(name, value, f"{path}:{line}")
    _project(repo, settings)
    for name, read in SETTINGS.items():
        variable = "HARNESS_" + name.upper().replace(".", "_")
        if environ.get(variable):
            settings.put(name, _read(read, environ[variable], f"`{variable}`"), variable)
    for name, value in options.items():
        if name not in SETTINGS:
            raise ConfigError(f"there is no setting `{name}`; there are {', '.join(SETTINGS)}")
        if value is not None:
            option = "--" + name.rpartition(".")[2].replace("_", "-")
            settings.put(name, _read(SETTINGS[name], value, f"`{option}`"), "option")
    return _config(repo, settings, environ, attended=attended, env=env or {})


def _config(
    repo: Path,
    settings: _Settings,
    environ: Mapping[str, str],
    *,
    attended: bool,
    env: Mapping[str, str],
) -> Config:
    values = settings.values
    plain = {n: v for n, v in values.items() if "." not in n and n not in {"state", "network"}}
    state = values.get("state")
    return Config(
        repo=repo,
        state=Path(str(state)) if state else _state(environ),
        limits=Limits(**_group("limits.", values)),
        budgets=Budgets(**_group("budgets.", values)),
        network=Network(str(values.get("network", "none"))),
        attended=attended,
        env=env,
        origins=dict(settings.origins),
        **plain,  # type: ignore[arg-type] # each was read by its own entry of SETTINGS
    )


def _group(prefix: str, values: Mapping[str, object]) -> dict[str, int]:
    found = {n.removeprefix(prefix): v for n, v in values.items() if n.startswith(prefix)}
    return cast("dict[str, int]", found)


def _state(environ: Mapping[str, str]) -> Path:
    home = environ.get("XDG_STATE_HOME")
    return Path(home) / "harness" if home else platformdirs.user_state_path("harness")


def user_folder(environ: Mapping[str, str]) -> Path:
    """Where the user's own configuration and policy are."""
    home = environ.get("XDG_CONFIG_HOME")
    return Path(home) / "harness" if home else platformdirs.user_config_path("harness")


def _project(repo: Path, settings: _Settings) -> None:
    """A repository nobody vouches for may tighten, and nothing else."""
    path = repo / PROJECT_FILE
    defaults: dict[str, object] = {}
    for prefix, group in (("limits.", Limits()), ("budgets.", Budgets())):
        defaults |= {prefix + f.name: getattr(group, f.name) for f in fields(group)}
    for name, (value, line) in _read_file(path, os.O_NOFOLLOW).items():
        if name not in defaults:
            raise ConfigError(
                f"a repository's own file may only lower limits and budgets, not set `{name}`",
                file=str(path),
                line=line,
            )
        settings.lower(name, value, f"{path}:{line}", defaults[name])


def _read(read: Callable[[object], object], value: object, place: str) -> object:
    try:
        return read(value)
    except ValueError as fault:
        raise ConfigError(f"{place}: {fault}") from None


def _read_file(path: Path, flags: int) -> dict[str, tuple[object, int]]:
    """Dotted name to value and line. A file that is not there is empty; one that is there and
    cannot be read is an error, since what it says must not be taken for silence."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except FileNotFoundError:
        return {}
    except OSError as fault:
        link = "a repository's settings may not be a link"
        words = link if fault.errno == errno.ELOOP else f"cannot be read: {fault.strerror}"
        raise ConfigError(words, file=str(path)) from None
    try:
        with os.fdopen(file, "rb") as stream:
            data = stream.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            raise ConfigError("the file is larger than 1 MiB", file=str(path))
        node = yaml.compose(data.decode(), Loader=yaml.SafeLoader)
    except UnicodeDecodeError:
        raise ConfigError("the file is not UTF-8", file=str(path)) from None
    except OSError as fault:
        raise ConfigError(f"cannot be read: {fault.strerror}", file=str(path)) from None
    except (yaml.YAMLError, RecursionError) as fault:
        mark = getattr(fault, "problem_mark", None)
        line = None if mark is None else cast("int", mark.line) + 1
        problem = getattr(fault, "problem", None) or "it is nested too deeply"
        raise ConfigError(f"no valid YAML: {problem}", file=str(path), line=line) from None
    return {} if node is None else _flatten(node, str(path), "")


def _flatten(node: yaml.Node, file: str, prefix: str) -> dict[str, tuple[object, int]]:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError("a mapping of settings is due here", file=file, line=line)
    found: dict[str, tuple[object, int]] = {}
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        line = key.start_mark.line + 1
        if name in {"limits", "budgets"}:
            found |= _flatten(value, file, f"{name}.")
            continue
        if name not in SETTINGS:
            known = ", ".join(f"`{n}`" for n in SETTINGS)
            words = f"there is no setting `{name}`; there are {known}"
            raise ConfigError(words, file=file, line=line)
        if name in found:
            raise ConfigError(f"`{name}` stands here twice", file=file, line=line)
        if not isinstance(value, yaml.ScalarNode):
            raise ConfigError(f"`{name}` is one value", file=file, line=line)
        try:
            found[name] = (SETTINGS[name](value.value), line)
        except ValueError as fault:
            raise ConfigError(f"`{name}`: {fault}", file=file, line=line) from None
    return found
