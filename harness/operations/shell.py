"""Shell text to operations.

One plain command is read exactly, by its specification. Everything else is `opaque`, and is
searched for what it names.
"""

from __future__ import annotations

from harness.operations.commands import NotUnderstood, asked_paths, classify
from harness.operations.guards import MAX_READ, fault_in
from harness.operations.opaque import find_operations
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
        words = plain_words(text, places.home)
        operations = classify(words, commands, places)
    except NotPlain as why:
        return _opaque(call, text, f"not one plain command: {why}", places, commands)
    except NotUnderstood as why:
        return _opaque(call, text, str(why), places, commands)
    if all(operation.op is not Op.EXEC_CODE for operation in operations):
        return Draft(call, operations, paths=asked_paths(operations))
    known = {operation.op for operation in operations}
    found = find_operations(text, commands, places)
    operations += tuple(operation for operation in found if operation.op not in known)
    # Rows have judged the program itself; what it is given to run they have not.
    return Draft(call, operations, paths=asked_paths(operations), text=" ".join(words[1:]))


def _opaque(call: Call, text: str, why: str, places: Places, commands: Commands) -> Draft:
    unread = Operation(
        op=Op.OPAQUE, reason=why, origin=Origin.TEXT, reversible=False, confidence="none"
    )
    found = find_operations(text, commands, places)
    return Draft(call, (unread, *found), text=text)
