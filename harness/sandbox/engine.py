"""The control side of a container engine: calls with deadlines, errors in our own words.

The SDK is loaded on first use and runs in a few threads of its own. A box's data never comes
this way; see `attach`.
"""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from harness.errors import EngineUnavailable, HarnessError, ImageMissing, SandboxError
from harness.sandbox.endpoint import Endpoint, discover
from harness.sandbox.relay import SshRelay
from harness.sandbox.threads import Threads

T = TypeVar("T")
Facts = Mapping[str, Any]
"""JSON of the engine. Read it through the functions below: shapes differ between versions."""

API_FLOOR = (1, 41)
DEADLINE = 30.0
"""Seconds for one ordinary call."""

TRANSLATED: Mapping[str, type[SandboxError]] = {
    "DockerException": EngineUnavailable,
    "APIError": SandboxError,
    "NotFound": SandboxError,
    "ImageNotFound": ImageMissing,
    "InvalidVersion": EngineUnavailable,
    "InvalidRepository": ImageMissing,
    "InvalidConfigFile": EngineUnavailable,
    "InvalidArgument": SandboxError,
    "DeprecatedMethod": SandboxError,
    "TLSParameterError": EngineUnavailable,
    "NullResource": SandboxError,
    "ContainerError": SandboxError,
    "StreamParseError": SandboxError,
    "BuildError": ImageMissing,
    "ImageLoadError": ImageMissing,
    "MissingContextParameter": EngineUnavailable,
    "ContextAlreadyExists": EngineUnavailable,
    "ContextException": EngineUnavailable,
    "ContextNotFound": EngineUnavailable,
}
"""Each error class of `docker.errors`, by name. A test fails when the SDK grows another."""


class EngineStatus(SandboxError):
    """The engine answered with an HTTP status of 400 or above."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Client(Protocol):
    """What is used of the SDK's low-level client."""

    timeout: float

    @property
    def api_version(self) -> str: ...

    def version(self, api_version: bool = True) -> dict[str, Any]: ...
    def info(self) -> dict[str, Any]: ...
    def create_container_from_config(
        self, config: dict[str, Any], name: str | None = None
    ) -> dict[str, Any]: ...
    def start(self, container: str) -> None: ...
    def inspect_container(self, container: str) -> dict[str, Any]: ...
    def remove_container(self, container: str, v: bool = False, force: bool = False) -> None: ...
    def containers(
        self, all: bool = False, filters: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]: ...
    def inspect_image(self, image: str) -> dict[str, Any]: ...
    def remove_image(self, image: str, force: bool = False) -> object: ...
    def tag(self, image: str, repository: str, tag: str | None = None) -> bool: ...
    def import_image_from_data(
        self,
        data: bytes,
        repository: str | None = None,
        tag: str | None = None,
        changes: list[str] | None = None,
    ) -> str: ...
    def pull(
        self, repository: str, tag: str | None = None, *, stream: bool, decode: bool
    ) -> Iterable[dict[str, Any]]: ...
    def build(self, **options: Any) -> Iterable[dict[str, Any]]: ...
    def inspect_volume(self, name: str) -> dict[str, Any]: ...
    def create_volume(
        self, name: str | None = None, *, labels: dict[str, str] | None = None
    ) -> dict[str, Any]: ...
    def remove_volume(self, name: str, force: bool = False) -> None: ...
    def close(self) -> None: ...


