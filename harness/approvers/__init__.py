"""Who answers when a policy says ask."""

from __future__ import annotations

from harness.approvers.nobody import DenyAll
from harness.approvers.terminal import TerminalApprover

__all__ = ["DenyAll", "TerminalApprover"]
