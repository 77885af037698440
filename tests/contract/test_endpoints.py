"""Boxes over every kind of endpoint: a socket is the rest of the suite; tcp, TLS and ssh here."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.errors import EngineUnavailable
from harness.sandbox.docker import DockerBackend
from harness.sandbox.endpoint import Endpoint, TlsFiles, discover
from harness.values.commands import ExecRequest
from tests.contract.stations import SPEC

pytestmark = pytest.mark.sandbox

HERE = discover(os.environ, Path.home())


@contextlib.asynccontextmanager
async def front(secure: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A port on loopback that leads to this machine's engine."""
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        there, back = await asyncio.open_unix_connection(HERE.path)
        try:
            await asyncio.gather(pump(reader, back), pump(there, writer))
        finally:
            back.transport.abort()
            writer.transport.abort()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=secure)
    async with server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0.05)


async def use(endpoint: Endpoint) -> None:
    backend = DockerBackend(endpoint=endpoint)
    try:
        box = await backend.create(SPEC, run="endpoint")
        result = await box.exec(ExecRequest(("cat",), stdin=bytes(3_000_000), head=3_000_000))
        assert result.stdout.data == bytes(3_000_000)
        await box.close()
        assert [b for b in await backend.list_boxes() if b.run == "endpoint"] == []
    finally:
        await backend.close()


def test_a_box_over_tcp() -> None:
    async def go() -> None:
        async with front() as port:
            await use(Endpoint("tcp", "test", host="127.0.0.1", port=port))

    asyncio.run(go())


@pytest.fixture
def certificates(tmp_path: Path) -> TlsFiles:
    """A self-signed pair that serves as authority, server and client."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=engine", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return TlsFiles(ca=cert, cert=cert, key=key)


def test_a_box_over_tls_with_a_client_certificate(certificates: TlsFiles) -> None:
    async def go() -> None:
        assert certificates.cert is not None
        secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates.ca)
        secure.load_cert_chain(certificates.cert, certificates.key)
        secure.verify_mode = ssl.CERT_REQUIRED
        async with front(secure) as port:
            await use(Endpoint("tcp", "test", host="127.0.0.1", port=port, tls=certificates))

    asyncio.run(go())


def test_a_server_that_nobody_vouches_for_is_refused(certificates: TlsFiles) -> None:
    async def go() -> None:
        assert certificates.cert is not None
        secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        secure.load_cert_chain(certificates.cert, certificates.key)
        async with front(secure) as port:
            stranger = Endpoint("tcp", "test", host="127.0.0.1", port=port, tls=TlsFiles())
            with pytest.raises(EngineUnavailable, match=r"(?i)certificate"):
                await use(stranger)

    asyncio.run(go())


def fake_ssh(folder: Path, script: str) -> str:
    """A PATH whose `ssh` is a script."""
    program = folder / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_a_box_over_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ssh itself is replaced; what it is asked to run on the other side is real."""
    if shutil.which("docker") is None:
        pytest.skip("no docker command")
    script = (
        f'echo "$@" >> {tmp_path}/calls\n'
        'for last; do :; done\ncase "$last" in "docker system dial-stdio") exec $last;; esac'
    )
    monkeypatch.setenv("PATH", fake_ssh(tmp_path, script))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    asyncio.run(use(Endpoint("ssh", "test", host="far", port=2222, user="me")))
    first = (tmp_path / "calls").read_text().splitlines()[0]
    assert first.endswith("-p 2222 -l me -- far docker system dial-stdio")
    assert "BatchMode=yes" in first


def test_an_ssh_that_fails_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "echo 'Permission denied (publickey).' >&2; exit 255"
    monkeypatch.setenv("PATH", fake_ssh(tmp_path, script))
    with pytest.raises(EngineUnavailable, match=r"ssh://far: Permission denied \(publickey\)"):
        asyncio.run(use(Endpoint("ssh", "test", host="far")))
