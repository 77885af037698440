"""One form for all spellings of a file name that some file system takes for the same file."""

from __future__ import annotations

import functools
import re
import unicodedata

_HFS_IGNORED = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufeff]")
_NTFS_SHORT = {"git~1": ".git", "gitatt~1": ".gitattributes", "gitmod~1": ".gitmodules"}


@functools.lru_cache(maxsize=8192)
def fold_name(name: str) -> str:
    """Fold case and Unicode form, drop what HFS+ ignores, undo NTFS short names and streams."""
    if name in {"", ".", ".."}:
        return name
    if name.isascii():
        folded = name.lower()
    else:
        folded = _HFS_IGNORED.sub("", unicodedata.normalize("NFC", name).casefold())
        folded = unicodedata.normalize("NFC", folded)
    stream = folded.find(":")
    if stream > 0:
        folded = folded[:stream]
    folded = folded.rstrip(". ") or folded
    return _NTFS_SHORT.get(folded, folded)


@functools.lru_cache(maxsize=8192)
def fold_path(path: str) -> str:
    """`fold_name` for each component of a path with `/` or `\\` between them."""
    return "/".join(fold_name(part) for part in path.replace("\\", "/").split("/"))
