"""What a patch says about work in a box."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from harness.errors import SessionStorage
from harness.values.changes import Flag
from harness.workspace.apply import apply
from tests.workspace.trees import Bench, GitRepo, write


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench")


def test_nothing_done_is_nothing_read(bench: Bench) -> None:
    write({b"a": ("file", b"1"), b"b/c": ("program", b"2")}, bench.repo)
    assert bench.changed(lambda inside: (inside / "b" / "new").mkdir()) == {}
    assert bench.box.reads == []


def test_only_what_moved_is_read(bench: Bench) -> None:
    write({b"%d" % n: ("file", b"1") for n in range(20)}, bench.repo)
    assert list(bench.changed(lambda inside: (inside / "7").write_bytes(b"2"))) == ["7"]
    assert bench.box.reads == ["7"]


def test_a_forged_modification_time_hides_nothing(bench: Bench) -> None:
    write({b"a": ("file", b"1")}, bench.repo)

    def work(inside: Path) -> None:
        before = (inside / "a").stat()
        (inside / "a").write_bytes(b"2")
        os.utime(inside / "a", ns=(before.st_atime_ns, before.st_mtime_ns))

    assert list(bench.changed(work)) == ["a"]


def test_a_second_look_reads_only_what_moved_since(bench: Bench) -> None:
    write({b"a": ("file", b"1"), b"b": ("file", b"1")}, bench.repo)
    bench.load()
    (bench.inside / "a").write_bytes(b"2")
    (bench.inside / "b").write_bytes(b"2")
    first = bench.changes()
    time.sleep(0.15)
    assert bench.changes() == first  # read again: the first look may have been too early
    bench.box.reads.clear()
    assert bench.changes() == first
    assert bench.box.reads == []
    (bench.inside / "b").write_bytes(b"1")
    assert [change.path for change in bench.changes().files] == ["a"]
    assert bench.box.reads == ["b"]


def test_edits_by_the_user_during_a_run_do_not_show(bench: Bench) -> None:
    write({b"a": ("file", b"old\n"), b"b": ("file", b"old\n")}, bench.repo)

    def work(inside: Path) -> None:
        (bench.repo / "a").write_bytes(b"the user's\n")
        (bench.repo / "b").unlink()
        (inside / "a").write_bytes(b"the agent's\n")

    changes = bench.changed(work)
    assert list(changes) == ["a"]
    assert b"-old\n+the agent's\n" in changes["a"].patch


def test_text_counts_lines_and_keeps_ends(bench: Bench) -> None:
    write({b"a b": ("file", b"1\r\n2\r\n3"), b"gone": ("file", b"x\n")}, bench.repo)

    def work(inside: Path) -> None:
        (inside / "a b").write_bytes(b"1\r\ntwo\r\n3\n")
        (inside / "gone").unlink()
        (inside / "empty").write_bytes(b"")

    changes = bench.changed(work)
    assert [(c.path, c.action, c.added, c.removed) for c in changes.values()] == [
        ("a b", "modified", 2, 2),
        ("empty", "added", 0, 0),
        ("gone", "deleted", 0, 1),
    ]
    assert changes["a b"].patch.endswith(
        b"\n--- a/a b\t\n+++ b/a b\t\n@@ -1,3 +1,3 @@\n"
        b" 1\r\n-2\r\n-3\n\\ No newline at end of file\n+two\r\n+3\n"
    )


@pytest.mark.parametrize(
    "name",
    [b"plain", b"with space", b'quo"te', b"new\nline", b"tab\t", b"\xff", "ü".encode(), b"\\"],
)
def test_the_patch_is_byte_for_byte_what_git_writes(bench: Bench, name: bytes) -> None:
    lines = b"".join(b"line %d\n" % n for n in range(30))
    write({name: ("file", lines), b"mode": ("file", b"x\n")}, bench.repo)
    edited = lines.replace(b"line 3\n", b"three\n").replace(b"line 25\n", b"").rstrip(b"\n")

    def work(inside: Path) -> None:
        (inside / os.fsdecode(name)).write_bytes(edited)
        (inside / "mode").chmod(0o755)
        (inside / "new").write_bytes(b"n\n")

    changes = bench.changed(work)
    git = GitRepo(bench.repo)
    git("add", "-A")
    git("commit", "-qm", "before")
    work(bench.repo)
    git("add", "-A")
    theirs = git("diff", "--cached", "--full-index", "--binary", "--no-renames").encode(
        "utf-8", "surrogateescape"
    )
    ours = b"".join(change.patch for change in changes.values())
    # Git adds the enclosing function to a hunk, and no ids to a change of mode.
    theirs = re.sub(rb"^(@@ .*? @@).*$", rb"\1", theirs, flags=re.MULTILINE)
    mode = next(line for line in ours.splitlines(True) if line.startswith(b"index 587be"))
    assert ours.replace(mode, b"", 1) == theirs


def test_modes_and_links_and_binaries(bench: Bench) -> None:
    write(
        {
            b"run": ("file", b"x\n"),
            b"file": ("file", b"x\n"),
            b"link": ("link", b"file"),
            b"data": ("file", b"\0old"),
        },
        bench.repo,
    )

    def work(inside: Path) -> None:
        (inside / "run").chmod(0o755)
        (inside / "file").unlink()
        (inside / "file").symlink_to("run")
        (inside / "link").unlink()
        (inside / "link").symlink_to("run")
        (inside / "data").write_bytes(b"\0new")

    changes = bench.changed(work)
    assert {p: (c.action, c.added) for p, c in changes.items()} == {
        "run": ("mode", 0),
        "file": ("modified", 1),
        "link": ("modified", 1),
        "data": ("modified", None),
    }
    assert changes["file"].patch.count(b"diff --git") == 2
    assert b"GIT binary patch\nliteral 4\n" in changes["data"].patch


def test_build_products_are_counted_and_left_out(bench: Bench) -> None:
    write({b".gitignore": ("file", b"__pycache__/\n*.o\n")}, bench.repo)

    def work(inside: Path) -> None:
        (inside / "pkg" / "__pycache__").mkdir(parents=True)
        (inside / "pkg" / "__pycache__" / "x.pyc").write_bytes(b"1")
        (inside / "x.o").write_bytes(b"1")
        (inside / ".gitignore").write_bytes(b"")

    assert list(bench.changed(work)) == [".gitignore"]
    assert bench.changes().ignored == 2


@pytest.mark.parametrize(
    ("path", "flags"),
    [
        (".github/workflows/x.yml", {Flag.CONTROL}),
        ("sub/.gitattributes", {Flag.CONTROL}),
        ("Makefile", {Flag.RUNS_HERE}),
        ("src/a.py", set()),
        ("two\nlines", {Flag.HIDDEN_TEXT}),
        ("evil\u202egnp.sh", {Flag.HIDDEN_TEXT, Flag.RUNS_HERE}),
    ],
)
def test_paths_are_flagged(bench: Bench, path: str, flags: set[Flag]) -> None:
    def work(inside: Path) -> None:
        (inside / path).parent.mkdir(parents=True, exist_ok=True)
        (inside / path).write_text("x\n")

    assert bench.changed(work)[path].flags == flags


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("a\u202eb", True),
        ("a\u200bb", True),
        ("a\x1b[31m", True),
        ("a\rb", True),
        ("a\U000e0041", True),
        ("tab\tand crlf\r", False),
        ("größe 日本語 🎉", False),
    ],
)
def test_hidden_characters_in_added_lines_are_flagged(
    bench: Bench, line: str, hidden: bool
) -> None:
    write({b"a": ("file", b"one\n"), b"b": ("file", f"{line}\n".encode())}, bench.repo)

    def work(inside: Path) -> None:
        (inside / "a").write_text(f"one\n{line}\n", newline="")
        (inside / "b").write_text("one\n")

    changes = bench.changed(work)
    assert (Flag.HIDDEN_TEXT in changes["a"].flags) is hidden
    assert Flag.HIDDEN_TEXT not in changes["b"].flags  # it was taken away


@pytest.mark.parametrize(
    ("target", "flags"),
    [
        ("/opt/data", {Flag.LINK_OUT}),
        ("../x", {Flag.LINK_OUT}),
        ("a/../../x", {Flag.LINK_OUT}),
        ("a", set()),
        (".git/hooks/pre-commit", {Flag.CONTROL}),
        (".github/workflows", {Flag.CONTROL}),
        ("../../.ssh/authorized_keys", {Flag.LINK_OUT}),
        ("/home/u/.bashrc", {Flag.LINK_OUT}),
    ],
)
def test_links_are_flagged_by_where_they_lead(bench: Bench, target: str, flags: set[Flag]) -> None:
    changes = bench.changed(lambda inside: (inside / "l").symlink_to(target))
    assert changes["l"].flags == flags


@pytest.mark.parametrize(
    "path",
    [
        "__pycache__/a.cpython-311.pyc",
        "pkg/__pycache__/x.py",
        "a.pyc",
        "A.PYC",
        "node_modules/x/index.js",
        ".venv/bin/activate",
        "x.egg-info/entry_points.txt",
        "x-1.dist-info/entry_points.txt",
        ".DS_Store",
    ],
)
def test_litter_that_nobody_reviews_is_counted_and_no_part_of_the_patch(
    bench: Bench, path: str
) -> None:
    write({b"a.py": ("file", b"one\n")}, bench.repo)
    bench.load()
    write({path.encode(): ("file", b"\0code")}, bench.inside)
    changes = bench.changes()
    assert (changes.files, changes.ignored, changes.patch) == ((), 1, b"")


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "CACHEDIR.TAG"])
def test_a_new_folder_that_says_it_is_a_cache_is_litter(bench: Bench, mark: str) -> None:
    write({b"old/a": ("file", b"x"), b"b": ("file", b"x")}, bench.repo)
    bench.load()
    for folder in ("env", "old", "."):
        write(
            {f"{folder}/{mark}".encode(): ("file", b"x"), f"{folder}/d/n".encode(): ("file", b"x")},
            bench.inside,
        )
    changes = bench.changes()
    assert [c.path for c in changes.files] == sorted([mark, "d/n", f"old/{mark}", "old/d/n"])
    assert changes.ignored == 2


def test_litter_that_was_loaded_stays_part_of_the_patch_and_is_held_back(bench: Bench) -> None:
    cached = b"__pycache__/a.cpython-311.pyc"
    write({cached: ("file", b"\0one"), b"node_modules/x.js": ("file", b"1\n")}, bench.repo)

    def work(inside: Path) -> None:
        (inside / cached.decode()).write_bytes(b"\0two")
        (inside / "node_modules" / "x.js").write_bytes(b"2\n")

    changes = bench.changed(work)
    assert changes[cached.decode()].flags == {Flag.CONTROL}
    report = apply(b"".join(c.patch for c in changes.values()), bench.repo)
    assert report.applied == ("node_modules/x.js",)
    assert [path for path, _ in report.held] == [cached.decode()]
    assert "nobody can read" in report.held[0][1]


@pytest.mark.parametrize(
    ("path", "kind", "flag"),
    [
        ("json.cpython-311-x86_64-linux-gnu.so", "file", Flag.CONTROL),
        ("lib/libx.so.1", "file", Flag.CONTROL),
        ("x.pyd", "file", Flag.CONTROL),
        ("gradle/wrapper/gradle-wrapper.jar", "file", Flag.CONTROL),
        ("vendor/x.whl", "file", Flag.CONTROL),
        ("bin/tool", "program", Flag.RUNS_HERE),
        ("CLAUDE.md", "file", Flag.RUNS_HERE),
        ("docs/AGENTS.md", "file", Flag.RUNS_HERE),
        (".github/copilot-instructions.md", "file", Flag.RUNS_HERE),
        ("skills/x/SKILL.md", "file", Flag.RUNS_HERE),
    ],
)
def test_what_runs_or_steers_on_the_host_unread_is_flagged(
    bench: Bench, path: str, kind: str, flag: Flag
) -> None:
    write({b"a": ("file", b"x")}, bench.repo)
    changes = bench.changed(lambda box: write({path.encode(): (kind, b"\0\1")}, box))
    assert flag in changes[path].flags


def test_a_program_that_can_be_read_is_not_taken_for_a_binary(bench: Bench) -> None:
    write({b"a": ("file", b"x")}, bench.repo)
    made = {b"tool": ("program", b"#!/bin/sh\n"), b"a.so.txt": ("file", b"x\n")}
    changes = bench.changed(lambda box: write(made, box))
    assert changes["tool"].flags == changes["a.so.txt"].flags == frozenset()


def test_special_files_are_named_and_no_part_of_the_patch(bench: Bench) -> None:
    write({b"a": ("file", b"x\n")}, bench.repo)

    def work(inside: Path) -> None:
        (inside / "a").unlink()
        os.mkfifo(inside / "a")

    assert bench.changed(work)["a"].action == "deleted"
    assert any("neither a file" in note and "`a`" in note for note in bench.changes().notes)


def test_a_file_that_cannot_be_read_back_is_named(bench: Bench) -> None:
    write({b"a": ("file", b"x\n")}, bench.repo)
    bench.load()
    (bench.inside / "a").write_bytes(b"y\n")
    bench.box.denied.add("a")
    changes = bench.changes()
    assert [(c.path, c.action, c.patch) for c in changes.files] == [("a", "modified", b"")]
    assert changes.files[0].flags == {Flag.LEFT_OUT}
    assert any("cannot be read" in note for note in changes.notes)


def test_a_closed_folder_is_no_deletion(bench: Bench) -> None:
    write({b"d/a": ("file", b"x\n")}, bench.repo)
    bench.load()
    bench.box.closed.add(b"d")
    changes = bench.changes()
    assert changes.files == ()
    assert any("`d/a`" in note for note in changes.notes)


def test_a_large_rewrite_takes_bounded_time(bench: Bench) -> None:
    write({b"a": ("file", b"".join(b"x\ny%d\n" % (n % 7) for n in range(40_000)))}, bench.repo)
    new = b"".join(b"y%d\nx\n" % (n % 5) for n in range(40_000))
    started = time.monotonic()
    changes = bench.changed(lambda inside: (inside / "a").write_bytes(new))
    assert time.monotonic() - started < 10
    assert apply(changes["a"].patch, bench.repo).applied == ("a",)
    assert (bench.repo / "a").read_bytes() == new


def test_changes_before_loading_are_none(bench: Bench) -> None:
    assert bench.changes().files == ()


def test_folders_too_full_for_one_listing_are_listed_one_by_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({b"d%d/%d" % (a, b): ("file", b"x\n") for a in range(5) for b in range(5)}, bench.repo)
    monkeypatch.setattr("harness.workspace.listing._AT_ONCE", 8)
    assert list(bench.changed(lambda inside: (inside / "d3" / "2").unlink())) == ["d3/2"]
    write({b"many/%d" % n: ("file", b"") for n in range(9)}, bench.inside)
    changes = bench.changes()
    assert [change.path for change in changes.files] == ["d3/2"]
    assert any("too much to list" in note and "`many`" in note for note in changes.notes)


def test_contents_that_no_patch_can_hold_are_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.workspace.compare._LARGEST_PATCH", 1000)

    def work(inside: Path) -> None:
        (inside / "a").write_bytes(b"x\n" * 2000)
        (inside / "b").write_bytes(b"x\n")

    changes = bench.changed(work)
    assert changes["a"].flags == {Flag.LEFT_OUT}
    assert changes["a"].patch == b""
    assert changes["b"].patch
    assert any("too large" in note and "`a`" in note for note in bench.changes().notes)


def test_a_full_disk_under_the_store(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    write({b"a": ("file", b"x\n")}, bench.repo)

    def full(*words: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(SessionStorage, match="No space left"):
        bench.load()


def test_a_store_that_was_cut_short(bench: Bench) -> None:
    write({b"a": ("file", b"x\n")}, bench.repo)
    bench.load()
    (bench.repo.parent / "store" / "baseline").write_bytes(b"")
    (bench.inside / "a").write_bytes(b"y\n")
    with pytest.raises(SessionStorage, match="cut short"):
        bench.changes()
