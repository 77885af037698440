"""Sessions on disk: whole records, a chain that shows edits, one writer, torn ends mended."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
from pathlib import Path

import pytest

from harness.errors import SessionCorrupt, SessionLocked, SessionStorage, UserError
from harness.sessions.clock import FixedClock
from harness.sessions.store import FileLog, Store
from harness.values.events import NoteAdded, Record, UserMessage


def written(folder: Path, *texts: str) -> Path:
    log = FileLog(folder, FixedClock())

    async def fill() -> None:
        for text in texts:
            await log.append(UserMessage(text), turn=0, durable=True)

    asyncio.run(fill())
    log.close()
    return folder / "events.jsonl"


def texts(records: tuple[Record, ...]) -> list[str]:
    return [r.event.text for r in records if isinstance(r.event, UserMessage | NoteAdded)]


def session(state: Path, *said: str) -> tuple[Store, str]:
    store = Store(state)
    log = store.create(FixedClock())
    log.close()
    written(log.folder, *said)
    return store, log.session


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    store, name = session(tmp_path, "a", "b", "c")
    assert texts(store.read(name)) == ["a", "b", "c"]
    assert store.verify(name) == ()


def test_a_session_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    _, name = session(tmp_path, "a")
    folder = tmp_path / "sessions" / name
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "events.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    first = FileLog(tmp_path / "s", FixedClock())
    with pytest.raises(SessionLocked, match="in use"):
        FileLog(tmp_path / "s", FixedClock())
    first.close()
    FileLog(tmp_path / "s", FixedClock()).close()


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_end_is_cut_off_kept_aside_and_written_over(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path / "s", "a", "b")
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    written(tmp_path / "s", "c")
    log = FileLog(tmp_path / "s", FixedClock())
    assert texts(tuple(log.records())) == ["a", "c"]
    aside = list((tmp_path / "s" / "quarantine").iterdir())
    assert len(aside) == 1
    assert data.endswith(aside[0].read_bytes() + data[-cut:])


def test_a_tail_of_nul_bytes_after_a_power_cut_is_torn(tmp_path: Path) -> None:
    path = written(tmp_path / "s", "a")
    with path.open("ab") as file:
        file.write(b"\0" * 512)
    log = FileLog(tmp_path / "s", FixedClock())
    assert texts(tuple(log.records())) == ["a"]


def edit(line: bytes, text: str) -> bytes:
    data = json.loads(line)
    data["text"] = text
    return json.dumps(data, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0], edit(lines[1], "forged"), lines[2]],
        lambda lines: [lines[0], lines[2]],
        lambda lines: [lines[1], lines[0], lines[2]],
        lambda lines: [lines[0], lines[1], lines[1], lines[2]],
        lambda lines: [lines[0], b"not json", lines[2]],
        lambda lines: [lines[0], b"[]", lines[2]],
        lambda lines: [lines[0], b"\xff\xfe", lines[2]],
        lambda lines: [lines[0], b"[" * 100_000, lines[2]],
        lambda lines: [lines[0], b"", lines[2]],
    ],
    ids=["edited", "left out", "swapped", "doubled", "garbage", "array", "bytes", "deep", "blank"],
)
def test_a_changed_log_is_found_and_never_read_as_true(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    store, name = session(tmp_path, "a", "b", "c")
    path = tmp_path / "sessions" / name / "events.jsonl"
    path.write_bytes(b"\n".join(change(path.read_bytes().splitlines())) + b"\n")
    assert store.verify(name) != ()
    with pytest.raises(SessionCorrupt):
        store.read(name)


def test_a_log_that_cannot_be_read_keeps_no_lock(tmp_path: Path) -> None:
    store, name = session(tmp_path, "a", "b")
    path = tmp_path / "sessions" / name / "events.jsonl"
    path.write_bytes(b"not json\n")
    files = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(SessionCorrupt):
            FileLog(path.parent, FixedClock())
    assert len(list(Path("/proc/self/fd").iterdir())) == files
    assert store.verify(name) != ()


def test_a_kind_of_a_later_version_is_kept_and_passed_over(tmp_path: Path) -> None:
    store, name = session(tmp_path)
    path = tmp_path / "sessions" / name / "events.jsonl"
    line = {"v": 1, "seq": 0, "ts": 1.5, "session": name, "turn": 0, "kind": "moon.rose", "x": 1}
    path.write_text(json.dumps(line | {"prev": ""}) + "\n")
    (record,) = store.read(name)
    assert (record.event.kind, record.event.name, record.event.fields) == (  # type: ignore[union-attr]
        "unknown",
        "moon.rose",
        {"x": 1},
    )


def test_blobs_are_named_by_their_content_and_checked(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "s", FixedClock())
    name = asyncio.run(log.put_blob(b"patch"))
    assert asyncio.run(log.put_blob(b"patch")) == name
    assert asyncio.run(log.get_blob(name)) == b"patch"
    (tmp_path / "s" / "blobs" / "sha256" / name).write_bytes(b"forged")
    with pytest.raises(SessionCorrupt, match="was changed"):
        asyncio.run(log.get_blob(name))
    for missing in ("0" * 64, "../../events.jsonl", ""):
        with pytest.raises(SessionCorrupt, match="no blob"):
            asyncio.run(log.get_blob(missing))


def test_a_full_disk_leaves_whole_records_and_a_typed_error(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "s", FixedClock())
    asyncio.run(log.append(UserMessage("a"), turn=0))
    size = (tmp_path / "s" / "events.jsonl").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
    try:
        with pytest.raises(SessionStorage, match="free some space"):
            asyncio.run(log.append(UserMessage("b" * 1000), turn=0))
        with pytest.raises(SessionStorage):
            asyncio.run(log.put_blob(b"x" * (size + 1000)))
        assert list((tmp_path / "s" / "blobs" / "sha256").iterdir()) == []
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    asyncio.run(log.append(UserMessage("c"), turn=0))
    log.close()
    assert texts(tuple(FileLog(tmp_path / "s", FixedClock()).records())) == ["a", "c"]


def test_a_store_without_permission_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(SessionStorage, match="permission denied"):
            Store(tmp_path).create(FixedClock())
    finally:
        os.seteuid(user)


def test_a_store_that_is_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("")
    with pytest.raises(SessionStorage, match="HARNESS_STATE"):
        Store(tmp_path).create(FixedClock())


def test_sessions_are_listed_newest_first_and_found_by_either_end(tmp_path: Path) -> None:
    store, clock = Store(tmp_path), FixedClock()
    assert store.ids() == ()
    names = []
    for _ in range(3):
        log = store.create(clock)
        log.close()
        names.insert(0, log.session)
        clock.advance(0.002 if len(names) == 1 else 60)
    (tmp_path / "sessions" / "stray").mkdir()
    assert store.ids() == tuple(names)
    assert store.find(names[1][:19]) == names[1]
    assert store.find(names[2][-8:]) == names[2]
    with pytest.raises(UserError, match="3 sessions match"):
        store.find(names[0][:6])
    with pytest.raises(UserError, match="no session matches"):
        store.find("x")
