"""APIs of the tests: an OpenAPI document, and a server on the loopback that answers what it was asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def echo(request: web.Request) -> web.Response:
    """The request, as it came."""
    body = await request.read()
    return web.json_response(
        {
            "method": request.method,
            "target": request.raw_path,
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "body": body.decode("utf-8", "replace"),
        }
    )


@asynccontextmanager
async def serving(handler: Handler = echo) -> AsyncIterator[str]:
    """The address of a server that lets one function answer everything."""
    application = web.Application(client_max_size=2**24)
    application.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def document(folder: Path, paths: dict[str, Any], *, version: str = "3.1.0", **more: Any) -> Path:
    """A document in a file."""
    file = folder / "shop.json"
    file.write_text(json.dumps({"openapi": version, "info": {"title": "Shop", "version": "1"}, "paths": paths, **more}))
    return file


def operation(name: str, *parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One operation."""
    return {"operationId": name, "summary": "Does it.", "parameters": list(parameters), "responses": {}, **more}


def takes(media: str, schema: Any, *, required: bool = True, **more: Any) -> dict[str, Any]:
    """A body."""
    return {"requestBody": {"required": required, "content": {media: {"schema": schema, **more}}}}
