"""A workload cannot make its patch disappear by what it does to the tree."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from harness.errors import FileFault, SandboxError
from harness.values.commands import FileKind, Stat
from harness.workspace import listing as module
from harness.workspace.copy import CopyWorkspace
from harness.workspace.listing import Listing, ListLimits
from tests.workspace.boxes import FolderBox
from tests.workspace.trees import Bench, write


class NarrowBox(FolderBox):
    """A box that refuses a listing of more than `room` bytes of paths; `asked` are its calls."""

    room = 1 << 30

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[tuple[str, int]] = []
        self.broken: dict[str, str] = {}
        self.extra: tuple[Stat, ...] = ()

    async def list(self, path: str, *, depth: int = 1, limit: int = 10_000) -> tuple[Stat, ...]:
        self.asked.append((path.removeprefix(f"{self.folder}").lstrip("/"), depth))
        if self.asked[-1][0] in self.broken:
            raise FileFault(self.broken[self.asked[-1][0]], path, "no")
        found = await super().list(path, depth=depth, limit=limit)
        if sum(len(entry.path) for entry in found) > self.room:
            raise FileFault("too_large", path, "the listing is too large")
        return found + (self.extra if depth > 1 else ())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "bench")
    bench.box = NarrowBox(bench.inside)
    write({b"a": ("file", b"1\n"), b"d/b": ("file", b"2\n"), b"z/c": ("file", b"3\n")}, bench.repo)
    bench.load()
    return bench


def narrow(bench: Bench) -> NarrowBox:
    assert isinstance(bench.box, NarrowBox)
    return bench.box


def test_names_no_patch_can_carry_cost_the_patch_nothing(bench: Bench) -> None:
    long = b"/".join([b"x"] * 3_000)
    (bench.inside / "a").write_bytes(b"new\n")
    narrow(bench).extra = (
        Stat(long, FileKind.DIRECTORY, 0, 0o755),
        Stat(b"../up", FileKind.FILE, 0, 0o644),
        Stat(b"y" * 300, FileKind.FILE, 0, 0o644),
    )
    changes = bench.changes()
    assert [change.path for change in changes.files] == ["a"]
    assert len([note for note in changes.notes if "names that no patch can carry" in note]) == 3
    assert any("too long" in note for note in changes.notes)


def test_a_listing_that_is_too_large_goes_on_folder_by_folder(bench: Bench) -> None:
    (bench.inside / "z" / "c").write_bytes(b"new\n")
    write(
        {b"deep/" + b"/".join([b"y" * 40] * n) + b"/f": ("file", b"") for n in range(1, 9)},
        bench.inside,
    )
    narrow(bench).room = 600
    changes = bench.changes()
    assert len(changes.files) == 9
    assert changes.notes == ()


def test_a_folder_that_cannot_be_listed_leaves_its_files_as_they_were(bench: Bench) -> None:
    (bench.inside / "a").write_bytes(b"new\n")
    (bench.inside / "d" / "b").write_bytes(b"unseen\n")
    write({b"d/%03d" % n: ("file", b"") for n in range(200)}, bench.inside)
    narrow(bench).room = 100
    changes = bench.changes()
    assert [change.path for change in changes.files] == ["a"]
    assert any("too much to list" in note and "`d`" in note for note in changes.notes)


@pytest.mark.parametrize("code", ["denied", "missing", "link", "io", "name", "not_directory"])
def test_a_root_that_cannot_be_listed_is_said_and_deletes_nothing(bench: Bench, code: str) -> None:
    narrow(bench).broken[""] = code
    changes = bench.changes()
    assert changes.files == ()
    assert any("could not list" in note for note in changes.notes)


def test_one_folder_that_cannot_be_listed_is_its_own_fault(bench: Bench) -> None:
    (bench.inside / "a").write_bytes(b"new\n")
    (bench.inside / "z" / "c").unlink()
    box = narrow(bench)
    box.room, box.broken = 5, {"d": "denied"}
    changes = bench.changes()
    assert [(change.path, change.action) for change in changes.files] == [
        ("a", "modified"),
        ("z/c", "deleted"),
    ]
    assert any("could not list" in note and "`d`" in note for note in changes.notes)


@pytest.mark.parametrize(
    "limits",
    [
        ListLimits(entries=3),
        ListLimits(names=40),
        ListLimits(calls=4),
        ListLimits(seconds=0),
        ListLimits(calls=12, too_large=1),
    ],
)
def test_every_bound_ends_the_listing_and_keeps_what_was_known(
    bench: Bench, limits: ListLimits
) -> None:
    write({b"b%02d/%s/f" % (n, b"x" * 40): ("file", b"") for n in range(20)}, bench.inside)
    narrow(bench).room = 80
    known = {
        b"d": Stat(b"d", FileKind.DIRECTORY, 0, 0o755),
        b"d/b": Stat(b"d/b", FileKind.FILE, 1, 0),
    }
    listed = Listing(narrow(bench), known, limits)
    asyncio.run(listed.run())
    assert b"d/b" in listed.here
    assert any("too much to list" in note for note in listed.notes.lines())
    assert len(listed.here) < 60


def test_known_folders_are_listed_before_new_ones(bench: Bench) -> None:
    write({b"0%02d/%s/f" % (n, b"x" * 40): ("file", b"") for n in range(20)}, bench.inside)
    (bench.inside / "z" / "c").write_bytes(b"new\n")
    box = narrow(bench)
    box.room, box.asked = 80, []
    bench.changes()
    asked = [path for path, _ in box.asked if path]
    assert set(asked[:2]) == {"d", "z"}


def test_a_chain_of_folders_is_not_tried_whole_at_every_step(bench: Bench) -> None:
    write({b"/".join([b"y" * 20] * 30) + b"/f": ("file", b"")}, bench.inside)
    box = narrow(bench)
    box.room, box.asked = 400, []
    bench.changes()
    assert len([path for path, depth in box.asked if depth > 1]) < 6


def test_a_full_listing_is_bounded_for_a_real_deep_tree(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 50)
    here = os.open(bench.inside, os.O_RDONLY)
    for _ in range(120):
        os.mkdir(b"n", dir_fd=here)
        deeper = os.open(b"n", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    (bench.inside / "a").write_bytes(b"new\n")
    assert [change.path for change in bench.changes().files] == ["a"]


def test_a_box_that_lists_the_impossible_right_after_loading_is_refused(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "in").mkdir()
    box = NarrowBox(tmp_path / "in")
    box.extra = (Stat(b"../up", FileKind.FILE, 0, 0o644),)
    with pytest.raises(SandboxError, match="cannot be"):
        asyncio.run(CopyWorkspace(tmp_path / "repo", tmp_path / "s").load(box))


def test_new_names_over_the_bound_are_left_out_and_known_files_are_not(bench: Bench) -> None:
    write({b"0%03d" % n + b"x" * 40: ("file", b"") for n in range(50)}, bench.inside)
    known = {p: Stat(p, FileKind.FILE, 1, 0) for p in (b"a", b"d", b"d/b", b"z", b"z/c")}
    listed = Listing(narrow(bench), known, ListLimits(names=200))
    asyncio.run(listed.run())
    assert set(known) <= set(listed.here)
    assert len(listed.here) < 12
    assert any("these are not in the patch" in note for note in listed.notes.lines())
