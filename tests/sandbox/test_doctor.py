"""What doctor says of engines: known-bad versions, missing limits, silence."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.sandbox.doctor import State, engine_rows, examine, limit_rows, runc_finding
from harness.sandbox.endpoint import Endpoint
from harness.sandbox.engine import text_at
from tests.sandbox.engines import serving
from tests.sandbox.test_hardening import INFO


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("1.1.5+ds1", State.WARN),
        ("1.1.11", State.BAD),
        ("1.1.15", State.BAD),
        ("1.2.7", State.BAD),
        ("1.2.8", State.OK),
        ("1.3.2", State.BAD),
        ("1.3.3", State.OK),
        ("1.4.0-rc.2", State.WARN),
        ("1.4.0-rc.3", State.OK),
        ("1.4.0", State.OK),
        ("2.0.0", State.OK),
        ("", State.UNVERIFIED),
    ],
)
def test_runc_is_held_against_the_fixed_versions(version: str, state: State) -> None:
    assert runc_finding("", version).state is state


def test_an_old_runc_lists_the_older_hole_too() -> None:
    assert "CVE-2024-21626" in runc_finding("", "1.1.11").hint
    assert "CVE-2024-21626" not in runc_finding("", "1.1.12").hint


def test_a_distributions_package_may_hold_the_fixes() -> None:
    assert "changelog" in runc_finding("", "1.1.5+ds1").hint


def test_an_engine_without_a_system_call_filter_is_bad() -> None:
    rows = {r.name: r for r in engine_rows({**INFO, "SecurityOptions": []}, {})}
    assert rows["seccomp"].state is State.BAD
    assert rows["user namespaces"].value == "no"


def test_a_limit_nobody_enforces_is_a_warning() -> None:
    rows = {r.name: r for r in limit_rows({**INFO, "PidsLimit": False})}
    assert rows["limit pids"].state is State.WARN
    assert rows["limit memory"].state is State.OK


def test_an_engine_version_nobody_tried_is_unverified() -> None:
    rows = {r.name: r for r in engine_rows(INFO, {"Version": "29.1.0", "ApiVersion": "1.52"})}
    assert rows["engine"].state is State.UNVERIFIED


def test_silence_is_a_row_with_the_next_step(tmp_path: Path) -> None:
    rows = asyncio.run(examine(Endpoint("unix", "test", path=str(tmp_path / "none")), None))
    assert rows[-1].state is State.BAD
    assert "systemctl start docker" in rows[-1].hint


def test_a_whole_examination_names_image_and_supervisor(tmp_path: Path) -> None:
    async def go() -> dict[str, State]:
        async with serving(tmp_path, {"GET /info": (200, INFO)}) as (_, endpoint):
            return {r.name: r.state for r in await examine(endpoint, None)}

    rows = asyncio.run(go())
    assert rows["base image"] is State.WARN
    assert rows["supervisor"] is State.BAD


def test_plain_tcp_is_a_warning_and_the_rest_unverified(tmp_path: Path) -> None:
    plain = asyncio.run(examine(Endpoint("tcp", "t", host="127.0.0.1", port=1), None))[0]
    assert plain.state is State.WARN
    assert text_at({"a": {"b": "c"}}, "a", "b") == "c"
