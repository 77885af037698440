"""Build hook: compiles the supervisor, which a wheel carries and an editable install uses."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _builder(root: str) -> ModuleType:
    path = Path(root) / "sandbox_images" / "supervisor" / "build.py"
    spec = importlib.util.spec_from_file_location("harness_supervisor_build", path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class SupervisorHook(BuildHookInterface[Any]):
    """Builds for this machine, or for `HARNESS_SUPERVISOR_TARGETS` (comma-separated)."""

    PLUGIN_NAME = "custom"

    def _targets(self, builder: ModuleType) -> list[str]:
        wanted = os.environ.get("HARNESS_SUPERVISOR_TARGETS", "")
        return [word for word in wanted.split(",") if word] or [builder.this_machine()]

    def dependencies(self) -> list[str]:
        """`ziglang` only where no compiler of the system can do it."""
        builder = _builder(self.root)
        foreign = any(target != builder.this_machine() for target in self._targets(builder))
        return ["ziglang>=0.13"] if foreign or builder.system_compiler() is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is `standard` or `editable`; both get the binary in the package."""
        if self.target_name != "wheel" or version not in {"standard", "editable"}:
            return
        builder = _builder(self.root)
        try:
            for target in self._targets(builder):
                binary = builder.build(target)
                build_data["artifacts"].append(f"/{binary.relative_to(self.root).as_posix()}")
        except builder.BuildError as error:
            sys.exit(str(error))
        if self._is_linux_only(builder):
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-linux_{builder.this_machine()}"

    def _is_linux_only(self, builder: ModuleType) -> bool:
        return sys.platform == "linux" and self._targets(builder) == [builder.this_machine()]
