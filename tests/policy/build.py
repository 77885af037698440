"""Gates for tests, from the packaged policies and rows given as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from harness.operations.lower import Surroundings
from harness.operations.paths import normal
from harness.operations.places import Places
from harness.operations.specification_files import load_commands
from harness.policy import Gate, PolicySource, Rules, Situation, load
from harness.policy.files import LayerName
from harness.values.calls import Call
from harness.values.decisions import Decision

POLICIES = Path(__file__).resolve().parents[2] / "policies"


@cache
def surroundings() -> Surroundings:
    files = sorted((POLICIES / "commands").glob("*.yaml"))
    return Surroundings(Places(), load_commands((f.name, f.read_text()) for f in files))


@cache
def built_in() -> Mapping[str, PolicySource]:
    return {
        path.stem: PolicySource("built-in", path.stem, path.read_bytes(), f"policies/{path.name}")
        for path in sorted(POLICIES.glob("*.yaml"))
    }


def source(
    layer: LayerName = "user", name: str = "own", *, trusted: bool = False, **keys: Any
) -> PolicySource:
    """A policy file with these keys; rows may leave out their id."""
    for kind in ("rules", "floor", "network"):
        for at, row in enumerate(keys.get(kind, ())):
            row.setdefault("id", f"{kind}-{at}")
    text = json.dumps({"version": 1, "name": name, **keys}, indent=1)
    return PolicySource(layer, name, text, f"{layer}/{name}.yaml", trusted)


def rules(base: str, *sources: PolicySource, mode: str | None = None) -> Rules:
    return load([built_in()[base], *sources], surroundings(), built_in=built_in(), mode=mode)


def gate(base: str, *sources: PolicySource, **situation: Any) -> Gate:
    return Gate(rules(base, *sources), Situation(**situation))


def call(tool: str, **args: Any) -> Call:
    return Call("c1", tool, args)


def judge(found: Gate, asked: Call | str, links: Mapping[str, str] | None = None) -> Decision:
    """The decision on a call, or on shell text, in a tree where only `links` are links."""
    if isinstance(asked, str):
        asked = call("shell", command=asked)
    draft = found.lower(asked)
    return found.judge(draft, {path: (links or {}).get(path, normal(path)) for path in draft.paths})


def effect(found: Gate, asked: Call | str, links: Mapping[str, str] | None = None) -> str:
    return judge(found, asked, links).effect.word


def sources_of(decision: Decision) -> Sequence[str]:
    return [match.source for match in decision.matches]
