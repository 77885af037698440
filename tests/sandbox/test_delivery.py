"""Which refusals mean an empty volume, and which only name the supervisor."""

from __future__ import annotations

import pytest

from harness.errors import SandboxError
from harness.sandbox.delivery import lacks_supervisor
from harness.sandbox.engine import EngineStatus
from harness.sandbox.hardening import SUPERVISOR

START = "cannot start a box: OCI runtime create failed: "


@pytest.mark.parametrize(
    "words",
    [
        f'starting container process caused: exec: "{SUPERVISOR}": stat {SUPERVISOR}: '
        "no such file or directory: unknown",
        f'exec: "{SUPERVISOR}": executable file not found in $PATH',
        f"crun: executable file `{SUPERVISOR}` not found: No such file or directory",
    ],
)
def test_a_runtime_that_finds_no_supervisor_means_an_empty_volume(words: str) -> None:
    assert lacks_supervisor(EngineStatus(START + words, 400))


@pytest.mark.parametrize(
    "fault",
    [
        SandboxError(f'{START}exec: "{SUPERVISOR}": no such file or directory'),
        EngineStatus(f'{START}exec: "{SUPERVISOR}": permission denied', 400),
        EngineStatus(f'{START}exec: "{SUPERVISOR}": exec format error', 400),
        EngineStatus(f"{START}mounting {SUPERVISOR}: no such file or directory", 400),
        EngineStatus(f'{START}exec: "{SUPERVISOR}": no such file or directory', 409),
        EngineStatus(f'{START}exec: "/other{SUPERVISOR}x": no such file or directory', 400),
    ],
)
def test_other_refusals_that_name_the_supervisor_do_not(fault: SandboxError) -> None:
    assert not lacks_supervisor(fault)
