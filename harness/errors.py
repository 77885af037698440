"""Every error the harness raises on purpose.

::

    HarnessError                 a run ends with      exit
    ├── UserError                config               2  what the user gave cannot be used
    │   ├── ConfigError          config               2  a setting, an option, a scripted file
    │   └── PolicyError          config               2  a policy file: file, line, reason
    ├── WireError                transport            1  the model's side
    │   ├── WireTransient        transport            1  may go through later
    │   ├── WireRejected         protocol             1  the request was refused for good
    │   ├── WireProtocol         protocol             1  the reply broke the format's rules
    │   ├── WireCredential       credential           1  no key, or a refused one
    │   └── WireQuota            quota                1  paid-for use is exhausted
    ├── SandboxError             sandbox_unavailable  1  the box's side, never shown as output
    │   ├── EngineUnavailable    sandbox_unavailable  1  no engine, too old, no permission
    │   ├── ImageMissing         sandbox_unavailable  1  no image, and none could be made
    │   ├── SandboxRefused       sandbox_unavailable  1  a required limit or wall is not to be had
    │   └── SandboxLost          sandbox_unavailable  1  a box that ran is gone, with evidence
    ├── SessionError             session_corrupt      1  the store's side
    │   ├── SessionLocked        session_locked       1  another process holds the session
    │   ├── SessionCorrupt       session_corrupt      1  records unreadable, or a broken chain
    │   └── SessionStorage       internal             1  the store cannot be written
    └── FileFault                                        an ordinary failure of a file operation
                                                         in the box (missing, a link, too large);
                                                         the one error a tool makes a result of

Messages are lower case, without a full stop, with what the user typed in backticks, and
name the next step where there is one. Adapters translate their vendor's errors in one place.
"""

from __future__ import annotations

from typing import ClassVar


class HarnessError(Exception):
    """Root of the tree. `kind` is the `LoopError` a run ends with when this reaches its edge."""

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1


class UserError(HarnessError):
    """What the user gave cannot be used; shown without a traceback.

    `file` and `line` (1-based) say where, if the fault stands in a file.
    """

    kind = "config"
    exit_code = 2

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line

    def __str__(self) -> str:
        if self.file is None:
            return self.message
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


class ConfigError(UserError):
    """A setting, an option or an input file of a run."""


class PolicyError(UserError):
    """A policy file that cannot be loaded or used."""


class WireError(HarnessError):
    """Talking to the model failed."""

    kind = "transport"


class WireTransient(WireError):
    """A fault that may pass; `retry_after` is the server's wish in seconds, if it had one."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class WireRejected(WireError):
    """The server refused this request; sending it again changes nothing."""

    kind = "protocol"


class WireProtocol(WireError):
    """The reply broke the rules of its format, or a script ran out of replies."""

    kind = "protocol"


class WireCredential(WireError):
    """No key, or one the server refuses."""

    kind = "credential"


class WireQuota(WireError):
    """The account behind the key has nothing left."""

    kind = "quota"


class SandboxError(HarnessError):
    """Infrastructure around a box failed. Never a command's own failure."""

    kind = "sandbox_unavailable"


class EngineUnavailable(SandboxError):
    """No container engine answers, it is too old, or we may not use it."""


class ImageMissing(SandboxError):
    """The image is not here and could not be pulled or built."""


class SandboxRefused(SandboxError):
    """A limit, a wall or an isolation that was required cannot be had from this backend."""


class SandboxLost(SandboxError):
    """A box that ran is gone or does not answer.

    `evidence` holds what the host saw (container state, engine events), as plain words.
    """

    def __init__(self, message: str, *, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.evidence = evidence


class SessionError(HarnessError):
    """The session store failed."""

    kind = "session_corrupt"


class SessionLocked(SessionError):
    """Another process holds the session's lock."""

    kind = "session_locked"


class SessionCorrupt(SessionError):
    """Records that cannot be read, or whose chain is broken."""


class SessionStorage(SessionError):
    """The store cannot be written; what was appended before is intact."""

    kind = "internal"


class FileFault(HarnessError):
    """An ordinary failure of one file operation in a box.

    `code` is one of `CODES`; `path` is the path as it was asked for.
    """

    CODES: ClassVar[frozenset[str]] = frozenset(
        {
            "missing",
            "denied",
            "link",
            "directory",
            "not_directory",
            "not_file",
            "exists",
            "too_large",
            "no_space",
            "no_match",
            "many_matches",
            "name",
            "io",
        }
    )

    def __init__(self, code: str, path: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.path = path
