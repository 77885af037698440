"""Where the container engine listens.

The order is the docker command's own: `DOCKER_HOST`, else the current context, else a rootless
engine's socket below `$XDG_RUNTIME_DIR`, else the default socket.
"""

from __future__ import annotations

import hashlib
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from harness.errors import EngineUnavailable

DEFAULT_SOCKET = Path("/var/run/docker.sock")
TCP_PORT = 2375
TLS_PORT = 2376


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of a TLS endpoint. `verify` False accepts any server, as the user configured."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Raises `EngineUnavailable` when a file cannot be read."""
        try:
            made = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
            if not self.verify:
                made.check_hostname = False
                made.verify_mode = ssl.CERT_NONE
            if self.cert is not None:
                made.load_cert_chain(self.cert, self.key)
        except (OSError, ssl.SSLError) as fault:
            raise EngineUnavailable(
                f"the TLS files of the docker endpoint cannot be used: {fault}"
            ) from fault
        return made


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One engine's address. `scheme` is `unix`, `tcp` or `ssh`; `origin` says who named it.

    `path` is a unix socket's path; `host` and `port` are set for the others.
    """

    scheme: str
    origin: str
    path: str = ""
    host: str = ""
    port: int | None = None
    user: str = ""
    tls: TlsFiles | None = None

    @property
    def url(self) -> str:
        """As the docker command writes it."""
        if self.scheme == "unix":
            return f"unix://{self.path}"
        name = f"[{self.host}]" if ":" in self.host else self.host
        login = f"{self.user}@" if self.user else ""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{login}{name}{port}"


def discover(environ: Mapping[str, str], home: Path) -> Endpoint:
    """Find the endpoint; nothing is contacted.

    Raises `EngineUnavailable` for an address or a context that cannot be used.
    """
    host = environ.get("DOCKER_HOST", "")
    config = Path(environ.get("DOCKER_CONFIG") or home / ".docker")
    if host:
        return parse(host, origin="DOCKER_HOST", tls=_environment_tls(environ, config))
    name = environ.get("DOCKER_CONTEXT") or _current_context(config)
    if name and name != "default":
        return _context(config, name)
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    rootless = Path(runtime) / "docker.sock"
    if runtime and _exists(rootless):
        return Endpoint("unix", "XDG_RUNTIME_DIR", path=str(rootless))
    return Endpoint("unix", "default", path=str(DEFAULT_SOCKET))


def parse(url: str, *, origin: str, tls: TlsFiles | None = None) -> Endpoint:
    """Read an engine's address.

    Raises `EngineUnavailable` for a scheme or an address that is not understood.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise EngineUnavailable(f"{origin}: `{url}` is no address: {fault}") from fault
    if parts.scheme == "unix" and parts.path:
        return Endpoint("unix", origin, path=parts.netloc + parts.path)
    if parts.scheme in {"tcp", "http", "https"} and parts.hostname:
        secure = tls or (TlsFiles() if parts.scheme == "https" else None)
        default = TLS_PORT if secure else TCP_PORT
        return Endpoint("tcp", origin, host=parts.hostname, port=port or default, tls=secure)
    if parts.scheme == "ssh" and parts.hostname and not parts.hostname.startswith("-"):
        user = parts.username or ""
        if not user.startswith("-"):
            return Endpoint("ssh", origin, host=parts.hostname, port=port, user=user)
    raise EngineUnavailable(
        f"{origin}: `{url}` is no engine address; use unix:///path, tcp://host:port or ssh://host"
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _environment_tls(environ: Mapping[str, str], config: Path) -> TlsFiles | None:
    verify = bool(environ.get("DOCKER_TLS_VERIFY", ""))
    if not verify and not environ.get("DOCKER_TLS"):
        return None
    folder = Path(environ.get("DOCKER_CERT_PATH") or config)
    return _tls_folder(folder, verify=verify)


def _tls_folder(folder: Path, *, verify: bool) -> TlsFiles:
    def have(name: str) -> Path | None:
        path = folder / name
        return path if _exists(path) else None

    return TlsFiles(have("ca.pem"), have("cert.pem"), have("key.pem"), verify)


def _current_context(config: Path) -> str:
    path = config / "config.json"
    if not _exists(path):
        return ""
    name = _json(path).get("currentContext")
    return name if isinstance(name, str) else ""


def _context(config: Path, name: str) -> Endpoint:
    """A context's metadata lies in a folder named by the SHA-256 of the context's name."""
    folder = hashlib.sha256(name.encode()).hexdigest()
    path = config / "contexts" / "meta" / folder / "meta.json"
    if not _exists(path):
        raise EngineUnavailable(
            f"the docker context `{name}` does not exist; see `docker context ls`, "
            "or set DOCKER_HOST"
        )
    ends = _json(path).get("Endpoints")
    docker = cast("dict[str, object]", ends).get("docker") if isinstance(ends, dict) else None
    facts = cast("dict[str, object]", docker) if isinstance(docker, dict) else {}
    host = facts.get("Host")
    if not isinstance(host, str):
        raise EngineUnavailable(f"the docker context `{name}` names no docker endpoint")
    material = config / "contexts" / "tls" / folder / "docker"
    verify = facts.get("SkipTLSVerify") is not True
    tls = _tls_folder(material, verify=verify) if _exists(material) else None
    return parse(host, origin=f"context {name}", tls=tls)


def _json(path: Path) -> dict[str, object]:
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise EngineUnavailable(f"{path}: cannot be read as JSON: {fault}") from fault
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
