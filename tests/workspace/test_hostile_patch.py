"""A stored patch that someone edited: an error a user understands, or a refusal; never a write
outside."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.workspace.apply import apply
from harness.workspace.lines import Effort
from harness.workspace.sections import FILE, LINK, Side, section
from tests.workspace.trees import Bench, read, write

NEW = Side(FILE, b"evil\n")


def made(path: bytes, new: Side | None = NEW, old: Side | None = None) -> bytes:
    return section(path, old, new, Effort(10_000)).text


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "in" / "repo"
    folder.mkdir(parents=True)
    write({b"a": ("file", b"one\n")}, folder)
    return folder


@pytest.mark.parametrize(
    "path",
    [
        b"../x",
        b"d/../../x",
        b"/etc/x",
        b"//x",
        b"./x",
        b"d//x",
        b"d/",
        b"",
        b".",
        b"..",
        b"nul\0byte",
        b"x" * 300,
        b"/".join([b"y" * 200] * 30),
        b".git/hooks/pre-commit",
        b".GIT/config",
        b"sub/.git/config",
        b".g\xe2\x80\x8cit/config",
        b"GIT~1/config",
        b".git./config",
        b".git::$INDEX_ALLOCATION/config",
        b"x\\.git\\config",
    ],
)
def test_paths_that_must_not_be_written(repo: Path, path: bytes) -> None:
    before = read(repo.parent.parent)
    shown = path.decode("utf-8", "surrogateescape")
    report = apply(made(path), repo, include_control=frozenset({shown}))
    assert report.applied == ()
    assert [refused for refused, _ in report.refused] == [shown]
    assert read(repo.parent.parent) == before


def test_a_link_and_a_file_behind_it_in_one_patch(repo: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    link = made(b"l", Side(LINK, bytes(away)))
    for patch in (link + made(b"l/x"), made(b"l/x") + link):
        report = apply(patch, repo, include_control=frozenset({"l"}))
        assert report.applied == ()
        assert ("l/x", "the patch makes a file of a folder above it") in report.refused
    assert list(away.iterdir()) == []


@pytest.mark.parametrize("target", [b"", b"nul\0", b"x" * 5000])
def test_link_targets_that_are_no_paths(repo: Path, target: bytes) -> None:
    patch = made(b"l", Side(LINK, target))
    report = apply(patch, repo)
    assert report.applied == ()
    assert "target" in report.refused[0][1]


GOOD = made(b"a", Side(FILE, b"two\n"), Side(FILE, b"one\n"))
BINARY = made(b"bin", Side(FILE, b"\0" * 5000))


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (b"hello\n", "must start with"),
        (GOOD + b"junk\n", "must start with"),
        (GOOD + GOOD, "named twice"),
        (GOOD[:-5], "cut short|does not make"),
        (GOOD.replace(b"100644", b"100666"), "mode"),
        (GOOD.replace(b"100644", b"160000"), "mode"),
        (GOOD.replace(b"+++ b/a", b"+++ b/b"), "another path"),
        (GOOD.replace(b"--- a/a", b"--- /dev/null"), "another path"),
        (GOOD.replace(b"b/a\nindex", b"b/z\nindex"), "two paths"),
        (GOOD.replace(b"index ", b"rename from x\nindex "), "header"),
        (GOOD.replace(b"@@ -1 +1 @@", b"@@ -1 +1,9 @@"), "cut short"),
        (GOOD.replace(b"@@ -1 +1 @@", b"@@ -0 +1 @@"), "counts"),
        (GOOD.replace(b"@@ -1 +1 @@", b"@@ -1 +1,999999999 @@"), "cut short"),
        (GOOD.replace(b"@@ -1 +1 @@", b"@@ -x +1 @@"), "first line"),
        (made(b'q"').replace(b'b/q\\"" ', b"").replace(b'\\""', b'\\q"'), "name"),
        (BINARY.replace(b"literal 5000", b"literal 4999"), "another size"),
        (BINARY.replace(b"literal 5000", b"literal 99999999999"), "literal"),
        (BINARY.replace(b"literal 5000", b"literal 9999999999"), "1 GiB"),
        (BINARY.replace(b"literal 5000", b"delta 5000"), "literal"),
        (BINARY.replace(b"index ", b"new mode 100755\nindex "), "do not agree"),
    ],
)
def test_a_patch_that_is_none(repo: Path, patch: bytes, words: str) -> None:
    before = read(repo)
    with pytest.raises(UserError, match=words):
        apply(patch, repo)
    assert read(repo) == before


def test_a_patch_whose_lines_are_not_its_ids(repo: Path) -> None:
    for patch in (
        GOOD.replace(b"+two", b"+six"),
        GOOD.replace(b"-one", b"-two"),
        GOOD.replace(b"@@ -1 +1 @@", b"@@ -1 +7 @@"),
        GOOD.replace(b"@@ -1 +1 @@", b"@@ -999999999 +1 @@"),
    ):
        report = apply(patch, repo)
        assert report.applied == ()
        assert report.refused[0][0] == "a"
    assert read(repo) == {b"a": ("file", b"one\n")}


def test_a_deletion_that_shows_other_lines_than_it_deletes(repo: Path) -> None:
    patch = made(b"a", None, Side(FILE, b"one\n")).replace(b"-one", b"-two")
    assert "lines" in apply(patch, repo).refused[0][1]


def test_damage_of_any_kind_is_a_user_error_or_a_refusal(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "b")
    write(
        {b"a": ("file", b"1\n2\n3\n"), b"b c": ("file", b"\0x"), b"l": ("link", b"a")}, bench.repo
    )

    def work(inside: Path) -> None:
        (inside / "a").write_bytes(b"1\ntwo\n3")
        (inside / "b c").write_bytes(b"\0y" * 40)
        (inside / "l").unlink()
        (inside / 'n"ew').write_bytes(b"x\n")

    patch = b"".join(change.patch for change in bench.changed(work).values())
    before = read(bench.repo)
    dice = random.Random(7)
    for _ in range(1500):
        damaged = bytearray(patch)
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(len(damaged))
            if dice.random() < 0.3:
                del damaged[at : at + dice.randint(1, 40)]
            else:
                damaged[at] = dice.choice(b'\n\0 +-@/"\\azAZ09\xff')
        try:
            apply(bytes(damaged), bench.repo, dry_run=True)
        except UserError:
            continue
    assert read(bench.repo) == before
