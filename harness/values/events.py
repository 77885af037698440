"""The records of a session: one dataclass a kind, in one envelope.

Schema 1 is additive: readers ignore kinds and fields they do not know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from harness.values.calls import Args, Call, Json
from harness.values.usage import TokenUsage

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins: what it was built from.

    `env` are the names of variables let into the box, never their values. `labels` is what the
    session carries from its start. `policy_files` are the policy files as `sha256:<hex> <path>`.
    """

    kind: ClassVar[str] = "run.started"
    version: str
    task: str
    repo: str
    model: str
    policy: str
    mode: str
    attended: bool
    backend: str
    image: str
    tools: tuple[str, ...]
    limits: Args
    budgets: Args
    env: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    policy_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BoxStarted:
    """The box is up. `limits` says per limit `hard`, `soft` or `none`; `image` is a digest."""

    kind: ClassVar[str] = "box.started"
    backend: str
    image: str
    isolated: bool
    limits: Args
    features: Args


@dataclass(frozen=True, slots=True)
class WorkspaceLoaded:
    """The repository is in the box. `notes` says what was left out, and why."""

    kind: ClassVar[str] = "workspace.loaded"
    root: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A person's words."""

    kind: ClassVar[str] = "user.message"
    text: str


@dataclass(frozen=True, slots=True)
class NoteAdded:
    """The harness's own words to the model. `origin` as in `values.items.Note`."""

    kind: ClassVar[str] = "note.added"
    origin: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnStarted:
    kind: ClassVar[str] = "turn.started"


@dataclass(frozen=True, slots=True)
class RequestSent:
    """`digest` is the SHA-256 of the exact request body, `size` its bytes."""

    kind: ClassVar[str] = "request.sent"
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class TurnRetried:
    """An attempt is void: drop every delta of it."""

    kind: ClassVar[str] = "turn.retried"
    reason: str
    wait: float
    discard: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """The authoritative reply of an attempt that ended properly. `stop` is the provider's word."""

    kind: ClassVar[str] = "message"
    branch: str
    text: str
    calls: tuple[Call, ...]
    stop: str
    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class Reason:
    """A `values.decisions.Match` on record."""

    effect: str
    source: str
    why: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class OperationSeen:
    """A `values.operations.Operation` on record."""

    op: str
    risk: str
    reason: str = ""
    program: str = ""
    argv: tuple[str | None, ...] = ()
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResolved:
    """A call was judged. Logged before anything of it runs.

    `effect` is the verdict before a person was asked.
    """

    kind: ClassVar[str] = "tool.resolved"
    call_id: str
    tool: str
    effect: str
    operations: tuple[OperationSeen, ...] = ()
    reasons: tuple[Reason, ...] = ()
    advice: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalRequired:
    kind: ClassVar[str] = "approval.required"
    call_id: str


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    """`decided_by` is `person`, or the name of the approver that stands for absence."""

    kind: ClassVar[str] = "approval.resolved"
    call_id: str
    approved: bool
    decided_by: str
    waited: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call begins. `effects` is whether it may change anything in the box."""

    kind: ClassVar[str] = "tool.started"
    call_id: str
    tool: str
    effects: bool = True


@dataclass(frozen=True, slots=True)
class ToolCompleted:
    """The one result of a call. `facts`: exit code, usage, byte counts, where there are any."""

    kind: ClassVar[str] = "tool.completed"
    call_id: str
    tool: str
    status: str
    text: str
    facts: Args = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class BudgetNotice:
    """`used` is the share of `budget` that is gone, in percent: 50, 80 or 95."""

    kind: ClassVar[str] = "budget.notice"
    budget: str
    used: int


@dataclass(frozen=True, slots=True)
class ChangedFile:
    path: str
    action: str
    added: int | None = None
    removed: int | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkspaceChanged:
    """A checkpoint: `patch` is the digest of the patch blob against what was uploaded.

    `ignored` counts new files left out by `.gitignore`; `notes` say what else is not in it.
    """

    kind: ClassVar[str] = "workspace.changed"
    patch: str
    files: tuple[ChangedFile, ...]
    ignored: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Warned:
    """Something a person should know. `code` is stable, `text` is for reading."""

    kind: ClassVar[str] = "warning"
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last record of a run that stopped. Token sums are lower bounds if
    `unknown_requests` is not zero."""

    kind: ClassVar[str] = "finished"
    stop: str
    text: str
    turns: int
    requests: int
    unknown_requests: int
    input_tokens: int
    output_tokens: int
    tool_calls: int
    denied: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The last record of a run that broke. `error` is a `LoopError`."""

    kind: ClassVar[str] = "failed"
    error: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record of a kind this version does not know; kept, and otherwise ignored."""

    kind: ClassVar[str] = "unknown"
    name: str
    fields: Args


Event: TypeAlias = (
    RunStarted | BoxStarted | WorkspaceLoaded | UserMessage | NoteAdded | TurnStarted
    | RequestSent | TurnRetried | Message | ToolResolved | ApprovalRequired
    | ApprovalResolved | ToolStarted | ToolCompleted | BudgetNotice
    | WorkspaceChanged | Warned | Finished | Failed | Unknown
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """An event in its envelope.

    `seq` counts from 0 in a session, `ts` is Unix time in seconds, `prev` the SHA-256 (hex) of
    the line before, empty for the first.
    """

    seq: int
    ts: float
    session: str
    turn: int
    event: Event
    prev: str
    attempt: int | None = None
