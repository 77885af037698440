"""Files: every operation and every fault, alike in all backends."""

from __future__ import annotations

import asyncio

import pytest

from harness.values.commands import FileKind, Upload
from tests.contract.stations import Station

LINK = FileKind.LINK


def upload(at: Station, *entries: tuple[str, FileKind, bytes]) -> str:
    """Create entries below a folder of their own; the folder."""
    place = at.folder()
    name = place.rpartition("/")[2]
    made = [Upload(name.encode(), FileKind.DIRECTORY, 0o755)]
    for path, kind, data in entries:
        mode = 0o755 if kind is FileKind.DIRECTORY else 0o644
        made.append(Upload(f"{name}/{path}".encode(), kind, mode, data))
    at.run(at.box.upload(made))
    return place


def test_what_is_written_is_read_with_its_parents_made(station: Station) -> None:
    data = bytes(range(256)) * 40
    path = station.write(f"{station.folder()}/a/b/c", data)
    assert station.run(station.box.read(path)) == data


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 3_000_000])
def test_every_size_comes_back(station: Station, size: int) -> None:
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    path = station.write(station.folder(), data)
    assert station.run(station.box.read(path)) == data
    station.run(station.box.remove(path))


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, 3, b"012"),
        (5, None, b"56789"),
        (8, 10, b"89"),
        (10, None, b""),
        (99, 5, b""),
        (3, 0, b""),
    ],
)
def test_a_range_is_read(
    station: Station, offset: int, length: int | None, expected: bytes
) -> None:
    path = station.write(station.folder(), b"0123456789")
    assert station.run(station.box.read(path, offset=offset, length=length)) == expected


def test_a_new_file_is_0644_and_an_old_one_keeps_its_bits(station: Station) -> None:
    path = station.write(station.folder(), b"1")
    assert station.run(station.box.stat(path)).mode == 0o644
    station.write(path, b"2", mode=0o755)
    assert station.run(station.box.stat(path)).mode == 0o755
    station.write(path, b"3")
    found = station.run(station.box.stat(path))
    assert (found.kind, found.mode, found.size) == (FileKind.FILE, 0o755, 1)


def test_writing_replaces_the_file_in_one_step(real: Station) -> None:
    path = real.write(real.folder(), b"a" * 200_000)
    script = (
        f'while [ ! -e {path}.stop ]; do case "$(wc -c <{path})" in '
        "200000|300000) ;; *) echo torn;; esac; done"
    )

    async def go() -> bytes:
        from harness.values.commands import ExecRequest  # noqa: PLC0415 - beside its use

        watch = asyncio.create_task(real.box.exec(ExecRequest(("sh", "-c", script), timeout=30)))
        for n in range(40):
            await real.box.write(path, bytes([65 + n % 2]) * (200_000 + 100_000 * (n % 2)))
        await real.box.write(f"{path}.stop", b"")
        return (await watch).stdout.data

    assert real.run(go()) == b""
    assert real.out(f"ls -A {path.rpartition('/')[0]} | grep -c '^{path.rpartition('/')[2]}'") == (
        "2\n"
    )


def test_reading_what_is_not_there_or_no_file(station: Station) -> None:
    place = upload(station, ("f", FileKind.FILE, b"x"), ("l", LINK, b"f"), ("up", LINK, b"."))
    read = station.box.read
    assert station.fault(read(f"{place}/none")) == "missing"
    assert station.fault(read(place)) == "directory"
    assert station.fault(read(f"{place}/l")) == "link"
    assert station.fault(read(f"{place}/up/f")) == "link"
    assert station.fault(read(f"{place}/f/x")) == "not_directory"


@pytest.mark.parametrize("path", ["", "relative", "{root}/a\0b", "{root}/" + "n" * 300])
def test_a_name_that_is_none(station: Station, path: str) -> None:
    path = path.format(root=station.box.root)
    assert station.fault(station.box.read(path)) == "name"
    assert station.fault(station.box.write(path, b"")) == "name"


def test_a_pipe_is_no_file(real: Station) -> None:
    path = real.folder()
    real.out(f"mkfifo {path}")
    assert real.fault(real.box.read(path)) == "not_file"
    assert real.run(real.box.stat(path)).kind is FileKind.OTHER


def test_a_file_that_is_too_large_is_read_in_parts(real: Station) -> None:
    path = real.folder()
    real.out(f"dd if=/dev/zero of={path} bs=1 count=1 seek=67108864 2>/dev/null")
    assert real.fault(real.box.read(path)) == "too_large"
    assert real.run(real.box.read(path, offset=67_108_860)) == bytes(5)


