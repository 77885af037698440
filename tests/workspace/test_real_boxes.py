"""The whole way with a real shell at work: copy in, change, patch, apply."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.sandbox.backends import Backend
from harness.sandbox.docker import DockerBackend
from harness.sandbox.local import LocalBackend
from harness.values.changes import Changes
from harness.values.commands import ExecRequest
from harness.values.limits import BoxSpec
from harness.workspace.apply import apply
from tests.contract.stations import SPEC
from tests.workspace.trees import Bench, GitRepo, read, write

SCRIPT = r"""
set -eu
git_dir=$(ls -A .git | sort | tr '\n' ' ')
test "$git_dir" = "HEAD branches config index info objects refs "
printf 'one\r\nTWO\n' > text
chmod +x run
rm gone
mkdir -p new/deep && printf '\000\001\002' > new/deep/data
ln -s ../text new/link
rm link && printf 'a file now' > link
mkdir build && echo x > build/x.o
mv "with space" "$(printf 'tab\tand\377')"
touch same
"""


async def work(backend: Backend, spec: BoxSpec, bench: Bench) -> Changes:
    box = await backend.create(spec, run="workspace")
    try:
        await bench.workspace.load(box)
        assert (await bench.workspace.changes(box)).files == ()
        done = await box.exec(ExecRequest(("sh", "-c", SCRIPT)))
        assert done.ok, done.stderr.data
        return await bench.workspace.changes(box)
    finally:
        await box.close()
        await backend.close()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("local", marks=pytest.mark.local),
        pytest.param("docker", marks=pytest.mark.sandbox),
    ],
)
def test_a_shells_work_comes_back_as_a_patch(tmp_path: Path, kind: str) -> None:
    bench = Bench(tmp_path / "bench")
    git = GitRepo(bench.repo)
    write(
        {
            b".gitignore": ("file", b"build/\n"),
            b"text": ("file", b"one\r\ntwo\n"),
            b"run": ("file", b"#!/bin/sh\n"),
            b"gone": ("file", b"x\n"),
            b"link": ("link", b"text"),
            b"same": ("file", b"same\n"),
            b"with space": ("file", b"\xff\n"),
        },
        bench.repo,
    )
    git("add", "-A")
    before = git("status", "--porcelain")
    backend: Backend = LocalBackend() if kind == "local" else DockerBackend()
    spec = SPEC if kind == "docker" else BoxSpec()
    changes = asyncio.run(work(backend, spec, bench))
    assert git("status", "--porcelain") == before

    report = apply(changes.patch, bench.repo)
    assert report.refused == ()
    assert read(bench.repo) == {
        b".gitignore": ("file", b"build/\n"),
        b"text": ("file", b"one\r\nTWO\n"),
        b"run": ("program", b"#!/bin/sh\n"),
        b"link": ("file", b"a file now"),
        b"new/deep/data": ("file", b"\0\1\2"),
        b"new/link": ("link", b"../text"),
        b"same": ("file", b"same\n"),
        b"tab\tand\xff": ("file", b"\xff\n"),
    }
    assert changes.ignored == 1
