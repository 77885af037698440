"""One policy file: validated, compiled row by row, its faults kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

from pydantic import ValidationError

from harness.errors import PolicyError
from harness.operations.places import Places
from harness.policy.grammar import FileModel, MatcherModel, RowModel
from harness.policy.rows import Matcher, Row, compile_matcher, effect_of
from harness.policy.source import Located, read_source
from harness.values.decisions import Effect
from harness.values.operations import Op, Risk

LayerName: TypeAlias = Literal["built-in", "org", "user", "project", "session"]
LAYERS: tuple[LayerName, ...] = ("built-in", "org", "user", "project", "session")
_EFFECTS = {effect.word: effect for effect in Effect}
_LEVELS = {risk.word: risk for risk in Risk}


@dataclass(frozen=True, slots=True)
class PolicySource:
    """Text of a policy file and the layer it belongs to. `path` is shown in reasons.

    `trusted` counts for project files only: the user trusts this exact content and what it
    extends; without it such a file only raises verdicts.
    """

    layer: LayerName
    name: str
    text: str | bytes
    path: str = ""
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """A row that could not be loaded, and what became of it."""

    file: str
    line: int
    id: str
    message: str
    became: str


@dataclass(frozen=True, slots=True)
class Cell:
    """An entry of a table."""

    effect: Effect
    file: str
    line: int


Table: TypeAlias = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A compiled file. `rules` holds its `rules` rows, then its `network` rows, in order."""

    source: PolicySource
    name: str
    extends: tuple[str, ...]
    tables: Mapping[str, Table]
    rules: tuple[Row, ...]
    floor: tuple[Row, ...]
    ceiling: Cell | None
    ceiling_level: Risk | None
    limits: Mapping[str, float]
    faults: tuple[Fault, ...]


def load_file(source: PolicySource, places: Places) -> PolicyFile:
    """Validate and compile. Raises `PolicyError` with file and line for what makes the file
    as a whole unusable; a bad row becomes a `Fault`."""
    file = source.path or source.name
    located = read_source(source.text, file)
    if not isinstance(located.value, dict):
        raise PolicyError("a policy file is a mapping that begins with `version: 1`", file=file,
                          line=located.place[0])  # fmt: skip
    try:
        model = FileModel.model_validate(located.value)
    except ValidationError as error:
        message, line = describe(error, located)
        raise PolicyError(message, file=file, line=line) from None
    tables = {mode: _table(table, located, file, mode) for mode, table in model.tables.items()}
    reader = _Rows(source, file, located, places)
    rules = reader.read("rules", model.rules) + reader.read("network", model.network)
    floor = reader.read("floor", model.floor)
    ceiling, level = _ceiling(model, located, file)
    return PolicyFile(
        source, model.name, model.extends, tables, rules, floor, ceiling, level,
        _limits(model), tuple(reader.faults),
    )  # fmt: skip


def _ceiling(model: FileModel, located: Located, file: str) -> tuple[Cell | None, Risk | None]:
    if model.ceiling is None:
        return None, None
    line = located.at(("ceiling", "unattended"))[0]
    return Cell(Effect.DENY, file, line), _LEVELS[model.ceiling.unattended]


def describe(error: ValidationError, located: Located) -> tuple[str, int]:
    """The first fault of a validation in words, and its line."""
    first = error.errors(include_url=False)[0]
    path = tuple(first["loc"])
    line = located.at(path)[0]
    shown = ".".join(str(step) for step in path) or "the file"
    if first["type"] == "extra_forbidden":
        return f"unknown key `{shown}`; the keys there are stand in docs/policy.md", line
    if first["type"] == "missing":
        return f"the key `{shown}` is missing", line
    if first["type"] == "string_type" and isinstance(first["input"], bool):
        return f"`{shown}`: YAML reads this word as true or false; put it in quotes", line
    text = first["msg"].removeprefix("Value error, ")
    return f"`{shown}`: {text[:1].lower()}{text[1:]}", line


def _table(table: Mapping[str, str], located: Located, file: str, mode: str) -> Table:
    cells: dict[str, Cell] = {}
    for key, effect in table.items():
        line = located.at(("tables", mode, key))[0]
        if key not in _LEVELS and key not in set(Op):
            raise PolicyError(
                f"`{key[:80]}` in the table `{mode}` is no operation class and no level "
                "(none, low, medium, high, critical)",
                file=file,
                line=line,
            )
        cells[key] = Cell(_EFFECTS[effect], file, line)
    return cells


def _limits(model: FileModel) -> Mapping[str, float]:
    found = model.limits.model_dump(exclude_none=True) if model.limits else {}
    return {name: float(value) for name, value in found.items()}


