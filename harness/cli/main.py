"""The edge: arguments in, exit code out, and no traceback for what is not our fault."""

from __future__ import annotations

import os
import sys

from harness import __version__
from harness.cli.faults import failure, own_failure, tell
from harness.errors import HarnessError

_SIGPIPE = 141
_INTERRUPTED = 130


def main() -> int:
    """Run the command line; the exit code.

    2 is a fault in what the user gave; see `harness.cli.faults` for the others.
    """
    if sys.argv[1:] == ["--version"]:
        print(f"harness {__version__}")
        return 0
    _complete_streams()
    try:
        from harness.cli.app import app

        app(prog_name="harness")
    except HarnessError as fault:
        tell(fault)
        return failure(fault)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader is gone; the interpreter must not try to flush into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE
    except OSError as fault:
        return _system(fault)
    except Exception as fault:  # noqa: BLE001 - the edge; what we did not foresee
        return _unforeseen(fault)
    return 0


def _complete_streams() -> None:
    """A stream that was closed by whoever started us swallows what is written to it."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - as long as the process


def _system(fault: OSError) -> int:
    """The machine said no to something of our own: a full disk behind stdout, no more files."""
    from harness.approvers.escape import visible

    if os.environ.get("HARNESS_DEBUG") == "1":
        raise fault
    print(f"harness: {visible(str(fault))}", file=sys.stderr)
    return own_failure()


def _unforeseen(fault: Exception) -> int:
    from harness.approvers.escape import visible

    if os.environ.get("HARNESS_DEBUG") == "1":
        import traceback

        traceback.print_exception(fault)
    words = visible(f"{type(fault).__name__}: {fault}"[:500])
    print(
        f"harness: a fault of harness itself: {words}\n"
        "  please report it with the command, `harness doctor` and what HARNESS_DEBUG=1 shows",
        file=sys.stderr,
    )
    return own_failure()


if __name__ == "__main__":
    sys.exit(main())
