"""``journeyman serve``: the service over HTTP, until it is stopped."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from journeyman.app import Agent, ToolLibrary
from journeyman.app.durable import SqlStore, open_store
from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli import screen
from journeyman.doors.cli.loading import load_agent, load_library
from journeyman.doors.cli.options import WrongUsageError

if TYPE_CHECKING:
    from journeyman.doors.http import Tokens

GITHUB_VARIABLE = "GITHUB_API_URL"


def serve_http(
    *,
    url: str,
    host: str,
    port: int,
    tokens: Path | None,
    agent: str | None,
    library: str | None,
    model: str | None,
    workers: bool,
) -> None:
    """Serve, and say where. Without an agent and a library, the assistant over the tasks toolkit."""
    try:
        from journeyman.doors import http
    except ImportError as error:
        raise ConfigurationError("serving needs more packages: pip install 'journeyman[serve]'") from error
    from journeyman.app.service import open_service

    known = _tokens(tokens)
    store = open_store(url)
    agents, tools = _agents(agent, library, store=store)
    try:
        http.check_binding(host, known)
    except ConfigurationError as error:
        raise WrongUsageError(f"--host: {error}; --tokens names the token file") from None

    def ready(taken: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        screen.show(screen.console(stderr=True), f"listening on http://{shown}:{taken} (Ctrl-C ends)")

    async def whole() -> None:
        async with open_service(
            store=url,
            database=store,
            library=tools,
            agents=agents,
            model=model,
            workers=workers,
            github_url=os.environ.get(GITHUB_VARIABLE),
        ) as service:
            await http.serve(service, host=host, port=port, tokens=known, ready=ready)

    asyncio.run(whole())


def _tokens(file: Path | None) -> Tokens | None:
    from journeyman.doors.http import read_tokens

    if file is None:
        return None
    try:
        return read_tokens(file)
    except ConfigurationError as error:
        raise WrongUsageError(f"--tokens: {error}") from None


def _agents(agent: str | None, library: str | None, *, store: SqlStore) -> tuple[list[Agent], ToolLibrary | None]:
    if agent is not None:
        found, tools = load_agent(agent, library, store=store)
        return [found], tools
    return [], load_library(library, store=store) if library is not None else None
