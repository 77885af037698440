"""Operations that only the whole of a call amounts to."""

from __future__ import annotations

from harness.operations.commands import path_operations
from harness.operations.paths import below
from harness.operations.places import UNRESOLVED, Places, reals, riskier
from harness.values.operations import Links, Op, Operation, Origin, PathUse

SENDING = frozenset({Op.NET_READ, Op.NET_SEND, Op.VCS_PUBLISH, Op.EXEC_REMOTE})


def compose(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """What the operations amount to together: a secret read and something sent is
    `send.secret`."""
    secret = next((o for o in operations if o.op is Op.READ_SECRET), None)
    sent = next((o for o in operations if o.op in SENDING), None)
    if secret is None or sent is None:
        return ()
    return (
        Operation(
            op=Op.SEND_SECRET,
            reason=f"{secret.reason}, and {sent.reason or 'something is sent'}",
            hosts=sent.hosts,
            origin=Origin.COMPOSITION,
            reversible=False,
            scope="public",
        ),
    )


def unresolved(operations: tuple[Operation, ...], links: Links) -> str | None:
    """A path whose links the box could not tell, or None."""
    for operation in operations:
        for use in operation.paths:
            if any(below(real, UNRESOLVED) for real in reals(use, links)):
                return use.path
    return None


def follow(
    operations: tuple[Operation, ...], links: Links, places: Places
) -> tuple[Operation, ...]:
    """Raise each operation on paths to the riskiest class of their lexical and real forms."""
    followed: list[Operation] = []
    for operation in operations:
        if not operation.paths or _straight(operation.paths, links):
            followed.append(operation)
        else:
            followed.extend(_split(operation, links, places))
    return tuple(followed)


def _straight(uses: tuple[PathUse, ...], links: Links) -> bool:
    return all(not use.spelled and links.get(use.path) == use.path for use in uses)


def _split(operation: Operation, links: Links, places: Places) -> list[Operation]:
    groups: dict[Op, list[PathUse]] = {}
    for use in operation.paths:
        op = places.classify(use.path, use)
        for real in reals(use, links):
            op = riskier(op, places.classify(real, use))
        groups.setdefault(op, []).append(use)
    made: list[Operation] = []
    for op, uses in groups.items():
        (base, *_) = path_operations(operation, uses, places)
        target = next((r for u in uses for r in reals(u, links) if r != u.path), "")
        reason = f"{base.reason}, a way to `{target[:120]}`" if target else base.reason
        made.append(
            Operation(
                op=op, reason=reason, program=operation.program, argv=operation.argv,
                paths=tuple(uses), origin=operation.origin, reversible=operation.reversible,
                scope=base.scope, flags=operation.flags, aside=operation.aside,
            )
        )  # fmt: skip
    return made
