"""Applying a patch: all of it or nothing, and never through a link."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.workspace.apply import Report, apply
from tests.workspace.trees import Bench, read, write


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "bench")
    write(
        {b"a": ("file", b"one\n"), b"d/b": ("file", b"two\n"), b"gone": ("file", b"")}, bench.repo
    )
    return bench


def ordinary(inside: Path) -> None:
    (inside / "a").write_bytes(b"ONE\n")
    (inside / "d" / "b").chmod(0o755)
    (inside / "gone").unlink()
    (inside / "new" / "er").mkdir(parents=True)
    (inside / "new" / "er" / "c").write_bytes(b"\0\1")


def patch_of(bench: Bench, work: Callable[[Path], object] = ordinary) -> bytes:
    return b"".join(change.patch for change in bench.changed(work).values())


def reasons(report: Report) -> dict[str, str]:
    return dict(report.refused)


def test_a_patch_is_applied_whole(bench: Bench) -> None:
    patch = patch_of(bench)
    report = apply(patch, bench.repo)
    assert report == Report(("a", "d/b", "gone", "new/er/c"))
    assert read(bench.repo) == read(bench.inside)
    assert not list(bench.repo.glob(".harness*"))


def test_a_dry_run_changes_nothing(bench: Bench) -> None:
    before = read(bench.repo)
    patch = patch_of(bench)
    assert apply(patch, bench.repo, dry_run=True).applied == ("a", "d/b", "gone", "new/er/c")
    assert read(bench.repo) == before


def test_a_patch_applied_twice_is_there_already(bench: Bench) -> None:
    patch = patch_of(bench)
    apply(patch, bench.repo)
    before = read(bench.repo)
    report = apply(patch, bench.repo)
    assert report == Report(already=("a", "d/b", "gone", "new/er/c"))
    assert read(bench.repo) == before


def test_the_rest_of_a_patch_goes_on_after_a_part_of_it(bench: Bench) -> None:
    def work(inside: Path) -> None:
        ordinary(inside)
        write({b".husky/pre-commit": ("file", b"x\n"), b".husky/d/x": ("file", b"x\n")}, inside)

    patch = patch_of(bench, work)
    first = apply(patch, bench.repo)
    assert [path for path, _ in first.held] == [".husky/d/x", ".husky/pre-commit"]
    second = apply(patch, bench.repo, include_control=frozenset({"./.husky/d/"}))
    assert (second.applied, second.already) == ((".husky/d/x",), first.applied)
    third = apply(patch, bench.repo, include_control=frozenset({".husky"}))
    assert (third.applied, third.held, third.refused) == ((".husky/pre-commit",), (), ())
    assert read(bench.repo) == read(bench.inside)


@pytest.mark.parametrize("name", ["nope", ".", "", "../a", "/", "./"])
def test_a_name_to_include_that_the_patch_does_not_hold(bench: Bench, name: str) -> None:
    with pytest.raises(UserError, match="is not in the patch"):
        apply(patch_of(bench), bench.repo, include_control=frozenset({name}))


@pytest.mark.parametrize("target", ["/etc/passwd", "/tmp/x", "../x", "d/../../x"])
def test_a_link_that_leads_out_is_held_back_as_what_it_is(bench: Bench, target: str) -> None:
    patch = patch_of(bench, lambda inside: (inside / "l").symlink_to(target))
    report = apply(patch, bench.repo)
    reason = "it is a link that leads out of the repository; name it to apply it"
    assert (report.applied, report.held) == ((), (("l", reason),))
    assert apply(patch, bench.repo, include_control=frozenset({"l"})).applied == ("l",)


@pytest.mark.parametrize(
    ("move", "path", "words"),
    [
        (lambda repo: (repo / "a").write_bytes(b"mine\n"), "a", "not the file the run started"),
        (lambda repo: (repo / "a").unlink(), "a", "not there any more"),
        (lambda repo: (repo / "gone").write_bytes(b"mine\n"), "gone", "not the file the run"),
        (lambda repo: (repo / "new").write_bytes(b"mine\n"), "new/er/c", "below a file"),
        (lambda repo: write({b"new/er/c": ("file", b"m")}, repo), "new/er/c", "a file already"),
        (lambda repo: write({b"new/er/c/x": ("file", b"")}, repo), "new/er/c", "folder"),
        (lambda repo: write({b"NEW/x": ("file", b"")}, repo), "new/er/c", "collides with `NEW`"),
    ],
)
def test_a_target_that_moved_is_refused_and_nothing_is_written(
    bench: Bench, move: Callable[[Path], object], path: str, words: str
) -> None:
    patch = patch_of(bench)
    move(bench.repo)
    before = read(bench.repo)
    report = apply(patch, bench.repo)
    assert report.applied == ()
    assert list(reasons(report)) == [path]
    assert words in reasons(report)[path]
    assert read(bench.repo) == before


def test_a_users_own_executable_bit_is_kept(bench: Bench) -> None:
    patch = patch_of(bench, lambda inside: (inside / "a").write_bytes(b"ONE\n"))
    (bench.repo / "a").chmod(0o750)
    assert apply(patch, bench.repo).applied == ("a",)
    assert (bench.repo / "a").stat().st_mode & 0o777 == 0o750


def test_modes_follow_what_may_be_read(bench: Bench) -> None:
    (bench.repo / "d" / "b").chmod(0o640)
    patch = patch_of(bench)
    apply(patch, bench.repo)
    assert (bench.repo / "d" / "b").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("planted", ["new", "new/er", "d"])
def test_nothing_is_written_behind_a_planted_link(
    bench: Bench, tmp_path: Path, planted: str
) -> None:
    patch = patch_of(bench)
    away = tmp_path / "away"
    (away / "er").mkdir(parents=True)
    (away / "b").write_bytes(b"two\n")
    if planted == "d":
        (bench.repo / "d").rename(bench.repo / "moved")
    (bench.repo / planted).parent.mkdir(exist_ok=True)
    (bench.repo / planted).symlink_to(away)
    report = apply(patch, bench.repo)
    assert report.applied == ()
    assert "behind a link" in next(iter(reasons(report).values()))
    assert read(away) == {b"b": ("file", b"two\n")}


def test_a_link_in_place_of_a_file_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    patch = patch_of(bench)
    other = tmp_path / "other"
    other.write_bytes(b"one\n")
    (bench.repo / "a").unlink()
    (bench.repo / "a").symlink_to(other)
    assert "not the file the run" in reasons(apply(patch, bench.repo))["a"]
    assert other.read_bytes() == b"one\n"


def test_a_repository_named_by_a_link(bench: Bench, tmp_path: Path) -> None:
    patch = patch_of(bench)
    (tmp_path / "link").symlink_to(bench.repo)
    assert len(apply(patch, tmp_path / "link").applied) == 4


def test_control_files_are_held_back_until_they_are_named(bench: Bench) -> None:
    def work(inside: Path) -> None:
        ordinary(inside)
        write(
            {
                b".github/workflows/ci.yml": ("file", b"x\n"),
                b"sub/.gitattributes": ("file", b"x\n"),
                b"link": ("link", b".github/workflows"),
            },
            inside,
        )

    patch = patch_of(bench, work)
    report = apply(patch, bench.repo, dry_run=True)
    assert [path for path, _ in report.held] == [
        ".github/workflows/ci.yml",
        "link",
        "sub/.gitattributes",
    ]
    report = apply(patch, bench.repo, include_control=frozenset({"sub/.gitattributes"}))
    assert "sub/.gitattributes" in report.applied
    assert not (bench.repo / ".github").exists()
    assert not (bench.repo / "link").is_symlink()
    assert (bench.repo / "a").read_bytes() == b"ONE\n"


def test_a_failure_midway_puts_everything_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = patch_of(bench)
    before = read(bench.repo)
    real = os.link
    calls: list[object] = []

    def failing(src: bytes, dst: bytes, **more: int) -> None:
        calls.append(src)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(src, dst, **more)

    monkeypatch.setattr(os, "link", failing)
    with pytest.raises(UserError, match=r"nothing was changed: No space left"):
        apply(patch, bench.repo)
    assert read(bench.repo) == before
    assert sorted(path.name for path in bench.repo.iterdir()) == ["a", "d", "gone"]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_written_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    patch = patch_of(bench)
    real = os.link
    appeared = bench.repo / "new" / "er" / "c"

    def late(src: bytes, dst: bytes, **more: int) -> None:
        if dst == b"c" and not appeared.exists():
            appeared.write_bytes(b"mine")
        if not links:
            raise PermissionError(1, "Operation not permitted")
        real(src, dst, **more)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(UserError, match="a file appeared while the patch was applied"):
        apply(patch, bench.repo)
    assert appeared.read_bytes() == b"mine"
    assert (bench.repo / "a").read_bytes() == b"one\n"


def test_a_file_system_without_hard_links_takes_a_patch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = patch_of(bench)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    assert len(apply(patch, bench.repo).applied) == 4
    assert read(bench.repo) == read(bench.inside)


def test_what_was_applied_is_flushed_files_before_folders(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = patch_of(bench)
    flushed: list[str] = []
    real = os.fsync

    def watched(file: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        real(file)

    monkeypatch.setattr(os, "fsync", watched)
    apply(patch, bench.repo)
    root = str(bench.repo)
    assert flushed[:3] == [f"{root}/a", f"{root}/d/b", f"{root}/new/er/c"]
    assert set(flushed[3:]) == {root, f"{root}/d", f"{root}/new", f"{root}/new/er"}


def test_an_interrupt_midway_puts_everything_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = patch_of(bench)
    before = read(bench.repo)
    real = os.fchmod

    def interrupted(*words: int) -> None:
        monkeypatch.setattr(os, "fchmod", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fchmod", interrupted)
    with pytest.raises(KeyboardInterrupt):
        apply(patch, bench.repo)
    assert read(bench.repo) == before


def test_a_file_that_changes_between_check_and_write_stops_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = patch_of(bench)
    real = os.mkdir

    def racing(path: bytes, *rest: int, **more: int) -> None:
        (bench.repo / "a").write_bytes(b"mine, just now\n")
        monkeypatch.setattr(os, "mkdir", real)
        real(path, *rest, **more)

    monkeypatch.setattr(os, "mkdir", racing)
    with pytest.raises(UserError, match="changed while"):
        apply(patch, bench.repo)
    assert (bench.repo / "a").read_bytes() == b"mine, just now\n"
    assert (bench.repo / "gone").exists()


def test_a_file_that_appears_between_check_and_write_stops_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = patch_of(bench)
    real = os.rename

    def racing(src: bytes, dst: bytes, **more: int) -> None:
        write({b"new/er/c": ("file", b"mine, just now\n")}, bench.repo)
        monkeypatch.setattr(os, "rename", real)
        real(src, dst, **more)

    monkeypatch.setattr(os, "rename", racing)
    with pytest.raises(UserError, match="appeared while"):
        apply(patch, bench.repo)
    assert (bench.repo / "new" / "er" / "c").read_bytes() == b"mine, just now\n"
    assert (bench.repo / "a").read_bytes() == b"one\n"


def test_a_case_only_rename_is_applied(bench: Bench) -> None:
    def work(inside: Path) -> None:
        (inside / "a").rename(inside / "A")

    assert apply(patch_of(bench, work), bench.repo).applied == ("A", "a")


def test_a_folder_renamed_in_case_only_is_applied(bench: Bench) -> None:
    def work(inside: Path) -> None:
        (inside / "d").rename(inside / "D")

    assert apply(patch_of(bench, work), bench.repo).applied == ("D/b", "d/b")
    assert sorted(path.name for path in bench.repo.iterdir()) == ["D", "a", "gone"]


def test_new_names_that_collide_are_refused(bench: Bench) -> None:
    def work(inside: Path) -> None:
        write({b"x/f": ("file", b"1"), b"X/g": ("file", b"2"), b"\xc3\xa9": ("file", b"")}, inside)
        write({"e\u0301".encode(): ("file", b"")}, inside)

    report = apply(patch_of(bench, work), bench.repo)
    assert report.applied == ()
    assert len(report.refused) == 2
    assert all("collides" in reason for _, reason in report.refused)


def test_folders_that_a_deletion_empties_go_too(bench: Bench) -> None:
    def work(inside: Path) -> None:
        (inside / "d" / "b").unlink()
        (inside / "d").rmdir()

    apply(patch_of(bench, work), bench.repo)
    assert not (bench.repo / "d").exists()


def test_an_empty_patch_does_nothing(bench: Bench) -> None:
    assert apply(b"", bench.repo) == Report()


def test_a_repository_that_is_not_there(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be opened"):
        apply(b"", tmp_path / "missing")


def test_including_what_is_not_there_is_an_error(bench: Bench) -> None:
    patch = patch_of(bench)
    before = read(bench.repo)
    with pytest.raises(UserError, match=r"`\.envrc` is not in the patch"):
        apply(patch, bench.repo, include_control=frozenset({".envrc"}))
    assert read(bench.repo) == before
