"""Changes of a box that never reached its patch."""

from __future__ import annotations

from collections.abc import Iterable

from harness.values.events import Failed, Record, Warned


def unread(event: Warned) -> str:
    """What a warning says of changes that could not be read; empty for any other warning."""
    match event.code:
        case "checkpoint_failed":
            return f"the last changes could not be read and are not in the patch: {event.text}"
        case "checkpoint_cut":
            return event.text
        case _:
            return ""


def unread_in(records: Iterable[Record]) -> str:
    """The same of a whole session; a box that broke took with it what it held."""
    for record in records:
        match record.event:
            case Warned() as warning if words := unread(warning):
                return words
            case Failed(error=error, text=text) if error.startswith("sandbox"):
                return f"the box failed before its last changes were read: {text}"
            case _:
                pass
    return ""