def test_writing_where_it_cannot_be(station: Station) -> None:
    place = upload(station, ("f", FileKind.FILE, b"x"), ("up", LINK, b"."), ("l", LINK, b"f"))
    write = station.box.write
    assert station.fault(write(place, b"")) == "directory"
    assert station.fault(write(f"{place}/f/x", b"")) == "not_directory"
    assert station.fault(write(f"{place}/up/x", b"")) == "link"
    assert station.fault(write(f"{place}/l", b"evil")) == "link"
    assert station.run(station.box.read(f"{place}/f")) == b"x"


def test_a_link_out_of_the_box_is_not_written_through(station: Station) -> None:
    place = upload(station, ("etc", LINK, b"/etc"))
    assert station.fault(station.box.write(f"{place}/etc/motd", b"")) == "link"
    assert station.fault(station.box.read(f"{place}/etc/passwd")) == "link"


def test_what_the_user_may_not_is_denied(fenced: Station) -> None:
    place = upload(fenced, ("f", FileKind.FILE, b"x"))
    fenced.write(f"{place}/f", b"x", mode=0o000)
    assert fenced.fault(fenced.box.read(f"{place}/f")) == "denied"
    assert fenced.fault(fenced.box.write("/etc/x", b"")) == "denied"
    assert fenced.fault(fenced.box.remove("/etc")) in {"denied", "directory"}


def test_an_edit_replaces_one_place(station: Station) -> None:
    path = station.write(station.folder(), b"one two one", mode=0o750)
    assert station.run(station.box.edit(path, b"two", b"2")) == 1
    assert station.run(station.box.read(path)) == b"one 2 one"
    assert station.run(station.box.stat(path)).mode == 0o750


def test_an_edit_that_is_not_clear_changes_nothing(station: Station) -> None:
    path = station.write(station.folder(), b"one two one")
    assert station.fault(station.box.edit(path, b"three", b"")) == "no_match"
    assert station.fault(station.box.edit(path, b"one", b"")) == "many_matches"
    assert station.fault(station.box.edit(f"{path}-", b"one", b"")) == "missing"
    assert station.run(station.box.read(path)) == b"one two one"


def test_an_edit_of_every_place_counts(station: Station) -> None:
    path = station.write(station.folder(), b"aXaXaXa")
    assert station.run(station.box.edit(path, b"X", b"yy", every=True)) == 3
    assert station.run(station.box.read(path)) == b"ayyayyayya"


def test_overlapping_matches_count_once(station: Station) -> None:
    path = station.write(station.folder(), b"aaaa")
    assert station.run(station.box.edit(path, b"aa", b"b", every=True)) == 2


def test_a_folder_is_listed_in_byte_order(station: Station) -> None:
    place = upload(
        station,
        ("b", FileKind.FILE, b"12"),
        ("a", FileKind.DIRECTORY, b""),
        ("a/x", FileKind.FILE, b""),
        ("a-", FileKind.FILE, b""),
        ("l", LINK, b"a"),
    )
    flat = station.run(station.box.list(place))
    assert [s.path for s in flat] == [b"a", b"a-", b"b", b"l"]
    assert [s.kind for s in flat] == [FileKind.DIRECTORY, FileKind.FILE, FileKind.FILE, LINK]
    assert flat[2].size == 2
    assert flat[3].target == b"a"
    deep = station.run(station.box.list(place, depth=2))
    assert [s.path for s in deep] == [b"a", b"a-", b"a/x", b"b", b"l"]


def test_a_list_stops_at_its_limit(station: Station) -> None:
    place = upload(station, *((f"f{n:03}", FileKind.FILE, b"") for n in range(300)))
    assert len(station.run(station.box.list(place))) == 300
    first = station.run(station.box.list(place, limit=7))
    assert [s.path for s in first] == [f"f{n:03}".encode() for n in range(7)]


def test_listing_what_is_no_folder(station: Station) -> None:
    place = upload(station, ("f", FileKind.FILE, b""), ("l", LINK, b"."))
    assert station.run(station.box.list(f"{station.box.root}", depth=1)) != ()
    assert station.fault(station.box.list(f"{place}/none")) == "missing"
    assert station.fault(station.box.list(f"{place}/f")) == "not_directory"
    assert station.fault(station.box.list(f"{place}/l")) == "link"


def test_a_link_is_described_and_not_followed(station: Station) -> None:
    place = upload(station, ("l", LINK, b"/etc/passwd"))
    found = station.run(station.box.stat(f"{place}/l"))
    assert (found.kind, found.target) == (LINK, b"/etc/passwd")
    assert station.fault(station.box.stat(f"{place}/none")) == "missing"


