"""What can be known to be wrong before anything is made."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from harness import __version__
from harness.errors import ConfigError, UserError
from harness.ports import Policy, Tools, Wire
from harness.tools import builtin_tools
from harness.tools.command import TypedCommand
from harness.values.commands import Input
from harness.values.events import RunStarted
from harness.wires.scripted import Script, ScriptedWire, load_script
from harness.wiring.config import Config
from harness.wiring.policies import LoadedPolicy, labels, load_policy

_MAX_SCRIPT = 4 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration with its policy, wire and tools loaded.

    `needs_box`, `faults` and `policy_files` are `LoadedPolicy`'s.
    """

    config: Config
    policy: Policy
    wire: Wire
    tools: Tools
    needs_box: bool
    faults: tuple[str, ...]
    policy_files: tuple[str, ...]

    def started(self, task: str) -> RunStarted:
        """The first record of the session."""
        config = self.config
        return RunStarted(
            version=__version__,
            task=task,
            repo=str(config.repo),
            model=self.wire.name,
            policy=self.policy.name,
            mode=self.policy.mode,
            attended=self.policy.attended,
            backend=config.backend,
            image=config.image or "",
            tools=tuple(self.tools),
            limits=asdict(config.limits),
            budgets=asdict(config.budgets),
            env=tuple(sorted(config.env)),
            labels=tuple(sorted(labels(config))),
            policy_files=self.policy_files,
        )


def plan_run(config: Config) -> Plan:
    """Raises `UserError` for a repository, policy or model that cannot be used."""
    config, loaded = _judged(config)
    tools = builtin_tools(timeout=config.timeout, output=config.limits.output)
    wire = _wire(config.model, tuple(tools))
    return _plan(config, loaded, wire, tools)


def plan_exec(config: Config, stdin: Input | None) -> tuple[Plan, TypedCommand]:
    """As `plan_run`, for one typed command."""
    config, loaded = _judged(replace(config, attended=False))
    tool = TypedCommand(stdin, config.timeout, config.limits.output)
    wire = ScriptedWire(Script(replies=()), "none")
    tools: Tools = {tool.spec.name: tool}
    return _plan(config, loaded, wire, tools), tool


def _plan(config: Config, loaded: LoadedPolicy, wire: Wire, tools: Tools) -> Plan:
    return Plan(config, loaded.gate, wire, tools, loaded.needs_box, loaded.faults, loaded.files)


def _judged(config: Config) -> tuple[Config, LoadedPolicy]:
    repo = config.repo
    try:
        if not repo.is_dir():
            raise UserError(f"the repository `{repo}` is no folder; name one with `--repo`")
        resolved = repo.resolve()
    except OSError as fault:
        raise UserError(f"the repository `{repo}` cannot be used: {fault.strerror}") from None
    if config.state.resolve().is_relative_to(resolved):
        raise UserError(
            f"sessions are kept in `{config.state}`, inside the repository; "
            "set `HARNESS_STATE` to a folder outside it"
        )
    config = replace(config, repo=resolved)
    loaded = load_policy(config)
    return replace(config, limits=loaded.limits), loaded


def _wire(model: str, tools: tuple[str, ...]) -> Wire:
    if not model:
        raise ConfigError(
            "no model is named; give `--model provider/name` or set `HARNESS_MODEL` "
            "(`scripted:FILE` replays a file of replies)"
        )
    kind, _, rest = model.partition(":")
    if kind != "scripted":
        raise ConfigError(f"there is no wire for `{model}` yet; there is `scripted:FILE`")
    return ScriptedWire(load_script(_text(Path(rest)), rest, tools), Path(rest).stem)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise ConfigError(f"cannot be read: {fault.strerror}", file=str(path)) from None
    if len(data) > _MAX_SCRIPT:
        raise ConfigError("the script is larger than 4 MiB", file=str(path))
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError("the script is not UTF-8", file=str(path)) from None
