"""The end of a run on one card, and lists of changed files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from rich.console import Group
from rich.text import Text

from harness.approvers.escape import lines, visible
from harness.cli.words import duration, many
from harness.cli.wrapping import paragraph
from harness.values.events import ChangedFile, Failed, Finished, WorkspaceChanged

_FILES = 30
_NOTES = 10
_MARKS = {"added": ("A", "green"), "modified": ("M", "yellow"), "deleted": ("D", "red")}
_FLAGS = {
    "control": "held back: it runs outside any judgement, or cannot be read here",
    "runs_here": "runs on your machine in the ordinary course",
    "hidden_text": "holds invisible or direction-changing characters",
    "link_out": "held back: a link out of the repository",
    "left_out": "not in the patch",
}


class Shown(Protocol):
    """What a screen remembers of a run."""

    @property
    def session(self) -> str: ...

    @property
    def changed(self) -> WorkspaceChanged | None: ...

    @property
    def unread(self) -> str: ...

    @property
    def end(self) -> Finished | Failed | None: ...


def card(seen: Shown, width: int) -> Group:
    """Stop, turns, tokens, changes, and the next command."""
    rows: list[Text] = [Text(), Text("─" * min(width, 78), "dim")]
    match seen.end:
        case Finished() as end:
            rows += _finished(end)
        case Failed() as end:
            rows.append(Text.assemble(("failed", "bold red"), f"  {visible(end.error)}"))
            rows += [Text("  " + line) for line in lines(end.text[:2000], width - 2)]
            rows += [Text("  " + visible(line)) for line in end.evidence[:10]]
        case None:
            rows.append(Text("stopped before it began", "bold red"))
    files = seen.changed.files if seen.changed else ()
    rows += changed_files(files)
    if seen.unread:
        rows.append(paragraph(f"! {seen.unread[:1000]}", 4, width, "bold red"))
    if seen.changed:
        rows += left_out(seen.changed, width)
    if seen.session and files:
        rows.append(_next(f"harness diff {seen.session}", f"harness apply {seen.session}"))
    elif seen.session:
        rows.append(_next(f"harness sessions show {seen.session}"))
    return Group(*rows)


def _finished(end: Finished) -> Iterable[Text]:
    good = end.stop == "completed"
    head = Text(visible(end.stop), "bold green" if good else "bold yellow")
    yield head.append(
        f"  after {many(end.turns, 'turn')} in {duration(end.seconds)}", "not bold default"
    )
    calls = f"{end.tool_calls:,}"
    yield _row("calls", calls + (f", {end.denied:,} refused" if end.denied else ""))
    yield _row("tokens", _tokens(end))


def _tokens(end: Finished) -> str:
    """Sums, or how much of them is not known: unknown is never zero."""
    if end.unknown_requests >= end.requests:
        return (
            f"unknown ({many(end.requests, 'request')} reported none)" if end.requests else "none"
        )
    known = f"{end.input_tokens:,} in, {end.output_tokens:,} out"
    if end.unknown_requests:
        return f"at least {known} ({many(end.unknown_requests, 'request')} reported none)"
    return known


def changed_files(files: Sequence[ChangedFile]) -> Iterable[Text]:
    """One line a file, and below it why to look twice."""
    if not files:
        yield _row("changes", "none")
        return
    added = sum(f.added or 0 for f in files)
    removed = sum(f.removed or 0 for f in files)
    yield _row("changes", f"{many(len(files), 'file')}, +{added:,} -{removed:,} lines")
    room = min(max((len(visible(f.path)) for f in files[:_FILES]), default=0), 48)
    for file in files[:_FILES]:
        mark, style = _MARKS.get(file.action, ("~", "yellow"))
        line = Text.assemble("    ", (mark, style), f" {visible(file.path[:400]):<{room}}  ")
        line.append("binary" if file.added is None else f"+{file.added:,} -{file.removed or 0:,}")
        yield line
        for flag in file.flags:
            words = _FLAGS.get(flag, flag)
            style = "bold red" if words.startswith("held back") else "yellow"
            yield Text(f"      ! {visible(words)}", style)
    if len(files) > _FILES:
        yield Text(f"    … and {len(files) - _FILES:,} more")


def left_out(changed: WorkspaceChanged, width: int) -> Iterable[Text]:
    """What the box holds and the patch does not."""
    if changed.ignored:
        count = many(changed.ignored, "new file")
        reason = "by the repository's .gitignore, or as what builds leave behind"
        yield paragraph(f"{count} left out, {reason}", 4, width, "dim")
    for note in changed.notes[:_NOTES]:
        yield paragraph(f"! {note[:1000]}", 4, width, "yellow")
    if len(changed.notes) > _NOTES:
        yield Text(f"    … and {len(changed.notes) - _NOTES:,} further notes", "dim")


def _row(key: str, value: str) -> Text:
    return Text.assemble((f"  {key:<9}", "dim"), value)


def _next(*commands: str) -> Text:
    return _row("next", "\n           ".join(visible(c) for c in commands))
