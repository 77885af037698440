"""Ignore files that are made to be slow, large or many cost little, and what is cut is said."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from harness.workspace.globs import read_pattern
from harness.workspace.ignore import LARGEST, Budget, IgnoreRules
from tests.workspace.trees import Bench, read, write

PATHS = [b"dir%d/sub/file%d.py" % (n % 50, n) for n in range(2_000)]
COSTLY = {
    "negated classes": b"\n".join(b"%05d" % n + b"[!a]" * 50 for n in range(5_000)),
    "stars": b"\n".join(b"*%d*a*b*c*d*e*" % n for n in range(5_000)),
    "question marks": b"\n".join(b"*a%d" % n + b"?" * 900 for n in range(1_000)),
    "every byte": b"[\x01-\xff]" * 200_000,
    "one long line": b"[!a]" * 400_000,
}


@pytest.mark.parametrize("kind", COSTLY)
def test_costly_patterns_are_bounded_in_time_and_memory(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.thread_time()
    rules = IgnoreRules(Budget(seconds=1.0))
    rules.add(b"", COSTLY[kind])
    for path in PATHS:
        rules.matches(path)
    assert time.thread_time() - started < 6
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 << 10
    assert capfd.readouterr() == ("", "")


def test_a_class_of_many_is_written_as_ranges() -> None:
    pattern = read_pattern(b"[!a]" * 50)
    assert pattern is not None
    assert len(pattern.expression) < 50 * 40


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"x" * 1_025 + b"\nb\n", "more than 1024 bytes"),
        (b"b\n" * 5_002, "more than 5000 lines"),
        (b"b\n" + b"#" * LARGEST, "larger than 1 MiB"),
        (b"b\n" + b"[!a]x\n" * 400, "too many patterns"),
    ],
)
def test_what_is_cut_of_an_ignore_file_is_said_and_the_rest_holds(text: bytes, words: str) -> None:
    rules = IgnoreRules(Budget(size=8_000 if b"[" in text else 80_000))
    rules.add(b"sub", text)
    (note,) = rules.notes()
    assert words in note
    assert "`sub/.gitignore`" in note
    assert rules.matches(b"sub/b")


def test_patterns_are_counted_over_all_files_of_a_repository() -> None:
    rules = IgnoreRules(Budget(patterns=10))
    rules.exclude(b"first\n")
    for n in range(12):
        rules.add(b"d%d" % n, b"x\n")
    assert rules.matches(b"d8/x")
    assert not rules.matches(b"d9/x")
    assert "`d9/.gitignore`, `d10/.gitignore`, `d11/.gitignore`" in rules.notes()[0]


def test_time_is_counted_over_all_files_and_a_new_comparison_gets_its_own() -> None:
    rules = IgnoreRules()
    rules.add(b"", b"x\n")
    rules.budget.seconds = 0
    assert not rules.matches(b"x")
    assert "too slow" in rules.notes()[0]
    rules.renew()
    assert rules.matches(b"x")


def test_many_automata_do_not_stay_in_memory() -> None:
    rules = IgnoreRules(Budget(memory=1 << 20))
    for n in range(100):
        rules.add(b"d%d" % n, b"*.o\n!keep.o\n")
    for _ in range(2):
        for n in range(100):
            assert rules.matches(b"d%d/a.o" % n)
            assert not rules.matches(b"d%d/keep.o" % n)
    files = [rules.file(b"d%d" % n) for n in range(100)]
    assert sum(file.memory for file in files if file is not None) <= 1 << 20


def test_the_last_pattern_wins_across_automata() -> None:
    filler = b"".join(b"%04d" % n + b"[!a]" * 20 + b"\n" for n in range(400))
    rules = IgnoreRules()
    rules.add(b"", b"*.o\nout/\n" + filler + b"!keep.o\n" + filler + b"keep.o.d\n")
    assert rules.matches(b"x.o")
    assert not rules.matches(b"keep.o")
    assert rules.matches(b"keep.o.d")
    assert rules.matches(b"out", folder=True)
    assert not rules.matches(b"out")


def test_ignore_rules_that_are_cut_are_named_when_a_repository_is_loaded(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "bench")
    write({b".gitignore": ("file", b"y" * 2_000 + b"\nb\n"), b"b": ("file", b"")}, bench.repo)
    assert any("not used in full" in note for note in bench.load())
    assert list(read(bench.inside)) == [b".gitignore"]
    assert any("not used in full" in note for note in bench.changes().notes)


def test_paths_of_many_folders_cost_no_more_than_their_length() -> None:
    rules = IgnoreRules()
    rules.add(b"a", b"x\n")
    deep = b"/".join([b"a"] * 2_000)
    rules.ignored(deep + b"/f")
    started = time.thread_time()
    for n in range(2_000):
        assert not rules.ignored(deep + b"/%d" % n)
    assert time.thread_time() - started < 0.5
    assert rules.ignored(deep + b"/x")
