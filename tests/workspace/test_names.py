"""Names and hidden characters, one by one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.workspace.hidden import has_hidden, visible, visible_name
from harness.workspace.names import folded, is_git_name, joined, points_out, quote, unquote


@pytest.mark.parametrize(
    "name",
    [b"plain", b"a b", b'"', b"\\", b"\a\b\t\n\v\f\r", b"\x01\x7f", b"\x80\xff", "é日".encode()],
)
def test_quoting_is_gits_and_can_be_read_back(tmp_path: Path, name: bytes) -> None:
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q", "--template="], check=True)
    (tmp_path / name.decode("utf-8", "surrogateescape")).write_bytes(b"")
    listed = subprocess.run([*git, "ls-files", "-o"], capture_output=True, check=True).stdout
    assert listed == quote(name) + b"\n"
    if quote(name) != name:
        assert unquote(quote(name) + b" rest") == (name, b" rest")


@pytest.mark.parametrize("text", [b'"', b'"\\', b'"\\q"', b'"\\18"', b'"\\400"', b"x", b""])
def test_a_quoted_name_that_is_none(text: bytes) -> None:
    assert unquote(text) is None


@pytest.mark.parametrize(
    ("name", "spells"),
    [
        (b".git", True),
        (b".Git", True),
        (b"GIT~1", True),
        (b".git. . ", True),
        (b".git:x", True),
        ("\u200b.g\u2060it".encode(), True),
        (b"a\\.git", True),
        (b".gitignore", False),
        (b".github", False),
        (b"git", False),
        (b"x.git", False),
        (b"\xff.git", False),
    ],
)
def test_spellings_of_git(name: bytes, spells: bool) -> None:
    assert is_git_name(name) is spells


def test_folding_takes_case_and_composition_together() -> None:
    assert folded("É".encode()) == folded("e\u0301".encode())
    assert folded(b"\xff") != folded(b"\xfe")


@pytest.mark.parametrize(
    ("path", "target", "out"),
    [
        (b"l", b"a", False),
        (b"d/l", b"../a", False),
        (b"d/l", b"../../a", True),
        (b"d/l", b"./.././a", False),
        (b"l", b"a/..", True),
        (b"l", b"/a", True),
        (b"l", b"..a", False),
    ],
)
def test_links_that_may_lead_out(path: bytes, target: bytes, out: bool) -> None:
    assert points_out(path, target) is out


def test_where_a_link_leads() -> None:
    assert joined(b"a/l", b"../b/./c") == b"b/c"
    assert joined(b"l", b"../b") is None
    assert joined(b"l", b"/b") is None
    assert joined(b"l", b".") is None


def test_what_is_printed_is_visible() -> None:
    text = b"a\x1b]52;c;x\x07\xc2\x9b\xff\xe2\x80\xae\tb\r\n\xf3\xa0\x81\x81"
    assert visible(text) == "a\\x1b]52;c;x\\x07\\x9b\\xff\\u202e\tb\\x0d\n\\U000e0041"
    assert visible("größe 日本語".encode()) == "größe 日本語"
    assert visible_name(b"a\nb\t") == "a\\nb\\t"


def test_a_byte_order_mark_hides_only_inside() -> None:
    assert not has_hidden("\ufeffx\n".encode())
    assert has_hidden("x\ufeff\n".encode())
