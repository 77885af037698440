"""The tools a model is given. All of them act through the Sandbox port alone."""

from __future__ import annotations

from collections.abc import Mapping

from harness.ports import Tool
from harness.tools.listing import ListFiles
from harness.tools.read import ReadFile
from harness.tools.search import Search
from harness.tools.shell import Shell
from harness.tools.write import EditFile, WriteFile
from harness.values.limits import MIB

__all__ = ["EditFile", "ListFiles", "ReadFile", "Search", "Shell", "WriteFile", "builtin_tools"]


def builtin_tools(*, timeout: float = 600.0, output: int = 10 * MIB) -> Mapping[str, Tool]:
    """The built-in tools by name. `timeout` bounds one command in seconds, `output` its bytes."""
    tools: tuple[Tool, ...] = (
        Shell(timeout, output),
        ReadFile(),
        WriteFile(),
        EditFile(),
        ListFiles(),
        Search(),
    )
    return {tool.spec.name: tool for tool in tools}
