"""Paragraphs that are escaped, wrapped and indented by us, never by the terminal."""

from __future__ import annotations

from rich.text import Text

from harness.approvers.escape import lines


def paragraph(text: str, indent: int, width: int, style: str = "") -> Text:
    """Escaped text, each line of at most `width` columns with the same indent."""
    room = max(width - indent, 20)
    return Text("\n".join(" " * indent + line for line in lines(text, room)), style)
