"""Names and habits that reviews would otherwise have to catch again and again."""

from __future__ import annotations

import ast
import re
from ipaddress import ip_address
from pathlib import PurePosixPath

from tests.meta.source import parsed, python_files, relative, tracked

VAGUE = {"core", "utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}
VAGUE_CLASS = re.compile(r"(Manager|Helper|Impl)$|^(Base|Abstract)[A-Z]")

ORDINARY_HOSTS = {
    "localhost",
    "json-schema.org",  # names of JSON Schema dialects
    "www.apache.org",  # the licence's own text
    "keepachangelog.com",
    "semver.org",
}
RESERVED = (".example", ".invalid", ".test", ".localhost", "example.com", "example.org")
"""RFC 2606 and RFC 6761."""

HOST = re.compile(r"\bhttps?://(?:[^\s/@\"'`<>]*@)?(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)")


def test_no_module_has_a_vague_name() -> None:
    named = {
        relative(path)
        for path in python_files("harness")
        if VAGUE & {PurePosixPath(part).stem for part in relative(path).split("/")}
    }
    assert named == set()


def test_no_class_has_a_vague_name() -> None:
    classes = [
        f"{relative(path)}:{node.name}"
        for path in python_files("harness")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and VAGUE_CLASS.search(node.name)
    ]
    assert classes == []


def test_fakes_not_mocks() -> None:
    used = [
        relative(path)
        for path in python_files("harness", "tests", "bench")
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.Import) and any("mock" in a.name for a in node.names))
        or (isinstance(node, ast.ImportFrom) and "mock" in (node.module or ""))
        or (isinstance(node, ast.Name) and node.id in {"Mock", "MagicMock", "AsyncMock"})
    ]
    assert used == []


def test_hosts_of_others_stand_nowhere() -> None:
    """Examples use `.example`; package indexes and registries come from the user's own set-up."""
    found: dict[str, set[str]] = {}
    for path in tracked("*.py", "*.md", "*.toml", "*.yaml", "*.yml", "*.sh", "*Dockerfile*", "*.c"):
        for host in HOST.findall(path.read_text(encoding="utf-8")):
            if not ordinary(host.strip("[].").lower()):
                found.setdefault(relative(path), set()).add(host)
    assert found == {}


def ordinary(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host.endswith(RESERVED) or host in ORDINARY_HOSTS or "." not in host


def test_the_guard_on_hosts_would_notice() -> None:
    real = "registry.corp" + ".org"
    assert not ordinary(real)
    assert HOST.findall(f"see https://me@{real}/x and http://[::1]:80/") == [real, "[::1]"]
