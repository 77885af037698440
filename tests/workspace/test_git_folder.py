"""The `.git` a box gets: the same history, and nothing of the old one that could run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.values.changes import Flag
from harness.workspace.copy import CopyWorkspace
from tests.workspace.boxes import FolderBox
from tests.workspace.trees import Bench, GitRepo, read, write


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench")


@pytest.fixture
def git(bench: Bench) -> GitRepo:
    repo = GitRepo(bench.repo)
    write({b"a": ("file", b"1\n"), b"d/b": ("program", b"2\n")}, bench.repo)
    repo("add", "-A")
    repo("commit", "-qm", "first")
    repo("tag", "v1")
    return repo


def test_git_in_the_box_sees_the_same_history_and_a_clean_tree(bench: Bench, git: GitRepo) -> None:
    bench.load()
    inside = GitRepo(bench.inside, init=False)
    assert inside("log", "--format=%H %D", "--all") == git("log", "--format=%H %D", "--all")
    assert inside("status", "--porcelain") == ""
    assert inside("fsck", "--strict") == ""
    inside("commit", "-q", "--allow-empty", "-m", "more")


def test_packed_history_arrives(bench: Bench, git: GitRepo) -> None:
    git("gc", "-q")
    git("pack-refs", "--all")
    bench.load()
    inside = GitRepo(bench.inside, init=False)
    assert inside("log", "--format=%H %D") == git("log", "--format=%H %D")


def test_hooks_filters_and_configuration_stay_behind(bench: Bench, git: GitRepo) -> None:
    folder = bench.repo / ".git"
    (folder / "hooks").mkdir()
    (folder / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (folder / "info" / "attributes").write_text("* filter=evil\n")
    git("config", "core.fsmonitor", "/bin/evil")
    git("config", "core.hooksPath", "/evil")
    git("config", "filter.evil.clean", "evil")
    git("config", "remote.origin.url", "https://user:token@example.com/x")
    git("config", "core.autocrlf", "input")
    (folder / "config.worktree").write_text("[core]\n\teditor = evil\n")
    bench.load()
    config = (bench.inside / ".git" / "config").read_text()
    assert "evil" not in config
    assert "token" not in config
    assert "autocrlf = input" in config
    inside = {path.name for path in (bench.inside / ".git").iterdir()}
    assert not inside & {"hooks", "config.worktree", "logs", "worktrees", "modules"}
    assert not (bench.inside / ".git" / "info" / "attributes").exists()
    GitRepo(bench.inside, init=False)("commit", "-q", "--allow-empty", "-m", "no hook ran")


def test_alternates_are_reported_and_not_copied(bench: Bench, git: GitRepo, tmp_path: Path) -> None:
    borrowed = tmp_path / "shared"
    GitRepo(tmp_path)("clone", "-q", "--shared", str(bench.repo), str(borrowed))
    box = FolderBox(bench.inside)
    notes = asyncio.run(CopyWorkspace(borrowed, tmp_path / "store").load(box))
    assert "git repack -a -d" in notes[0]
    assert not (bench.inside / ".git" / "objects" / "info" / "alternates").exists()


def test_links_inside_the_git_folder_are_left_out(
    bench: Bench, git: GitRepo, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    (bench.repo / ".git" / "refs" / "heads" / "x").symlink_to(secret)
    notes = bench.load()
    assert any("`.git/refs/heads/x`" in note for note in notes)
    assert not (bench.inside / ".git" / "refs" / "heads" / "x").exists()


@pytest.mark.parametrize("name", ["objects", "refs", "info"])
def test_a_linked_folder_does_not_bring_another_repositorys_data(
    bench: Bench, git: GitRepo, tmp_path: Path, name: str
) -> None:
    thief = tmp_path / "thief"
    thief.mkdir()
    GitRepo(thief)
    own = thief / ".git" / name
    own.rename(tmp_path / "old")
    own.symlink_to(bench.repo / ".git" / name)
    (bench.repo / ".git" / "info" / "exclude").write_text("secret\n")
    (thief / "secret").write_text("not ignored")
    notes = asyncio.run(CopyWorkspace(thief, tmp_path / "s").load(FolderBox(bench.inside)))
    assert any("links inside `.git`" in note for note in notes)
    assert (bench.inside / "secret").exists()
    assert [path for path in (bench.inside / ".git" / name).rglob("*") if path.is_file()] == []


def test_linked_worktree_gets_the_common_history(bench: Bench, git: GitRepo) -> None:
    linked = bench.repo.parent / "linked"
    git("worktree", "add", "-q", "-b", "side", str(linked))
    box = FolderBox(bench.inside)
    assert asyncio.run(CopyWorkspace(linked, bench.repo.parent / "s2").load(box)) == ()
    inside = GitRepo(bench.inside, init=False)
    assert inside("symbolic-ref", "HEAD") == "refs/heads/side\n"
    assert inside("log", "--format=%H") == git("log", "--format=%H")
    assert inside("status", "--porcelain") == ""


def test_submodule_as_the_repository_itself(bench: Bench, git: GitRepo, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    outside = GitRepo(outer)
    outside("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(bench.repo), "m")
    outside("commit", "-qm", "outer")
    other = Bench(tmp_path / "other")
    notes = asyncio.run(CopyWorkspace(outer, tmp_path / "s1").load(other.box))
    assert [note for note in notes if "nested" not in note] == []
    workspace = CopyWorkspace(outer / "m", tmp_path / "s2")
    assert asyncio.run(workspace.load(FolderBox(bench.inside))) == ()
    assert GitRepo(bench.inside, init=False)("log", "--format=%s") == "first\n"


def test_submodules_and_nested_repositories_lose_their_git_folder(
    bench: Bench, git: GitRepo
) -> None:
    nested = bench.repo / "nested"
    nested.mkdir()
    GitRepo(nested)
    (nested / "x").write_text("x")
    (bench.repo / "sub").mkdir()
    (bench.repo / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")
    notes = bench.load()
    assert any(
        note.startswith("nested repositories") and "`nested`, `sub`" in note for note in notes
    )
    assert (bench.inside / "nested" / "x").exists()
    assert not (bench.inside / "nested" / ".git").exists()


def test_a_git_file_cannot_borrow_another_repositorys_history(
    bench: Bench, git: GitRepo, tmp_path: Path
) -> None:
    thief = tmp_path / "thief"
    thief.mkdir()
    (thief / ".git").write_text(f"gitdir: {bench.repo}/.git\n")
    notes = asyncio.run(CopyWorkspace(thief, tmp_path / "s").load(FolderBox(bench.inside)))
    assert "does not name this one back" in notes[0]
    assert not (bench.inside / ".git").exists()


def test_a_git_file_cannot_borrow_a_submodules_history(
    bench: Bench, git: GitRepo, tmp_path: Path
) -> None:
    module = bench.repo / ".git" / "modules" / "m"
    module.parent.mkdir()
    (bench.repo / "m").mkdir()
    git("clone", "-q", "--bare", str(bench.repo), str(module))
    git("--git-dir", str(module), "config", "core.worktree", "../../../m")
    thief = tmp_path / "thief"
    thief.mkdir()
    (thief / ".git").write_text(f"gitdir: {module}\n")
    notes = asyncio.run(CopyWorkspace(thief, tmp_path / "s").load(FolderBox(bench.inside)))
    assert "does not name this one back" in notes[0]


def test_a_common_folder_elsewhere_is_not_followed(
    bench: Bench, git: GitRepo, tmp_path: Path
) -> None:
    thief = tmp_path / "thief"
    thief.mkdir()
    GitRepo(thief)
    (thief / ".git" / "commondir").write_text(f"{bench.repo}/.git\n")
    asyncio.run(CopyWorkspace(thief, tmp_path / "s").load(FolderBox(bench.inside)))
    assert not (bench.inside / ".git" / "refs" / "tags" / "v1").exists()


def test_a_git_folder_that_is_a_link(bench: Bench, git: GitRepo, tmp_path: Path) -> None:
    thief = tmp_path / "thief"
    thief.mkdir()
    (thief / ".git").symlink_to(bench.repo / ".git")
    notes = asyncio.run(CopyWorkspace(thief, tmp_path / "s").load(FolderBox(bench.inside)))
    assert "history is not copied" in notes[0]
    assert list(bench.inside.iterdir()) == []


@pytest.mark.parametrize(
    "index",
    [b"", b"junk", b"DIRC\0\0\0\2\xff\xff\xff\xff", b"DIRC\0\0\0\x63\0\0\0\0", b"DIRC" + bytes(90)],
)
def test_a_broken_index_is_said_and_costs_no_more(bench: Bench, git: GitRepo, index: bytes) -> None:
    (bench.repo / ".git" / "index").write_bytes(index)
    notes = bench.load()
    assert any("index" in note for note in notes)
    assert read(bench.inside) == read(bench.repo)


def test_a_git_folder_without_a_head_is_said(bench: Bench) -> None:
    (bench.repo / ".git").mkdir()
    assert any("no readable HEAD" in note for note in bench.load())


def test_an_operation_in_progress_is_said(bench: Bench, git: GitRepo) -> None:
    (bench.repo / ".git" / "rebase-merge").mkdir()
    assert any("rebase-merge" in note for note in bench.load())


def test_control_files_below_git_are_flagged_and_never_in_the_patch(
    bench: Bench, git: GitRepo
) -> None:
    def work(inside: Path) -> None:
        repo = GitRepo(inside, init=False)
        (inside / ".git" / "hooks").mkdir()
        (inside / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\nevil\n")
        repo("config", "core.fsmonitor", "evil")
        (inside / ".git" / "info" / "attributes").write_text("* filter=evil\n")
        (inside / "a").write_text("changed\n")
        repo("commit", "-qam", "work")

    changes = bench.changed(work)
    flagged = {path for path, change in changes.items() if change.flags}
    assert flagged == {
        ".git/config",
        ".git/hooks",
        ".git/hooks/post-checkout",
        ".git/info/attributes",
    }
    for path in flagged:
        assert changes[path].flags == {Flag.CONTROL, Flag.LEFT_OUT}
        assert changes[path].patch == b""
    assert set(changes) - flagged == {"a"}


@pytest.mark.parametrize(
    "name", [".git", "sub/.git", ".GIT", ".g\u200cit", "git~1", ".git ", "x/.git"]
)
def test_a_git_folder_made_in_the_box_is_one_flagged_entry(bench: Bench, name: str) -> None:
    write({b"x/a": ("file", b"")}, bench.repo)

    def work(inside: Path) -> None:
        (inside / name / "hooks").mkdir(parents=True)
        (inside / name / "hooks" / "pre-commit").write_text("evil")
        (inside / name / "config").write_text("evil")

    changes = bench.changed(work)
    assert list(changes) == [name]
    assert Flag.CONTROL in changes[name].flags
    assert changes[name].patch == b""
    assert not [path for path in bench.box.reads if "config" in path or "hooks" in path]
