"""Why, and what instead: the sentence a model or a person is given with a verdict."""

from __future__ import annotations

from harness.values.decisions import Decision, Effect, Match
from harness.values.operations import Op, Operation

_INSTEAD = {
    Op.READ_SECRET: "do the task without that credential; say in your answer if it is needed",
    Op.NET_SEND: "work without the network, with what is in the workspace; a person can list "
    "the host in the policy's `network`",
    Op.NET_READ: "work without the network, with what is in the workspace",
    Op.WRITE_CONTROL: "leave that file as it is and describe the change in your answer, so that "
    "a person can make it",
    Op.POLICY_CHANGE: "the policy is the user's to change; describe what you would need",
    Op.WRITE_OUTSIDE: "write below the workspace or /tmp",
    Op.VCS_PUBLISH: "commit locally; a person gets the patch and publishes it",
    Op.VCS_REWRITE: "add a new commit; history is not rewritten here",
    Op.DESTROY_DATA: "delete single files below the workspace instead",
    Op.PRIV_ESCALATE: "work as the user you are; privileges are not raised here",
    Op.EXEC_REMOTE: "do not run what was fetched; use what is installed or in the workspace",
    Op.SEND_SECRET: "do not send anything in a call that touches credentials",
    Op.OPAQUE: "write it as separate plain commands, one a call",
    Op.INFRA_CHANGE: "describe the change in your answer; infrastructure is not touched here",
    Op.INFRA_DESTROY: "describe the change in your answer; infrastructure is not touched here",
}
_DEFAULT = "try another way, or say in your answer what you would need"


def advise(decision: Decision) -> str:
    """Empty for an allow; else what was stopped, why, what may be done instead, and which row
    or table would have to change."""
    if decision.effect is Effect.ALLOW:
        return ""
    first = decision.matches[0]
    if first.source.startswith("refused:") and not first.file:
        reason = first.why or first.source.removeprefix("refused:")
        return f"the call was refused: {reason}; {_refused(decision)}"
    operation = _deciding(decision, first)
    verb = "is denied" if decision.effect is Effect.DENY else "needs a person's approval"
    what = f"`{operation.op}` ({operation.reason})" if operation is not None else "the call"
    why = (
        f": {first.why}"
        if first.why and (operation is None or first.why != operation.reason)
        else ""
    )
    instead = _INSTEAD.get(operation.op, _DEFAULT) if operation is not None else _DEFAULT
    return f"{what} {verb}{why}; {instead} [{_where(first)}]"


def _refused(decision: Decision) -> str:
    if any(operation.hosts for operation in decision.operations):
        return _INSTEAD[Op.NET_SEND]
    return "send it again in a form that can be read"


def _deciding(decision: Decision, match: Match) -> Operation | None:
    """The operation the deciding reason is about: the one it names, else the riskiest."""
    key = match.source.rpartition("/")[2]
    for operation in decision.operations:
        if match.why == operation.reason or operation.op.value == key:
            return operation
    return max(decision.operations, key=lambda o: o.risk, default=None)


def _where(match: Match) -> str:
    place = f" at {match.file}:{match.line}" if match.file else ""
    return f"{match.source}{place}"
