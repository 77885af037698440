"""The repository as these tests read it."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def tracked(*patterns: str) -> tuple[Path, ...]:
    """Files git knows or would add, by glob below the root; never what it ignores."""
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run([*words, *patterns], check=True, capture_output=True).stdout
    names = sorted({name for name in listed.decode().split("\0") if name})
    return tuple(path for name in names if (path := ROOT / name).is_file())


def python_files(*folders: str) -> tuple[Path, ...]:
    return tracked(*(f"{folder}/*.py" for folder in folders))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
