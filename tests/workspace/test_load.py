"""What goes into a box, what does not, and what a person is told about it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.errors import FileFault, SandboxError, SessionStorage, UserError
from harness.sandbox.memory import MemorySandbox
from harness.values.commands import Stat, Upload
from harness.workspace.copy import CopyWorkspace
from harness.workspace.walk import CopyLimits
from tests.workspace.boxes import FolderBox
from tests.workspace.trees import Bench, GitRepo, read, write


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench")


def said(notes: tuple[str, ...], words: str) -> str:
    found = [note for note in notes if words in note]
    assert len(found) == 1, notes
    return found[0]


def test_files_links_modes_and_empty_folders_arrive(bench: Bench) -> None:
    tree = {
        b"a.txt": ("file", b"one\r\n"),
        b"bin/run": ("program", b"#!/bin/sh\n"),
        b"deep/er/x": ("file", b""),
        b"link": ("link", b"deep/er/x"),
        b"\xff\xfe name": ("file", b"\0\1"),
    }
    write(tree, bench.repo)
    (bench.repo / "empty").mkdir()
    notes = bench.load()
    assert read(bench.inside) == tree
    assert (bench.inside / "empty").is_dir()
    assert "\\xff\\xfe name" in said(notes, "not UTF-8")


def test_repository_named_by_a_link(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "bench")
    write({b"a": ("file", b"x")}, bench.repo)
    (tmp_path / "link").symlink_to(bench.repo)
    asyncio.run(CopyWorkspace(tmp_path / "link", tmp_path / "store").load(bench.box))
    assert read(bench.inside) == {b"a": ("file", b"x")}


def test_empty_repository(bench: Bench) -> None:
    assert bench.load() == ("the repository holds no files",)
    assert bench.changes().files == ()


@pytest.mark.parametrize("name", ["missing", "file"])
def test_repository_that_is_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match=f"`.*{name}`.*--repo"):
        asyncio.run(CopyWorkspace(tmp_path / name, tmp_path / "s").load(MemorySandbox()))


def test_links_that_lead_out_are_copied_as_links_and_named(bench: Bench, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    write(
        {
            b"abs": ("link", os.fsencode(secret)),
            b"up": ("link", b"../../secret"),
            b"d/ok": ("link", b"../abs"),
            b"d/through": ("link", b"ok/../../x"),
        },
        bench.repo,
    )
    note = said(bench.load(), "lead out")
    assert "`abs`" in note
    assert "`up`" in note
    assert "`d/through`" in note
    assert "`d/ok`" not in note
    assert (bench.inside / "abs").readlink() == secret


def test_a_link_to_a_folder_is_not_walked(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x").write_bytes(b"private")
    (bench.repo / "dir").symlink_to(tmp_path / "other")
    bench.load()
    assert list(read(bench.inside)) == [b"dir"]


def test_fifos_and_sockets_are_left_out_and_named(bench: Bench) -> None:
    os.mkfifo(bench.repo / "fifo")
    here = Path.cwd()
    os.chdir(bench.repo)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind("sock")
    finally:
        os.chdir(here)
    note = said(bench.load(), "neither a file")
    assert "`fifo`, `sock`" in note
    assert read(bench.inside) == {}


def test_what_fails_while_it_is_read_is_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({b"a": ("file", b"x"), b"gone": ("file", b"x"), b"shut/x": ("file", b"")}, bench.repo)
    real_open, real_scan = os.open, os.scandir

    def failing_open(path: bytes, *rest: int, **more: int) -> int:
        if isinstance(path, bytes) and path.endswith(b"/gone"):
            raise FileNotFoundError(2, "gone")
        return real_open(path, *rest, **more)

    def failing_scan(path: bytes) -> object:
        if isinstance(path, bytes) and path.endswith(b"/shut"):
            raise PermissionError(13, "no")
        return real_scan(path)

    monkeypatch.setattr(os, "open", failing_open)
    monkeypatch.setattr(os, "scandir", failing_scan)
    note = said(bench.load(), "cannot be read")
    assert "`gone`" in note
    assert "`shut`" in note
    assert read(bench.inside) == {b"a": ("file", b"x")}


def test_unreadable_in_the_box_is_made_readable_for_its_user(bench: Bench) -> None:
    write({b"ro": ("file", b"x")}, bench.repo)
    (bench.repo / "ro").chmod(0o440)
    bench.load()
    assert (bench.inside / "ro").stat().st_mode & 0o777 == 0o640


def test_ignored_files_are_left_out_and_tracked_ones_are_not(bench: Bench) -> None:
    git = GitRepo(bench.repo)
    write({b"build/kept.js": ("file", b"1"), b"src.py": ("file", b"2")}, bench.repo)
    git("add", "-A")
    write(
        {
            b".gitignore": ("file", b"build/\n*.log\n"),
            b"build/other.js": ("file", b"3"),
            b"a.log": ("file", b"4"),
            b"sub/.gitignore": ("file", b"!b.log\n/only\n"),
            b"sub/b.log": ("file", b"5"),
            b"sub/only": ("file", b"6"),
            b"sub/deep/only": ("file", b"7"),
            b"local": ("file", b"8"),
        },
        bench.repo,
    )
    (bench.repo / ".git" / "info" / "exclude").write_text("/local\n")
    notes = bench.load()
    assert set(read(bench.inside)) == {
        b".gitignore",
        b"build/kept.js",
        b"src.py",
        b"sub/.gitignore",
        b"sub/b.log",
        b"sub/deep/only",
    }
    assert "`a.log`" in said(notes, "ignored")


def test_dirty_work_tree_is_copied_as_it_is_and_said(bench: Bench) -> None:
    git = GitRepo(bench.repo)
    write({b"a": ("file", b"1\n"), b"b": ("file", b"2\n"), b"c": ("file", b"3\n")}, bench.repo)
    git("add", "-A")
    git("commit", "-qm", "x")
    assert bench.load() == ()

    other = Bench(bench.repo.parent / "again")
    (bench.repo / "a").write_bytes(b"changed\n")
    (bench.repo / "b").unlink()
    (bench.repo / "new").write_bytes(b"4\n")
    workspace = CopyWorkspace(bench.repo, other.repo.parent / "store")
    notes = asyncio.run(workspace.load(other.box))
    assert "1 files differ from the git index, 1 are not there, 1 are not tracked" in notes[0]
    assert read(other.inside)[b"a"] == ("file", b"changed\n")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (CopyLimits(total=1 << 20), "1 MiB.*limits.disk"),
        (CopyLimits(entries=2), "more than 2 files"),
    ],
)
def test_repository_over_a_bound_is_refused_with_the_way_out(
    bench: Bench, limits: CopyLimits, words: str
) -> None:
    write({b"%d" % n: ("file", b"x" * (1 << 19)) for n in range(3)}, bench.repo)
    workspace = CopyWorkspace(bench.repo, bench.repo.parent / "store", limits)
    with pytest.raises(UserError, match=words):
        asyncio.run(workspace.load(bench.box))


def test_a_file_over_its_bound_is_left_out_and_named(bench: Bench) -> None:
    write({b"big": ("file", b"x" * (1 << 20) + b"y"), b"ok": ("file", b"x")}, bench.repo)
    limits = CopyLimits(file=1 << 20)
    workspace = CopyWorkspace(bench.repo, bench.repo.parent / "store", limits)
    notes = asyncio.run(workspace.load(bench.box))
    assert said(notes, "larger than 1 MiB") == "left out, larger than 1 MiB: `big`"
    assert list(read(bench.inside)) == [b"ok"]


def test_upload_goes_in_batches(bench: Bench) -> None:
    write({b"%04d" % n: ("file", b"") for n in range(1201)}, bench.repo)
    bench.load()
    assert bench.box.batches == [500, 500, 201]


def test_names_in_notes_cannot_act_on_a_terminal(bench: Bench) -> None:
    (bench.repo / "x\x1b[31m\nevil\u202e").symlink_to("/etc")
    note = said(bench.load(), "lead out")
    assert "`x\\x1b[31m\\nevil\\u202e`" in note


def test_many_names_are_counted_rather_than_printed(bench: Bench) -> None:
    write({b"%02d" % n: ("link", b"/x") for n in range(40)}, bench.repo)
    assert said(bench.load(), "lead out").endswith("`04` and 35 more")


def test_a_store_that_cannot_be_written(bench: Bench) -> None:
    taken = bench.repo.parent / "store"
    taken.write_bytes(b"")
    with pytest.raises(SessionStorage, match="store"):
        bench.load()


class ForgetfulBox(FolderBox):
    async def list(self, path: str, *, depth: int = 1, limit: int = 10_000) -> tuple[Stat, ...]:
        return (await super().list(path, depth=depth, limit=limit))[1:]


class LyingBox(FolderBox):
    async def list(self, path: str, *, depth: int = 1, limit: int = 10_000) -> tuple[Stat, ...]:
        found = await super().list(path, depth=depth, limit=limit)
        return tuple(Stat(b"../" + s.path, s.kind, s.size, s.mode) for s in found)


class FullBox(FolderBox):
    async def upload(self, entries: Sequence[Upload]) -> None:
        raise FileFault("no_space", "a", "no space left")


class PickyBox(FolderBox):
    async def upload(self, entries: Sequence[Upload]) -> None:
        raise FileFault("name", "a", "the name is too long")


def test_a_repository_that_does_not_fit(bench: Bench) -> None:
    write({b"a": ("file", b"x")}, bench.repo)
    with pytest.raises(UserError, match=r"limits\.disk"):
        asyncio.run(bench.workspace.load(FullBox(bench.inside)))


@pytest.mark.parametrize(
    ("kind", "words"),
    [(PickyBox, "cannot take `a`"), (ForgetfulBox, "did not take"), (LyingBox, "lists")],
)
def test_a_box_that_does_not_list_what_was_uploaded(
    bench: Bench, kind: type[FolderBox], words: str
) -> None:
    write({b"a": ("file", b"x")}, bench.repo)
    with pytest.raises(SandboxError, match=words):
        asyncio.run(bench.workspace.load(kind(bench.inside)))


def test_the_shipped_memory_box_takes_a_repository(bench: Bench) -> None:
    write({b"a/b": ("file", b"one\n"), b"l": ("link", b"a/b")}, bench.repo)

    async def work() -> bytes:
        box = MemorySandbox()
        await bench.workspace.load(box)
        assert (await bench.workspace.changes(box)).files == ()
        await box.write(f"{box.root}/a/b", b"two\n")
        return (await bench.workspace.changes(box)).patch

    assert b"-one\n+two\n" in asyncio.run(work())
