"""``journeyman serve`` and ``journeyman worker``: the service over HTTP, and a process that carries out runs."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from journeyman.app import Agent, Journeyman, SqlStore, ToolLibrary, open_store
from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.loading import file_of, load_agent, load_library, open_at, without_password
from journeyman.doors.cli.options import DEFAULT_STORE, WrongUsageError

GITHUB_VARIABLE = "GITHUB_API_URL"


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen. Others than 127.0.0.1 need --tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = 8000,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="JOURNEYMAN_TOKENS",
            help='Who may use it: {"TOKEN or sha256:HEX": {"id": "ada", "permissions": ["approvals:decide"]}}.',
            show_default=False,
        ),
    ] = None,
    agent: options.AgentName = None,
    library: options.Library = None,
    model: options.Model = None,
    workers: Annotated[
        bool, typer.Option("--workers", help="Leave runs to 'journeyman worker' processes (PostgreSQL).")
    ] = False,
    store: options.Store = DEFAULT_STORE,
    log_level: options.Log = None,
) -> None:
    """The service over HTTP: chat, tasks, tools, approvals, and an OpenAI-compatible API under /v1."""
    try:
        from journeyman.doors import http
    except ImportError as error:
        raise ConfigurationError("serving needs more packages: pip install 'journeyman[serve]'") from error
    from journeyman.app.service import open_service

    try:
        known = None if tokens is None else http.read_tokens(tokens)
    except ConfigurationError as error:
        raise WrongUsageError(f"--tokens: {error}") from None
    database = open_store(store)
    agents, loaded = _agents(agent, library, store=database)
    try:
        http.check_binding(host, known)
    except ConfigurationError as error:
        raise WrongUsageError(f"--host: {error}; --tokens names the token file") from None

    def ready(bound: int) -> None:
        address = f"[{host}]" if ":" in host else host
        screen.show(screen.console(stderr=True), f"listening on http://{address}:{bound} (Ctrl-C ends)")

    async def whole() -> None:
        async with open_service(
            store=store,
            database=database,
            library=loaded,
            agents=agents,
            model=model,
            workers=workers,
            github_url=os.environ.get(GITHUB_VARIABLE),
        ) as service:
            await http.serve(service, host=host, port=port, tokens=known, ready=ready)

    asyncio.run(whole())


def _agents(agent: str | None, library: str | None, *, store: SqlStore) -> tuple[list[Agent], ToolLibrary | None]:
    """Without an agent and a library, nothing: then the service has the assistant over the tasks toolkit."""
    if agent is not None:
        found, tools = load_agent(agent, library, store=store)
        return [found], tools
    return [], load_library(library, store=store) if library is not None else None


def worker(
    library: options.Library = None,
    model: options.Model = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many runs to work on at once.")] = 16,
    lease: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="After how long a silent worker is replaced.")
    ] = 30.0,
    store: options.Store = DEFAULT_STORE,
    log_level: options.Log = None,
) -> None:
    """Work on the runs of a PostgreSQL store, beside other workers, until stopped; what is under way is handed over."""
    shown = without_password(store)
    if file_of(store) is not None:
        raise WrongUsageError(
            f"workers need PostgreSQL and {shown!r} is SQLite: give --store postgresql://USER@HOST/DATABASE, "
            "or let one process take runs up with 'journeyman runs resume'"
        )
    try:
        from journeyman.app.worker import work
    except ImportError as error:
        raise ConfigurationError("workers need more packages: pip install 'journeyman[postgres]'") from error
    database = open_at(store)
    tools = load_library(library, store=database)

    def ready() -> None:
        what = f"{screen.counted(len(tools), 'tool')}, up to {screen.counted(concurrency, 'run')} at once"
        print(f"journeyman worker: ready: {what}, on {shown}", file=sys.stderr, flush=True)

    async def whole() -> None:
        app = Journeyman(library=tools, store=database, model=model, concurrency=concurrency, lease_seconds=lease)
        async with app:
            await work(app, store, concurrency=concurrency, ready=ready)

    with redirect_stdout(sys.stderr):
        asyncio.run(whole())
    print("journeyman worker: stopped; what is unfinished is for the next one", file=sys.stderr)
