"""The supervisor's build, and its run under the sanitizers."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import struct
import subprocess
from pathlib import Path

import pytest

from harness.sandbox.frames import FrameType
from harness.sandbox.local import LocalSandbox
from harness.values.commands import ExecRequest, FileKind, Upload
from harness.values.limits import BoxSpec
from tests.sandbox.supervising import builder, exec_payload, raw, shell, supervisor

SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")


@pytest.mark.slow
def test_the_same_source_gives_the_same_bytes(tmp_path: Path) -> None:
    supervisor()
    module = builder()
    machine = module.this_machine()
    one, two = (module.build(machine, tmp_path / name) for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    stamp = two.stat().st_mtime_ns
    assert module.build(machine, tmp_path / "two").stat().st_mtime_ns == stamp
    described = subprocess.run(["file", str(one)], check=False, capture_output=True, text=True)
    assert described.returncode != 0 or "statically linked" in described.stdout


@pytest.mark.slow
def test_a_warning_fails_the_build(tmp_path: Path) -> None:
    module = builder()
    with pytest.raises(module.BuildError, match="compiling the supervisor failed"):
        module.build(module.this_machine(), tmp_path, ("-Dreap=int",))
    assert [p for p in tmp_path.iterdir() if not p.name.endswith(".stamp")] == []


@pytest.mark.slow
@pytest.mark.parametrize("target", ["x86_64", "aarch64"])
def test_it_builds_without_a_system_compiler(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs the `ziglang` package")
    monkeypatch.setenv("CC", "no-such-compiler")
    module = builder()
    binary = module.build(target, tmp_path)
    machine = int.from_bytes(binary.read_bytes()[18:20], "little")
    assert machine == {"x86_64": 62, "aarch64": 183}[target]
    if target == module.this_machine():
        asyncio.run(exercise(binary))


async def exercise(binary: Path) -> None:
    box = await LocalSandbox.start(BoxSpec(), binary=binary)
    try:
        assert (await box.exec(shell("cat; echo err >&2; exit 3", stdin=b"in"))).code == 3
        assert (await box.exec(ExecRequest(("no-such",)))).code == 127
        assert (await box.exec(shell("sleep 9 & echo", kill_left=True))).ok
        assert (await box.exec(shell("sleep 9", timeout=0.1, grace=0.1))).signal == 15
        await asyncio.gather(*(box.exec(shell("echo hi; exit 1")) for _ in range(30)))
        await box.write(f"{box.root}/a/b", bytes(200_000))
        await box.edit(f"{box.root}/a/b", b"\0", b"ab", every=True)
        assert len(await box.read(f"{box.root}/a/b")) == 400_000
        entries = [Upload(b"d/%d" % i, FileKind.FILE, 0o644, bytes(i)) for i in range(300)]
        await box.upload([*entries, Upload(b"l", FileKind.LINK, 0o777, b"a")])
        assert len(await box.list(box.root, depth=9)) == 304
        assert (await box.resolve_links([f"{box.root}/l/x"])).popitem()[1] == f"{box.root}/a/x"
        await box.stat(f"{box.root}/l")
        await box.remove(f"{box.root}/l")
    finally:
        await box.close()


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = builder()
    if module.system_compiler() is None:
        pytest.skip("needs a C compiler")
    flags = [flag for flag in module.FLAGS if flag not in {"-static", "-s", "-O2"}]
    binary = tmp_path_factory.mktemp("sanitized") / "supervisor"
    built = subprocess.run(
        [
            *module.system_compiler(),
            *flags,
            *SANITIZE,
            "-o",
            str(binary),
            *map(str, module.sources()),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if built.returncode != 0:
        pytest.skip(f"no sanitizers here: {built.stderr[-200:]}")
    return binary


@pytest.mark.slow
def test_nothing_is_wrong_with_its_memory(sanitized: Path) -> None:
    asyncio.run(exercise(sanitized))


def spoilt(body: bytes, chance: random.Random) -> bytes:
    """The same request, mostly with some bytes changed."""
    changed = bytearray(body)
    for _ in range(chance.choice((0, 0, 1, 5))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def file_request(folder: Path, chance: random.Random) -> bytes:
    name = chance.choice((b"", b"/" + chance.randbytes(2).replace(b"\0", b"x")))
    path = os.fsencode(folder) + name
    operation, flags, mode = chance.randrange(10), chance.randrange(4), chance.randrange(0o1000)
    head = (operation, flags, 0, mode, chance.randrange(60), chance.randrange(60), len(path))
    return struct.pack("<BBHIQQI", *head) + path + b"\0" + chance.randbytes(60)


@pytest.mark.slow
def test_nothing_is_wrong_with_its_memory_under_garbage(
    sanitized: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tests.sandbox.supervising.supervisor", lambda: sanitized)
    chance = random.Random(11)
    good = exec_payload("true")
    seen: set[int] = set()
    for number in range(20):
        (tmp_path / str(number)).write_text("some text")
    with raw("--one-user") as talk:
        talk.lease()
        for _ in range(1500):
            channel = chance.randrange(1, 300)
            if chance.random() < 0.6:
                body, kind = file_request(tmp_path, chance), FrameType.FILE
            else:
                body = spoilt(good, chance)
                kind = chance.choice((FrameType.EXEC, FrameType.DATA, FrameType.END))
            talk.send(kind, channel, body)
            talk.send(FrameType.CREDIT, channel, struct.pack("<I", 70_000))
            talk.send(chance.choice((FrameType.CANCEL, FrameType.END)), channel, b"")
            talk.send(FrameType.PING, 0, b"")
            seen |= {one[0] for one in talk.until(FrameType.PONG, 0)}
        talk.lease()
        assert talk.close() == 0
    assert {FrameType.EXIT, FrameType.REPLY, FrameType.REFUSED, FrameType.OUT} <= seen
