"""The walls of a box, as asked of the engine and as found on what it made."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import SandboxRefused
from harness.sandbox import hardening
from harness.sandbox.admission import admit, docker_capabilities, require
from harness.sandbox.hardening import BoxPlan, create_body, image_volumes, verify_created
from harness.values.limits import GIB, MIB, BoxSpec, Enforcement, Limits, Network

PLAN = BoxPlan(BoxSpec(), "sha256:1", {}, "harness-supervisor-1", ("/.harness/supervisor",))
INFO: dict[str, Any] = {
    "MemoryLimit": True,
    "SwapLimit": True,
    "CpuCfsQuota": True,
    "PidsLimit": True,
    "CgroupVersion": "2",
    "NCPU": 4,
    "MemTotal": 64 * GIB,
    "KernelVersion": "of another machine",
    "DefaultRuntime": "runc",
    "Runtimes": {"runc": {}, "runsc": {}},
    "SecurityOptions": ["name=seccomp,profile=default", "name=rootless"],
}


def created(plan: BoxPlan = PLAN) -> dict[str, Any]:
    """What an honest engine says of the box it made."""
    body = create_body(plan)
    mounts = [{"Type": "volume", "Name": plan.volume, "RW": False}]
    config = {k: v for k, v in body.items() if k != "HostConfig"}
    return {"Config": config, "HostConfig": body["HostConfig"], "Mounts": mounts}


def test_an_honest_engine_passes() -> None:
    verify_created(created(), PLAN)


@pytest.mark.parametrize(
    ("section", "key", "value", "wall"),
    [
        ("Config", "StdinOnce", True, "standard input"),
        ("Config", "Tty", True, "terminal"),
        ("HostConfig", "NetworkMode", "bridge", "no network"),
        ("HostConfig", "ReadonlyRootfs", False, "read-only root"),
        ("HostConfig", "Privileged", True, "privileged"),
        ("HostConfig", "CapDrop", [], "capabilities"),
        ("HostConfig", "CapAdd", ["SYS_ADMIN"], "three capabilities"),
        ("HostConfig", "SecurityOpt", ["seccomp=unconfined"], "privileges"),
        ("HostConfig", "Memory", 0, "memory"),
        ("HostConfig", "PidsLimit", None, "processes"),
        ("HostConfig", "Binds", ["/:/host"], "binds"),
        ("HostConfig", "AutoRemove", False, "removal"),
    ],
)
def test_a_wall_that_does_not_stand_is_named(
    section: str, key: str, value: object, wall: str
) -> None:
    facts = copy.deepcopy(created())
    facts[section][key] = value
    with pytest.raises(SandboxRefused, match=wall):
        verify_created(facts, PLAN)


def test_what_the_engine_cannot_enforce_is_neither_asked_nor_expected() -> None:
    weak = replace(PLAN, held=dict.fromkeys(("cpus", "memory", "pids"), Enforcement.NONE))
    assert "NanoCpus" not in create_body(weak)["HostConfig"]
    facts = created(weak)
    facts["HostConfig"] |= {"Memory": 0, "PidsLimit": None}
    verify_created(facts, weak)
    with pytest.raises(SandboxRefused, match="memory, processes"):
        verify_created(facts, PLAN)


def test_a_volume_of_the_image_that_was_not_covered_is_refused() -> None:
    facts = created()
    facts["Mounts"].append({"Type": "volume", "Name": "anonymous", "RW": True})
    with pytest.raises(SandboxRefused, match="only the supervisor's volume"):
        verify_created(facts, PLAN)


def test_memory_holds_every_file_of_the_box_and_the_processes() -> None:
    limits = Limits(memory=100 * MIB, disk=50 * MIB, scratch=20 * MIB, shm=10 * MIB)
    host = create_body(replace(PLAN, spec=BoxSpec(limits=limits)))["HostConfig"]
    sizes = sum(
        int(option[5:])
        for options in host["Tmpfs"].values()
        for option in options.split(",")
        if option.startswith("size=")
    )
    assert host["Memory"] == host["MemorySwap"] == 100 * MIB + sizes + hardening.HEADROOM


def test_every_writable_place_is_bounded_in_bytes_and_entries() -> None:
    for options in create_body(PLAN)["HostConfig"]["Tmpfs"].values():
        words = options.split(",")
        assert {"nosuid", "nodev"} <= set(words)
        assert any(w.startswith("size=") for w in words)
        assert any(w.startswith("nr_inodes=") for w in words)


def test_an_images_own_health_check_and_entry_point_do_not_run() -> None:
    body = create_body(PLAN)
    assert body["Healthcheck"] == {"Test": ["NONE"]}
    assert body["Entrypoint"] == ["/.harness/supervisor"]
    assert body["Cmd"] == []


def test_an_images_volumes_are_covered() -> None:
    facts = {"Config": {"Volumes": {"/var/lib/db": {}, "/workspace": {}, "/data/": {}}}}
    assert image_volumes(facts) == ("/data", "/var/lib/db")
    assert "/data" in create_body(replace(PLAN, image_facts=facts))["HostConfig"]["Tmpfs"]


@pytest.mark.parametrize(
    "place", ["/", "/proc/x", "/sys", "/dev", "/.harness", "/a/../etc", "/x,exec", "/x:rw"]
)
def test_a_volume_over_a_part_of_the_box_is_refused(place: str) -> None:
    with pytest.raises(SandboxRefused, match="declares a volume"):
        image_volumes({"Config": {"Volumes": {place: {}}}})


def test_too_many_volumes_are_refused() -> None:
    many = {f"/v{n}": {} for n in range(17)}
    with pytest.raises(SandboxRefused, match="17 volumes"):
        image_volumes({"Config": {"Volumes": many}})


def test_the_box_sets_the_users_place_and_the_spec_comes_last() -> None:
    facts = {"Config": {"Env": ["PATH=/opt/bin", "HOME=/root", "LANG=C.UTF-8", "broken"]}}
    found = hardening.environment(facts, BoxSpec(env={"LANG": "C", "X": "1"}))
    assert found["PATH"] == "/opt/bin"
    assert found["HOME"] == "/home/agent"
    assert (found["USER"], found["TMPDIR"]) == ("agent", "/tmp")
    assert (found["LANG"], found["X"]) == ("C", "1")


def test_boxes_that_are_alike_have_one_digest() -> None:
    one = hardening.spec_digest(BoxSpec(), "sha256:1")
    assert one == hardening.spec_digest(BoxSpec(env={"A": "1"}), "sha256:1")
    assert one != hardening.spec_digest(BoxSpec(), "sha256:2")
    assert one != hardening.spec_digest(BoxSpec(limits=Limits(pids=9)), "sha256:1")


def test_every_limit_has_an_enforcement() -> None:
    held = docker_capabilities(INFO, BoxSpec()).limits
    assert set(held) == set(Limits.__dataclass_fields__)
    assert held["memory"] is Enforcement.HARD


@pytest.mark.parametrize(
    ("fact", "limit", "expected"),
    [
        ("MemoryLimit", "memory", Enforcement.NONE),
        ("SwapLimit", "memory", Enforcement.SOFT),
        ("PidsLimit", "pids", Enforcement.NONE),
        ("CpuCfsQuota", "cpus", Enforcement.NONE),
    ],
)
def test_what_the_engine_lacks_is_not_claimed(fact: str, limit: str, expected: Enforcement) -> None:
    info = {**INFO, fact: False}
    held = docker_capabilities(info, BoxSpec())
    assert held.limits[limit] is expected
    with pytest.raises(SandboxRefused, match=f"`{limit}` is required"):
        require(BoxSpec(require=frozenset({limit})), held)


def test_runsc_is_not_said_to_count_inodes() -> None:
    held = docker_capabilities(INFO, BoxSpec(runtime="runsc")).limits
    assert held["inodes"] is Enforcement.NONE
    assert held["pids"] is Enforcement.NONE


def refused(spec: BoxSpec, info: dict[str, Any] = INFO) -> str:
    with pytest.raises(SandboxRefused) as told:
        admit(info, spec, docker_capabilities(info, spec), 0)
    return str(told.value)


def test_an_ordinary_box_is_admitted() -> None:
    admit(INFO, BoxSpec(require=frozenset({"memory", "isolated"})),
          docker_capabilities(INFO, BoxSpec()), 0)  # fmt: skip


def test_an_unknown_runtime_names_those_there_are() -> None:
    assert refused(BoxSpec(runtime="kata")) == (
        "the engine has no runtime `kata`; it has: runc, runsc"
    )


def test_more_memory_than_the_machine_has_is_refused() -> None:
    words = refused(BoxSpec(limits=Limits(disk=100 * GIB)))
    assert "65536 MiB available" in words
    assert "lower `memory`, `disk` or `scratch`" in words


def test_more_cpus_than_there_are_is_refused() -> None:
    assert "wants 8 cpus and the engine has 4" in refused(BoxSpec(limits=Limits(cpus=8)))


@pytest.mark.parametrize("network", [Network.PROXY, Network.OPEN])
def test_a_network_that_is_not_built_is_refused(network: Network) -> None:
    assert f"network `{network.value}`" in refused(BoxSpec(network=network))


@pytest.mark.parametrize("name", Limits.__dataclass_fields__)
def test_a_limit_of_zero_is_never_no_limit(name: str) -> None:
    assert f"`{name}` must be above zero" in refused(BoxSpec(limits=replace(Limits(), **{name: 0})))


def test_a_requirement_nobody_knows_is_refused() -> None:
    assert "no limit has this name" in refused(BoxSpec(require=frozenset({"gpu"})))
