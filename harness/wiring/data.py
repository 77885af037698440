"""Files that come with the package: policies, command specifications, images."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def data(name: str) -> Path:
    """A folder of data: inside an installed package, or beside it in a checkout."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
