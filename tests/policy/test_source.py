from __future__ import annotations

import pytest

from harness.errors import PolicyError
from harness.operations.places import Places
from harness.policy.files import PolicySource, load_file
from harness.policy.source import MAX_BYTES, read_source
from harness.values.operations import Risk


def load(text: str | bytes) -> object:
    return load_file(PolicySource("user", "p", text, "p.yaml"), Places())


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("", None, "empty"),
        ("# nothing\n", None, "empty"),
        ("- a\n", 1, "mapping"),
        ("version: 1\n", 1, "`name` is missing"),
        ("version: 2\nname: p\n", 1, "version"),
        ("version: 1\nname: p\nrulez: []\n", 3, "unknown key `rulez`"),
        ("version: 1\nname: p\nname: q\n", 3, "twice"),
        ("version: 1\nname: p\ntables:\n  p:\n    lowish: allow\n", 5, "lowish"),
        ("version: 1\nname: p\ntables:\n  p:\n    low: maybe\n", 5, "tables.p.low"),
        ("version: 1\nname: p\nceiling: {unattended: extreme}\n", 3, "ceiling"),
        ("version: 1\nname: p\nrules: {a: 1}\n", 3, "rules"),
        ("version: 1\nname: p\nlimits:\n  memory: lots\n", 4, "limits.memory"),
        ("version: 1\nname: p\nextends: all\n", 3, "extends"),
        ("version: 1\nname: [p\n", 3, "YAML"),
        ("version: 1\nname: p\n--- \nversion: 1\n", 3, "YAML"),
        ("a: &x [1]\nb: *x\n", 1, "alias"),
        ("a: !!python/object:os.system x\n", 1, "tag"),
        ("a: !!binary aGk=\n", 1, "tag"),
        ("{[a]: 1}\n", 1, "key"),
        (b"version: 1\nname: \xff\n", 2, "UTF-8"),
        ("a: " + "[" * 5000, 1, "deep"),
        ("a:\n" + "".join(" " * n + "- \n" for n in range(400)), None, "deep"),
        ("- " * 3000, 1, "deep"),
        ("x" * (MAX_BYTES + 1), None, "larger"),
        ("version: 1\nname: p\nrules: [" + "a," * 10_001 + "]\n", 3, "10000"),
        ("a: \0", None, "YAML"),
    ],
)
def test_an_unusable_file_names_line_and_fault(
    text: str | bytes, line: int | None, part: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        load(text)
    assert part in caught.value.message
    assert caught.value.file == "p.yaml"
    if line is not None:
        assert caught.value.line == line


def test_values_know_their_lines() -> None:
    located = read_source("a: 1\nb:\n- c: x\n  d: y\n", "f")
    assert located.at(("b", 0, "d")) == (4, 3)
    assert located.at(("b", 0, "nothing")) == (3, 3)
    assert located.value == {"a": 1, "b": [{"c": "x", "d": "y"}]}


def test_limits_and_ceiling_are_read_in_base_units() -> None:
    text = (
        "version: 1\nname: p\nceiling: {unattended: low}\n"
        "limits: {cpus: 2, memory: 4GiB, pids: 256, disk: 1GB, wall: 30m, output: 10MiB}\n"
    )
    file = load_file(PolicySource("user", "p", text), Places())
    assert file.ceiling_level is Risk.LOW
    assert file.limits == {
        "cpus": 2,
        "memory": 4 << 30,
        "pids": 256,
        "disk": 10**9,
        "wall": 1800,
        "output": 10 << 20,
    }
