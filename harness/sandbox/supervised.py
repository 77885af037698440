"""A `Sandbox` over a supervisor's link: what Docker boxes and local ones have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from harness.sandbox.link import Link
from harness.values.limits import Capabilities


class SupervisedSandbox:
    """`ports.Sandbox` over an open `Link`.

    `root` is the workspace in the box (absolute, no links in it). `env` is what every command
    gets, below what a request sets. `on_close` runs once, after the link is closed: the
    backend removes its container or directory there.
    """

    def __init__(
        self,
        link: Link,
        *,
        root: str,
        capabilities: Capabilities,
        image: str,
        on_close: Callable[[], Awaitable[None]] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None: ...
