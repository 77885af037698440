"""What a tool call would do, in classes that a policy can judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TypeAlias

from harness.values.calls import Call


class Risk(IntEnum):
    """Levels of harm, ordered."""

    NONE = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4

    @property
    def word(self) -> str:
        return self.name.lower()


class Op(StrEnum):
    """Operation classes. `RISK` gives the level of each."""

    INSPECT = "inspect"
    THINK = "think"
    READ_WORKSPACE = "read.workspace"
    VCS_READ = "vcs.read"
    NET_READ = "net.read"
    WRITE_WORKSPACE = "write.workspace"
    EXEC_TASK = "exec.task"
    VCS_LOCAL = "vcs.local"
    READ_OUTSIDE = "read.outside"
    ENV_READ = "env.read"
    AGENT_SPAWN = "agent.spawn"
    EXEC_CODE = "exec.code"
    PKG_INSTALL = "pkg.install"
    WRITE_OUTSIDE = "write.outside"
    NET_SEND = "net.send"
    VCS_PUBLISH = "vcs.publish"
    INFRA_CHANGE = "infra.change"
    PROC_CONTROL = "proc.control"
    READ_SECRET = "read.secret"
    OPAQUE = "opaque"
    DESTROY_DATA = "destroy.data"
    VCS_REWRITE = "vcs.rewrite"
    INFRA_DESTROY = "infra.destroy"
    EXEC_REMOTE = "exec.remote"
    WRITE_CONTROL = "write.control"
    POLICY_CHANGE = "policy.change"
    PRIV_ESCALATE = "priv.escalate"
    SEND_SECRET = "send.secret"


RISK: Mapping[Op, Risk] = {
    Op.INSPECT: Risk.NONE,
    Op.THINK: Risk.NONE,
    Op.READ_WORKSPACE: Risk.LOW,
    Op.VCS_READ: Risk.LOW,
    Op.NET_READ: Risk.LOW,
    Op.WRITE_WORKSPACE: Risk.MEDIUM,
    Op.EXEC_TASK: Risk.MEDIUM,
    Op.VCS_LOCAL: Risk.MEDIUM,
    Op.READ_OUTSIDE: Risk.MEDIUM,
    Op.ENV_READ: Risk.MEDIUM,
    Op.AGENT_SPAWN: Risk.MEDIUM,
    Op.EXEC_CODE: Risk.HIGH,
    Op.PKG_INSTALL: Risk.HIGH,
    Op.WRITE_OUTSIDE: Risk.HIGH,
    Op.NET_SEND: Risk.HIGH,
    Op.VCS_PUBLISH: Risk.HIGH,
    Op.INFRA_CHANGE: Risk.HIGH,
    Op.PROC_CONTROL: Risk.HIGH,
    Op.READ_SECRET: Risk.HIGH,
    Op.OPAQUE: Risk.HIGH,
    Op.DESTROY_DATA: Risk.CRITICAL,
    Op.VCS_REWRITE: Risk.CRITICAL,
    Op.INFRA_DESTROY: Risk.CRITICAL,
    Op.EXEC_REMOTE: Risk.CRITICAL,
    Op.WRITE_CONTROL: Risk.CRITICAL,
    Op.POLICY_CHANGE: Risk.CRITICAL,
    Op.PRIV_ESCALATE: Risk.CRITICAL,
    Op.SEND_SECRET: Risk.CRITICAL,
}


class Access(StrEnum):
    """What is done to a path."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"


class Origin(StrEnum):
    """Which part of a call an operation comes from.

    A row that names `command` decides operations of origin `command` only.
    """

    TOOL = "tool"
    COMMAND = "command"
    ENVIRONMENT = "environment"
    REDIRECT = "redirect"
    WRAPPER = "wrapper"
    COMPOSITION = "composition"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class PathUse:
    """A path an operation touches: absolute and lexically normal, as the box would see it.

    `unknown` marks a path that holds a live expansion: it stands for any path below `path`.
    `tree` says that what lies below is touched as well. `spelled` is the absolute path before
    `..` was folded, where that differs: through a link the two may be different files.
    """

    path: str
    access: Access
    unknown: bool = False
    tree: bool = False
    spelled: str = ""


@dataclass(frozen=True, slots=True)
class HostUse:
    """A host an operation connects to: lower case, IDNA form; `port` None is any port."""

    host: str
    port: int | None


@dataclass(frozen=True, slots=True)
class McpUse:
    """A tool of an MCP server."""

    server: str
    tool: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a call would do.

    `argv` holds decoded words, None standing for a word that is not known before it runs.
    `reason` says in a few words why it has this class. `flags` are all spellings of every
    option given, by the command's specification (None without one: only literal spellings are
    known), and `aside` the indexes in `argv` that are options or their values.
    """

    op: Op
    reason: str = ""
    program: str = ""
    argv: tuple[str | None, ...] = ()
    paths: tuple[PathUse, ...] = ()
    hosts: tuple[HostUse, ...] = ()
    mcp: McpUse | None = None
    origin: Origin = Origin.TOOL
    reversible: bool = True
    scope: str = "workspace"
    confidence: str = "exact"
    flags: frozenset[str] | None = None
    aside: frozenset[int] = frozenset()

    @property
    def risk(self) -> Risk:
        return RISK[self.op]


Links: TypeAlias = Mapping[str, str]
"""Absolute lexical path to the real path behind it, in the box's view.

For a path that does not exist, the nearest existing ancestor is resolved and the rest appended.
"""


@dataclass(frozen=True, slots=True)
class Draft:
    """A call lowered to operations, before links are known.

    `paths` are those whose links the loop must resolve before judgement; empty where no
    operand is a path. `refused` is the reason when the call cannot be read at all.
    `text` is raw shell text that is searched for denied words where it is opaque.
    """

    call: Call
    operations: tuple[Operation, ...]
    paths: tuple[str, ...] = ()
    refused: str | None = None
    text: str = ""
