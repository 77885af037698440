"""What the inside needs of the outside. Implementations satisfy these by shape.

Async methods may be cancelled at every await. Errors named here are all a caller must expect.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from harness.values.calls import Args, Call, ToolOutput
from harness.values.changes import Changes
from harness.values.commands import ExecRequest, ExecResult, Stat, Upload
from harness.values.decisions import Decision
from harness.values.events import Event, Record
from harness.values.items import ToolSpec
from harness.values.limits import Capabilities
from harness.values.operations import Draft, Links
from harness.values.wire import Prompt, Request, WireEvent

OutputSink: TypeAlias = Callable[[str, bytes], None]
"""Gets each piece of output as it comes: `stdout` or `stderr`, and the bytes. Must not block."""


class Clock(Protocol):
    def now(self) -> float:
        """Unix time in seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow."""
        ...


class Wire(Protocol):
    """A model behind a format. `encode` is pure: equal prompts, equal bytes."""

    @property
    def name(self) -> str:
        """`provider/model`, as the user would type it."""
        ...

    def encode(self, prompt: Prompt) -> Request: ...

    def stream(self, request: Request) -> AsyncIterator[WireEvent]:
        """Deltas, then exactly one `Reply`. Raises `WireError`; a stream that ends without its
        terminal event raises `WireTransient` and yields no `Reply`."""
        ...


class Policy(Protocol):
    """Judgement, in steps that know no disk and no clock."""

    @property
    def name(self) -> str: ...

    @property
    def mode(self) -> str: ...

    @property
    def attended(self) -> bool: ...

    def lower(self, call: Call) -> Draft:
        """Read a call into operations. Never raises for what a call holds."""
        ...

    def judge(self, draft: Draft, links: Links) -> Decision:
        """Floors, rules and tables over every operation and composition; then grants, then the
        ceiling of an unattended run."""
        ...


class FileView(Protocol):
    """Links as the box sees them."""

    async def resolve_links(self, paths: Sequence[str]) -> Links:
        """One round trip for all. Raises `SandboxError`; a path that cannot be resolved (a
        loop, no permission) maps to itself below `/proc/unresolved`, which no allow matches."""
        ...


class Sandbox(FileView, Protocol):
    """One box. Paths are absolute, as the box sees them; file operations act as the
    workload's user and never follow a link below `root`.

    Every method raises `SandboxError` when the box or its engine fails, and file methods
    `FileFault` for what can ordinarily go wrong with a file.
    """

    @property
    def root(self) -> str:
        """The workspace in the box, absolute."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def image(self) -> str:
        """Digest of the image, or the backend's name where there is none."""
        ...

    async def exec(self, request: ExecRequest, sink: OutputSink | None = None) -> ExecResult:
        """Run one command to its end. A command that fails, or is not there, is a result.

        Cancelling the call kills the command's whole tree and returns after it is gone.
        """
        ...

    async def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes from `offset`; a range past the end is empty. At most 64 MiB."""
        ...

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Replace or create a file in one step; parents are made. `mode` None keeps an
        existing file's bits, or is 0644."""
        ...

    async def edit(self, path: str, old: bytes, new: bytes, *, every: bool = False) -> int:
        """Replace `old`, which must occur once, or every time with `every`; the count."""
        ...

    async def list(self, path: str, *, depth: int = 1, limit: int = 10_000) -> tuple[Stat, ...]:
        """Entries below a directory, `path` relative to it, sorted by bytes; depth 1 is its own
        entries. Stops silently at `limit` entries, so ask for one more than you show."""
        ...

    async def stat(self, path: str) -> Stat: ...

    async def remove(self, path: str) -> None:
        """Remove a file, a link, or an empty directory."""
        ...

    async def upload(self, entries: Sequence[Upload]) -> None:
        """Create many entries below `root`, owned by the workload's user."""
        ...

    async def quiet(self) -> None:
        """End every process that commands have started, those left in the background too; a
        command that still runs ends as cancelled. The box stays, even one full of processes."""
        ...

    async def close(self) -> None:
        """End the box and everything in it. May be called twice."""
        ...


class Workspace(Protocol):
    """A repository on the host, and the copy of it in a box."""

    async def load(self, box: Sandbox) -> tuple[str, ...]:
        """Copy the repository in; what a person should know (files left out, and why)."""
        ...

    async def changes(self, box: Sandbox) -> Changes:
        """What differs in the box from what was loaded."""
        ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool runs with. `timeout` is what is left of the run's clock, in seconds.

    `links` are the judged real paths: a file tool opens exactly `links[path]`.
    """

    box: Sandbox
    links: Links
    timeout: float | None
    call_id: str
    sink: OutputSink | None = None


class Tool(Protocol):
    """One tool. `read_only` calls of one batch may run side by side."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def read_only(self) -> bool: ...

    async def run(self, args: Args, context: ToolContext) -> ToolOutput:
        """Arguments have been validated against the schema. Raises `SandboxError` only."""
        ...


@dataclass(frozen=True, slots=True)
class Approval:
    """An answer. `decided_by` is `person` or the approver's own name."""

    approved: bool
    decided_by: str
    comment: str = ""


class Approver(Protocol):
    async def ask(self, call: Call, decision: Decision) -> Approval: ...


class EventLog(Protocol):
    """Append-only records of one session, and blobs beside them."""

    @property
    def session(self) -> str: ...

    async def append(self, event: Event, *, turn: int, durable: bool = False) -> Record:
        """Add a record; with `durable` it is on disk when this returns. Raises `SessionStorage`;
        a record is there whole or not at all."""
        ...

    def records(self) -> Sequence[Record]:
        """All records so far."""
        ...

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes; the SHA-256 in hex."""
        ...

    async def get_blob(self, digest: str) -> bytes: ...


Tools: TypeAlias = Mapping[str, Tool]
