"""A `.git` made by a stranger brings no file of the host from outside the repository."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.workspace import refs
from harness.workspace.copy import CopyWorkspace
from tests.workspace.boxes import FolderBox
from tests.workspace.trees import GitRepo, write

SECRET = b"s3cret of the host"
HASH = b"0123456789" * 4


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A folder that looks like git's, with a repository of a stranger in it."""
    parent = tmp_path / "parent"
    names = (b"refs/secret", b"refs/heads/key", b"packed-refs", b"shallow", b"info/exclude")
    write(dict.fromkeys(names, ("file", SECRET)), parent)
    write({b"HEAD": ("file", b"ref: refs/heads/main\n"), b"objects/x": ("file", SECRET)}, parent)
    write({b"refs/heads/real": ("file", HASH + b"\n")}, parent)
    (parent / "repo").mkdir()
    return parent


def loaded(repo: Path, tmp_path: Path) -> tuple[str, ...]:
    """Load, and see that nothing of the parent came along."""
    inside = tmp_path / "inside"
    inside.mkdir()
    notes = asyncio.run(CopyWorkspace(repo, tmp_path / "store").load(FolderBox(inside)))
    files = [path for path in inside.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in files if SECRET in path.read_bytes()] == []
    assert [path for path in files if path.name == "real"] == []
    return notes


def test_a_git_folder_has_no_common_folder(parent: Path, tmp_path: Path) -> None:
    repo = parent / "repo"
    GitRepo(repo)
    (repo / ".git" / "commondir").write_text("../..")
    notes = loaded(repo, tmp_path)
    assert any("commondir" in note for note in notes)
    assert (tmp_path / "inside" / ".git" / "HEAD").exists()


def _below_the_tree(repo: Path) -> str:
    write(
        {
            b"gd/commondir": ("file", b"../.."),
            b"gd/gitdir": ("file", b"../.git"),
            b"gd/HEAD": ("file", b"ref: refs/heads/main\n"),
        },
        repo,
    )
    return "gd"


def _worktrees_in_the_tree(repo: Path) -> str:
    write(
        {
            b"worktrees/w/commondir": ("file", b"../.."),
            b"worktrees/w/gitdir": ("file", b"../../.git"),
            b"worktrees/w/HEAD": ("file", b"ref: refs/heads/main\n"),
            b"HEAD": ("file", b"ref: refs/heads/main\n"),
        },
        repo,
    )
    (repo / "refs").symlink_to("../refs")
    (repo / "objects").symlink_to("../objects")
    return "worktrees/w"


def _a_link_to_the_parent(repo: Path) -> str:
    (repo / "gd").symlink_to("..")
    return "gd"


def _the_parent(_repo: Path) -> str:
    return ".."


def _settings_that_name_the_tree(repo: Path) -> str:
    write(
        {
            b"gd/config": ("file", b"[core]\nworktree = ..\n"),
            b"gd/commondir": ("file", b"../.."),
            b"gd/HEAD": ("file", b"ref: refs/heads/main\n"),
            b"gd/objects/x": ("file", b""),
        },
        repo,
    )
    (repo / "gd" / "refs").symlink_to("../../refs")
    return "gd"


@pytest.mark.parametrize(
    "made",
    [
        _below_the_tree,
        _worktrees_in_the_tree,
        _a_link_to_the_parent,
        _the_parent,
        _settings_that_name_the_tree,
    ],
)
def test_a_git_file_brings_nothing_of_the_parent(
    parent: Path, tmp_path: Path, made: Callable[[Path], str]
) -> None:
    (parent / "repo" / ".git").write_text(f"gitdir: {made(parent / 'repo')}\n")
    notes = loaded(parent / "repo", tmp_path)
    assert any("does not name this one back" in note for note in notes)
    assert not (tmp_path / "inside" / ".git").exists()


def test_a_repository_that_lies_where_a_worktrees_folder_would(tmp_path: Path) -> None:
    """The stranger's own tree as the linked folder: `<parent>/worktrees/<repository>`."""
    parent = tmp_path / "parent"
    write({b"HEAD": ("file", b"ref: refs/heads/main\n"), b"objects/x": ("file", b"")}, parent)
    write({b"refs/heads/real": ("file", HASH + b"\n")}, parent)
    repo = parent / "worktrees" / "repo"
    write(
        {
            b".git": ("file", b"gitdir: gd/..\n"),
            b"gd/x": ("file", b""),
            b"gitdir": ("file", b".git"),
            b"commondir": ("file", b"../.."),
            b"HEAD": ("file", b"ref: refs/heads/main\n"),
        },
        repo,
    )
    loaded(repo, tmp_path)
    write({b"deep/.git": ("file", b"gitdir: ..\n")}, repo)
    (repo / "gitdir").write_text("deep/.git")
    (tmp_path / "again").mkdir()
    assert loaded(repo / "deep", tmp_path / "again")


