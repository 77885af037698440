"""What a person should know about a copy: what was left out of it, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.workspace.hidden import visible_name

_SHOWN = 5


@dataclass
class Notes:
    """Sentences, and paths gathered under a reason; each reason becomes one line."""

    _paths: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])
    _counts: dict[str, int] = field(default_factory=dict[str, int])
    _said: list[str] = field(default_factory=list[str])

    def add(self, reason: str, path: bytes) -> None:
        paths = self._paths.setdefault(reason, [])
        self._counts[reason] = self._counts.get(reason, 0) + 1
        if len(paths) < _SHOWN:
            paths.append(path)

    def say(self, sentence: str) -> None:
        self._said.append(sentence)

    def lines(self) -> tuple[str, ...]:
        gathered: list[str] = []
        for reason, paths in self._paths.items():
            names = ", ".join(f"`{visible_name(p)[:200]}`" for p in paths)
            more = self._counts[reason] - len(paths)
            gathered.append(f"{reason}: {names}" + (f" and {more} more" if more else ""))
        return (*self._said, *gathered)
