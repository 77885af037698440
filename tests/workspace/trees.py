"""Trees of files as data: written to a folder, and read back."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.values.changes import Change, Changes
from harness.workspace.copy import CopyWorkspace
from tests.workspace.boxes import FolderBox

Tree = dict[bytes, tuple[str, bytes]]
"""Paths to a kind (`file`, `program`, `link`) and content."""


def write(tree: Mapping[bytes, tuple[str, bytes]], folder: Path) -> None:
    for path, (kind, data) in tree.items():
        full = folder / os.fsdecode(path)
        full.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            full.symlink_to(os.fsdecode(data))
        else:
            full.write_bytes(data)
            full.chmod(0o755 if kind == "program" else 0o644)


def read(folder: Path) -> Tree:
    """Files and links below a folder, `.git` set aside."""
    tree: Tree = {}
    todo = [folder]
    while todo:
        for path in todo.pop().iterdir():
            name = os.fsencode(path.relative_to(folder))
            if path.name == ".git":
                continue
            if path.is_symlink():
                tree[name] = ("link", os.fsencode(path.readlink()))
            elif path.is_dir():
                todo.append(path)
            else:
                kind = "program" if path.stat().st_mode & 0o100 else "file"
                tree[name] = (kind, path.read_bytes())
    return tree


class Bench:
    """A repository at `repo`, a box at `box`, and a workspace between them."""

    def __init__(self, base: Path) -> None:
        self.repo = base / "repo"
        self.inside = base / "box"
        self.repo.mkdir(parents=True)
        self.inside.mkdir()
        self.box = FolderBox(self.inside)
        self.workspace = CopyWorkspace(self.repo, base / "store")

    def load(self) -> tuple[str, ...]:
        return asyncio.run(self.workspace.load(self.box))

    def changes(self) -> Changes:
        return asyncio.run(self.workspace.changes(self.box))

    def changed(self, work: Callable[[Path], object]) -> dict[str, Change]:
        """Load, let `work` change the box's folder, and give the changes by path."""
        self.load()
        work(self.inside)
        return {change.path: change for change in self.changes().files}


class GitRepo:
    """Real git, on data of the test."""

    def __init__(self, folder: Path, *, init: bool = True) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "T",
            "GIT_AUTHOR_EMAIL": "t@example.com",
            "GIT_COMMITTER_NAME": "T",
            "GIT_COMMITTER_EMAIL": "t@example.com",
            "GIT_ALLOW_PROTOCOL": "file",
        }
        if init:
            self("init", "-q", "--template=")
            (folder / ".git" / "info").mkdir()

    def __call__(self, *words: str, data: bytes | None = None) -> str:
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", *words],
            cwd=self.folder,
            check=True,
            capture_output=True,
            env=self.environment,
            input=data,
        )
        return done.stdout.decode("utf-8", "surrogateescape")
