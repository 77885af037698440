"""Lexical paths: absolute, normal, compared by component. Nothing here looks at a disk."""

from __future__ import annotations

import functools

MAX_PATH = 4096


def absolute(text: str, cwd: str, home: str) -> str | None:
    """The absolute form of a path as typed, `..` kept; None for what no kernel would take.

    Only a bare `~` and `~/` are expanded: `~name` is another user's, and unknown.
    """
    if not text or len(text) > MAX_PATH or "\0" in text:
        return None
    if text == "~" or text.startswith("~/"):
        text = home + text[1:]
    elif not text.startswith("/"):
        text = f"{cwd}/{text}"
    return text


@functools.lru_cache(maxsize=8192)
def normal(path: str) -> str:
    """Fold `.`, `..` and repeated slashes of an absolute path. Idempotent."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part and part != ".":
            parts.append(part)
    return "/" + "/".join(parts)


def climbs(path: str) -> bool:
    """Whether a `..` follows a name, so that a link before it would change where it leads."""
    named = False
    for part in path.split("/"):
        if part == "..":
            if named:
                return True
        elif part and part != ".":
            named = True
    return False


def below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it, by component."""
    if folder == "/":
        return True
    return path == folder or path.startswith(folder + "/")
