"""Which session is meant where none is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UserError

if TYPE_CHECKING:
    from harness.library import History

_MOST = 100_000


def newest(history: History, folder: Path) -> str:
    """The newest session that changed something in the repository a folder lies in: the folder's
    own, else that of the nearest folder above which has one. Raises `UserError`."""
    here = folder.resolve()
    depth = {str(above): n for n, above in enumerate((here, *here.parents))}
    found = [s for s in history.summaries(_MOST) if s.changed and s.repo in depth]
    if not found:
        raise UserError(f"no session has changes for `{here}`; `harness sessions list` shows all")
    return min(found, key=lambda summary: depth[summary.repo]).session
