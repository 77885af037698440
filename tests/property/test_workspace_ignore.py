"""Our reading of `.gitignore` against git's own."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.workspace.ignore import IgnoreRules

ATOMS = ["a", "b", "*", "?", "**", "/", "[ab]", "[!a]", "[a-b]", "\\a", "c", " ", "\\ ", "[", "\\"]
patterns = st.builds(
    lambda negated, atoms, folder: ("!" if negated else "") + "".join(atoms) + folder,
    st.booleans(),
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=6),
    st.sampled_from(["", "", "/"]),
)
parts = ["a", "b", "c", "ab", "a b"]
PATHS = ["/".join(p) for n in (1, 2, 3) for p in itertools.product(parts, repeat=n)]


@pytest.fixture(scope="module")
def repo() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(["git", "init", "-q", "--template=", name], check=True)
        (Path(name) / "a").mkdir()
        yield Path(name)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(root=st.lists(patterns, min_size=1, max_size=4), deeper=st.lists(patterns, max_size=2))
@example(root=["*", "!*/", "!a"], deeper=[])
@example(root=["a/*", "!a/b"], deeper=["b"])
@example(root=["[[:alpha:]]"], deeper=["!**/c"])
def test_git_ignores_the_same_paths(repo: Path, root: list[str], deeper: list[str]) -> None:
    rules = IgnoreRules()
    for folder, lines in ((b"", root), (b"a", deeper)):
        text = "\n".join(lines).encode() + b"\n"
        (repo / folder.decode() / ".gitignore").write_bytes(text)
        rules.add(folder, text)
    asked = subprocess.run(
        ["git", "-C", str(repo), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(PATHS).encode(),
        capture_output=True,
        check=False,
    )
    expected = {path.decode() for path in asked.stdout.split(b"\0") if path}
    assert {path for path in PATHS if rules.ignored(path.encode())} == expected
