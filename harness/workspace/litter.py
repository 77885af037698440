"""What builds and tools leave behind: new, it is no part of a patch.

Nobody reads it in a review, and much of it runs on the host the next time the project is used.
What was there when the box was loaded stays part of a patch.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from harness.operations.spelling import fold_path
from harness.workspace.names import parents, shown_path

_MARKS = frozenset({b"pyvenv.cfg", b"CACHEDIR.TAG"})
"""Files that make a folder an environment (PEP 405) or a cache (bford.info/cachedir)."""

_NAMES = frozenset(
    {
        # caches of interpreters and build tools; Python runs what lies in the first
        "__pycache__", ".eggs", ".gradle", ".parcel-cache", ".turbo", ".ccache",
        # caches and records of test runners, linters and type checkers
        ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".pytype", ".nyc_output",
        ".coverage", ".ipynb_checkpoints",
        # environments and installed packages: made again from what the patch does hold
        ".tox", ".nox", ".venv", "node_modules",
        # desktop litter
        ".ds_store", "thumbs.db", "desktop.ini",
    }
)  # fmt: skip
_SUFFIXES = (
    ".pyc", ".pyo",  # run in place of the source beside them
    ".egg-info", ".dist-info", ".egg-link",  # their entry points load code into other programs
)  # fmt: skip


def marked_folders(paths: Iterable[bytes], loaded: Container[bytes]) -> frozenset[bytes]:
    """New folders that say themselves that they are an environment or a cache."""
    split = (path.rpartition(b"/") for path in paths)
    found = (folder for folder, _, name in split if folder and name in _MARKS)
    return frozenset(folder for folder in found if folder not in loaded)


def is_litter(path: bytes, marked: frozenset[bytes] = frozenset()) -> bool:
    """Whether a path, or a folder above it, is left behind by tools, in any spelling, or lies
    in one of the `marked` folders."""
    if any(above in marked for above in parents(path)):
        return True
    parts = fold_path(shown_path(path)).split("/")
    return any(part in _NAMES or part.endswith(_SUFFIXES) for part in parts)
