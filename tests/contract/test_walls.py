"""What a process in a box may not do. It tries, and the test looks at what happened."""

from __future__ import annotations

import pytest

from harness.sandbox.docker import DockerBackend
from harness.sandbox.hardening import tmpfs_places
from tests.contract.stations import SPEC, Station

pytestmark = pytest.mark.sandbox


def python(at: Station, code: str) -> str:
    """Standard output of a Python program in the box that must succeed."""
    result = at.exec("python3", "-c", code)
    assert result.ok, result.stderr.data.decode()
    return result.stdout.data.decode().strip()


def attempt(at: Station, code: str) -> str:
    """Name of the error an attempt ends with, or `done`."""
    indented = "\n".join(f"    {line}" for line in code.splitlines())
    return python(
        at,
        f"import os, socket\ntry:\n{indented}\nexcept OSError as e:\n"
        "    import errno\n    print(errno.errorcode.get(e.errno, e))\nelse:\n    print('done')",
    )


def test_the_user_is_nobody_in_particular(boxed: Station) -> None:
    assert boxed.out("id -u; id -g; id -G").split() == ["1000", "1000", "1000"]


def test_no_capability_no_new_privileges_and_a_filter(boxed: Station) -> None:
    status = dict(
        line.split(":\t", 1)
        for line in boxed.out("cat /proc/self/status").splitlines()
        if ":\t" in line
    )
    assert {status[k].strip("0") for k in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {""}
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def test_there_is_no_network_but_loopback(boxed: Station) -> None:
    assert boxed.out("ls /sys/class/net").split() == ["lo"]
    assert attempt(boxed, "socket.create_connection(('1.1.1.1', 443), 2)") in {
        "ENETUNREACH",
        "EHOSTUNREACH",
    }
    assert python(
        boxed,
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(s.getsockname())\nprint('up')",
    ) == "up"  # fmt: skip


def test_the_hosts_resolver_is_not_shown(boxed: Station) -> None:
    words = boxed.out("cat /etc/resolv.conf")
    assert [w for w in words.split("\n") if w.startswith("nameserver")] == ["nameserver 127.0.0.1"]


@pytest.mark.parametrize("path", ["/x", "/etc/x", "/usr/bin/x", "/.harness/x", "/root/x", "/run/x"])
def test_the_root_cannot_be_written(boxed: Station, path: str) -> None:
    assert attempt(boxed, f"open({path!r}, 'w')") in {"EROFS", "EACCES"}


def test_no_engine_socket_and_no_device_is_in_reach(boxed: Station) -> None:
    assert boxed.out("find / -xdev -type s 2>/dev/null; true") == ""
    assert boxed.out("find /dev -type b; true") == ""
    assert boxed.out("ls -A /run | grep -E 'docker|containerd|podman'; true") == ""


@pytest.mark.parametrize(
    "code",
    [
        "os.listdir('/proc/1/fd')",
        "open('/proc/1/fd/0', 'rb').read(1)",
        "open('/proc/1/fd/1', 'wb').write(b'x')",
        "open('/proc/1/mem', 'rb').read(1)",
        "open('/proc/1/mem', 'r+b')",
        "open('/proc/1/environ', 'rb').read()",
        "os.readlink('/proc/1/exe')",
        "os.readlink('/proc/1/cwd')",
        "os.listdir('/proc/1/map_files')",
        "os.kill(1, 9)",
        "os.kill(1, 19)",
        "os.kill(1, 0)",
        "os.setpriority(os.PRIO_PROCESS, 1, 19)",
    ],
)
def test_the_first_process_cannot_be_touched(boxed: Station, code: str) -> None:
    assert attempt(boxed, code) in {"EACCES", "EPERM"}
    assert boxed.sh("true").ok


def test_the_first_process_cannot_be_traced(boxed: Station) -> None:
    code = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "r = libc.ptrace(16, 1, 0, 0)\nprint(r, ctypes.get_errno())"
    )
    result = boxed.exec("python3", "-c", code)
    if b"ctypes" in result.stderr.data:
        pytest.skip("this image's Python has no ctypes")
    assert result.stdout.data.split()[0] == b"-1"


def test_root_cannot_be_had(boxed: Station) -> None:
    assert attempt(boxed, "os.setuid(0)") == "EPERM"
    assert attempt(boxed, "os.setgroups([0])") == "EPERM"
    assert attempt(boxed, "os.chroot('/')") == "EPERM"
    assert attempt(boxed, "os.mknod('/workspace/dev', 0o60666, os.makedev(8, 0))") == "EPERM"
    script = "cp /bin/sh s && chmod 6755 s && ./s -c 'id -u'"
    assert boxed.out(script).strip() == "1000"


def test_namespaces_and_mounts_are_closed(boxed: Station) -> None:
    for command in ("unshare -Ur true", "mount -t tmpfs x /mnt", "mount -o remount,rw /"):
        result = boxed.sh(command)
        assert result.code not in {0, None}


def test_kernel_settings_cannot_be_written(boxed: Station) -> None:
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/mm/x"):
        assert attempt(boxed, f"open({path!r}, 'w')") in {"EROFS", "EACCES", "ENOENT"}


def test_programs_may_run_from_the_workspace_and_scratch(boxed: Station) -> None:
    for place in ("/workspace", "/tmp", "/home/agent"):
        script = f"printf '#!/bin/sh\\necho ran' > {place}/p && chmod +x {place}/p && {place}/p"
        assert boxed.out(script).strip() == "ran"


def test_every_place_that_can_be_written_is_a_bounded_one(boxed: Station) -> None:
    pruned = " -o ".join(f"-path {p}" for p in ("/proc", *tmpfs_places()))
    script = f"find / \\( {pruned} \\) -prune -o \\( -type f -o -type d \\) -writable -print"
    writable = boxed.out(f"{script} 2>/dev/null; true").split()
    # message queues are bounded by the kernel's own RLIMIT_MSGQUEUE
    assert set(writable) <= {"/dev/mqueue"}


def test_the_box_says_what_it_holds(boxed: Station) -> None:
    held = boxed.box.capabilities
    assert (held.backend, held.isolated) == ("docker", True)
    assert held.features["users"] == "two"
    assert {k for k, v in held.limits.items() if v.value == "hard"} >= {
        "memory", "pids", "cpus", "disk", "inodes", "scratch", "shm", "nofile",
    }  # fmt: skip
    assert boxed.box.image.startswith("sha256:")


def test_the_engine_was_asked_for_exactly_these_walls(boxed: Station) -> None:
    async def go() -> dict[str, object]:
        backend = DockerBackend()
        try:
            box = await backend.create(SPEC, run="look")
            mine = [b for b in await backend.list_boxes() if b.run == "look" and b.leased]
            facts = await backend.engine.call(
                "look", lambda c: c.inspect_container(mine[0].container)
            )
            await box.close()
        finally:
            await backend.close()
        return facts

    facts = boxed.run(go())
    host, config = facts["HostConfig"], facts["Config"]
    assert isinstance(host, dict)
    assert isinstance(config, dict)
    assert (config["OpenStdin"], config["StdinOnce"], config["Tty"]) == (True, False, False)
    assert host["LogConfig"]["Type"] == "none"
    assert host["RestartPolicy"]["Name"] == "no"
    assert host["NetworkMode"] == "none"
    assert host["Binds"] is None
    assert host["Devices"] in (None, [])
    assert host["PidMode"] == ""
    assert host["IpcMode"] == "private"
    assert "unconfined" not in str(host["SecurityOpt"])
    assert host["MaskedPaths"]
    assert host["ReadonlyPaths"]
