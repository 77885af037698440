"""The supervisor as PID 1 over a workload of another user, in a PID namespace of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.errors import FileFault
from harness.sandbox.supervised import SupervisedSandbox
from harness.values.commands import ExecRequest, ExitReason, FileKind, Upload
from harness.values.limits import Capabilities
from tests.sandbox.supervising import linked, shell, supervisor

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare"
)

UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc")
PYTHON = "/usr/bin/python3"


@contextlib.asynccontextmanager
async def pid_one(folder: Path) -> AsyncIterator[SupervisedSandbox]:
    work = folder / "work"
    work.mkdir()
    os.chown(work, 1000, 1000)
    for place in (folder, *folder.parents[:3]):
        place.chmod(place.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    program = folder / "supervisor"
    shutil.copy(supervisor(), program)
    async with linked(*UNSHARE, str(program)) as (link, _):
        assert link.hello.features == {
            "tree_kill": "full",
            "oom": link.hello.features["oom"],
            "users": "two",
            "init": "yes",
        }
        yield SupervisedSandbox(
            link,
            root=str(work),
            capabilities=Capabilities("test", False, {}),
            image="test",
            env={"PATH": "/usr/bin:/bin"},
        )


ATTACK = """
import ctypes, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
def ptrace(pid):
    if libc.ptrace(16, pid, 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")
def opened(pid, name, flags):
    os.close(os.open(f"/proc/{pid}/{name}", flags))
for pid in (1, os.getppid()):
    tries = {
        "term": lambda: os.kill(pid, signal.SIGTERM),
        "stop": lambda: os.kill(pid, signal.SIGSTOP),
        "ptrace": lambda: ptrace(pid),
        "prlimit": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (9, 9)),
        "list fd": lambda: os.listdir(f"/proc/{pid}/fd"),
    }
    for name in ("fd/0", "fd/1", "fd/2", "mem", "maps", "environ", "oom_score_adj"):
        if name != "oom_score_adj":
            tries["read " + name] = lambda name=name: opened(pid, name, os.O_RDONLY)
        tries["write " + name] = lambda name=name: opened(pid, name, os.O_WRONLY)
    for name, attempt in tries.items():
        try:
            attempt()
            print("OPEN", pid, name)
        except OSError as error:
            print("denied", pid, name, error)
print(os.getuid(), os.getgid(), os.getgroups())
"""


def test_the_workload_cannot_touch_pid_one_nor_its_keeper(tmp_path: Path) -> None:
    async def go() -> str:
        async with pid_one(tmp_path) as box:
            result = await box.exec(ExecRequest((PYTHON, "-c", ATTACK)))
            assert result.ok, result
            assert (await box.exec(shell("true"))).ok
            return result.stdout.data.decode()

    said = asyncio.run(go())
    *tries, ids = said.splitlines()
    assert len(tries) == 36
    assert all(line.startswith("denied") for line in tries)
    assert ids == "1000 1000 []"


def test_the_workload_has_no_capability(tmp_path: Path) -> None:
    async def go() -> bytes:
        async with pid_one(tmp_path) as box:
            return (
                await box.exec(shell("grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status"))
            ).stdout.data

    lines = asyncio.run(go()).split()
    assert lines[1::2] == [b"0000000000000000"] * 4


def test_file_operations_act_as_the_workloads_user(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)

    async def go() -> None:
        async with pid_one(tmp_path) as box:
            await box.write(f"{box.root}/made", b"x")
            await box.upload([Upload(b"sent", FileKind.FILE, 0o600, b"y")])
            for name in ("made", "sent"):
                assert (Path(box.root) / name).stat().st_uid == 1000
            for path in (str(secret), "/proc/1/environ"):
                with pytest.raises(FileFault) as fault:
                    await box.read(path)
                assert fault.value.code == "denied"
            with pytest.raises(FileFault) as fault:
                await box.write("/etc/made-by-a-test", b"x")
            assert fault.value.code == "denied"

    asyncio.run(go())
    assert not Path("/etc/made-by-a-test").exists()


BOMB = """
import os, resource
resource.setrlimit(resource.RLIMIT_NPROC, (400, 400))
while True:
    try:
        os.fork() or os.setsid()
    except OSError:
        pass
"""


@pytest.mark.slow
def test_a_fork_bomb_is_killed_and_others_live_on(tmp_path: Path) -> None:
    async def go() -> None:
        async with pid_one(tmp_path) as box:
            background = await box.exec(shell("sleep 60 & echo $!"))
            bomb = ExecRequest((PYTHON, "-c", BOMB), timeout=0.5, grace=0.0)
            result = await box.exec(bomb)
            assert (result.signal, result.reason) == (9, ExitReason.TIMEOUT)
            assert result.usage.wall < 4
            left = await box.exec(shell("ps -eo args | grep -c '[s]etrlimit'"))
            assert left.stdout.data == b"0\n"
            pid = background.stdout.data.decode().strip()
            state = await box.exec(shell(f"grep State /proc/{pid}/status"))
            assert b"sleeping" in state.stdout.data

    asyncio.run(go())
