"""The git index: as git writes it, and made to be large."""

from __future__ import annotations

import resource
import struct
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.workspace import index as module
from harness.workspace.ignore import IgnoreRules
from harness.workspace.index import BadIndex, read_index
from harness.workspace.notes import Notes
from harness.workspace.walk import CopyLimits, Walk
from tests.workspace.trees import Bench, GitRepo, read, write


def entry_of(kept: int, suffix: bytes) -> bytes:
    """One entry of version 4 that drops `kept` bytes of the path before it."""
    fixed = bytes(24) + struct.pack(">I", 0o100644) + bytes(12) + bytes(20)
    number = bytes((kept,)) if kept < 128 else bytes((128 | (kept >> 7) - 1, kept & 127))
    return fixed + struct.pack(">H", 1) + number + suffix + b"\0"


def version_4(entries: Iterable[bytes]) -> bytes:
    every = list(entries)
    return b"DIRC" + struct.pack(">II", 4, len(every)) + b"".join(every) + bytes(20)


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    (tmp_path / "repo").mkdir()
    git = GitRepo(tmp_path / "repo")
    names = [b"a", b"ab/c", b"ab/cd", b"b" * 200, b"d/\xff", b"e/" + b"f" * 130 + b"/g"]
    names += [b"len" + b"x" * n for n in range(9)]
    write({name: ("file", name) for name in names}, tmp_path / "repo")
    return git


def expected(git: GitRepo) -> dict[bytes, str]:
    found: dict[bytes, str] = {}
    for line in git("ls-files", "-s", "-z").encode("utf-8", "surrogateescape").split(b"\0"):
        if line:
            (mode, blob, stage), path = line.partition(b"\t")[0].split(), line.partition(b"\t")[2]
            if mode != b"160000":
                found[path] = blob.decode() if stage == b"0" else ""
    return found


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_version_git_writes_is_read(repo: GitRepo, version: str) -> None:
    repo("add", "-A")
    repo("update-index", "--index-version", version)
    if version != "2":
        (repo.folder / "later").write_bytes(b"")
        repo("add", "-N", "later")
    data = (repo.folder / ".git" / "index").read_bytes()
    assert data[7] == int(version)
    assert read_index(data, 20).blobs == expected(repo)


def test_paths_in_conflict_and_submodules(repo: GitRepo) -> None:
    repo("add", "-A")
    blob = repo("hash-object", "a").strip()
    lines = "".join(f"100644 {blob} {stage}\tboth\n" for stage in (1, 2, 3))
    repo("update-index", "--index-info", data=lines.encode())
    repo("update-index", "--add", "--cacheinfo", f"160000,{blob},sub")
    found = read_index((repo.folder / ".git" / "index").read_bytes(), 20).blobs
    assert found == expected(repo)
    assert found[b"both"] == ""
    assert b"sub" not in found


def test_hashes_of_the_other_length(tmp_path: Path) -> None:
    git = GitRepo(tmp_path, init=False)
    git("init", "-q", "--object-format=sha256", "--template=")
    write({b"a": ("file", b"1"), b"b/c": ("file", b"2")}, tmp_path)
    git("add", "-A")
    found = read_index((tmp_path / ".git" / "index").read_bytes(), 32).blobs
    assert found == expected(git)
    assert len(found[b"a"]) == 64


def test_a_split_index_is_read_with_what_it_rests_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "bench")
    git = GitRepo(bench.repo)
    write({b"kept": ("file", b"1"), b"more": ("file", b"2")}, bench.repo)
    git("add", "-A")
    git("update-index", "--split-index")
    write({b"late": ("file", b"3"), b".gitignore": ("file", b"*\n")}, bench.repo)
    git("add", "-f", "late")
    notes = bench.load()
    assert not any("index cannot" in note for note in notes)
    assert set(read(bench.inside)) == {b"kept", b"more", b"late"}
    assert GitRepo(bench.inside, init=False)("ls-files").split() == ["kept", "late", "more"]
    for shared in (bench.repo / ".git").glob("sharedindex.*"):
        shared.unlink()
    other = Bench(tmp_path / "other")
    other.repo.rmdir()
    bench.repo.rename(other.repo)
    assert any("index cannot" in note for note in other.load())


def test_paths_that_grow_by_a_letter_are_bounded(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "bench")
    GitRepo(bench.repo)
    grows = version_4(entry_of(0, b"a/"[n % 2 : n % 2 + 1]) for n in range(60_000))
    (bench.repo / ".git" / "index").write_bytes(grows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert any("a path is too long" in note for note in bench.load())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_all_paths_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [entry_of(0, b"a/" * 2_000), *[entry_of(6, b"/%05d" % n) for n in range(2_000)]]
    assert len(read_index(version_4(long), 20).blobs) == 2_001
    monkeypatch.setattr(module, "MOST_NAMES", 1 << 20)
    with pytest.raises(BadIndex, match="too many"):
        read_index(version_4(long), 20)


def test_folders_above_tracked_files_take_no_memory_of_their_own(tmp_path: Path) -> None:
    tracked = {b"%05d/" % n + b"a/" * 1_990 + b"f": "" for n in range(3_000)}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.thread_time()
    (tmp_path / "00007").mkdir()
    (tmp_path / "0000").mkdir()
    rules = IgnoreRules()
    rules.exclude(b"*\n")
    walk = Walk(str(tmp_path).encode(), CopyLimits(), rules, tracked, Notes())
    assert [found.path for found in walk.entries()] == [b"00007"]
    assert time.thread_time() - started < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


@pytest.mark.parametrize(
    "data",
    [
        version_4([])[:20],
        b"DIRC" + struct.pack(">II", 5, 0) + bytes(20),
        b"DIRC" + struct.pack(">II", 2, 1 << 31) + bytes(20),
        b"DIRC" + struct.pack(">II", 2, 3) + bytes(90),
        version_4([entry_of(5, b"x")]),
        version_4([entry_of(0, b"x")])[:-22],
        b"DIRC" + struct.pack(">II", 4, 1) + bytes(62) + b"\xff" * 40,
    ],
)
def test_a_damaged_index_is_a_fault_of_one_kind(data: bytes) -> None:
    with pytest.raises(BadIndex):
        read_index(data, 20)


def test_extensions_that_lie_about_their_size_end_the_reading() -> None:
    whole = version_4([entry_of(0, b"x")])[:-20]
    for extension in (b"link\xff\xff\xff\xff", b"link\0\0\0\1a", b"FSMN\0\0\0\x04aaaa"):
        assert read_index(whole + extension + bytes(20), 20).base is None
    linked = whole + b"UNTR\0\0\0\x02aalink\0\0\0\x14" + b"\x01" * 20 + bytes(20)
    assert read_index(linked, 20).base == "01" * 20
