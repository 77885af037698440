"""Which lines differ between two texts, in bounded time.

Unique common lines are anchors (patience diff), Myers' greedy algorithm does what lies between
them. Texts come from a box, so every step is counted: when `effort` is used up, what is left of
the text is one replaced block. That is a longer diff, never a wrong one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

Range = tuple[int, int, int, int]
"""Lines `[a, b)` of the old text give way to lines `[c, d)` of the new one."""


class Effort:
    """Steps that are left for comparing, in all."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> bool:
        """Take steps; False when they are used up."""
        self.left -= steps
        return self.left > 0


def differences(old: Sequence[bytes], new: Sequence[bytes], effort: Effort) -> list[Range]:
    """The ranges that differ, in order, never touching each other."""
    numbers: dict[bytes, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    found: list[Range] = []
    todo: list[Range] = [(0, len(a), 0, len(b))]
    while todo:
        part = _trimmed(a, b, todo.pop())
        a0, a1, b0, b1 = part
        if a0 == a1 or b0 == b1:
            if a0 != a1 or b0 != b1:
                found.append(part)
            continue
        if not effort.spend(a1 - a0 + b1 - b0):
            found.append(part)
            continue
        anchors = _anchors(a, b, part)
        if anchors:
            todo.extend(_between(part, anchors))
        else:
            found.extend(_myers(a, b, part, effort))
    return _joined(sorted(found))


def _trimmed(a: list[int], b: list[int], part: Range) -> Range:
    a0, a1, b0, b1 = part
    while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
        a0, b0 = a0 + 1, b0 + 1
    while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
        a1, b1 = a1 - 1, b1 - 1
    return a0, a1, b0, b1


def _once(lines: list[int], start: int, end: int) -> dict[int, int]:
    seen: dict[int, int] = {}
    for at in range(start, end):
        seen[lines[at]] = -1 if lines[at] in seen else at
    return {line: at for line, at in seen.items() if at >= 0}


def _anchors(a: list[int], b: list[int], part: Range) -> list[tuple[int, int]]:
    """The longest run of lines that are unique on both sides and stand in the same order."""
    a0, a1, b0, b1 = part
    left, right = _once(a, a0, a1), _once(b, b0, b1)
    pairs = sorted((at, right[line]) for line, at in left.items() if line in right)
    tails: list[int] = []
    ends: list[int] = []
    back: list[int] = []
    for index, (_, at) in enumerate(pairs):
        length = bisect_left(tails, at)
        back.append(ends[length - 1] if length else -1)
        if length == len(tails):
            tails.append(at)
            ends.append(index)
        else:
            tails[length], ends[length] = at, index
    chosen: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = back[index]
    return chosen[::-1]


def _between(part: Range, anchors: list[tuple[int, int]]) -> list[Range]:
    a0, a1, b0, b1 = part
    parts: list[Range] = []
    for x, y in anchors:
        parts.append((a0, x, b0, y))
        a0, b0 = x + 1, y + 1
    parts.append((a0, a1, b0, b1))
    return parts


def _myers(a: list[int], b: list[int], part: Range, effort: Effort) -> list[Range]:
    """The shortest edit script of a part, or the whole part where that takes too long."""
    a0, a1, b0, b1 = part
    n, m = a1 - a0, b1 - b0
    reach = {1: 0}
    trace: list[dict[int, int]] = []
    for d in range(n + m + 1):
        trace.append(dict(reach))
        steps = d + 1
        for k in range(-d, d + 1, 2):
            down = k == -d or (k != d and reach[k - 1] < reach[k + 1])
            x = reach[k + 1] if down else reach[k - 1] + 1
            y = x - k
            while x < n and y < m and a[a0 + x] == b[b0 + y]:
                x, y = x + 1, y + 1
                steps += 1
            reach[k] = x
            if x >= n and y >= m:
                return _walked_back(trace, n, m, (a0, b0))
        if d > _DEEPEST or not effort.spend(steps):
            break
    return [part]


_DEEPEST = 600
"""Edits Myers looks for; its trace grows with the square of them."""


def _walked_back(
    trace: list[dict[int, int]], x: int, y: int, origin: tuple[int, int]
) -> list[Range]:
    a0, b0 = origin
    found: list[Range] = []
    for d in range(len(trace) - 1, 0, -1):
        reach, k = trace[d], x - y
        down = k == -d or (k != d and reach[k - 1] < reach[k + 1])
        before = k + 1 if down else k - 1
        x = reach[before]
        y = x - before
        if down:
            found.append((a0 + x, a0 + x, b0 + y, b0 + y + 1))
        else:
            found.append((a0 + x, a0 + x + 1, b0 + y, b0 + y))
    return found


def _joined(parts: list[Range]) -> list[Range]:
    joined: list[Range] = []
    for part in parts:
        if joined and joined[-1][1] == part[0] and joined[-1][3] == part[2]:
            last = joined.pop()
            joined.append((last[0], part[1], last[2], part[3]))
        else:
            joined.append(part)
    return joined
