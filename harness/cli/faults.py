"""Faults as people and exit codes see them."""

from __future__ import annotations

import sys

from harness.errors import HarnessError, SandboxLost

EXEC_FAILED = 125


def tell(fault: HarnessError) -> None:
    """A fault on stderr, with its evidence; nothing in it can steer the terminal."""
    from harness.approvers.escape import visible

    first, *rest = (str(fault) or type(fault).__name__).split("\n")
    print(f"harness: {visible(first)}", file=sys.stderr)
    evidence = fault.evidence if isinstance(fault, SandboxLost) else ()
    for line in (*rest, *evidence):
        print(f"  {visible(line)}", file=sys.stderr)


def failure(fault: HarnessError) -> int:
    """The exit code of a fault under the command that was typed.

    `harness exec` keeps 125 for our own failures, so that they cannot be taken for the command's.
    """
    return own_failure() if fault.exit_code == 1 else fault.exit_code


def own_failure() -> int:
    """The exit code of a failure that is not the user's."""
    return EXEC_FAILED if sys.argv[1:2] == ["exec"] else 1
