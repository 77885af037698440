"""A file tree of immutable nodes: a change copies the path to it and shares the rest.

Names are bytes, as a Linux file system has them. Nothing here knows a real disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from harness.errors import FileFault
from harness.values.commands import FileKind, Stat

NAME_MOST = 255
PATH_MOST = 4096
DEPTH_MOST = 256
"""Directories above an entry; bounds recursion, not a limit of Linux."""
LINKS_MOST = 40
UNRESOLVED = "/proc/unresolved"


@dataclass(frozen=True, slots=True)
class Node:
    """One entry. `data` is a file's bytes or a link's target, `children` a directory's."""

    kind: FileKind
    mode: int
    data: bytes = b""
    children: Mapping[bytes, Node] = field(default_factory=dict["bytes", "Node"])
    inode: int = 0
    mtime: int = 0

    def stat(self, path: bytes) -> Stat:
        target = self.data if self.kind is FileKind.LINK else b""
        size = 4096 if self.kind is FileKind.DIRECTORY else len(self.data)
        return Stat(
            path, self.kind, size, self.mode, self.mtime, self.mtime, self.inode, target
        )  # fmt: skip


def directory(mode: int = 0o755) -> Node:
    return Node(FileKind.DIRECTORY, mode)


def split(path: str) -> tuple[bytes, ...]:
    """Components of an absolute path. Raises `FileFault` with `name` for what is none.

    `..` is refused: what it means depends on links, and file operations follow none.
    """
    raw = path.encode("utf-8", "surrogateescape")
    parts = tuple(p for p in raw.split(b"/") if p not in {b"", b"."})
    bad = not raw.startswith(b"/") or b"\0" in raw or b".." in parts or len(raw) >= PATH_MOST
    bad = bad or len(parts) > DEPTH_MOST
    if bad or any(len(p) > NAME_MOST for p in parts):
        raise FileFault("name", path, f"`{path[:200]}` is no usable absolute path")
    return parts


def find(root: Node, parts: tuple[bytes, ...], path: str) -> Node:
    """The entry itself, never through a link. Raises `FileFault`."""
    node = root
    for part in parts:
        node = _child(node, part, path)
    return node


def _child(node: Node, part: bytes, path: str) -> Node:
    if node.kind is FileKind.LINK:
        raise FileFault("link", path, f"`{path}` leads through a link")
    if node.kind is not FileKind.DIRECTORY:
        raise FileFault("not_directory", path, f"`{path}` leads through a file")
    if not node.mode & 0o100:
        raise FileFault("denied", path, f"`{path}`: permission denied")
    found = node.children.get(part)
    if found is None:
        raise FileFault("missing", path, f"`{path}` does not exist")
    return found


def put(node: Node, parts: tuple[bytes, ...], new: Node | None, path: str) -> Node:
    """The tree with `new` at a place, parents made; with None, without what is there."""
    if not parts:
        if new is None:
            raise FileFault("denied", path, f"`{path}` cannot be removed")
        return new
    if node.kind is FileKind.LINK:
        raise FileFault("link", path, f"`{path}` leads through a link")
    if node.kind is not FileKind.DIRECTORY:
        raise FileFault("not_directory", path, f"`{path}` leads through a file")
    head, rest = parts[0], parts[1:]
    child = node.children.get(head)
    if not rest and not node.mode & 0o200:
        raise FileFault("denied", path, f"`{path}`: permission denied")
    children = dict(node.children)
    if rest:
        children[head] = put(child or directory(), rest, new, path)
    elif new is None:
        children.pop(head, None)
    else:
        children[head] = new
    return replace(node, children=children)


def walk(node: Node, depth: int, prefix: bytes = b"") -> Iterator[tuple[bytes, Node]]:
    """Entries below a directory in byte order of their whole relative paths."""
    found = sorted(_entries(node, depth, prefix), key=lambda entry: entry[0])
    yield from found


def _entries(node: Node, depth: int, prefix: bytes) -> Iterator[tuple[bytes, Node]]:
    for name, child in node.children.items():
        place = prefix + name
        yield place, child
        if child.kind is FileKind.DIRECTORY and depth > 1:
            yield from _entries(child, depth - 1, place + b"/")


def count(node: Node) -> tuple[int, int]:
    """Bytes in files and number of entries, the node's own among them."""
    size, entries = len(node.data), 1
    for child in node.children.values():
        below = count(child)
        size += below[0]
        entries += below[1]
    return size, entries


def real_path(root: Node, path: str) -> str:
    """The path with every link followed, as realpath(3) does; what does not exist is appended
    to its nearest existing ancestor. A loop or a bad name lies below `/proc/unresolved`."""
    raw = path.encode("utf-8", "surrogateescape")
    if not raw.startswith(b"/") or b"\0" in raw:
        return f"{UNRESOLVED}/{path.lstrip('/')}"
    todo = [p for p in raw.split(b"/") if p]
    done: list[bytes] = []
    links = 0
    while todo:
        part = todo.pop(0)
        if part == b".":
            continue
        if part == b"..":
            done = done[:-1]
            continue
        node = _peek(root, (*done, part))
        if node is None or node.kind is not FileKind.LINK:
            done.append(part)
            continue
        links += 1
        if links > LINKS_MOST:
            return UNRESOLVED + path
        if node.data.startswith(b"/"):
            done = []
        todo = [p for p in node.data.split(b"/") if p] + todo
    return "/" + b"/".join(done).decode("utf-8", "surrogateescape")


def _peek(root: Node, parts: tuple[bytes, ...]) -> Node | None:
    node = root
    for part in parts:
        found = node.children.get(part)
        if found is None:
            return None
        node = found
    return node
