"""Asking a person at a terminal.

A person judges what is written there, so nothing of what a model, a repository or a policy
file says reaches the terminal unescaped, and no part of it can look like the prompt's own lines:
each line of it stands behind a bar, wrapped before the terminal would.
"""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import termios
from collections.abc import Iterator
from typing import TextIO

from harness.approvers.escape import lines, shortened, visible
from harness.ports import Approval
from harness.values.calls import Call
from harness.values.decisions import Decision, Effect
from harness.values.operations import Operation, Risk

_TEXT = 4000
_FIELD = 400
_OPERATIONS = 40
_REASONS = 40
_ANSWER = 256
_YES = frozenset({"y", "yes", "o", "once"})

_QUESTION = "run it? [y]es or [o]nce: this call only · anything else: no > "


class TerminalApprover:
    """Shows a call and waits for one line. `y`, `yes`, `o` and `once` admit this call and no
    other (there are no lasting grants yet); anything else, or the end of input, is no.

    `answers` must have a file descriptor. What was typed before the question is thrown away.
    A question that is cancelled leaves no thread behind. `columns` None asks the terminal.
    """

    name = "person"

    def __init__(self, answers: TextIO, screen: TextIO, *, columns: int | None = None) -> None:
        self._answers = answers
        self._screen = screen
        self._columns = columns
        self._one = asyncio.Lock()

    async def ask(self, call: Call, decision: Decision) -> Approval:
        async with self._one:
            width = self._columns or shutil.get_terminal_size().columns
            self._show("\n".join(question(call, decision, width)) + "\n")
            self._forget_typed()
            self._show(_QUESTION)
            answer = await self._line()
            approved = answer is not None and answer.strip().lower() in _YES
            self._show("" if answer is not None else "\n")
        return Approval(approved=approved, decided_by=self.name)

    def _show(self, text: str) -> None:
        encoding = self._screen.encoding or "utf-8"
        self._screen.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._screen.flush()

    def _forget_typed(self) -> None:
        """What was typed before the question cannot be its answer."""
        fd = self._answers.fileno()
        if os.isatty(fd):
            termios.tcflush(fd, termios.TCIFLUSH)

    async def _line(self) -> str | None:
        """One line, or None at the end of input. Cancelling wakes the thread that waits."""
        fd = self._answers.fileno()
        woken, wake = os.pipe()
        reading = asyncio.create_task(asyncio.to_thread(_read_line, fd, woken))
        try:
            return await asyncio.shield(reading)
        finally:
            os.write(wake, b"x")
            await asyncio.wait([reading])
            os.close(wake)
            os.close(woken)


def _read_line(fd: int, woken: int) -> str | None:
    """Bytes up to a newline; what exceeds the bound is read and makes the answer a no."""
    got = bytearray()
    while True:
        ready, _, _ = select.select([fd, woken], [], [])
        if woken in ready:
            return None
        try:
            piece = os.read(fd, 1)
        except OSError:  # a terminal that hung up
            return None
        if piece in (b"", b"\n"):
            break
        if len(got) <= _ANSWER:
            got += piece
    if not got and piece == b"":
        return None
    return got.decode("utf-8", "replace") if len(got) <= _ANSWER else "too long"


def question(call: Call, decision: Decision, width: int) -> Iterator[str]:
    """The prompt's lines, escaped: tool, operations with risk, reasons, and the call's text."""
    yield ""
    yield f"─── approval needed: {visible(call.tool[:64])}, risk {decision.risk.word} "
    yield "it would"
    for operation in decision.operations[:_OPERATIONS]:
        yield from _barred(operation_line(operation), width)
    left = len(decision.operations) - _OPERATIONS
    if left > 0:
        yield f"  and {left} further operations that are not shown"
    yield "you are asked because of"
    for match in decision.matches[:_REASONS]:
        if match.effect is not Effect.ALLOW:
            place = f" ({_field(match.file)}:{match.line})" if match.file else ""
            why = f": {_field(match.why)}" if match.why else ""
            yield from _barred(f"{match.effect.word} {_field(match.source)}{place}{why}", width)
    yield "the call as it was sent"
    text, note = shortened(_raw(call), _TEXT)
    yield from _barred(text, width)
    if note:
        yield from (f"  {line}" for line in lines(note, max(width - 2, 20)))


def _barred(text: str, width: int) -> Iterator[str]:
    return (f"  │ {line}" for line in lines(text, max(width - 4, 20)))


def operation_line(operation: Operation) -> str:
    """Class, level, reason, and what it touches, on one line."""
    parts = [f"{operation.op.value} [{operation.risk.word}]"]
    if operation.reason:
        parts.append(_field(operation.reason))
    if operation.argv:
        parts.append("runs " + _field(" ".join(_word(w) for w in operation.argv)))
    elif operation.program:
        parts.append("runs " + _field(operation.program))
    unnamed = [use for use in operation.paths if f"`{use.path}`" not in operation.reason]
    for use in unnamed[:8]:
        below = " and anything below" if use.unknown else ""
        parts.append(f"{use.access.value}s {_field(use.path)}{below}")
    if len(unnamed) > 8:
        parts.append(f"and {len(unnamed) - 8} further paths")
    for host in operation.hosts[:8]:
        port = "any port" if host.port is None else str(host.port)
        parts.append(f"connects to {_field(host.host)}:{port}")
    if operation.mcp is not None:
        parts.append(f"calls {_field(operation.mcp.server)}/{_field(operation.mcp.tool)}")
    if not operation.reversible and _lasts(operation):
        parts.append("cannot be undone")
    return " · ".join(parts)


def _lasts(operation: Operation) -> bool:
    """Whether an effect outlives the copy of the repository that is thrown away after a run."""
    return bool(operation.hosts or operation.mcp) or operation.risk is Risk.CRITICAL


def _word(word: str | None) -> str:
    if word is None:
        return "<not known before it runs>"
    return word if word and not set(word) & set(" \t\n\"'") else repr(word)


def _field(text: str) -> str:
    """A short value on one line."""
    if len(text) > _FIELD:
        text = f"{text[:_FIELD]} […{len(text) - _FIELD:,} more characters]"
    return visible(text)


def _raw(call: Call) -> str:
    """Each argument by name, further lines of it indented; what is no object as it was sent."""
    if call.args is None:
        return call.raw or "(no arguments)"
    pairs = (f"{key}: {value}".replace("\n", "\n    ") for key, value in call.args.items())
    return "\n".join(pairs) or "(no arguments)"