class Engine:
    """One engine behind an endpoint. Connects on the first call.

    Every method raises a `SandboxError` and nothing else.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._relay: SshRelay | None = None
        self._threads = Threads(4, "engine")
        self._client: Client | None = None
        self._starting = asyncio.Lock()
        self._info: Facts | None = None
        self._closed = False

    async def call(self, what: str, job: Callable[[Client], T], *, deadline: float = DEADLINE) -> T:
        """Run `job` in a thread. `what` names it in messages, such as `create a box`.

        The thread itself cannot be stopped: a job that outlives its deadline or our
        cancellation still takes effect, so callers look afterwards what is there.
        """
        client = await self._connected()
        return await self._run(what, functools.partial(job, client), deadline)

    async def info(self) -> Facts:
        """The engine's own description, asked once."""
        if self._info is None:
            self._info = await self.call("describe the engine", lambda c: c.info())
        return self._info

    async def version(self) -> Facts:
        return await self.call("ask for the version", lambda c: c.version())

    async def api_version(self) -> str:
        return (await self._connected()).api_version

    async def dialled(self) -> Endpoint:
        """Where a raw connection reaches the engine: the endpoint, or a relay to it."""
        await self._connected()
        return self.endpoint if self._relay is None else self._relay.socket

    async def close(self) -> None:
        """Let go of connections. Nobody waits for calls that run, not even the program's end."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            client.close()
        if self._relay is not None:
            await self._relay.close()

    async def _connected(self) -> Client:
        if self._client is not None:
            return self._client
        async with self._starting:
            if self._client is None:
                if self.endpoint.scheme == "ssh" and self._relay is None:
                    self._relay = SshRelay(self.endpoint)
                    await self._relay.start()
                client = await self._run("reach the engine", self._connect, DEADLINE)
                self._client = client
        return self._client

    def _connect(self) -> Client:
        import docker  # noqa: PLC0415 - takes 0.2 s to import, and most commands need no engine

        tls: Any = False
        files = self.endpoint.tls
        if files is not None:
            from docker.tls import TLSConfig  # noqa: PLC0415 - as above

            pair = (str(files.cert), str(files.key)) if files.cert and files.key else None
            ca = None if files.ca is None else str(files.ca)
            tls = TLSConfig(client_cert=pair, ca_cert=ca, verify=files.verify)
        url = self.endpoint.url if self._relay is None else self._relay.socket.url

        def client(api: str) -> Any:
            made = docker.APIClient(base_url=url, version=api, timeout=int(DEADLINE), tls=tls)
            # else REQUESTS_CA_BUNDLE replaces the endpoint's own authority
            made.trust_env = False
            return made

        first = client(".".join(map(str, API_FLOOR)))
        try:
            api = str(first.version(api_version=False).get("ApiVersion", ""))
        finally:
            first.close()
        _require_api(api)
        return cast("Client", client(api))

    async def _run(self, what: str, job: Callable[[], T], deadline: float) -> T:
        if self._closed:
            raise EngineUnavailable(f"cannot {what}: the connection to the engine was closed")
        try:
            # not wait_for, which in Python 3.11 can swallow a cancellation
            async with asyncio.timeout(deadline):
                return await self._threads.run(
                    functools.partial(_translated, what, job, self.endpoint)
                )
        except EngineUnavailable as fault:
            if self._relay is None or not self._relay.complaint:
                raise
            raise EngineUnavailable(
                f"cannot reach {self.endpoint.url}: {self._relay.complaint}"
            ) from fault
        except TimeoutError as fault:
            raise EngineUnavailable(
                f"the engine at {self.endpoint.url} did not {what} within {deadline:g} s; "
                "look at its log"
            ) from fault


def _translated(what: str, job: Callable[[], T], endpoint: Endpoint) -> T:
    """Run `job` with the vendor's errors in our words. All of them pass here."""
    from docker.errors import (  # noqa: PLC0415 - loaded when used
        DockerException,
        StreamParseError,
    )

    try:
        _knock(endpoint)
        return job()
    except (DockerException, StreamParseError, OSError) as fault:
        # requests' errors are OSErrors, and so are those of a socket
        raise translate(what, fault, endpoint) from fault


def _knock(endpoint: Endpoint) -> None:
    """Raise the system's own error when nobody listens; the SDK buries it, and its socket."""
    if endpoint.scheme == "unix":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(5)
            probe.connect(endpoint.path)


