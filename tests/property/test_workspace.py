"""A repository, a box, random work in it, a patch: applied, the repository is as the box is."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.workspace.apply import apply
from tests.workspace.trees import Bench, Tree, read, write

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
    st.tuples(st.sampled_from(["file", "program"]), content),
    st.tuples(st.just("link"), st.sampled_from([b"nowhere", b"../x", b"/no/where", b"n\new"])),
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


def check(before: Tree, after: Tree) -> None:
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        write(before, bench.repo)
        other = Path(name) / "other"
        shutil.copytree(bench.repo, other, symlinks=True)
        bench.load()
        for path in bench.inside.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        write(after, bench.inside)
        changes = bench.changes()

        named = frozenset(change.path for change in changes.files)  # links out are held back
        report = apply(changes.patch, bench.repo, include_control=named)
        assert (report.refused, report.held) == ((), ())
        assert {change.path for change in changes.files} == set(report.applied)
        assert read(bench.repo) == after

        if changes.patch:
            git = ["git", "apply", "--whitespace=nowarn", "-"]
            subprocess.run(["git", "init", "-q", "--template=", "."], cwd=other, check=True)
            subprocess.run(git, cwd=other, input=changes.patch, check=True)
        assert read(other) == after


@settings(max_examples=15, deadline=None, derandomize=True)
@given(trees, trees)
@example({b"a": ("file", b"x")}, {b"a/b": ("file", b"x")})
@example({b"a/b": ("file", b"x"), b"a/c": ("file", b"")}, {b"a": ("link", b"b")})
@example({b"a": ("link", b"x")}, {b"a": ("file", b"x")})
@example({b"a": ("file", b"x")}, {b"a": ("program", b"x")})
@example({b"a": ("file", b"\0one")}, {b"a": ("program", b"\0two")})
def test_applied_patch_gives_the_tree_of_the_box_and_git_agrees(before: Tree, after: Tree) -> None:
    check(before, after)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees, trees)
def test_many_more_trees(before: Tree, after: Tree) -> None:
    check(before, after)
