"""What is recorded of a command that ran."""

from __future__ import annotations

from harness.values.calls import Args
from harness.values.commands import ExecResult


def exec_facts(result: ExecResult) -> Args:
    """Exit, usage (seconds, bytes of RSS; None is unknown) and output counts, for the log."""
    return {
        "code": result.code,
        "signal": result.signal,
        "reason": result.reason.value,
        "wall": round(result.usage.wall, 6),
        "user": result.usage.user,
        "system": result.usage.system,
        "max_rss": result.usage.max_rss,
        "bytes": result.stdout.total + result.stderr.total,
        "truncated": result.stdout.truncated or result.stderr.truncated,
        "left_running": result.left_running,
    }
