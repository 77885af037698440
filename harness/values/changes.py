"""What a run changed in its copy of a repository."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Flag(StrEnum):
    """Why a person should look twice at a changed path.

    `control`: runs outside judgement later (hooks, CI, shell start-up, compiled code …), held back
    unless named.
    `runs_here`: runs on a developer's machine in the ordinary course (Makefile, conftest.py …).
    `hidden_text`: holds bidirectional or invisible characters.
    `link_out`: a link that leaves the repository, held back unless named.
    `left_out`: the change is named but its content is not in the patch (it lies in a `.git`
    folder, cannot be read, or is too large).
    """

    CONTROL = "control"
    RUNS_HERE = "runs_here"
    HIDDEN_TEXT = "hidden_text"
    LINK_OUT = "link_out"
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True)
class Change:
    """One changed path: relative, `/`-separated, undecodable bytes as surrogate escapes.

    `action` is `added`, `modified`, `deleted` or `mode`. `added` and `removed` count lines,
    None for binary content. `patch` is this path's own section of the git-format patch.
    """

    path: str
    action: str
    patch: bytes
    added: int | None = None
    removed: int | None = None
    flags: frozenset[Flag] = frozenset()


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes of a run against what was uploaded, ordered by path.

    `ignored` counts new files that are left out of the patch: by the repository's `.gitignore`,
    or as what builds and tests leave behind (caches, byte code). `notes` are sentences about
    what else the patch does not hold.
    """

    files: tuple[Change, ...] = ()
    ignored: int = 0
    notes: tuple[str, ...] = ()

    @property
    def patch(self) -> bytes:
        """The whole as one git-format patch."""
        return b"".join(f.patch for f in self.files)
