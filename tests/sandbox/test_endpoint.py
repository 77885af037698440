"""Where the engine is looked for, in the docker command's order."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from harness.errors import EngineUnavailable
from harness.sandbox.endpoint import discover, parse


def write_context(home: Path, name: str, docker: object) -> Path:
    config = home / ".docker"
    folder = hashlib.sha256(name.encode()).hexdigest()
    meta = config / "contexts" / "meta" / folder
    meta.mkdir(parents=True)
    (config / "config.json").write_text(json.dumps({"currentContext": name}))
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": docker}}))
    return config / "contexts" / "tls" / folder / "docker"


def test_docker_host_comes_before_everything(tmp_path: Path) -> None:
    write_context(tmp_path, "far", {"Host": "tcp://far:2375"})
    found = discover({"DOCKER_HOST": "unix:///run/x.sock"}, tmp_path)
    assert (found.url, found.origin) == ("unix:///run/x.sock", "DOCKER_HOST")


def test_the_current_context_comes_before_the_sockets(tmp_path: Path) -> None:
    write_context(tmp_path, "colima", {"Host": "unix:///home/u/.colima/docker.sock"})
    (tmp_path / "docker.sock").touch()
    found = discover({"XDG_RUNTIME_DIR": str(tmp_path)}, tmp_path)
    assert found.path == "/home/u/.colima/docker.sock"
    assert found.origin == "context colima"


def test_a_contexts_tls_files_are_used(tmp_path: Path) -> None:
    material = write_context(tmp_path, "far", {"Host": "tcp://far:2376", "SkipTLSVerify": False})
    material.mkdir(parents=True)
    (material / "ca.pem").touch()
    found = discover({}, tmp_path)
    assert found.tls is not None
    assert found.tls.ca == material / "ca.pem"
    assert found.tls.cert is None
    assert found.tls.verify


def test_skipping_verification_is_the_contexts_choice(tmp_path: Path) -> None:
    write_context(tmp_path, "far", {"Host": "tcp://far:2376", "SkipTLSVerify": True}).mkdir(
        parents=True
    )
    found = discover({}, tmp_path)
    assert found.tls is not None
    assert not found.tls.verify


@pytest.mark.parametrize("name", ["", "default"])
def test_the_default_context_means_the_sockets(tmp_path: Path, name: str) -> None:
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker" / "config.json").write_text(json.dumps({"currentContext": name}))
    assert discover({}, tmp_path).path == "/var/run/docker.sock"


def test_a_rootless_socket_comes_before_the_default(tmp_path: Path) -> None:
    (tmp_path / "docker.sock").touch()
    assert discover({"XDG_RUNTIME_DIR": str(tmp_path)}, tmp_path).origin == "XDG_RUNTIME_DIR"


def test_no_rootless_socket_leaves_the_default(tmp_path: Path) -> None:
    assert discover({"XDG_RUNTIME_DIR": str(tmp_path)}, tmp_path).origin == "default"


def test_environment_tls_reads_the_certificate_folder(tmp_path: Path) -> None:
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).touch()
    found = discover(
        {
            "DOCKER_HOST": "tcp://far:2376",
            "DOCKER_TLS_VERIFY": "1",
            "DOCKER_CERT_PATH": str(tmp_path),
        },
        tmp_path,
    )
    assert found.tls is not None
    assert found.tls.key == tmp_path / "key.pem"
    assert found.tls.verify


def test_an_unreadable_certificate_is_told(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    found = parse("tcp://far", origin="DOCKER_HOST")
    assert found.tls is None
    environ = {"DOCKER_HOST": "tcp://f", "DOCKER_TLS": "1", "DOCKER_CERT_PATH": str(tmp_path)}
    tls = discover(environ, tmp_path).tls
    assert tls is not None
    with pytest.raises(EngineUnavailable, match="TLS files"):
        tls.context()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("unix:///a/b.sock", "unix:///a/b.sock"),
        ("tcp://h", "tcp://h:2375"),
        ("tcp://[::1]:99", "tcp://[::1]:99"),
        ("https://h", "tcp://h:2376"),
        ("ssh://u@h:22", "ssh://u@h:22"),
        ("ssh://h", "ssh://h"),
    ],
)
def test_addresses_are_read(url: str, shown: str) -> None:
    assert parse(url, origin="x").url == shown


@pytest.mark.parametrize(
    "url", ["", "h:1", "npipe:////./pipe/x", "tcp://", "tcp://h:port", "ssh://-oProxy=x", "unix://"]
)
def test_an_address_that_is_none_is_told(url: str) -> None:
    with pytest.raises(EngineUnavailable, match="address"):
        parse(url, origin="DOCKER_HOST")


def test_a_context_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match="`gone` does not exist"):
        discover({"DOCKER_CONTEXT": "gone"}, tmp_path)


@pytest.mark.parametrize("docker", [{}, {"Host": 3}, [], "x"])
def test_a_context_without_an_endpoint_is_told(tmp_path: Path, docker: object) -> None:
    write_context(tmp_path, "odd", docker)
    with pytest.raises(EngineUnavailable, match="names no docker endpoint"):
        discover({}, tmp_path)


def test_a_broken_config_file_is_told_with_its_name(tmp_path: Path) -> None:
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker" / "config.json").write_text("{")
    with pytest.raises(EngineUnavailable, match=r"config\.json"):
        discover({}, tmp_path)
