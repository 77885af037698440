"""Which boxes are taken away, and that nothing else is."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import SandboxError
from harness.sandbox import reaper
from harness.sandbox.engine import Engine
from harness.sandbox.owner import Leases, Life, Owner
from tests.sandbox.engines import Answer, Answers, serving

HERE = Owner.current()
DEAD = replace(HERE, pid=2**22 + 1, started="1")
FAR = replace(HERE, boot="another-kernel")
NOW = 1_000_000.0
BOX = "abc0" * 8


def row(**changes: object) -> reaper.BoxRow:
    base = reaper.BoxRow("c1", "b1", "r1", "running", "i", str(HERE), Life.ALIVE, False, NOW + 60)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_a_living_owner_keeps_its_box() -> None:
    assert row().abandoned(NOW) == ""


def test_a_dead_owner_does_not() -> None:
    assert row(life=Life.DEAD).abandoned(NOW) == "its owner is dead"


def test_an_unknown_owner_keeps_it_until_the_deadline() -> None:
    assert row(life=Life.UNKNOWN).abandoned(NOW) == ""
    assert row(life=Life.UNKNOWN).abandoned(NOW + 60) == "its deadline has passed"


def test_a_deadline_that_cannot_be_read_has_passed() -> None:
    assert row(deadline=None).abandoned(NOW) == "its deadline has passed"


@pytest.mark.parametrize("life", list(Life))
def test_a_held_lease_keeps_it_whatever_else_is_said(life: Life) -> None:
    assert row(life=life, leased=True, deadline=0.0).abandoned(NOW) == ""


def test_this_process_is_alive() -> None:
    assert HERE.life(HERE) is Life.ALIVE


def test_a_process_that_ended_is_dead_even_if_its_number_is_taken_again() -> None:
    assert DEAD.life(HERE) is Life.DEAD
    assert replace(HERE, started="1").life(HERE) is Life.DEAD


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    owner = replace(HERE, pid=child.pid, started=_start_time(child.pid))
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert owner.life(HERE) is Life.DEAD
    child.wait()


def _start_time(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


@pytest.mark.parametrize("other", [FAR, replace(HERE, namespace="1"), replace(HERE, boot="")])
def test_another_kernel_or_namespace_is_unknown(other: Owner) -> None:
    assert other.life(HERE) is Life.UNKNOWN


def test_an_owner_survives_being_written_down() -> None:
    assert Owner.parse(str(HERE)) == HERE


@pytest.mark.parametrize("text", ["", "a b c d e", "a b c 1", "a b c -1 e", "a b c 1 e f"])
def test_other_text_is_no_owner(text: str) -> None:
    assert Owner.parse(text) is None


def test_a_lease_is_held_once_and_let_go(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "boxes")
    lease = leases.take(BOX)
    assert leases.held(BOX)
    with pytest.raises(SandboxError, match="another process holds"):
        leases.take(BOX)
    lease.release()
    lease.release()
    assert not leases.held(BOX)


def test_a_lease_dies_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom harness.sandbox.owner import Leases\n"
        f"kept = Leases(pathlib.Path({str(tmp_path)!r})).take('{BOX}')\n"
        "print('held', flush=True)\nsys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    assert Leases(tmp_path).held(BOX)
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()
    assert not Leases(tmp_path).held(BOX)


def test_files_of_dead_holders_are_swept_and_others_stay(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "boxes")
    living, old, young = "1" * 32, "2" * 32, "3" * 32
    kept = leases.take(living)
    for name in (old, young, "notes", "4" * 31, "A" * 32):
        (tmp_path / "boxes" / name).touch()
    for path in (tmp_path / "boxes").iterdir():
        if path.name != young:
            os.utime(path, (NOW, NOW))
    leases.sweep(NOW + 61)
    left = {p.name for p in (tmp_path / "boxes").iterdir()}
    assert left == {living, young, "notes", "4" * 31, "A" * 32}
    kept.release()


@pytest.mark.parametrize("box", ["", "..", "a/b", "/etc/passwd"])
def test_a_box_name_from_a_label_is_no_path(tmp_path: Path, box: str) -> None:
    leases = Leases(tmp_path / "boxes")
    (tmp_path / "victim").touch()
    assert not leases.held(box)
    leases.forget(box)
    leases.forget("../victim")
    assert (tmp_path / "victim").exists()


def test_a_lease_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(SandboxError, match="writable by others"):
        Leases(tmp_path).take(BOX)


def _belongs_to_another(folder: Path) -> Path:
    os.chown(folder, 12345, 12345)
    return folder


def _is_open_to_all(folder: Path) -> Path:
    folder.chmod(0o777)
    return folder


def _is_a_link(folder: Path) -> Path:
    (folder.parent / "link").symlink_to(folder)
    return folder.parent / "link"


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.mark.parametrize(
    "spoil", [pytest.param(_belongs_to_another, marks=AS_ROOT), _is_open_to_all, _is_a_link]
)
def test_a_lease_folder_that_is_not_ours_is_neither_believed_nor_emptied(
    tmp_path: Path, spoil: Callable[[Path], Path]
) -> None:
    folder = tmp_path / "boxes"
    folder.mkdir()
    (folder / BOX).touch()
    os.utime(folder / BOX, (NOW, NOW))
    with (folder / BOX).open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        leases = Leases(spoil(folder))
        assert not leases.held(BOX)
    leases.sweep(NOW + 61)
    leases.forget(BOX)
    assert (folder / BOX).exists()
    with pytest.raises(SandboxError, match="cannot keep a lease"):
        leases.take("d" * 32)


def test_what_cannot_be_removed_from_the_lease_folder_ends_nothing(tmp_path: Path) -> None:
    leases = Leases(tmp_path)
    (tmp_path / BOX).mkdir()
    (tmp_path / ("b" * 32)).symlink_to("elsewhere")
    leases.forget(BOX)
    leases.sweep(NOW * 1e4)
    assert not leases.held(BOX)
    assert not leases.held("b" * 32)
    Leases(tmp_path / "none").sweep(NOW)
    Leases(tmp_path / "none").forget(BOX)


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare"
)
def test_a_living_process_that_proc_hides_is_not_dead() -> None:
    code = (
        "import os, dataclasses\nfrom harness.sandbox.owner import Owner\n"
        "here = Owner.current()\nos.setgroups([])\nos.setresgid(1000, 1000, 1000)\n"
        "os.setresuid(1000, 1000, 1000)\n"
        "assert not os.path.exists('/proc/1')\n"
        "print(dataclasses.replace(here, pid=1).life(here).value)\n"
        "print(dataclasses.replace(here, pid=4_000_000).life(here).value)"
    )
    script = f'mount -t proc -o hidepid=2 proc /proc && {sys.executable} -c "$0"; exit $?'
    command = ("unshare", "--pid", "--fork", "--mount", "sh", "-c", script, code)
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    if "mount" in done.stderr:
        pytest.skip("no /proc can be mounted here")
    assert done.stdout.split() == ["alive", "dead"], done.stderr


def test_a_number_too_long_for_a_process_is_no_owner() -> None:
    assert Owner.parse(f"a b c {'1' * 5000} e") is None


def listing(owner: Owner, container: str = "c1", deadline: float = NOW) -> dict[str, object]:
    labels = {
        reaper.OWNER: str(owner),
        reaper.RUN: "r",
        reaper.BOX: f"box{container}",
        reaper.DEADLINE: str(int(deadline)),
    }
    return {"Id": container, "State": "running", "Image": "i", "Labels": labels}


def sweep(folder: Path, answers: Answers) -> tuple[tuple[reaper.Reaped, ...], list[str]]:
    async def go() -> tuple[tuple[reaper.Reaped, ...], list[str]]:
        async with serving(folder, answers) as (fake, endpoint):
            engine = Engine(endpoint)
            done = await reaper.reap(engine, Leases(folder / "boxes"), HERE, NOW - 1)
            await engine.close()
            return done, [s for s in fake.seen if s.startswith("DELETE")]

    return asyncio.run(go())


def test_only_abandoned_boxes_are_removed(tmp_path: Path) -> None:
    boxes = [listing(HERE, "alive"), listing(DEAD, "dead"), listing(FAR, "far")]
    answers = {"GET /containers/json": (200, boxes), "DELETE /containers/dead": (204, None)}
    done, deleted = sweep(tmp_path, answers)
    assert [(d.row.container, d.gone) for d in done] == [("dead", True)]
    assert deleted == ["DELETE /containers/dead"]


def test_a_removal_that_is_under_way_is_waited_for(tmp_path: Path) -> None:
    looks = iter([(200, {"Id": "c1"}), (404, {"message": "gone"})])

    def look() -> Answer:
        return next(looks)

    answers = {
        "GET /containers/json": (200, [listing(DEAD)]),
        "DELETE /containers/c1": (409, {"message": "removal is already in progress"}),
        "GET /containers/c1/json": look,
    }
    done, _ = sweep(tmp_path, answers)
    assert [d.gone for d in done] == [True]


def test_a_box_that_stays_is_reported(tmp_path: Path) -> None:
    answers = {
        "DELETE /containers/c1": (500, {"message": "device busy"}),
        "GET /containers/c1/json": (200, {"Id": "c1"}),
    }

    async def go() -> tuple[bool, float]:
        async with serving(tmp_path, answers) as (_, endpoint):
            engine = Engine(endpoint)
            started = time.monotonic()
            gone = await reaper.remove(engine, "c1", within=0.3)
            await engine.close()
            return gone, time.monotonic() - started

    gone, seconds = asyncio.run(go())
    assert not gone
    assert seconds < 3


def test_removal_without_an_engine_gives_up_in_time(tmp_path: Path) -> None:
    async def go() -> bool:
        async with serving(tmp_path, {}) as (_, endpoint):
            engine = Engine(endpoint)
            await engine.api_version()
        (tmp_path / "engine.sock").unlink(missing_ok=True)
        gone = await reaper.remove(engine, "c1")
        await engine.close()
        return gone

    started = time.monotonic()
    assert not asyncio.run(go())
    assert time.monotonic() - started < 3
