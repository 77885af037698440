"""The first policy of the page does nothing that a built-in one would not do."""

from __future__ import annotations

import json
import re

from tests.meta.source import ROOT

PAGE = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")


def test_each_row_of_the_first_policy_changes_a_verdict(harness, repo):
    text = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
    (repo / "policy.yaml").write_text(text)
    assert harness("policy", "check", "policy.yaml").out == "policy.yaml: ok\n"

    def verdict(policy, *words):
        done = harness("policy", "explain", "--json", "--attended", "--policy", policy, *words)
        return json.loads(done.out)["effect"]

    for words, without, with_it in (
        (["--", "git", "commit", "-m", "x"], "allow", "ask"),
        (["--", "touch", "migrations/1.sql"], "allow", "deny"),
        (["--", "pip", "install", "x"], "allow", "ask"),
    ):
        assert verdict("full-auto", *words) == without
        assert verdict("policy.yaml", *words) == with_it
