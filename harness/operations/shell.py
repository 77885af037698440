"""Shell text to operations.

One plain command is read exactly, by its specification. Everything else is `opaque`, and is
searched for what it names.
"""

from __future__ import annotations

from harness.operations.commands import NotUnderstood, asked_paths, classify
from harness.operations.guards import MAX_READ, fault_in
from harness.operations.opaque import clean, find_operations
from harness.operations.places import Places
from harness.operations.specifications import Commands
from harness.operations.words import NotPlain, plain_words
from harness.values.calls import Call
from harness.values.operations import Draft, Op, Operation, Origin


def lower_shell(call: Call, text: str, places: Places, commands: Commands) -> Draft:
    """The draft of a shell call. `Draft.text` is set where the text must be searched."""
    fault = fault_in(text)
    if fault is not None:
        return Draft(call, (), refused=fault)
    if not text.strip(" \t\n"):
        return Draft(call, (), refused="the command is empty")
    if len(text) > MAX_READ:
        return _opaque(call, text, f"longer than {MAX_READ} characters", places, commands)
    try:
        operations = classify(plain_words(text, places.home), commands, places)
    except NotPlain as why:
        return _opaque(call, text, f"not one plain command: {why}", places, commands)
    except NotUnderstood as why:
        return _opaque(call, text, str(why), places, commands)
    if operations[0].op is Op.EXEC_CODE:
        found = find_operations(clean(text, places.home, places.root), commands, places)
        known = {operation.op for operation in operations}
        operations += tuple(operation for operation in found if operation.op not in known)
    return Draft(call, operations, paths=asked_paths(operations))


def _opaque(call: Call, text: str, why: str, places: Places, commands: Commands) -> Draft:
    unread = Operation(
        op=Op.OPAQUE, reason=why, origin=Origin.TEXT, reversible=False, confidence="none"
    )
    found = find_operations(clean(text, places.home, places.root), commands, places)
    return Draft(call, (unread, *found), text=text)
