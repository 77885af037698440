"""Searching: the same answers with any of the programs, and no argument taken for an option."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from harness.tools import Search
from harness.values.calls import Status
from harness.values.commands import ExitReason

PROGRAMS = [{"rg"}, {"rg", "grep -P"}, *([set()] if shutil.which("rg") else [])]


@pytest.fixture(params=PROGRAMS, ids=lambda without: "without " + " and ".join(sorted(without)))
def any_box(box, request, result):
    """The folder box without ripgrep, then also without Perl patterns."""
    box.absent = frozenset({"rg"} & request.param)
    if "grep -P" in request.param:
        run = type(box).exec

        async def refuse(asked, sink=None):
            if asked.argv[:2] == ("grep", "-P"):
                return result(2, err=b"grep: Perl matching not supported in a --disable build")
            return await run(box, asked, sink)

        box.exec = refuse
    for name, text in {
        "a.py": "import os\nvalue = 41\n",
        "sub/b.py": "VALUE = 42\n",
        "sub/c.txt": "value = 43\n",
        ".git/config": "value = 44\n",
        "-e": "value = 45\n",
        "bin": "value\0= 46\n",
    }.items():
        path = Path(box.root, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return box


def search(context, path=".", **args):
    given = args if path == "." else {**args, "path": path}
    return asyncio.run(Search().run(given, context(path)))


def found(out):
    return sorted(out.text.splitlines())


def test_matches_have_path_line_and_text(any_box, context):
    assert found(search(context, pattern="value = 4[0-9]")) == [
        "-e:1:value = 45",
        "a.py:2:value = 41",
        "sub/c.txt:1:value = 43",
    ]


def test_case_can_be_ignored(any_box, context):
    assert "sub/b.py:1:VALUE = 42" in found(search(context, pattern="value", ignore_case=True))


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.py", ["a.py:1"]),
        ("sub/*", ["sub/c.txt:1"]),
        ("**/*.txt", ["sub/c.txt:1"]),
        ("x/*.py", []),
    ],
)
def test_globs_mean_the_same_everywhere(any_box, context, glob, names):
    out = search(context, pattern="import|= 43", glob=glob)
    assert [":".join(line.split(":")[:2]) for line in found(out) if ":" in line] == names


def test_a_pattern_and_a_path_are_never_options(any_box, context):
    assert search(context, pattern="--version").text == "no matches"
    assert found(search(context, pattern="value", path="-e")) == ["-e:1:value = 45"]


def test_a_broken_pattern_is_an_error_that_says_so(any_box, context):
    out = search(context, pattern="(")
    assert out.status is Status.ERROR
    assert "refused" in out.text


def test_an_excluding_glob_is_refused(any_box, context):
    assert search(context, pattern="a", glob="!*.py").status is Status.ERROR


def test_many_and_long_matches_are_bounded(box, context):
    box.absent = frozenset({"rg"})
    Path(box.root, "a").write_text(("x" * 400 + "\n") * 300)
    lines = search(context, pattern="x").text.splitlines()
    assert len(lines) < 202
    assert "more matches" in lines[-1]
    assert lines[0].endswith("[… cut]")


def test_no_program_at_all_is_an_error_with_a_next_step(box, context):
    box.absent = frozenset({"rg", "grep"})
    out = search(context, pattern="x")
    assert (out.status, out.facts) == (Status.ERROR, {"code": 127})
    assert "with shell" in out.text


def test_a_search_that_takes_too_long_is_a_timeout_with_what_was_found(box, context, result):
    box.script = lambda asked: result(
        None, f"{box.root}/a\0001:x\n".encode(), reason=ExitReason.TIMEOUT, signal=9
    )
    out = search(context, pattern="x")
    assert out.status is Status.TIMEOUT
    assert out.text.splitlines()[0] == "a:1:x"


def test_a_missing_path_is_an_error(box, context):
    assert search(context, pattern="x", path="nope").status is Status.ERROR


def test_files_that_may_hold_credentials_are_withheld_unless_they_were_judged(any_box, context):
    Path(any_box.root, ".env").write_text("value = hunter2\n")
    out = search(context, pattern="hunter2")
    assert out.text == "[… 1 lines withheld: their files may hold credentials …]"
    assert out.facts["matches"] == 0
    assert search(context, pattern="hunter2", path=".env").text == ".env:1:value = hunter2"


def test_programs_that_are_tried_in_turn_share_one_deadline(box, context, result):
    def slow(request):
        time.sleep(0.2)
        return result(2, err=b"no such pattern")

    box.script = slow
    assert search(context, pattern="a").status is Status.ERROR
    limits = [request.timeout for request in box.asked]
    assert len(limits) == 3
    assert limits[0] <= 60
    assert limits[1] <= limits[0] - 0.2
    assert limits[2] <= limits[1] - 0.2
