"""A row's inline examples: shell text, judged against the row alone in an empty tree."""

from __future__ import annotations

from harness.operations.compositions import compose
from harness.operations.lower import Surroundings, lower
from harness.operations.paths import normal
from harness.policy.rows import Row, Setting
from harness.policy.searching import named_in
from harness.values.calls import Call
from harness.values.decisions import Effect


def failing_example(row: Row, around: Surroundings) -> str | None:
    """The first example that turns out otherwise, in words; None if all hold.

    A row matches an example when it matches any operation of it; a deny also when unreadable
    text names what the row names.
    """
    for text, wanted in row.examples:
        if _matches(row, text, around) is not wanted:
            verb = "does not match" if wanted else "matches"
            return f"the row {verb} its example `{text[:120]}`"
    return None


def _matches(row: Row, text: str, around: Surroundings) -> bool:
    call = Call("example", "shell", {"command": text})
    draft = lower(call, around)
    if draft.refused is not None:
        return row.effect is not Effect.ALLOW
    links = {path: normal(path) for path in draft.paths}
    mode = row.matcher.mode[0] if row.matcher.mode else ""
    setting = Setting(call, mode, True, row.matcher.agent[0] if row.matcher.agent else "", links)
    operations = draft.operations + compose(draft.operations)
    if any(row.matches(operation, setting) for operation in operations):
        return True
    searched = row.effect is Effect.DENY and bool(draft.text)
    return searched and named_in(row, draft.text, around, setting)
