"""A connection that a test can cut: everything between a browser and a server passes through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Cable:
    url: str
    _ends: set[asyncio.StreamWriter] = field(default_factory=set)
    _whole: bool = True

    @classmethod
    @asynccontextmanager
    async def to(cls, url: str) -> AsyncIterator[Cable]:
        port = urlsplit(url).port

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not cable._whole:
                writer.transport.abort()
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            cable._ends |= {writer, far_writer}
            await asyncio.gather(_pass(reader, far_writer), _pass(far_reader, writer))
            cable._ends -= {writer, far_writer}

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        cable = cls(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with server:
            yield cable
            server.close()
            cable.cut()

    def cut(self) -> None:
        """Everything under way breaks off, and nothing gets through until it is mended."""
        self._whole = False
        for end in self._ends:
            end.transport.abort()

    def mend(self) -> None:
        self._whole = True


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