@pytest.mark.parametrize("text", [b"a\0b", b"", b"\xff", b"x" * 4000, b"/dev/null", b"../" * 900])
def test_a_git_file_that_names_no_path(tmp_path: Path, text: bytes) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / ".git").write_bytes(b"gitdir: " + text)
    assert any("does not name" in note for note in loaded(repo, tmp_path))


def test_files_that_are_no_refs_stay_behind(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git = GitRepo(repo)
    git("commit", "-q", "--allow-empty", "-m", "x")
    head = git("rev-parse", "HEAD").encode()
    bad = {
        b"refs/heads/key": SECRET,
        b"refs/heads/long": b"a" * 5_000,
        b"refs/heads/up": b"ref: ../../../secret\n",
        b"refs/heads/a..b": head,
        b"refs/heads/.hidden": head,
        b"refs/heads/x.lock/y": head,
        b"refs/heads/new\nline": head,
        b"ORIG_HEAD": SECRET,
        b"MERGE_HEAD": SECRET,
        b"MERGE_MODE": SECRET,
        b"packed-refs": SECRET,
        b"shallow": SECRET,
    }
    write({name: ("file", data) for name, data in bad.items()}, repo / ".git")
    write({b"refs/remotes/o/HEAD": ("file", b"ref: refs/heads/main\n")}, repo / ".git")
    notes = loaded(repo, tmp_path)
    assert any("do not say what git writes" in note for note in notes)
    inside = tmp_path / "inside" / ".git"
    assert [name for name in bad if (inside / os.fsdecode(name)).is_file()] == []
    assert (inside / "refs/remotes/o/HEAD").read_bytes() == b"ref: refs/heads/main\n"


def test_packed_refs_and_shallow_are_taken_line_by_line() -> None:
    text = b"# pack-refs with: peeled fully-peeled sorted \n"
    text += HASH + b" refs/heads/a\n" + HASH + b" refs/tags/v1\n^" + HASH + b"\n"
    assert refs.packed(text, 40) == text
    hostile = text + b"^" + HASH + b"\n" + SECRET + b"\n" + HASH + b" ../../x\n^" + HASH + b"\n"
    assert refs.packed(hostile + b"# comment\n" + HASH + b" HEAD\n", 40) == text
    assert refs.hashes(HASH + b"\n" + SECRET + b"\n" + HASH, 40) == (HASH + b"\n") * 2


@pytest.mark.parametrize(
    "name", ["refs/heads/a", "refs/stash", "refs/heads/a.b/\u00e9", "refs/remotes/o/x-1_2+3"]
)
def test_names_git_takes_for_refs(name: str) -> None:
    assert refs.is_ref(name.encode())


@pytest.mark.parametrize("name", ["HEAD", "index", "config"])
def test_a_link_in_the_place_of_a_git_file(tmp_path: Path, name: str) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    GitRepo(repo)("commit", "-q", "--allow-empty", "-m", "x")
    (tmp_path / "host").write_bytes(SECRET if name != "config" else b"[core]\nautocrlf = input\n")
    (repo / ".git" / name).unlink(missing_ok=True)
    (repo / ".git" / name).symlink_to(tmp_path / "host")
    loaded(repo, tmp_path)
    config = tmp_path / "inside" / ".git" / "config"
    assert not config.exists() or b"autocrlf" not in config.read_bytes()


def test_a_worktree_of_a_worktree_folder_without_objects_is_none(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git = GitRepo(repo)
    git("commit", "-q", "--allow-empty", "-m", "x")
    git("worktree", "add", "-q", "../linked")
    assert loaded(tmp_path / "linked", tmp_path) == ("the repository holds no files",)
    (repo / ".git" / "HEAD").write_bytes(SECRET)
    (tmp_path / "again").mkdir()
    assert any("name this one back" in n for n in loaded(tmp_path / "linked", tmp_path / "again"))


def test_an_exclude_file_that_is_too_large_stays_behind(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    GitRepo(repo)
    (repo / ".git" / "info" / "exclude").write_bytes(b"#" * (1 << 20) + b"\n")
    assert any("info/exclude" in note for note in loaded(repo, tmp_path))
