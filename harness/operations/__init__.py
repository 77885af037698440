"""A tool call to operations: shell text, paths, hosts, MCP. Pure: no disk, no clock."""
