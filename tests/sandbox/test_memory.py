"""The box in memory: scripted commands and the tree's own rules. The port's rules are in
`tests/contract`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import FileFault, SandboxLost, SandboxRefused
from harness.sandbox import tree
from harness.sandbox.memory import MemoryBackend, MemorySandbox, Reply, captured
from harness.values.commands import ExecRequest, ExitReason, FileKind
from harness.values.limits import BoxSpec, Limits

T = TypeVar("T")


def run(awaitable: Awaitable[T]) -> T:
    async def go() -> T:
        return await awaitable

    return asyncio.run(go())


def test_a_command_gives_its_canned_reply() -> None:
    box = MemorySandbox(commands=[(("pytest", "-q"), Reply(code=1, stdout=b"1 failed"))])
    result = run(box.exec(ExecRequest(("pytest", "-q"))))
    assert (result.code, result.stdout.data) == (1, b"1 failed")


def test_the_first_match_answers() -> None:
    box = MemorySandbox(
        commands=[
            (lambda r: r.argv[0] == "git", Reply(stdout=b"any git")),
            (("git", "log"), Reply(stdout=b"log")),
        ]
    )
    assert run(box.exec(ExecRequest(("git", "log")))).stdout.data == b"any git"


def test_a_command_may_change_the_tree() -> None:
    async def make(request: ExecRequest, box: MemorySandbox) -> Reply:
        await box.write("/workspace/out", b"made")
        return Reply()

    async def go() -> bytes:
        box = MemorySandbox(commands=[(("make",), make)])
        await box.exec(ExecRequest(("make",)))
        return await box.read("/workspace/out")

    assert run(go()) == b"made"


def test_an_unknown_command_is_a_missing_program() -> None:
    result = run(MemorySandbox().exec(ExecRequest(("nope",))))
    assert (result.code, result.stderr.data) == (127, b"nope: not found\n")


def test_a_slow_command_meets_its_timeout() -> None:
    box = MemorySandbox(commands=[(("sleep",), Reply(seconds=60, stdout=b"partial"))])
    result = run(box.exec(ExecRequest(("sleep",), timeout=0.01)))
    assert result.reason is ExitReason.TIMEOUT
    assert (result.code, result.signal, result.stdout.data) == (None, 15, b"partial")


def test_too_much_output_ends_a_command() -> None:
    box = MemorySandbox(commands=[(("yes",), Reply(stdout=b"y" * 100, stderr=b"e"))])
    result = run(box.exec(ExecRequest(("yes",), limit=10)))
    assert result.reason is ExitReason.OUTPUT_LIMIT
    assert result.stdout.total + result.stderr.total == 10


def test_a_fork_shares_nothing_that_changes() -> None:
    async def go() -> tuple[bytes, bytes]:
        one = MemorySandbox({"a": b"old"})
        two = one.fork()
        await two.write("/workspace/a", b"new")
        return await one.read("/workspace/a"), await two.read("/workspace/a")

    assert run(go()) == (b"old", b"new")


def test_files_are_bounded_in_bytes_and_entries() -> None:
    async def go(limits: Limits, path: str, data: bytes) -> str:
        box = MemorySandbox(limits=limits)
        with pytest.raises(FileFault) as told:
            await box.write(path, data)
        with pytest.raises(FileFault, match="does not exist"):
            await box.stat(path)
        return told.value.code

    assert run(go(Limits(disk=10), "/workspace/a", bytes(11))) == "no_space"
    assert run(go(Limits(inodes=6), "/workspace/a/b/c/d", b"")) == "no_space"


def test_a_closed_box_is_lost() -> None:
    async def go() -> None:
        box = MemorySandbox({"a": b""})
        await box.close()
        with pytest.raises(SandboxLost):
            await box.read("/workspace/a")
        with pytest.raises(SandboxLost):
            await box.exec(ExecRequest(("x",)))

    run(go())


def test_a_box_that_must_enforce_memory_is_refused() -> None:
    with pytest.raises(SandboxRefused, match="`memory` is required"):
        run(MemoryBackend().create(BoxSpec(require=frozenset({"memory"})), run="r"))


@given(data=st.binary(max_size=60), head=st.integers(0, 20), tail=st.integers(0, 20))
def test_a_cap_keeps_both_ends_and_counts_the_rest(data: bytes, head: int, tail: int) -> None:
    kept = captured(data, head, tail)
    assert kept.total == len(data)
    assert data.startswith(kept.head)
    assert data.endswith(kept.tail)
    assert len(kept.data) == min(len(data), head + tail)
    assert kept.truncated == (len(data) > head + tail)


PARTS = st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=4).map(tuple)


@given(st.lists(st.tuples(PARTS, st.binary(max_size=4)), max_size=12))
def test_the_tree_holds_what_was_put_last(puts: list[tuple[tuple[bytes, ...], bytes]]) -> None:
    root = tree.directory()
    model: dict[tuple[bytes, ...], bytes] = {}
    for parts, data in puts:
        through_file = any(parts[:n] in model for n in range(1, len(parts)))
        over_folder = any(k[: len(parts)] == parts and k != parts for k in model)
        if through_file:
            with pytest.raises(FileFault):
                tree.put(root, parts, tree.Node(FileKind.FILE, 0o644, data), "x")
            continue
        before = root
        root = tree.put(root, parts, tree.Node(FileKind.FILE, 0o644, data), "x")
        assert before is not root
        if over_folder:
            model = {k: v for k, v in model.items() if k[: len(parts)] != parts}
        model[parts] = data
    for parts, data in model.items():
        assert tree.find(root, parts, "x").data == data
    files = [name for name, node in tree.walk(root, 9) if node.kind is FileKind.FILE]
    assert files == sorted(b"/".join(k) for k in model)


@pytest.mark.parametrize(
    ("link", "asked", "real"),
    [
        (b"/etc", "/workspace/l/passwd", "/etc/passwd"),
        (b"../x", "/workspace/l", "/x"),
        (b"l", "/workspace/l", "/proc/unresolved/workspace/l"),
        (b"nowhere", "/workspace/l/deep/er", "/workspace/nowhere/deep/er"),
        (b".", "/workspace/l/../q", "/q"),
    ],
)
def test_links_are_followed_only_to_say_where_they_lead(link: bytes, asked: str, real: str) -> None:
    box = MemorySandbox({"l": tree.Node(FileKind.LINK, 0o777, link)})
    assert run(box.resolve_links([asked])) == {asked: real}
