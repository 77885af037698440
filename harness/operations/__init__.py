"""A tool call to operations: shell text, paths, hosts, MCP. Pure: no disk, no clock."""

from harness.operations.lower import Surroundings, lower
from harness.operations.places import Places
from harness.operations.specifications import Commands, load_commands

__all__ = ["Commands", "Places", "Surroundings", "load_commands", "lower"]
