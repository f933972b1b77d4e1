"""Our own HTTP client, against servers that write what they like, byte by byte."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest
from yarl import URL

from journeyman.core.errors import ConfigurationError, ModelError
from journeyman.core.model_settings import Timeouts
from journeyman.models import http
from journeyman.models.http import Client, CutError, SilenceError
from journeyman.models.openai import OpenAIModel
from tests.models.asking import Heard, asked

Play: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return head + await reader.readexactly(size)


@asynccontextmanager
async def server(play: Play, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[URL, list[int]]]:
    """Its address, and a number for each connection that was made."""
    connections: list[int] = []
    playing: list[asyncio.Future[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(len(connections))
        ended = asyncio.get_running_loop().create_future()
        playing.append(ended)
        try:
            await play(reader, writer, connections[-1])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
            ended.set_result(None)

    running = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = running.sockets[0].getsockname()[1]
    try:
        yield URL(f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"), connections
    finally:
        running.close()
        await asyncio.gather(*playing)  # what is left open would be found by another test


def saying(*parts: bytes) -> Play:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        while True:
            await read_request(reader)
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)

    return play


async def body_of(url: URL, limits: Timeouts | None = None) -> bytes:
    async with Client(url, {}) as client:
        with await client.post(b"{}", limits or Timeouts()) as answer:
            return await answer.read(1_000_000)


@pytest.mark.parametrize(
    "parts",
    [
        (OK,),
        tuple(OK[at : at + 1] for at in range(len(OK))),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n", b"1\r\nk\r\n0\r\n\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", OK),
        (b"HTTP/1.1 200 OK\r\nX: \xff\xfe\r\nContent-Length: 2\r\n\r\no", b"k"),
    ],
)
async def test_an_answer_is_read_however_it_comes(parts: tuple[bytes, ...]) -> None:
    async with server(saying(*parts)) as (url, _):
        assert await body_of(url) == b"ok"


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\no")
        await writer.drain()
        writer.write(b"k")

    async with server(play) as (url, connections), Client(url, {}) as client:
        for _ in range(2):
            with await client.post(b"{}", Timeouts()) as answer:
                assert await answer.read(10) == b"ok"
        assert connections == [0, 1]


async def test_a_connection_is_kept_and_one_that_the_server_closed_is_replaced() -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        for _ in range(2):
            await read_request(reader)
            writer.write(OK)
        if number == 0:
            await read_request(reader)  # it closes without an answer: it had timed out before that came

    async with server(play) as (url, connections), Client(url, {}) as client:
        for _ in range(4):
            with await client.post(b"{}", Timeouts()) as answer:
                assert await answer.read(10) == b"ok"
        assert connections == [0, 1]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), "not HTTP"),
        ((b"HTTP/1.1 200 OK\r\nX: " + b"x" * http.HEAD_BYTES,), "head has more"),
        ((b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * http.HEAD_BYTES,), "head has more"),
        ((b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",), "another protocol"),
    ],
)
async def test_what_is_no_answer_is_refused(parts: tuple[bytes, ...], says: str) -> None:
    async with server(saying(*parts)) as (url, _):
        with pytest.raises(CutError, match=says):
            await body_of(url)


async def test_what_breaks_off_is_no_answer() -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        await read_request(reader)
        writer.write(OK[:-1])

    async with server(play) as (url, connections):
        with pytest.raises(CutError):
            await body_of(url)
        assert connections == [0]  # part of the answer was there: it is not asked again unasked


async def test_a_server_that_talks_unasked_loses_its_connection() -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await read_request(reader)
        writer.write(OK + (OK if number == 0 else b""))
        await writer.drain()
        if number == 0:
            await reader.read()

    async with server(play) as (url, connections), Client(url, {}) as client:
        for _ in range(2):
            with await client.post(b"{}", Timeouts()) as answer:
                assert await answer.read(10) == b"ok"
        assert connections == [0, 1]


async def test_an_answer_that_goes_on_is_not_cut_and_one_that_stops_is() -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n")
        for _ in range(15 if number == 0 else 2):
            await asyncio.sleep(0.1)
            writer.write(b".")
            await writer.drain()
        await reader.read()

    async with server(play) as (url, _):
        assert await body_of(url, Timeouts(first_byte=1.0, idle=1.0)) == b"." * 15
        with pytest.raises(SilenceError, match="1 s"):
            await body_of(url, Timeouts(first_byte=30, idle=1.0))
        with pytest.raises(SilenceError, match=r"0\.3 s"):
            await body_of(url, Timeouts(total=0.3))


async def test_who_reads_slowly_stops_the_server_and_not_the_clock() -> None:
    size = 20 * http.READ_AHEAD
    written = 0

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        nonlocal written
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(20):
            writer.write(b"x" * http.READ_AHEAD)
            await writer.drain()
            written += http.READ_AHEAD
        await reader.read()

    async with server(play) as (url, _), Client(url, {}) as client:
        with await client.post(b"{}", Timeouts(idle=0.3)) as answer:
            await asyncio.sleep(1.0)
            assert written < size  # it had to stop
            assert sum([len(piece) async for piece in answer.pieces()]) == size


async def test_a_header_in_two_lines_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="line break"):
        Client(URL("http://127.0.0.1/v1"), {"X-Name": "a\r\nX-Other: b"})


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*paths)
    said = b'{"choices":[{"message":{"content":"safely"}}]}'
    whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said)
    http._tls.cache_clear()
    try:
        async with server(saying(whole), tls) as (url, _):
            async with OpenAIModel("m", base_url=str(url), retries=0) as model:
                with pytest.raises(ModelError, match="certificate"):
                    await model.respond(asked(), Heard())
            monkeypatch.setenv("SSL_CERT_FILE", str(paths[0]))
            http._tls.cache_clear()
            async with OpenAIModel("m", base_url=str(url), retries=0) as model:
                assert (await model.respond(asked())).text == "safely"
    finally:
        http._tls.cache_clear()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key, which only its own maker has signed."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "here")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return paths


async def test_silence_ends_the_second_answer_of_a_connection() -> None:
    """The timer of the first answer is still there, and must not be taken for the second one's."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await reader.read()

    async with server(play) as (url, _), Client(url, {}) as client:
        with await client.post(b"{}", Timeouts(first_byte=60)) as answer:
            assert await answer.read(10) == b"ok"
        with pytest.raises(SilenceError):
            await client.post(b"{}", Timeouts(first_byte=0.05))
