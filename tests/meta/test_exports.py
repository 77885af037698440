"""What others may import, and what importing it costs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from tests.meta.source import ROOT, python_files, relative

HEAVY = ("docker", "rich", "httpx", "jsonschema", "dulwich", "pydantic", "typer", "yaml", "re2")
PACKAGES = [path for path in python_files("harness") if path.name == "__init__.py"]
MOST = 15


@pytest.mark.parametrize("path", PACKAGES, ids=relative)
def test_a_package_exports_what_it_lists(path) -> None:
    name = ".".join(path.relative_to(ROOT).parent.parts)
    package = importlib.import_module(name)
    listed = list(getattr(package, "__all__", []))
    assert [word for word in listed if not hasattr(package, word)] == []
    assert len(listed) <= MOST


def test_the_version_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['harness', '--version']\n"
        "from harness.cli.main import main\n"
        "main()\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    version, loaded = done.stdout.splitlines()
    assert version.startswith("harness ")
    assert loaded == ""