class _Rows:
    def __init__(self, source: PolicySource, file: str, located: Located, places: Places) -> None:
        self.source = source
        self.file = file
        self.located = located
        self.places = places
        self.faults: list[Fault] = []
        self.ids: set[str] = set()

    def read(self, kind: str, raw: Sequence[object]) -> tuple[Row, ...]:
        rows: list[Row] = []
        part = self.located.parts.get(kind)
        for index, value in enumerate(raw):
            place = part.parts[index] if part is not None else self.located
            row = self._row(kind, value, place)
            if row is not None:
                rows.append(row)
        return tuple(rows)

    def _row(self, kind: str, value: object, place: Located) -> Row | None:
        try:
            model = RowModel.model_validate(value)
            row = self._compile(kind, model, place.place[0])
        except ValidationError as error:
            message, line = describe(error, place)
            return self._widen(kind, value, message, line)
        except (ValueError, RecursionError) as error:
            return self._widen(kind, value, str(error), place.place[0])
        self.ids.add(row.id)
        return row

    def _compile(self, kind: str, model: RowModel, line: int) -> Row:
        effect, matcher = effect_of(model)
        if model.id in self.ids:
            raise ValueError(f"the id `{model.id}` is used twice in this file")
        if kind == "floor" and effect is Effect.ALLOW:
            raise ValueError("a floor row only asks or denies")
        if kind == "network" and matcher.host is None:
            raise ValueError("a network row names a `host`")
        if model.unattended and self.source.layer not in {"org", "user"}:
            raise ValueError("`unattended: true` is for org and user rows only")
        if (model.match or model.not_match) and not _shell_only(matcher):
            raise ValueError("inline examples are shell text; this row matches no shell call")
        examples = tuple((text, True) for text in model.match or ())
        examples += tuple((text, False) for text in model.not_match or ())
        return Row(
            id=model.id,
            effect=effect,
            matcher=compile_matcher(matcher, effect, self.places),
            why=model.why,
            layer=self.source.layer,
            file=self.file,
            line=line,
            unattended=model.unattended,
            examples=examples,
            source=f"{'floor' if kind == 'floor' else 'rule'}:{self.source.layer}/{model.id}",
        )

    def _widen(self, kind: str, value: object, message: str, line: int) -> Row | None:
        """A row that cannot load: an allow is dropped, anything else denies what it named."""
        shape = _mapping(value)
        name = shape.get("id")
        shown = name if isinstance(name, str) and name else f"{kind}-at-line-{line}"
        if "allow" in shape and not ("deny" in shape or "ask" in shape):
            self.faults.append(Fault(self.file, line, shown, message, "dropped"))
            return None
        matcher, became = _widened(shape.get("deny", shape.get("ask")))
        self.faults.append(Fault(self.file, line, shown, message, became))
        return broken_row(self.source.layer, self.file, line, shown[:64], (matcher, message, kind))


def broken_row(layer: str, file: str, line: int, name: str, about: tuple[Matcher, str, str]) -> Row:
    """The deny that stands for a row nobody could load."""
    matcher, message, kind = about
    return Row(
        id=name,
        effect=Effect.DENY,
        matcher=matcher,
        why=f"the row could not be loaded: {message}",
        layer=layer,
        file=file,
        line=line,
        source=f"{'floor' if kind == 'floor' else 'rule'}:{layer}/{name}",
    )


def _mapping(value: object) -> Mapping[str, object]:
    """A mapping read from YAML (its keys are text), or nothing."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    """A text or a list of texts, or nothing if anything else stands among them."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    texts = tuple(item for item in items if isinstance(item, str) and item)
    return texts if len(texts) == len(items) else ()


def _shell_only(model: MatcherModel) -> bool:
    return model.tool is None or any(text in {"shell", "*"} for text in model.tool)


def _widened(shape: object) -> tuple[Matcher, str]:
    fields = _mapping(shape)
    tools = _texts(fields.get("tool"))
    if tools:
        return Matcher(tool=tools), f"denies the tool `{tools[0][:80]}`"
    if "command" in fields or "flags" in fields:
        return Matcher(tool=("shell",)), "denies the shell"
    if "mcp" in fields:
        return _widened_mcp(fields["mcp"])
    if "host" in fields:
        return Matcher(
            ops=frozenset({Op.NET_READ, Op.NET_SEND, Op.VCS_PUBLISH, Op.SEND_SECRET})
        ), "denies connections"
    return Matcher(), "denies everything"


def _widened_mcp(shape: object) -> tuple[Matcher, str]:
    servers = _texts(_mapping(shape).get("server"))
    if servers:
        tools = tuple(f"mcp:{server}/*" for server in servers)
        return Matcher(tool=tools), f"denies the MCP server `{servers[0][:80]}`"
    return Matcher(tool=("mcp:*",)), "denies all MCP servers"


def widen_row(row: Row, message: str) -> tuple[Row | None, str]:
    """The same for a row whose own examples speak against it."""
    if row.effect is Effect.ALLOW:
        return None, "dropped"
    shell = Matcher(tool=row.matcher.tool or ("shell",))
    made = replace(
        row, matcher=shell, effect=Effect.DENY, why=f"the row could not be loaded: {message}"
    )
    return made, "denies the shell" if row.matcher.tool is None else "denies its tool"
