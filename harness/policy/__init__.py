"""Judgement: policy files, layers, verdicts. Pure: takes text and values."""

from harness.policy.files import Fault, PolicySource
from harness.policy.gate import Gate
from harness.policy.grants import Grant, compile_grant
from harness.policy.judging import Situation
from harness.policy.layering import Rules, load

__all__ = [
    "Fault", "Gate", "Grant", "PolicySource", "Rules", "Situation", "compile_grant", "load",
]  # fmt: skip
