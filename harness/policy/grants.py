"""What a person granted for later calls of the same kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.operations.places import Places
from harness.policy.grammar import MatcherModel
from harness.policy.rows import Matcher, Setting, compile_matcher
from harness.values.decisions import Effect
from harness.values.operations import Op, Operation, Origin, Risk

_NEVER = frozenset({Origin.WRAPPER, Origin.TEXT, Origin.COMPOSITION})


@dataclass(frozen=True, slots=True)
class Grant:
    """Turns an ask about matching operations into an allow. `scope` is once, turn, session,
    project or user; who keeps the grants drops those that are used up or past."""

    id: str
    matcher: Matcher
    scope: str

    def covers(self, operation: Operation, setting: Setting) -> bool:
        """Never for wrappers, inline code, opaque text or critical operations."""
        if operation.origin in _NEVER or operation.op is Op.OPAQUE:
            return False
        if operation.risk is Risk.CRITICAL or _inline(operation):
            return False
        return self.matcher.must(operation, setting)


def _inline(operation: Operation) -> bool:
    return operation.op is Op.EXEC_CODE and bool(
        {"-c", "-e", "--eval", "--command"} & set(operation.argv)
    )


def compile_grant(name: str, fields: Mapping[str, object], scope: str, places: Places) -> Grant:
    """From the keys of a matcher (`op`, `command`, `path`, `host`). Raises `ValueError`."""
    model = MatcherModel.model_validate(dict(fields))
    if model.op is None:
        raise ValueError("a grant names an `op`")
    return Grant(name, compile_matcher(model, Effect.ALLOW, places), scope)
