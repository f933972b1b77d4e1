"""Clients that are slow, silent, or too many: they lose their connection, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from journeyman import ConfigurationError
from journeyman.app.handles import Handle
from journeyman.doors.http import ConnectionLimits, ServeOptions, tls_context
from journeyman.testing import ScriptedModel, say
from tests.doors.http.serving import served
from tests.waiting import WAIT_SECONDS

HALF_OPEN = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Never"
HALF_A_BODY = (
    b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def limited(**limits: Any) -> ServeOptions:
    return ServeOptions(limits=ConnectionLimits(**limits))


@contextlib.asynccontextmanager
async def connected(url: str, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Any]:
    port = urlsplit(url).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """All that the server says until it hangs up."""
    async with asyncio.timeout(WAIT_SECONDS):
        said = b""
        with contextlib.suppress(ConnectionError):
            while some := await reader.read(65_536):
                said += some
        return said


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (HALF_OPEN, b" 408 "),
        (WHOLE + HALF_OPEN, b" 408 "),
        (HALF_A_BODY, b" 408 "),
        # Answered without a look at the body, of which the rest never comes.
        (HALF_A_BODY.replace(b"/api/v1/tasks", b"/nowhere"), b" 404 "),
    ],
)
async def test_a_request_that_never_ends_is_given_up(tmp_path: Path, sent: bytes, answer: bytes) -> None:
    options = limited(head_seconds=0.5, body_seconds=0.5)
    async with served(tmp_path, options=options) as server, connected(server.url) as (reader, writer):
        writer.write(sent)
        said = await ended(reader)
        assert answer in said
        assert said.count(b"HTTP/1.1 ") == (sent != b"") + (WHOLE in sent)


@pytest.mark.parametrize("begun", [HALF_OPEN, HALF_A_BODY, WHOLE])
async def test_a_byte_now_and_then_buys_no_time(tmp_path: Path, begun: bytes) -> None:
    options = limited(head_seconds=0.6, body_seconds=0.6)
    async with served(tmp_path, options=options) as server, connected(server.url) as (reader, writer):
        writer.write(begun)
        said = asyncio.create_task(ended(reader))
        async with asyncio.timeout(WAIT_SECONDS):
            while not said.done():
                writer.write(b"x")
                await asyncio.sleep(0.05)
        await said


async def test_half_open_requests_silence_nobody_else(tmp_path: Path) -> None:
    """More of them than there are places, all from the address of whoever asks in earnest."""
    options = limited(connections=40, connections_per_address=30, head_seconds=WAIT_SECONDS)
    async with served(tmp_path, options=options) as server, contextlib.AsyncExitStack() as stack:
        for _ in range(120):
            _, writer = await stack.enter_async_context(connected(server.url))
            writer.write(HALF_OPEN)
        async with server.client() as client:
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.post("/api/v1/tasks", json={"title": "Buy milk"})).status_code == 201


async def test_a_stream_keeps_its_place_and_one_too_many_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = limited(connections=3, connections_per_address=2)
    model = ScriptedModel([say("Hello.")])
    async with served(tmp_path, options=options, model=model) as server, contextlib.AsyncExitStack() as stack:
        row = await server.service.app.start(server.service.default_agent, "Hello")
        await row.wait()
        asked = f"GET /api/v1/runs/{row.run_id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        streams = []
        held = asyncio.Event()

        async def for_ever(*_: Any, **__: Any) -> Any:
            yield []
            await held.wait()

        monkeypatch.setattr(Handle, "batches", for_ever)
        for _ in range(2):
            reader, writer = await stack.enter_async_context(connected(server.url))
            writer.write(asked)
            assert b" 200 " in await reader.readline()
            streams.append(reader)
        reader, _ = await stack.enter_async_context(connected(server.url))
        assert b" 503 " in await ended(reader)
        held.set()
        for stream in streams:
            assert b"[DONE]" in await stream.readuntil(b"[DONE]")


async def test_an_answer_that_nobody_reads_is_given_up(tmp_path: Path) -> None:
    options = limited(write_seconds=1.0)
    async with served(tmp_path, options=options) as server, connected(server.url) as (_, writer):
        for number in range(40):
            await server.service.tasks.create(title=f"Task {number}", description="x" * 90_000)
        writer.transport.pause_reading()
        asked = b"GET /api/v1/tasks?limit=40 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        writer.write(asked * 10)
        lost = asyncio.create_task(writer.wait_closed())
        async with asyncio.timeout(WAIT_SECONDS):
            # A reset is only noticed by writing.
            while not lost.done():
                writer.write(b" ")
                await asyncio.sleep(0.1)
        with contextlib.suppress(OSError):
            await lost
        async with server.client() as client:
            assert (await client.get("/healthz")).status_code == 200


# --- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with openssl")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*command.split(), "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


async def test_it_speaks_tls_and_waits_for_no_handshake(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    context, trusting = tls_context(*certificate), ssl.create_default_context(cafile=str(certificate[0]))
    options = limited(connections=8, connections_per_address=6, head_seconds=1.0)
    async with served(tmp_path, options=options, tls=context) as server, contextlib.AsyncExitStack() as stack:
        readers = []
        for _ in range(20):
            reader, _ = await stack.enter_async_context(connected(server.url))
            readers.append(reader)
        async with server.client(verify=trusting) as client:
            assert (await client.post("/api/v1/tasks", json={"title": "Buy milk"})).status_code == 201
            assert (await client.get("/healthz")).status_code == 200
        for reader in readers:
            await ended(reader)
        async with connected(server.url, tls=trusting) as (reader, writer):
            writer.write(HALF_OPEN)
            assert b" 408 " in await ended(reader)


def test_a_certificate_that_cannot_be_used_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("not a certificate")
    with pytest.raises(ConfigurationError, match="TLS cannot be served"):
        tls_context(tmp_path / "cert.pem")
