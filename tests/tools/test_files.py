"""The file tools: pages, refusals, and answers a model can act on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import jsonschema
import pytest

from harness.tools import builtin_tools
from harness.values.calls import Status


@pytest.fixture
def call(box, context):
    """Run a tool with the path it names judged."""

    def run(tool, judged=None, **args):
        found = builtin_tools()[tool]
        jsonschema.validate(args, found.spec.schema)
        paths = [args.get("path", ".")] if judged is None else judged
        return asyncio.run(found.run(args, context(*paths)))

    return run


def put(box, name, data):
    path = Path(box.root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def test_a_small_file_comes_back_as_it_stands(box, call):
    put(box, "a.py", "import os\n\n\tx = 1\n")
    assert call("read_file", path="a.py").text == "import os\n\n\tx = 1"


def test_a_range_says_what_it_is_and_where_to_go_on(box, call):
    put(box, "a", "".join(f"{i}\n" for i in range(1, 3001)))
    out = call("read_file", path="a", offset=5, limit=2)
    assert out.text == "[a: lines 5 to 6; go on with offset 7]\n5\n6"
    assert call("read_file", path="a", offset=2999).text == (
        "[a: lines 2999 to 3000 of 3000]\n2999\n3000"
    )
    assert call("read_file", path="a", offset=9000).text == "(the file ends at line 3000)"


def test_a_long_file_is_bounded_and_every_page_joins_the_next(box, call):
    whole = [f"line {i} {'x' * (i % 90)}" for i in range(1, 2501)]
    put(box, "a", "\n".join(whole))
    got, offset = [], 1
    while offset <= len(whole):
        out = call("read_file", path="a", offset=offset)
        assert len(out.text) < 33 * 1024
        page = out.text.splitlines()[1:]
        got += page
        offset += len(page)
    assert got == whole


def test_lines_across_pieces_are_whole(box, call):
    put(box, "a", "é" * (1 << 19) + "z\nlast")
    assert call("read_file", path="a", offset=2).text == "[a: lines 2 to 2 of 2]\nlast"


def test_a_long_line_is_cut_and_says_so(box, call):
    put(box, "a", "x" * 5000)
    assert call("read_file", path="a").text == "x" * 2000 + " [… line cut, it has 5,000 characters]"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x7fELF\x02", "ELF"),
        (b"\x89PNG\r\n", "PNG"),
        (b"ab\0cd", "binary"),
        (b"\xff\xfea\0", "UTF-16"),
    ],
)
def test_binary_files_are_refused_with_kind_and_size(box, call, data, word):
    put(box, "a", data)
    out = call("read_file", path="a")
    assert out.status is Status.ERROR
    assert word in out.text
    assert f"{len(data)} bytes" in out.text


def test_what_edit_file_would_stumble_over_is_said(box, call):
    put(box, "a", b"one\r\ntwo\xff\r\n")
    assert call("read_file", path="a").text == (
        "[a: lines end in CRLF, which edit_file must match; "
        "not valid UTF-8: some bytes are shown as �]\none\ntwo�"
    )


def test_an_empty_file_is_said(box, call):
    put(box, "a", "")
    assert call("read_file", path="a").text == "(empty file)"


@pytest.mark.parametrize("tool", ["read_file", "list_files"])
def test_a_missing_path_is_an_error_with_a_next_step(call, tool):
    out = call(tool, path="nope")
    assert out.status is Status.ERROR
    assert "list_files shows" in out.text
    assert out.facts == {"fault": "missing"}


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("read_file", {}),
        ("write_file", {"content": ""}),
        ("edit_file", {"old": "a", "new": "b"}),
        ("list_files", {}),
        ("search", {"pattern": "a"}),
    ],
)
def test_a_path_that_was_not_judged_is_never_opened(box, call, tool, args):
    put(box, "a", "a")
    out = call(tool, judged=["b"], path="a", **args)
    assert out.status is Status.ERROR
    assert "not resolved" in out.text
    assert Path(box.root, "a").read_text() == "a"
    assert box.asked == []


def test_the_judged_real_path_is_opened_and_not_the_one_that_was_asked(box, call, context):
    put(box, "a", "asked")
    put(box, "b", "judged")
    made = context("a")
    links = dict.fromkeys(made.links, f"{box.root}/b")
    reader = builtin_tools()["read_file"]
    out = asyncio.run(reader.run({"path": "./x/../a"}, type(made)(box, links, None, "c")))
    assert out.text == "judged"


def test_a_path_that_climbs_leads_where_the_kernel_would_go(box, call, context):
    put(box, "lexical", "lexical")
    put(box, "far/away/x", "")
    put(box, "far/lexical", "kernel")
    Path(box.root, "link").symlink_to("far/away")
    asked = f"{box.root}/link/../lexical"
    links = {f"{box.root}/lexical": f"{box.root}/lexical", asked: f"{box.root}/far/lexical"}
    reader = builtin_tools()["read_file"]
    made = type(context("a"))(box, links, None, "c")
    assert asyncio.run(reader.run({"path": "link/../lexical"}, made)).text == "kernel"


def test_write_creates_and_replaces(box, call):
    assert call("write_file", path="d/a", content="né\n").text == "wrote 4 bytes to d/a (created)"
    out = call("write_file", path="d/a", content="")
    assert out.text == "wrote 0 bytes to d/a (replaced, it had 4 bytes)"
    assert Path(box.root, "d/a").read_bytes() == b""


def test_content_that_is_no_unicode_is_an_error_and_nothing_is_written(box, call):
    out = call("write_file", path="a", content="x\ud800")
    assert out.status is Status.ERROR
    assert "lone surrogate at character 1" in out.text
    assert not Path(box.root, "a").exists()


def test_a_full_disk_is_an_error_with_a_next_step(box, call):
    box.full = True
    assert "disk is full" in call("write_file", path="a", content="x").text


def test_edit_replaces_once_or_every_time(box, call):
    put(box, "a", "x = 1\nx = 1\n")
    out = call("edit_file", path="a", old="x = 1", new="y")
    assert out.status is Status.ERROR
    assert "lines 1, 2" in out.text
    assert (
        call("edit_file", path="a", old="x = 1", new="y", all=True).text == "replaced 2 times in a"
    )
    assert call("edit_file", path="a", old="y\ny", new="z").text == "replaced once in a"
    assert Path(box.root, "a").read_text() == "z\n"


@pytest.mark.parametrize(
    ("content", "old", "hint"),
    [
        ("def f():\n    return 1\n", "  return 1", "replaced once"),
        ("def f():\n\treturn 1\n", "    return 1\n", "its first line stands at line 2"),
        (
            "def compute(a):\n    pass\n",
            "def compute(b):",
            "the nearest line is 1: def compute(a):",
        ),
        ("nothing alike\n", "qqqq", "read the file again"),
        ("a\r\nb\r\n", "a\nb", "CRLF"),
    ],
)
def test_an_edit_that_matches_nothing_says_where_to_look(box, call, content, old, hint):
    put(box, "a", content)
    assert hint in call("edit_file", path="a", old=old, new="x").text


def test_an_edit_to_the_same_text_is_no_success(box, call):
    put(box, "a", "x")
    assert call("edit_file", path="a", old="x", new="x").status is Status.ERROR


def test_a_listing_shows_kinds_and_leaves_git_out(box, call):
    put(box, "src/deep/a.py", "")
    put(box, ".git/config", "")
    put(box, "name\nwith newline", "")
    Path(box.root, "link").symlink_to("/etc/passwd")
    assert call("list_files").text.splitlines() == [
        ".git/",
        "link -> /etc/passwd",
        '"name\\nwith newline"',
        "src/",
        "src/deep/",
    ]
    assert call("list_files", path="src", depth=1).text == "deep/"


def test_a_long_listing_is_bounded_and_counted(box, call):
    for i in range(510):
        put(box, f"f{i:04}", "")
    lines = call("list_files").text.splitlines()
    assert len(lines) == 501
    assert lines[-1].startswith("[… 10 further entries")


def test_an_empty_directory_is_said(call):
    assert call("list_files").text.endswith("is empty")


def test_specs_are_valid_schemas_that_take_nothing_else(call):
    tools = builtin_tools()
    for name, tool in tools.items():
        jsonschema.Draft202012Validator.check_schema(tool.spec.schema)
        assert tool.spec.schema["additionalProperties"] is False
        assert tool.spec.name == name
    assert {n for n, t in tools.items() if t.read_only} == {"read_file", "list_files", "search"}
