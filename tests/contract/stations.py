"""Boxes to hold against the port: one per backend and test module, on one event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

import pytest

from harness.errors import FileFault
from harness.ports import Sandbox
from harness.values.commands import ExecRequest, ExecResult
from harness.values.limits import MIB, BoxSpec, Limits

T = TypeVar("T")

IMAGE = os.environ.get("HARNESS_TEST_IMAGE") or None
"""Any image with a shell and Python 3; the built-in base image when unset."""

SMALL = Limits(
    cpus=1.5,
    memory=96 * MIB,
    pids=64,
    disk=96 * MIB,
    inodes=8_000,
    scratch=16 * MIB,
    shm=8 * MIB,
    nofile=256,
    wall=600,
)
SPEC = BoxSpec(image=IMAGE, limits=SMALL, env={"FROM_SPEC": "spec", "BOTH": "spec"})


@dataclass
class Station:
    """A box and the loop it lives on."""

    kind: str
    box: Sandbox
    runner: asyncio.Runner
    numbers: Any = field(default_factory=count)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    def folder(self) -> str:
        """A path of its own for a test; nothing is there yet."""
        return f"{self.box.root}/t{next(self.numbers)}"

    def exec(self, *argv: str, **options: Any) -> ExecResult:
        options.setdefault("timeout", 30.0)
        return self.run(self.box.exec(ExecRequest(argv, **options)))

    def sh(self, script: str, **options: Any) -> ExecResult:
        return self.exec("sh", "-c", script, **options)

    def out(self, script: str, **options: Any) -> str:
        """What a script that must succeed prints."""
        result = self.sh(script, **options)
        assert result.ok, (result.code, result.signal, result.reason, result.stderr.data)
        return result.stdout.data.decode()

    def write(self, path: str, data: bytes = b"", mode: int | None = None) -> str:
        self.run(self.box.write(path, data, mode=mode))
        return path

    def fault(self, coroutine: Coroutine[Any, Any, object]) -> str:
        """The code of the `FileFault` that must come."""
        with pytest.raises(FileFault) as told:
            self.run(coroutine)
        assert told.value.code in FileFault.CODES
        return told.value.code

    def running(self, mark: str) -> int:
        """How many processes in the box have a word in their command line."""
        script = (
            "n=0; for p in /proc/[0-9]*; do "
            f'if tr "\\0" " " <"$p/cmdline" 2>/dev/null | grep -q "[s]leep {mark}"; '
            'then case "$(cut -d" " -f3 "$p/stat" 2>/dev/null)" in Z|"") ;; *) n=$((n+1));; esac; '
            "fi; done; echo $n"
        )
        return int(self.out(script))
