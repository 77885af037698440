"""Files in a box: names, links, bounds, and what goes wrong with each."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness.errors import FileFault
from harness.sandbox.local import LocalSandbox
from harness.values.commands import FileKind, Upload
from tests.sandbox.supervising import local_box, run

pytestmark = pytest.mark.local

ODD = [b"new\nline", b"\xff\xfe", "é ".encode(), b"-rf", b" ", b"a" * 255, b"..."]


def inside(work: Callable[[LocalSandbox, Path], Awaitable[None]]) -> None:
    async def go() -> None:
        async with local_box() as box:
            await work(box, Path(box.root))

    asyncio.run(go())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def facts(path: str) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_ino, status.st_mtime_ns


async def code(awaited: Awaitable[object]) -> str:
    with pytest.raises(FileFault) as fault:
        await awaited
    assert fault.value.code in FileFault.CODES
    assert str(fault.value)
    return fault.value.code


def test_what_is_written_is_read_back_in_any_range() -> None:
    data = os.urandom(300_000)

    async def work(box: LocalSandbox, root: Path) -> None:
        await box.write(f"{root}/deep/er/file", data)
        assert await box.read(f"{root}/deep/er/file") == data
        assert await box.read(f"{root}/deep/er/file", offset=299_990) == data[-10:]
        assert await box.read(f"{root}/deep/er/file", offset=5, length=7) == data[5:12]
        assert await box.read(f"{root}/deep/er/file", offset=300_000) == b""
        assert await box.read(f"{root}/deep/er/file", offset=2**63, length=1) == b""
        assert [p.name for p in (root / "deep" / "er").iterdir()] == ["file"]

    inside(work)


def test_names_are_bytes() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        for name in ODD:
            path = f"{root}/{os.fsdecode(name)}"
            await box.write(path, name)
            assert await box.read(path) == name
        listed = await box.list(str(root))
        assert [stat.path for stat in listed] == sorted(ODD)

    inside(work)


def test_modes_are_kept_or_set() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        path = f"{root}/f"
        await box.write(path, b"1")
        assert (await box.stat(path)).mode == 0o644
        await box.write(path, b"2", mode=0o755)
        await box.write(path, b"3")
        await box.edit(path, b"3", b"4")
        stat = await box.stat(path)
        assert (stat.mode, stat.size, stat.kind) == (0o755, 1, FileKind.FILE)
        assert stat.path == path.encode()
        (listed,) = await box.list(str(root))
        assert (listed.inode, listed.mtime, listed.size) == (stat.inode, stat.mtime, 1)
        assert facts(path) == (stat.inode, stat.mtime)

    inside(work)


def test_an_edit_wants_one_match_unless_told() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        path = f"{root}/f"
        await box.write(path, b"one two two aaa")
        assert await code(box.edit(path, b"two", b"2")) == "many_matches"
        assert await code(box.edit(path, b"three", b"3")) == "no_match"
        assert await code(box.edit(path, b"", b"3")) == "no_match"
        assert await box.edit(path, b"two", b"2", every=True) == 2
        assert await box.edit(path, b"aa", b"", every=True) == 1
        assert await box.edit(path, b"one", b"x" * 200_000) == 1
        assert await box.read(path) == b"x" * 200_000 + b" 2 2 a"

    inside(work)


def test_nothing_is_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")

    async def work(box: LocalSandbox, root: Path) -> None:
        (root / "file").symlink_to(tmp_path / "outside")
        (root / "dir").symlink_to(tmp_path)
        (root / "loop").symlink_to("loop")
        for name in ("file", "dir/outside", "loop", "loop/x"):
            path = f"{root}/{name}"
            assert await code(box.read(path)) == "link"
            assert await code(box.write(path, b"changed")) == "link"
            assert await code(box.edit(path, b"secret", b"changed")) == "link"
        assert await code(box.list(f"{root}/dir")) == "link"
        assert await code(box.stat(f"{root}/dir/outside")) == "link"
        assert await code(box.remove(f"{root}/dir/outside")) == "link"
        assert await code(box.upload([Upload(b"dir/new", FileKind.FILE)])) == "link"
        stat = await box.stat(f"{root}/file")
        assert (stat.kind, stat.target) == (FileKind.LINK, str(tmp_path / "outside").encode())
        await box.remove(f"{root}/file")
        assert [s.path for s in await box.list(str(root), depth=9)] == [b"dir", b"loop"]

    inside(work)
    assert (tmp_path / "outside").read_text() == "secret"
    assert [p.name for p in tmp_path.iterdir()] == ["outside"]


def test_a_link_swapped_in_while_files_are_written_leads_nowhere(tmp_path: Path) -> None:
    swap = """
