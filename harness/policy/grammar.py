"""The shape of a policy file, as pydantic models: the edge where text becomes values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from harness.values.operations import Op
from harness.values.units import size, span

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
MAX_ROWS = 10_000

Name = Annotated[str, StringConstraints(pattern=NAME)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=4096)]


def _listed(value: object) -> object:
    return cast("list[object]", value) if isinstance(value, list) else [value]


Texts = Annotated[tuple[Text, ...], Field(min_length=1, max_length=256), BeforeValidator(_listed)]
Ops = Annotated[tuple[Op, ...], Field(min_length=1), BeforeValidator(_listed)]
RiskText = Annotated[
    str, StringConstraints(pattern=r"^(>=|<=|>|<)?\s*(none|low|medium|high|critical)$")
]
Risks = Annotated[tuple[RiskText, ...], Field(min_length=1), BeforeValidator(_listed)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class FlagsModel(Strict):
    any: Texts | None = None
    all: Texts | None = None
    none: Texts | None = None


class McpModel(Strict):
    server: Texts | None = None
    tool: Texts | None = None


class MatcherModel(Strict):
    """What a row matches; all fields that are given must hold, a list is "any of"."""

    tool: Texts | None = None
    op: Ops | None = None
    risk: Risks | None = None
    command: Texts | None = None
    flags: FlagsModel | None = None
    path: Texts | None = None
    host: Texts | None = None
    mcp: McpModel | None = None
    args: Annotated[Mapping[Text, Texts], Field(min_length=1)] | None = None
    agent: Texts | None = None
    mode: Texts | None = None
    attended: bool | None = None
    private: bool | None = None
    regex: Text | None = None


class RowModel(Strict):
    """One row: an id, exactly one of allow, ask and deny, and why."""

    id: Name
    allow: MatcherModel | None = None
    ask: MatcherModel | None = None
    deny: MatcherModel | None = None
    why: Annotated[str, StringConstraints(max_length=1000)] = ""
    match: Texts | None = None
    not_match: Texts | None = None
    unattended: bool = False


class CeilingModel(Strict):
    unattended: Literal["none", "low", "medium", "high", "critical"]


Size = Annotated[int, BeforeValidator(size)]
Span = Annotated[float, BeforeValidator(span)]


class LimitsModel(Strict):
    cpus: Annotated[float, Field(gt=0, le=1024)] | None = None
    memory: Size | None = None
    pids: Annotated[int, Field(gt=0, le=4_194_304)] | None = None
    disk: Size | None = None
    wall: Span | None = None
    output: Size | None = None


class FileModel(Strict):
    """A policy file. Rows are validated one by one: a bad row must not hide the others."""

    version: Literal[1]
    name: Name
    extends: tuple[Text, ...] = ()
    tables: Mapping[Name, Mapping[str, Literal["allow", "ask", "deny"]]] = Field(
        default_factory=dict
    )
    rules: Annotated[tuple[Any, ...], Field(max_length=MAX_ROWS)] = ()
    floor: Annotated[tuple[Any, ...], Field(max_length=MAX_ROWS)] = ()
    network: Annotated[tuple[Any, ...], Field(max_length=MAX_ROWS)] = ()
    ceiling: CeilingModel | None = None
    limits: LimitsModel | None = None
