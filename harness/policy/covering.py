"""Whether one row decides everything that another one could: for warnings, never for verdicts.

True only where it is certain; a row that is not reported may still be covered.
"""

from __future__ import annotations

from harness.policy.patterns import PathPattern, TokenPattern, glob, is_literal
from harness.policy.rows import Matcher, Row
from harness.values.decisions import Effect
from harness.values.operations import RISK


def covers(earlier: Row, later: Row) -> bool:
    """Whether `earlier`, standing first, leaves nothing for `later`.

    An allow matches only what it must, so it covers no ask or deny, which match what they may.
    """
    if earlier.effect is Effect.ALLOW and later.effect is not Effect.ALLOW:
        return False
    weak = earlier.effect is Effect.ASK and not earlier.matcher.names_class
    if weak and later.effect is Effect.DENY:
        return False
    a, b = earlier.matcher, later.matcher
    return (
        _simple(a, b)
        and _class(a, b)
        and _globs(a.tool, b.tool)
        and _globs(a.agent, b.agent)
        and _globs(a.mode, b.mode)
        and _globs(a.server, b.server)
        and _globs(a.server_tool, b.server_tool)
        and _commands(a.command, b.command)
        and _paths(a.path, b.path)
    )


def _simple(a: Matcher, b: Matcher) -> bool:
    """Fields that are compared as wholes."""
    return (
        (a.flags is None or a.flags == b.flags)
        and (a.host is None or (b.host is not None and set(b.host) <= set(a.host)))
        and (a.args is None or a.args == b.args)
        and (a.attended is None or a.attended == b.attended)
        and a.regex is None
        and (a.private or not b.private)
    )


def _class(a: Matcher, b: Matcher) -> bool:
    if a.ops is not None and (b.ops is None or not b.ops <= a.ops):
        return False
    if a.risks is None:
        return True
    if b.risks is not None and b.risks <= a.risks:
        return True
    return b.ops is not None and all(RISK[op] in a.risks for op in b.ops)


def _globs(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> bool:
    if a is None or "*" in a:
        return True
    return b is not None and all(
        pattern in a or (is_literal(pattern) and any(glob(g)(pattern) for g in a)) for pattern in b
    )


def _commands(a: tuple[TokenPattern, ...] | None, b: tuple[TokenPattern, ...] | None) -> bool:
    if a is None:
        return True
    return b is not None and all(any(_tokens(p.tokens, q.tokens) for p in a) for q in b)


def _tokens(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """`git **` covers `git push *`; one token at a time, and a final `**` the rest."""
    for at, token in enumerate(a):
        if token == "**":
            return at == len(a) - 1 or a == b
        if at >= len(b) or b[at] == "**":
            return False
        if token not in {"*", b[at]} and not (is_literal(b[at]) and glob(token)(b[at])):
            return False
    return len(a) == len(b)


def _paths(a: tuple[PathPattern, ...] | None, b: tuple[PathPattern, ...] | None) -> bool:
    if a is None:
        return True
    return b is not None and all(any(p == q or (p.covers and _within(p, q)) for p in a) for q in b)


def _within(outer: PathPattern, inner: PathPattern) -> bool:
    width = len(outer.parts)
    fixed = all(is_literal(part) for part in outer.parts)
    return fixed and len(inner.parts) > width and inner.parts[:width] == outer.parts