import os, time
while True:
    os.rename("dir", "kept"); os.symlink(os.environ["OUT"], "dir")
    os.unlink("dir"); os.rename("kept", "dir")
"""

    async def work(box: LocalSandbox, root: Path) -> None:
        await box.write(f"{root}/dir/f", b"mine")
        swapping = asyncio.create_task(
            run(box, f"exec python3 -c '{swap}'", env={"OUT": str(tmp_path)}, grace=0)
        )
        codes: set[str] = set()
        for number in range(120):
            try:
                await box.write(f"{root}/dir/f", b"%d" % number)
            except FileFault as fault:
                codes.add(fault.code)
        swapping.cancel()
        await asyncio.wait((swapping,))
        assert codes <= {"link", "missing", "not_directory"}

    inside(work)
    assert list(tmp_path.iterdir()) == []


BAD_PATHS = [
    ("relative", "name"),
    ("", "name"),
    ("/x\0y", "name"),
    ("/etc/../etc/passwd", "name"),
    ("/" + "x" * 300, "name"),
    ("/" + "x/" * 5000, "name"),
    ("/\ud800", "name"),
    ("/no/such/file", "missing"),
    ("/etc/passwd/x", "not_directory"),
    ("/etc", "directory"),
    ("/", "directory"),
    ("/dev/null", "not_file"),
]


def test_each_bad_path_has_its_code() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        got = [(path, await code(box.read(path))) for path, _ in BAD_PATHS]
        assert got == BAD_PATHS

    inside(work)


def test_what_is_not_a_file_neither_blocks_nor_opens() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        os.mkfifo(root / "fifo")
        assert await code(box.read(f"{root}/fifo")) == "not_file"
        assert await code(box.write(f"{root}/fifo", b"x")) == "not_file"
        assert (await box.stat(f"{root}/fifo")).kind is FileKind.OTHER
        assert await code(box.write(f"{root}", b"x")) == "directory"
        assert await code(box.write(f"{root}/new/", b"x")) == "name"
        await box.write(f"{root}/d/f", b"x")
        assert await code(box.remove(f"{root}/d")) == "directory"
        assert await code(box.remove(f"{root}/nothing")) == "missing"
        await box.remove(f"{root}/d/f")
        await box.remove(f"{root}/d")

    inside(work)


def test_files_beyond_64_mebibytes_are_read_by_range() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        with (root / "big").open("wb") as file:
            file.truncate(65 * 1024 * 1024)
            file.seek(0, 2)
            file.write(b"end")
        assert await code(box.read(f"{root}/big")) == "too_large"
        assert await code(box.edit(f"{root}/big", b"end", b"")) == "too_large"
        assert await box.read(f"{root}/big", offset=65 * 1024 * 1024) == b"end"

    inside(work)


def test_listing_has_depth_order_and_limit() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        for name in ("a/b/c", "a-x", "a.y", "z"):
            await box.write(f"{root}/{name}", b"")
        every = [s.path for s in await box.list(str(root), depth=9)]
        assert every == sorted([b"a", b"a/b", b"a/b/c", b"a-x", b"a.y", b"z"])
        assert [s.path for s in await box.list(str(root))] == [b"a", b"a-x", b"a.y", b"z"]
        assert [s.path for s in await box.list(str(root), depth=9, limit=2)] == every[:2]
        assert await box.list(str(root), limit=0) == ()
        assert await code(box.list(f"{root}/z")) == "not_directory"
        assert await code(box.list(f"{root}/none")) == "missing"

    inside(work)


def test_a_listing_longer_than_a_frame_comes_whole() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        many = [b"%03d" % i + b"n" * 200 for i in range(900)]
        await box.upload([Upload(name, FileKind.FILE) for name in many])
        listed = await box.list(str(root))
        assert [s.path for s in listed] == many

    inside(work)


def test_an_upload_makes_files_directories_and_links() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        big = os.urandom(200_000)
        await box.upload(
            [
                Upload(b"d", FileKind.DIRECTORY, 0o750),
                Upload(b"d/f", FileKind.FILE, 0o755, big),
                Upload(b"made/on/the/way", FileKind.FILE, 0o600, b"x"),
                Upload(b"l", FileKind.LINK, 0o777, b"/nowhere"),
                *(Upload(b"odd/" + name, FileKind.FILE, 0o644, name) for name in ODD),
            ]
        )
        assert (root / "d" / "f").read_bytes() == big
        assert (root / "d").stat().st_mode & 0o777 == 0o750
        assert (root / "l").readlink() == Path("/nowhere")
        assert names(root / "odd") == sorted(map(os.fsdecode, ODD))
        await box.upload([Upload(b"l", FileKind.FILE, 0o644, b"now a file")])
        assert (root / "l").read_bytes() == b"now a file"
        assert not (root / "l").is_symlink()

    inside(work)


BAD_ENTRIES = [
    Upload(b"../out", FileKind.FILE),
    Upload(b"a/../../out", FileKind.FILE),
    Upload(b"/abs", FileKind.FILE),
    Upload(b"", FileKind.FILE),
    Upload(b"nul\0", FileKind.FILE),
    Upload(b".", FileKind.DIRECTORY),
    Upload(b"x/", FileKind.FILE),
    Upload(b"x" * 256, FileKind.FILE),
    Upload(b"x" * 9000, FileKind.FILE),
    Upload(b"dev", FileKind.OTHER),
    Upload(b"l", FileKind.LINK, 0o777, b""),
    Upload(b"l", FileKind.LINK, 0o777, b"x" * 5000),
]


def test_an_upload_refuses_what_leads_out_or_is_none() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        for entry in BAD_ENTRIES:
            entries = [Upload(b"first", FileKind.FILE), entry, Upload(b"last", FileKind.FILE)]
            assert await code(box.upload(entries)) == "name", entry
            assert names(root) in ([], ["first"]), entry
            assert names(root.parent) == ["home", "tmp", "work"], entry
        assert (await run(box, "true")).ok

    inside(work)


def test_a_fault_in_an_upload_names_its_entry() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        await box.upload([Upload(b"d", FileKind.DIRECTORY)])
        with pytest.raises(FileFault) as fault:
            await box.upload([Upload(b"ok", FileKind.FILE), Upload(b"d", FileKind.FILE)])
        assert (fault.value.code, fault.value.path) == ("directory", "d")

    inside(work)


def test_no_space_is_said_and_leaves_no_half_file() -> None:
    if os.geteuid() != 0:
        pytest.skip("mounts a small tmpfs")

    async def work(box: LocalSandbox, root: Path) -> None:
        (root / "small").mkdir()
        mounted = await run(box, "mount -t tmpfs -o size=1m,nr_inodes=20 none small")
        if not mounted.ok:
            pytest.skip("may not mount")
        try:
            await box.write(f"{root}/small/f", b"old")
            assert await code(box.write(f"{root}/small/f", bytes(3_000_000))) == "no_space"
            assert await box.read(f"{root}/small/f") == b"old"
            assert [p.name for p in (root / "small").iterdir()] == ["f"]
            many = [Upload(b"small/%d" % i, FileKind.FILE) for i in range(40)]
            assert await code(box.upload(many)) == "no_space"
        finally:
            await run(box, "umount small")

    inside(work)


def test_cancelled_writes_leave_nothing_behind() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        await box.write(f"{root}/f", b"old")
        for step in range(10):
            task = asyncio.create_task(box.write(f"{root}/f", bytes(30_000_000)))
            await asyncio.sleep(step * 0.002)
            task.cancel()
            await asyncio.wait((task,))
            assert names(root) == ["f"]
            assert len(await box.read(f"{root}/f")) in {3, 30_000_000}

    inside(work)


def test_links_are_resolved_as_the_box_sees_them(tmp_path: Path) -> None:
    base = tmp_path.resolve()
    (base / "real" / "sub").mkdir(parents=True)
    (base / "real" / "file").write_text("")
    (base / "link").symlink_to("real")
    (base / "up").symlink_to("../" + base.name + "/real/sub/..")
    (base / "loop").symlink_to("loop2")
    (base / "loop2").symlink_to("loop")
    (base / "dangling").symlink_to("/no/where")
    wanted = {
        f"{base}/real/file": f"{base}/real/file",
        f"{base}/link/file": f"{base}/real/file",
        f"{base}/link/new/er": f"{base}/real/new/er",
        f"{base}/up/file": f"{base}/real/file",
        f"{base}/real/file/x": f"{base}/real/file/x",
        f"{base}/dangling": "/no/where",
        f"{base}/loop": f"/proc/unresolved{base}/loop",
        f"{base}/loop/x": f"/proc/unresolved{base}/loop/x",
        f"{base}/link/n\nl": f"{base}/real/n\nl",
        f"{base}/\udcff": f"{base}/\udcff",
        "/": "/",
        "/etc/../etc/passwd": "/etc/passwd",
        "/proc/self/root/etc/shadow": "/proc/unresolved/proc/self/root/etc/shadow",
        "/proc/self/cwd": "/proc/unresolved/proc/self/cwd",
        "/dev/stderr": "/proc/self/fd/2",
        "/dev/null": "/dev/null",
        "relative": "/proc/unresolved/relative",
        "/nul\0": "/proc/unresolved/nul\0",
        "/" + "x" * 300: "/proc/unresolved/" + "x" * 300,
        "/" + "x/" * 9000: "/proc/unresolved/" + "x/" * 9000,
    }

    async def work(box: LocalSandbox, root: Path) -> None:
        assert await box.resolve_links([]) == {}
        assert await box.resolve_links(list(wanted)) == wanted
        many = [f"{base}/link/{i}" for i in range(5000)]
        real = await box.resolve_links(many)
        assert real == {path: path.replace("/link/", "/real/") for path in many}

    inside(work)


def test_many_operations_at_once_answer_each_their_own() -> None:
    async def work(box: LocalSandbox, root: Path) -> None:
        paths = [f"{root}/{i}" for i in range(150)]
        await asyncio.gather(*(box.write(path, path.encode() * 100) for path in paths))
        got = await asyncio.gather(*(box.read(path) for path in paths))
        assert got == [path.encode() * 100 for path in paths]

    inside(work)


def test_a_path_too_long_for_a_frame_hides_nothing_beside_it() -> None:
    async def look(box: LocalSandbox, root: Path) -> None:
        deep = 40
        here = os.open(root, os.O_RDONLY)
        for _ in range(deep):
            os.mkdir("d" * 250, dir_fd=here)
            below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
        (root / "zz").write_text("x")
        listed = await box.list(box.root, depth=1000)
        assert listed[-1].path == b"zz"
        assert 30 < len(listed) < deep

    inside(look)
