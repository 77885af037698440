"""Boxes that nobody ends any more, found by their labels and removed.

A box goes only if it is ours by label, no living process holds its lease, and its deadline has
passed or its owner is certainly dead. Names and images say nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from harness.errors import EngineUnavailable, SandboxError
from harness.sandbox.engine import Engine, Facts, is_status, mapping_at, text_at
from harness.sandbox.owner import Leases, Life, Owner

OWNER = "harness.owner"
RUN = "harness.run"
BOX = "harness.box"
SPEC = "harness.spec"
DEADLINE = "harness.deadline"
REMOVAL = 10.0
"""Seconds in which a removed box must be gone from the engine's list."""


@dataclass(frozen=True, slots=True)
class BoxRow:
    """A box as the engine lists it. `deadline` is Unix time in seconds, None when unreadable."""

    container: str
    box: str
    run: str
    state: str
    image: str
    owner: str
    life: Life
    leased: bool
    deadline: float | None

    def abandoned(self, now: float) -> str:
        """Why it may be removed, or empty. A box whose deadline cannot be read has passed it."""
        if self.leased:
            return ""
        if self.life is Life.DEAD:
            return "its owner is dead"
        if self.deadline is None or now >= self.deadline:
            return "its deadline has passed"
        return ""


@dataclass(frozen=True, slots=True)
class Reaped:
    """One box that was removed, and why. `gone` False: the engine still lists it."""

    row: BoxRow
    reason: str
    gone: bool


async def list_boxes(engine: Engine, leases: Leases, here: Owner) -> tuple[BoxRow, ...]:
    """All boxes of any harness on this engine, also those not started."""
    found = await engine.call(
        "list boxes", lambda c: c.containers(all=True, filters={"label": [OWNER]})
    )
    return tuple(_row(facts, leases, here) for facts in found)


async def reap(engine: Engine, leases: Leases, here: Owner, now: float) -> tuple[Reaped, ...]:
    """Remove abandoned boxes, side by side. `now` is Unix time in seconds."""
    rows = await list_boxes(engine, leases, here)
    due = [(row, reason) for row in rows if (reason := row.abandoned(now))]
    gone = await asyncio.gather(*(remove(engine, row.container) for row, _ in due))
    for row, _ in due:
        leases.forget(row.box)
    leases.sweep(now)
    return tuple(Reaped(row, reason, g) for (row, reason), g in zip(due, gone, strict=True))


async def remove(engine: Engine, container: str, *, within: float = REMOVAL) -> bool:
    """Remove a container, whatever its state, and look that it is gone. Never raises."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    pause = 0.02
    unreachable = 0
    while True:
        try:
            await engine.call(
                "remove a box",
                lambda c: c.remove_container(container, v=True, force=True),
                deadline=max(1.0, end - loop.time()),
            )
        except SandboxError as fault:
            # anything else may pass: 409 is somebody, or auto-remove, being at it already
            if is_status(fault, 404):
                return True
            if isinstance(fault, EngineUnavailable):
                unreachable += 1
                if unreachable == 3:
                    return False
        if await _is_gone(engine, container):
            return True
        if loop.time() >= end:
            return False
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.5)


async def _is_gone(engine: Engine, container: str) -> bool:
    try:
        await engine.call("look at a box", lambda c: c.inspect_container(container), deadline=5.0)
    except SandboxError as fault:
        return is_status(fault, 404)
    return False


def _row(facts: Facts, leases: Leases, here: Owner) -> BoxRow:
    labels: dict[str, Any] = dict(mapping_at(facts, "Labels"))
    owner = str(labels.get(OWNER, ""))
    parsed = Owner.parse(owner)
    box = str(labels.get(BOX, ""))
    return BoxRow(
        container=text_at(facts, "Id"),
        box=box,
        run=str(labels.get(RUN, "")),
        state=text_at(facts, "State"),
        image=text_at(facts, "Image"),
        owner=owner,
        life=Life.UNKNOWN if parsed is None else parsed.life(here),
        leased=leases.held(box),
        deadline=_number(str(labels.get(DEADLINE, ""))),
    )


def _number(text: str) -> float | None:
    return float(text) if text.isdecimal() and len(text) < 16 else None
