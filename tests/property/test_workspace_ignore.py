"""Our reading of `.gitignore` against git's own."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from pathlib import Path

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


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(patterns, min_size=1, max_size=4), st.lists(patterns, max_size=2))
@example(["*", "!*/", "!a"], [])
@example(["a/*", "!a/b"], ["b"])
@example(["[[:alpha:]]"], ["!**/c"])
def test_git_ignores_the_same_paths(root: list[str], deeper: list[str]) -> None:
    rules = IgnoreRules()
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(["git", "init", "-q", name], check=True)
        for folder, lines in ((b"", root), (b"a", deeper)):
            text = "\n".join(lines).encode() + b"\n"
            place = Path(name) / folder.decode()
            place.mkdir(exist_ok=True)
            (place / ".gitignore").write_bytes(text)
            rules.add(folder, text)
        asked = subprocess.run(
            ["git", "-C", name, "check-ignore", "--no-index", "-z", "--stdin"],
            input="\0".join(PATHS).encode(),
            capture_output=True,
            check=False,
        )
    expected = {path.decode() for path in asked.stdout.split(b"\0") if path}
    assert {path for path in PATHS if rules.ignored(path.encode())} == expected
