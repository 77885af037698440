"""What a person sees of a run: lines as it goes, a card at the end.

Every word that is not ours is escaped before it is shown, and bounded.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from harness.approvers.escape import lines, visible
from harness.cli.card import card
from harness.cli.refusal import refusal
from harness.cli.unread import unread
from harness.cli.words import duration, size
from harness.cli.wrapping import paragraph
from harness.values.calls import Call, Status
from harness.values.events import (
    ApprovalResolved,
    BoxStarted,
    BudgetNotice,
    Failed,
    Finished,
    Message,
    Record,
    RunStarted,
    ToolCompleted,
    ToolResolved,
    TurnRetried,
    Warned,
    WorkspaceChanged,
    WorkspaceLoaded,
)

_TEXT_LINES = 40
_COMMAND_LINES = 6
_TAIL_LINES = 6
_BAD = {Status.ERROR, Status.TIMEOUT, Status.INTERRUPTED, Status.INVALID, Status.NOT_STARTED}


def make_console(file: io.TextIOBase | None = None, *, stderr: bool = False) -> Console:
    """A console that adds nothing of its own: no markup, no emoji, no highlighting."""
    return Console(
        file=file,  # type: ignore[arg-type] # rich wants typing.IO; any text stream does
        stderr=stderr,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=True,
    )


@dataclass(slots=True)
class Seen:
    """What the card at the end is made from."""

    session: str = ""
    started: RunStarted | None = None
    changed: WorkspaceChanged | None = None
    end: Finished | Failed | None = None
    unread: str = ""


class Screen:
    """An observer that writes for people. `write` takes finished text and must not block."""

    def __init__(self, write: Callable[[str], None], *, width: int, colour: bool) -> None:
        self._write = write
        self._width = max(width, 40)
        self._buffer = io.StringIO()
        self._console = Console(
            file=self._buffer,
            force_terminal=colour,
            width=self._width,
            markup=False,
            emoji=False,
            highlight=False,
            soft_wrap=True,
        )
        self._calls: dict[str, Call] = {}
        self._turn = 0
        self._last = ""
        self.seen = Seen()

    def observe(self, record: Record) -> None:
        """Show one record."""
        self.seen.session = record.session
        event = record.event
        match event:
            case RunStarted():
                self.seen.started = event
                self._started(event, record.session)
            case BoxStarted():
                self._box(event)
            case WorkspaceLoaded():
                self._notes(event.notes)
            case Message():
                self._message(event, record.turn)
            case ToolResolved() | ToolCompleted() | ApprovalResolved():
                self._call(event)
            case _:
                self._other(event)
        self._flush()

    def end(self) -> None:
        """The card."""
        self._console.print(card(self.seen, self._width))
        self._flush()

    def _other(self, event: object) -> None:
        match event:
            case TurnRetried():
                wait = f"; again in {duration(event.wait)}" if event.wait else ""
                self._line(f"  the model's side failed: {event.reason}{wait}", "yellow")
            case BudgetNotice():
                self._line(f"  {event.used} % of the budget of {event.budget} is used", "yellow")
            case Warned():
                self.seen.unread = self.seen.unread or unread(event)
                self._line(f"  ! {unread(event) or event.text}", "yellow")
            case WorkspaceChanged():
                self.seen.changed = event
            case Finished() | Failed():
                self.seen.end = event
            case _:
                pass

    def _started(self, event: RunStarted, session: str) -> None:
        asked = "asks you" if event.attended else "nobody is asked"
        mode = "" if event.mode == event.policy else f", mode {event.mode}"
        self._pair("session", session)
        self._pair("repo", event.repo)
        self._pair("model", event.model)
        self._pair("policy", f"{event.policy}{mode} ({asked})")

    def _box(self, event: BoxStarted) -> None:
        started = self.seen.started
        limits = dict(started.limits) if started else {}
        parts = [event.backend, event.image[:19] if event.image != event.backend else ""]
        cpus, memory, wall = (limits.get(name) for name in ("cpus", "memory", "wall"))
        parts += [f"{cpus:g} cpus"] if isinstance(cpus, int | float) else []
        parts += [size(memory)] if isinstance(memory, int) else []
        parts += [f"{limits.get('pids')} processes"] if "pids" in limits else []
        parts += [duration(wall)] if isinstance(wall, int | float) else []
        self._pair("box", " · ".join(p for p in parts if p))
        if not event.isolated:
            self._line("  ! nothing keeps this box from the host", "bold yellow")
        weak = [name for name, held in event.limits.items() if held == "none"]
        if weak:
            self._line(f"  ! limits that this box does not enforce: {', '.join(weak)}", "yellow")

    def _notes(self, notes: tuple[str, ...]) -> None:
        for note in notes[:10]:
            self._line(f"  ! {note}", "yellow")
        if len(notes) > 10:
            self._line(f"  ! and {len(notes) - 10} further notes (`harness sessions show`)")

    def _message(self, event: Message, turn: int) -> None:
        if turn != self._turn:
            self._turn = turn
            self._console.print()
            self._line(f"turn {turn}", "bold")
        if event.text.strip():
            self._block(event.text.strip(), "  ", _TEXT_LINES)
        for call in event.calls:
            self._calls[call.id] = call

    def _call(self, event: ToolResolved | ToolCompleted | ApprovalResolved) -> None:
        match event:
            case ToolResolved():
                self._resolved(event)
            case ApprovalResolved():
                answer = "admitted" if event.approved else "refused"
                self._line(f"    {answer} by {event.decided_by}", "dim")
            case ToolCompleted():
                self._completed(event)

    def _resolved(self, event: ToolResolved) -> None:
        self._last = event.call_id
        call = self._calls.get(event.call_id)
        first, *rest = _subject(call).split("\n") if call else [""]
        head = Text.assemble(("  → ", "cyan"), (visible(event.tool[:64]), "bold cyan"))
        subject = visible(_short(first, self._width - 12))
        self._console.print(head.append(f"  {subject}" if subject else ""))
        if rest:
            self._block("\n".join(rest), "      ", _COMMAND_LINES)
        if event.effect != "deny":
            return
        for line in refusal(event, 4, self._width):
            self._console.print(line)

    def _label(self, event: ToolCompleted) -> None:
        """Whose result this is, where another call was shown last."""
        if event.call_id == self._last:
            return
        self._last = event.call_id
        call = self._calls.get(event.call_id)
        subject = visible(_short(_subject(call).split("\n")[0], self._width - 12)) if call else ""
        head = Text.assemble(("  ← ", "cyan"), visible(event.tool[:64]))
        self._console.print(head.append(f"  {subject}" if subject else ""))

    def _completed(self, event: ToolCompleted) -> None:
        if event.status == Status.DENIED:
            return
        self._label(event)
        style = "red" if event.status in _BAD else "dim"
        shown = event.text.rstrip("\n").split("\n")
        left = len(shown) - _TAIL_LINES
        if left > 0:
            self._line(f"    │ … {left} lines above", "dim")
        for line in shown[-_TAIL_LINES:]:
            self._line(f"    │ {_short(line, self._width - 8)}", style)

    def _block(self, text: str, indent: str, most: int, style: str = "") -> None:
        wrapped = list(lines(text[: most * 400], self._width - len(indent)))
        for line in wrapped[:most]:
            self._console.print(Text(indent + line, style))
        if len(wrapped) > most or len(text) > most * 400:
            self._line(f"{indent}… (more in `harness sessions show`)", "dim")

    def _pair(self, key: str, value: str) -> None:
        self._console.print(Text.assemble((f"{key:<9}", "dim"), visible(value[:1000])))

    def _line(self, text: str, style: str = "") -> None:
        """One line of ours, wrapped under its own indent when it is too long."""
        indent = len(text) - len(text.lstrip())
        self._console.print(paragraph(text[:1000].lstrip(), indent, self._width, style))

    def _flush(self) -> None:
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        self._write(text)


def _subject(call: Call) -> str:
    """What a call is about: its command, pattern or path."""
    args = call.args or {}
    for key in ("command", "pattern", "path"):
        value = args.get(key)
        if isinstance(value, str):
            where = args.get("path")
            beside = f"  in {where}" if key == "pattern" and isinstance(where, str) else ""
            return value + beside
    return call.raw[:200] if call.args is None or call.args else ""


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(limit - 1, 1)] + "…"


def terminal_width() -> int:
    """Columns of the terminal on stdout. Without one, wide: nothing there needs wrapping."""
    import shutil

    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 1000
