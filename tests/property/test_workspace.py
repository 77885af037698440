"""A repository, a box, random work in it, a patch: applied, the repository is as the box is."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.values.changes import Changes
from harness.workspace.apply import Report, apply
from harness.workspace.copy import CopyWorkspace
from tests.workspace.boxes import FolderBox

Tree = dict[bytes, tuple[str, bytes]]
"""Paths to a kind (`file`, `program`, `link`) and content."""

names = st.sampled_from(
    [b"a", b"b", b"d", b"e f", b'q"uote', b"new\nline", b"t\tab", b"\xff\xfe", "é".encode(), b"-x"]
)
paths = st.lists(names, min_size=1, max_size=3).map(b"/".join)
line = st.sampled_from([b"one", b"two", b"three", b"", b"--- a", b"+++ b", b"@@ -1 +1 @@", b"x\r"])
text = st.builds(
    lambda lines, end: b"\n".join(lines) + (b"\n" if end and lines else b""),
    st.lists(line, max_size=24),
    st.booleans(),
)
content = st.one_of(text, st.binary(max_size=80))
entry = st.one_of(
    st.tuples(st.just("file"), content),
    st.tuples(st.just("program"), content),
    st.tuples(st.just("link"), st.sampled_from([b"a", b"../x", b"/etc/passwd", b"n\new"])),
)


def _without_clashes(tree: Tree) -> Tree:
    """No path lies below another path."""
    kept: Tree = {}
    for path in sorted(tree):
        parts = path.split(b"/")
        if not any(b"/".join(parts[:at]) in kept for at in range(1, len(parts))):
            kept[path] = tree[path]
    return kept


trees = st.dictionaries(paths, entry, max_size=8).map(_without_clashes)


def write(tree: Tree, folder: Path) -> None:
    base = os.fsencode(folder)
    for path, (kind, data) in tree.items():
        full = os.path.join(base, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if kind == "link":
            os.symlink(data, full)
        else:
            Path(os.fsdecode(full)).write_bytes(data)
            os.chmod(full, 0o755 if kind == "program" else 0o644)


def read(folder: Path) -> Tree:
    tree: Tree = {}
    base = os.fsencode(folder)
    for above, folders, files in os.walk(base):
        if b".git" in folders:
            folders.remove(b".git")
        for name in [*folders, *files]:
            full = os.path.join(above, name)
            path = os.path.relpath(full, base)
            if os.path.islink(full):
                tree[path] = ("link", os.readlink(full))
            elif not os.path.isdir(full):
                kind = "program" if os.stat(full).st_mode & 0o100 else "file"
                tree[path] = (kind, Path(os.fsdecode(full)).read_bytes())
    return tree


def clear(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def run(before: Tree, after: Tree, base: Path) -> tuple[Changes, Report, Tree]:
    repo, inside = base / "repo", base / "box"
    repo.mkdir()
    inside.mkdir()
    write(before, repo)

    async def work() -> Changes:
        workspace = CopyWorkspace(repo, base / "store")
        box = FolderBox(inside)
        await workspace.load(box)
        clear(inside)
        write(after, inside)
        return await workspace.changes(box)

    changes = asyncio.run(work())
    report = apply(changes.patch, repo)
    return changes, report, read(repo)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(trees, trees)
@example({b"a": ("file", b"x")}, {b"a/b": ("file", b"x")})
@example({b"a/b": ("file", b"x"), b"a/c": ("file", b"")}, {b"a": ("link", b"b")})
@example({b"a": ("link", b"x")}, {b"a": ("file", b"x")})
def test_applied_patch_gives_the_tree_of_the_box(before: Tree, after: Tree) -> None:
    with tempfile.TemporaryDirectory() as name:
        changes, report, result = run(before, after, Path(name))
        assert report.refused == ()
        assert report.held == ()
        assert result == after
        assert {c.path for c in changes.files} == set(report.applied)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(trees, trees)
@example({b"a": ("file", b"x")}, {b"a": ("program", b"x")})
def test_git_takes_the_same_patch(before: Tree, after: Tree) -> None:
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        changes, _, _ = run(before, after, base)
        other = base / "other"
        other.mkdir()
        write(before, other)
        subprocess.run(["git", "init", "-q", "."], cwd=other, check=True)
        if changes.patch:
            subprocess.run(
                ["git", "apply", "--whitespace=nowarn", "-"],
                cwd=other,
                input=changes.patch,
                check=True,
            )
        assert read(other) == after
