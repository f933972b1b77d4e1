"""A real server on the loopback interface for tests, in this process or in one that can be killed."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from journeyman.app.service import Service, open_service
from journeyman.doors.http import ServeOptions, Tokens, serve
from tests.waiting import WAIT_SECONDS


@dataclass(frozen=True)
class Running:
    """A server and the service behind it."""

    url: str
    service: Service

    def client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(**{"base_url": self.url, "timeout": WAIT_SECONDS, **options})


@asynccontextmanager
async def served(
    folder: Path,
    *,
    tokens: Tokens | None = None,
    options: ServeOptions | None = None,
    tls: ssl.SSLContext | None = None,
    **parts: Any,
) -> AsyncIterator[Running]:
    store = parts.pop("store", f"sqlite:///{folder / 'store.db'}")
    async with open_service(store=store, poll_seconds=0.05, **parts) as service:
        ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            serve(service, port=0, tokens=tokens, options=options, tls=tls, ready=ready.set_result)
        )
        try:
            await asyncio.wait((serving, ready), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving
            scheme = "http" if tls is None else "https"
            yield Running(f"{scheme}://127.0.0.1:{ready.result()}", service)
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


@dataclass(frozen=True)
class Sent:
    """One server-sent event."""

    id: int | None
    event: str | None
    data: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.data)
        return found


async def events_of(response: httpx.Response) -> AsyncIterator[Sent]:
    """The events of a stream, the last one's data being [DONE]."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            number = fields.get("id")
            yield Sent(None if number is None else int(number), fields.get("event"), fields.get("data", ""))
            fields = {}


async def chat(client: httpx.AsyncClient, message: str, **body: Any) -> list[Sent]:
    async with client.stream("POST", "/api/v1/chat", json={"message": message, **body}) as response:
        assert response.status_code == 200, await response.aread()
        return [event async for event in events_of(response)]
