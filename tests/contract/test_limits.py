"""Limits hold: the kernel says no, the reason is told, and the box goes on."""

from __future__ import annotations

import contextlib

import pytest

from harness.errors import FileFault
from harness.values.commands import ExitReason, FileKind, Upload
from tests.contract.stations import SMALL, Station

NO_ROOM = b"the box has no room for another process; stop background processes"
pytestmark = pytest.mark.sandbox


def test_a_fork_bomb_meets_the_process_limit_and_the_box_lives(boxed: Station) -> None:
    code = (
        "import os, time\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n"
        "            time.sleep(60)\n            os._exit(0)\n        n += 1\n"
        "except BlockingIOError:\n    print(n)"
    )
    result = boxed.exec("python3", "-c", code, kill_left=True)
    assert result.ok, result.stderr.data
    assert 10 < int(result.stdout.data) < SMALL.pids
    assert boxed.sh("true").ok


BOMB = (
    "import os, sys\nif os.fork():\n    os._exit(0)\nos.setsid()\n"
    "sys.stdout.flush()\nfor fd in range(3):\n    os.close(fd)\n"
    "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
)


def test_a_bomb_left_in_the_background_is_the_workloads_fault_and_can_be_ended(
    boxed: Station,
) -> None:
    """Every place is taken, and one that falls free is taken at once."""
    path = boxed.write(boxed.folder(), b"work")
    assert boxed.exec("python3", "-c", BOMB).left_running >= 1
    results = [boxed.sh("true", timeout=20) for _ in range(20)]
    refused = [(r.code, r.stderr.data) for r in results if not r.ok]
    assert set(refused) == {(126, NO_ROOM + b"\n")}
    with contextlib.suppress(FileFault):
        boxed.run(boxed.box.stat(path))
    boxed.run(boxed.box.quiet())
    assert boxed.run(boxed.box.read(path)) == b"work"
    assert boxed.sh("true").ok


def test_a_bomb_that_never_stops_is_ended_by_its_timeout(boxed: Station) -> None:
    result = boxed.sh("b() { b | b & b; }; b", timeout=1.5, grace=0.2)
    assert result.reason in {ExitReason.TIMEOUT, ExitReason.EXITED}
    assert boxed.sh("true", timeout=20).ok


def test_too_much_memory_is_told_as_such(boxed: Station) -> None:
    result = boxed.exec("python3", "-c", "x = []\nwhile True: x.append(bytearray(8 << 20))")
    assert (result.reason, result.code, result.signal) == (ExitReason.OOM, None, 9)
    assert boxed.sh("true").ok


def test_a_child_that_wants_too_much_is_told_too(boxed: Station) -> None:
    script = "python3 -c 'x = []\nwhile True: x.append(bytearray(8 << 20))'; echo code $?"
    result = boxed.sh(script)
    assert b"code 137" in result.stdout.data
    assert boxed.sh("true").reason is ExitReason.EXITED


@pytest.mark.parametrize(
    ("place", "size"),
    [("/workspace", SMALL.disk), ("/tmp", SMALL.scratch), ("/dev/shm", SMALL.shm)],
)
def test_a_full_disk_is_no_space_and_not_a_kill(boxed: Station, place: str, size: int) -> None:
    script = f"dd if=/dev/zero of={place}/full bs=1M count=400 2>&1; stat -c %s {place}/full"
    result = boxed.sh(f"{script}; rm {place}/full")
    assert b"No space left" in result.stdout.data
    written = int(result.stdout.data.split()[-1])
    assert 0.5 * size < written <= size


def test_writing_a_file_to_a_full_disk_is_a_fault(boxed: Station) -> None:
    path = boxed.folder()
    boxed.sh(f"dd if=/dev/zero of={path} bs=1M count=400")
    assert boxed.fault(boxed.box.write(f"{path}.more", bytes(1 << 20))) == "no_space"
    assert boxed.fault(boxed.box.stat(f"{path}.more")) == "missing"
    name = path.rpartition("/")[2].encode()
    entry = Upload(name + b"-up", FileKind.FILE, 0o644, bytes(1 << 20))
    assert boxed.fault(boxed.box.upload([entry])) == "no_space"
    boxed.run(boxed.box.remove(path))
    boxed.write(f"{path}.more", bytes(1 << 20))


def test_the_number_of_files_is_bounded(boxed: Station) -> None:
    place = boxed.folder()
    code = (
        f"import os\nos.mkdir({place!r})\nn = 0\ntry:\n    while True:\n"
        f"        open(f'{place}/{{n}}', 'w').close()\n        n += 1\n"
        "except OSError as e:\n    print(e.errno, n)"
    )
    result = boxed.exec("python3", "-c", code)
    number, made = map(int, result.stdout.data.split())
    assert number == 28
    assert 0.5 * SMALL.inodes < made < SMALL.inodes
    boxed.out(f"rm -r {place}")


def test_open_files_are_bounded_and_no_core_is_written(boxed: Station) -> None:
    assert boxed.out("ulimit -n; ulimit -Hn; ulimit -c; ulimit -Hc").split() == [
        str(SMALL.nofile),
        str(SMALL.nofile),
        "0",
        "0",
    ]


def test_cpu_time_is_bounded(boxed: Station) -> None:
    burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    usage = boxed.sh(f"({burn}) & ({burn}) & ({burn}) & ({burn}) & wait").usage
    assert usage.user is not None
    assert usage.system is not None
    assert usage.user + usage.system < usage.wall * SMALL.cpus * 1.25 + 0.2