def translate(what: str, fault: BaseException, endpoint: Endpoint) -> SandboxError:
    """Our error for one of the SDK's, of requests' or of a socket's."""
    cause = _root(fault)
    if isinstance(cause, PermissionError):
        return EngineUnavailable(
            f"no permission to use the engine at {endpoint.url}; join the `docker` group "
            "(`sudo usermod -aG docker $USER`, then log in again) or use a rootless engine"
        )
    if isinstance(cause, FileNotFoundError | ConnectionRefusedError):
        return EngineUnavailable(
            f"no container engine answers at {endpoint.url} (from {endpoint.origin}); start one "
            "with `sudo systemctl start docker`, or set DOCKER_HOST"
        )
    words = _words(fault)
    status = _status(fault)
    kind = next((TRANSLATED[c.__name__] for c in type(fault).__mro__ if c.__name__ in TRANSLATED),
                EngineUnavailable)  # fmt: skip
    message = f"cannot {what}: {words}"
    if status is not None and kind is SandboxError:
        return EngineStatus(message, status)
    return kind(message)


def _root(fault: BaseException) -> BaseException:
    """The system's own error below layers of wrapping, or the fault itself."""
    seen: list[BaseException] = [fault]
    for current in seen:
        if isinstance(current, PermissionError | FileNotFoundError | ConnectionRefusedError):
            return current
        nested = (current.__cause__, current.__context__, *current.args)
        reason = getattr(current, "reason", None)
        seen += [n for n in (*nested, reason) if isinstance(n, BaseException) and n not in seen]
        if len(seen) > 32:
            break
    return fault


def _status(fault: BaseException) -> int | None:
    status = getattr(fault, "status_code", None)
    return status if isinstance(status, int) else None


def _words(fault: BaseException) -> str:
    """One line of bounded length; the engine repeats names that others chose."""
    explanation = getattr(fault, "explanation", None)
    text = explanation if isinstance(explanation, str) and explanation else str(fault)
    return " ".join(text.split())[:500]


def _require_api(version: str) -> None:
    if numbers(version)[:2] < API_FLOOR:
        raise EngineUnavailable(
            f"the engine speaks API {version}, and 1.41 (Docker 20.10) is the least that works; "
            "upgrade it"
        )


def numbers(version: str) -> tuple[int, ...]:
    """Leading numbers of a dotted version; empty when there are none.

    >>> numbers("1.1.5+ds1")
    (1, 1, 5)
    """
    found: list[int] = []
    for part in version.lstrip("v").split("."):
        digits = ""
        for character in part:
            if not character.isdigit():
                break
            digits += character
        if not digits:
            break
        found.append(int(digits))
        if digits != part:
            break
    return tuple(found)


def is_status(fault: SandboxError, *statuses: int) -> bool:
    return isinstance(fault, EngineStatus) and fault.status in statuses


def text_at(facts: Facts, *keys: str) -> str:
    """A string in nested JSON, or empty."""
    value = _at(facts, keys)
    return value if isinstance(value, str) else ""


def number_at(facts: Facts, *keys: str) -> int | None:
    value = _at(facts, keys)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag_at(facts: Facts, *keys: str) -> bool:
    return _at(facts, keys) is True


def mapping_at(facts: Facts, *keys: str) -> Mapping[str, Any]:
    value = _at(facts, keys)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def items_at(facts: Facts, *keys: str) -> Sequence[Any]:
    value = _at(facts, keys)
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def _at(facts: Facts, keys: Sequence[str]) -> object:
    value: object = facts
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, object]", value).get(key)
    return value


async def describe(endpoint: Endpoint) -> str:
    """One line about an engine that answers. Raises `EngineUnavailable`."""
    engine = Engine(endpoint)
    try:
        facts = await engine.version()
        return f"engine {text_at(facts, 'Version')}, API {text_at(facts, 'ApiVersion')}"
    finally:
        await engine.close()


def main() -> int:
    """`python -m harness.sandbox.engine`: 0 when an engine answers, else 1 and the reason."""
    try:
        endpoint = discover(os.environ, Path.home())
        sys.stdout.write(f"{asyncio.run(describe(endpoint))} at {endpoint.url}\n")
    except HarnessError as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
