"""From a configuration to parts: the only place that names concrete classes."""

from __future__ import annotations

from harness.wiring.config import Config

__all__ = ["Config"]