def test_times_and_inodes_tell_files_apart(station: Station) -> None:
    one = station.run(station.box.stat(station.write(station.folder(), b"1")))
    two = station.run(station.box.stat(station.write(station.folder(), b"1")))
    assert one.inode != two.inode
    assert one.mtime > 0


def test_a_link_is_removed_and_its_target_stays(station: Station) -> None:
    place = upload(
        station, ("f", FileKind.FILE, b"x"), ("l", LINK, b"f"), ("d", FileKind.DIRECTORY, b"")
    )
    station.run(station.box.remove(f"{place}/l"))
    station.run(station.box.remove(f"{place}/d"))
    assert station.fault(station.box.remove(f"{place}/l")) == "missing"
    assert station.run(station.box.read(f"{place}/f")) == b"x"


def test_a_folder_that_holds_something_is_not_removed(station: Station) -> None:
    place = upload(station, ("f", FileKind.FILE, b"x"))
    assert station.fault(station.box.remove(place)) == "directory"
    assert station.run(station.box.read(f"{place}/f")) == b"x"


def test_many_entries_are_created(station: Station) -> None:
    files = [(f"f{n}", FileKind.FILE, b"%d" % n) for n in range(1_500)]
    place = upload(station, *files)
    assert len(station.run(station.box.list(place))) == 1_500
    assert station.run(station.box.read(f"{place}/f1499")) == b"1499"


@pytest.mark.parametrize(
    "name",
    [b"a b", b"-rf", b"new\nline", b"tab\t", b"\xff\xfe", "é\u202e".encode(), b"*", b"'\"", b"..."],
)
def test_odd_names_are_names(station: Station, name: bytes) -> None:
    place = station.folder()
    folder = place.rpartition("/")[2].encode()
    entries = [
        Upload(folder, FileKind.DIRECTORY, 0o755),
        Upload(folder + b"/" + name, FileKind.FILE, 0o644, b"odd"),
    ]
    station.run(station.box.upload(entries))
    assert [s.path for s in station.run(station.box.list(place))] == [name]
    text = name.decode("utf-8", "surrogateescape")
    assert station.run(station.box.read(f"{place}/{text}")) == b"odd"


@pytest.mark.parametrize("path", [b"", b"/etc/x", b"../x", b"a/../../x", b"a\0b", b"."])
def test_an_upload_does_not_leave_the_root(station: Station, path: bytes) -> None:
    assert station.fault(station.box.upload([Upload(path, FileKind.FILE)])) == "name"


def test_an_upload_does_not_follow_its_own_link(station: Station) -> None:
    name = station.folder().rpartition("/")[2].encode()
    entries = [Upload(name, LINK, data=b"/tmp"), Upload(name + b"/x", FileKind.FILE)]
    assert station.fault(station.box.upload(entries)) in {"link", "not_directory"}


def test_uploaded_modes_are_kept(station: Station) -> None:
    name = station.folder().rpartition("/")[2].encode()
    station.run(station.box.upload([Upload(name, FileKind.FILE, 0o755, b"#!/bin/sh\necho ran\n")]))
    found = station.run(station.box.stat(f"{station.box.root}/{name.decode()}"))
    assert found.mode == 0o755


def test_what_is_uploaded_belongs_to_the_user_and_runs(real: Station) -> None:
    name = real.folder().rpartition("/")[2]
    entry = Upload(name.encode(), FileKind.FILE, 0o755, b"#!/bin/sh\necho ran\n")
    real.run(real.box.upload([entry]))
    assert real.out(f"./{name} && [ -O {name} ]") == "ran\n"


def test_links_resolve_as_the_box_sees_them(station: Station) -> None:
    place = upload(
        station,
        ("d", FileKind.DIRECTORY, b""),
        ("d/f", FileKind.FILE, b""),
        ("in", LINK, b"d"),
        ("out", LINK, b"/"),
        ("up", LINK, b"../.."),
        ("gone", LINK, b"d/none/deep"),
        ("loop", LINK, b"loop"),
    )
    asked = {
        f"{place}/in/f": f"{place}/d/f",
        f"{place}/d/new/er": f"{place}/d/new/er",
        f"{place}/out/etc": "/etc",
        f"{place}/in/../in": f"{place}/d",
        f"{place}/gone/x": f"{place}/d/none/deep/x",
        f"{place}/up": _parent(station.box.root),
    }
    links = station.run(station.box.resolve_links(list(asked)))
    assert links == asked
    loop = f"{place}/loop/x"
    assert station.run(station.box.resolve_links([loop]))[loop].startswith("/proc/unresolved")


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def test_nothing_to_resolve_is_nothing(station: Station) -> None:
    assert station.run(station.box.resolve_links([])) == {}
