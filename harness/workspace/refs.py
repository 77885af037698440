"""Refs of a repository as data: only what is a ref by name and content is taken.

Name rules: git-check-ref-format(1). Files: gitrepository-layout(5), git-pack-refs(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

LARGEST_REF = 4096
LARGEST_LIST = 32 << 20
"""Bytes of `packed-refs`, `shallow` and the like that are read."""
_LONGEST_NAME = 1024

_BAD_NAME = re.compile(
    rb"[\0-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|\Z)|\A/|/\Z|\.(/|\Z)", re.DOTALL
)
_PACKED_HEADER = re.compile(rb"# pack-refs with:(?: (?:peeled|fully-peeled|sorted))* ?")


def is_ref(name: bytes) -> bool:
    """Whether git takes it for the full name of a ref, as `refs/heads/main`."""
    bad = len(name) > _LONGEST_NAME or _BAD_NAME.search(name) is not None
    return not bad and name.startswith(b"refs/") and name != b"refs/"


def is_hash(text: bytes, digits: int) -> bool:
    return re.fullmatch(rb"[0-9a-f]{%d}" % digits, text) is not None


def ref(data: bytes, digits: int) -> bytes | None:
    """What a ref file or HEAD says, or None if that is no ref."""
    text = data.strip()
    if is_hash(text, digits):
        return text + b"\n"
    target = text.removeprefix(b"ref:").strip(b" \t")
    return b"ref: " + target + b"\n" if text.startswith(b"ref:") and is_ref(target) else None


def packed(data: bytes, digits: int) -> bytes:
    """The lines of `packed-refs` that are some."""
    kept: list[bytes] = []
    after_ref = False
    for line in data.split(b"\n"):
        if line.startswith(b"^"):
            if after_ref and is_hash(line[1:], digits):
                kept.append(line)
            after_ref = False
            continue
        value, _, name = line.partition(b" ")
        after_ref = is_hash(value, digits) and is_ref(name)
        if after_ref or (not kept and _PACKED_HEADER.fullmatch(line)):
            kept.append(line)
    return b"".join(line + b"\n" for line in kept)


def hashes(data: bytes, digits: int) -> bytes:
    """The lines of `shallow`, `MERGE_HEAD` and the like that are hashes."""
    return b"".join(line + b"\n" for line in data.split(b"\n") if is_hash(line, digits))


def _mode(data: bytes, _digits: int) -> bytes:
    return b"no-ff" if data.strip() == b"no-ff" else b""


def _text(data: bytes, _digits: int) -> bytes:
    return data


READ_AS: Mapping[bytes, tuple[int, Callable[[bytes, int], bytes | None]]] = {
    b"HEAD": (LARGEST_REF, ref),
    b"ORIG_HEAD": (LARGEST_REF, hashes),
    b"MERGE_HEAD": (LARGEST_REF, hashes),
    b"CHERRY_PICK_HEAD": (LARGEST_REF, hashes),
    b"REVERT_HEAD": (LARGEST_REF, hashes),
    b"MERGE_MODE": (LARGEST_REF, _mode),
    b"MERGE_MSG": (1 << 20, _text),
    b"packed-refs": (LARGEST_LIST, packed),
    b"shallow": (LARGEST_LIST, hashes),
    b"info/exclude": (1 << 20, _text),
}
"""Small files of a git folder: bytes at most, and how what they say is read."""
