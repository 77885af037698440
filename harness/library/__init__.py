"""The embeddable harness: what every front end calls.

A front end makes a `Config`, gives a `Harness` what is its own (who answers, who watches), and
awaits one run. Nothing here prints, handles signals or configures logging.
"""

from __future__ import annotations

from harness.library.boxes import doctor, list_boxes, reap_boxes
from harness.library.harness import ExecReport, Harness, RunReport
from harness.library.history import History, SessionSummary
from harness.sessions.codec import encode
from harness.wiring import Config, Observer, load_config
from harness.wiring.config import SETTINGS

__all__ = [
    "SETTINGS",
    "Config",
    "ExecReport",
    "Harness",
    "History",
    "Observer",
    "RunReport",
    "SessionSummary",
    "doctor",
    "encode",
    "list_boxes",
    "load_config",
    "reap_boxes",
]
