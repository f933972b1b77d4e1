"""The options of ``journeyman serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from journeyman.doors.cli.options import DEFAULT_STORE, AgentName, Library, Log, Model, Store, start_logs


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
    agent: AgentName = None,
    library: Library = None,
    model: Model = None,
    workers: Annotated[
        bool,
        typer.Option("--workers", help="Leave runs to 'journeyman worker' processes (PostgreSQL)."),
    ] = False,
    store: Store = DEFAULT_STORE,
    log_level: Log = None,
) -> None:
    """The service over HTTP: chat, tasks, tools, approvals, and an OpenAI-compatible API under /v1."""
    from journeyman.doors.cli.serving import serve_http

    start_logs(log_level)
    serve_http(
        url=store, host=host, port=port, tokens=tokens, agent=agent, library=library, model=model, workers=workers
    )
