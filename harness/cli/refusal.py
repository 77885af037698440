"""A refusal as people read it: what it would have been, which rows say no, what else to do."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from harness.cli.wrapping import paragraph
from harness.values.events import ToolResolved

_REASONS = 5
_LONGEST = 1000


def refusal(event: ToolResolved, indent: int, width: int) -> Iterator[Text]:
    """Paragraphs, escaped and wrapped."""
    ops = ", ".join(dict.fromkeys(f"{o.op} [{o.risk}]" for o in event.operations))
    head = f"✗ refused: {ops[:_LONGEST] or 'no call that can be run'}"
    yield paragraph(head, indent, width, "bold red")
    for reason in [r for r in event.reasons if r.effect == "deny"][:_REASONS]:
        place = f" ({reason.file}:{reason.line})" if reason.file else ""
        why = f": {reason.why}" if reason.why else ""
        yield paragraph(f"{reason.source}{place}{why}"[:_LONGEST], indent + 2, width)
    if event.advice:
        yield paragraph(event.advice[:_LONGEST], indent + 2, width, "dim")
