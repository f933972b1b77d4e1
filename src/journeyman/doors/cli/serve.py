"""``journeyman serve`` and ``journeyman worker``: the service over HTTP, and a process that carries out runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from journeyman.app import Agent, Journeyman, SqlStore, ToolLibrary, open_store, split_path
from journeyman.app.service import model_name
from journeyman.app.splits import Split as LiveSplit
from journeyman.core.errors import ConfigurationError
from journeyman.core.extras import install_command
from journeyman.core.policy import Policy
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import configuration
from journeyman.doors.cli.loading import (
    RESEARCH,
    file_of,
    imported,
    is_document,
    load_agent,
    load_library,
    open_at,
    without_password,
)
from journeyman.doors.cli.options import DEFAULT_STORE, WrongUsageError
from journeyman.doors.cli.origins import RememberedTools, origin_of, remember
from journeyman.doors.cli.secret import TOKEN_VARIABLE, new_token, take_from_environment
from journeyman.doors.cli.worker_processes import worker_processes

if TYPE_CHECKING:
    from journeyman.app import Configuration
    from journeyman.app.journeyman import Operation
    from journeyman.app.service import Service
    from journeyman.doors.http import Tokens

GITHUB_VARIABLE = "GITHUB_API_URL"

TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="JOURNEYMAN_TOKENS",
        help='Who may use the service: {"TOKEN or sha256:HEX": {"id": "ada", "permissions": ["approvals:decide"]}}.',
        show_default=False,
    ),
]


Split = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME",
        help="A Split: live runs are divided between its libraries. Instead of --library.",
        show_default=False,
    ),
]

PrincipalConcurrency = Annotated[
    int | None, typer.Option(min=1, help="Runs of one principal worked on at once, anywhere.", show_default=False)
]
ApprovalTime = Annotated[
    str | None, typer.Option(metavar="TIME", help="How long an approval waits: 30m, 12h, 7d.", show_default=False)
]
Retention = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="How long runs, sessions, artifacts, calls, the audit and traces are kept: 30d, 'forever'.",
        show_default="ended runs and traces 7d, the rest forever",
    ),
]
Traces = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Also write each run's trace there.", show_default=False)
]


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen. Others than 127.0.0.1 need --tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = 8000,
    tokens: TokenFile = None,
    insecure_no_token: Annotated[
        bool,
        typer.Option(
            "--insecure-no-token",
            help="Ask nobody on this machine for a token. Dangerous: every program here, tools included, can approve.",
        ),
    ] = False,
    tls_cert: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Serve https with this certificate chain (PEM).", show_default=False),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its key, if it is not in the same file.", show_default=False)
    ] = None,
    root_path: Annotated[
        str, typer.Option(metavar="PATH", help="Where a proxy shows the service, e.g. /journeyman.", show_default=False)
    ] = "",
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Pages from there may use the service, too. May be repeated."),
    ] = None,
    agent: options.AgentName = None,
    library: options.Library = None,
    split: Split = None,
    model: options.Model = None,
    forwarded_allow_ips: Annotated[
        str,
        typer.Option(
            metavar="ADDRESSES",
            envvar="JOURNEYMAN_FORWARDED_ALLOW_IPS",
            help="Proxies whose X-Forwarded-For and -Proto are believed: addresses or networks, with commas between.",
            show_default="none",
        ),
    ] = "",
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Leave runs to so many worker processes, started beside the service (PostgreSQL); 0: to those that "
            "'journeyman worker' starts.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1, help="Runs worked on at once: by the service (64), or by each worker (16).", show_default=False
        ),
    ] = None,
    principal_concurrency: PrincipalConcurrency = None,
    approval_time: ApprovalTime = None,
    retention: Retention = None,
    traces: Traces = None,
    requests_per_minute: Annotated[int, typer.Option(min=1, help="Of one principal, or of one address.")] = 1_200,
    body_bytes: Annotated[int, typer.Option(min=1, help="How large a request may be.")] = 1_000_000,
    connections: Annotated[int, typer.Option(min=1, help="At once.")] = 1_000,
    connections_per_address: Annotated[
        int, typer.Option(min=1, help="At once from one address; a proxy is one address.")
    ] = 500,
    store: options.Store = DEFAULT_STORE,
    debug: options.Debug = False,
    log_level: options.Log = None,
) -> None:
    """The service over HTTP: chat, tasks, tools, approvals, and an OpenAI-compatible API under /v1.

    Without --tokens it prints a link with a token that holds until it ends; JOURNEYMAN_TOKEN sets that token.
    """
    given = take_from_environment(TOKEN_VARIABLE)  # before anything of the caller's is imported
    if tokens is not None and insecure_no_token:
        raise WrongUsageError("--tokens says who may use the service, --insecure-no-token that everybody may: give one")
    listed = token_file(tokens)
    from journeyman.app.service import open_service
    from journeyman.doors import http

    proxies = tuple(part.strip() for part in forwarded_allow_ips.split(",") if part.strip())
    try:
        settings = http.ServeOptions(forwarded_allow_ips=proxies)
    except ConfigurationError as error:
        raise WrongUsageError(f"--forwarded-allow-ips: {error}") from None
    if tls_key is not None and tls_cert is None:
        raise WrongUsageError("--tls-key needs --tls-cert")
    try:
        tls = None if tls_cert is None else http.tls_context(tls_cert, tls_key)
        settings = replace(
            settings,
            body_bytes=body_bytes,
            requests_per_minute=requests_per_minute,
            limits=http.ConnectionLimits(connections=connections, connections_per_address=connections_per_address),
            origins=frozenset(item.rstrip("/") for item in origin or ()),
            root_path=root_path.rstrip("/"),
        )
    except ConfigurationError as error:
        raise WrongUsageError(str(error)) from None
    operation = operation_given(concurrency, principal_concurrency, retention)
    divided = None if split is None else imported(split, LiveSplit, option="--split")
    if divided is not None and library is not None:
        raise WrongUsageError("--split brings its libraries along; leave --library out")
    must_be_bindable(host, listed)
    made = new_token() if listed is None and given is None and not insecure_no_token else None
    known = None if insecure_no_token else listed or for_this_machine(given if made is None else made)
    if workers is not None:
        _must_have_queue(store, instead="leave --workers out")
    database = open_store(store, queued=workers is not None)
    policy, followed = rules_given(approval_time, database)
    agents, loaded = agents_and_tools(agent, library, store=database, model=model)
    began_with = origin_of(options.RunOptions(store=store, agent=agent, library=library, model=model))

    def ready(service: Service, bound: int) -> None:
        address = f"[{host}]" if ":" in host else host
        place = f"{'http' if tls is None else 'https'}://{address}:{bound}"
        screen.write(f"listening on {place} (Ctrl-C ends)", stderr=True)
        if made is not None:
            # A line of its own and never wrapped, so that a terminal makes a link of it.
            screen.write(f"open {place}/?token={made}", stderr=True)
        if workers != 0:  # those that somebody else starts may have other models
            for line in who_answers(service):
                screen.write(line, stderr=True)

    async def whole() -> None:
        theirs = {
            "library": _worker_library(agent, library) if workers else None,
            "debug": True if debug else None,
            "split": split,
            "model": model,
            "concurrency": concurrency,
            "principal-concurrency": principal_concurrency,
            "approval-time": approval_time,
            "retention": retention,
            "traces": traces,
            "tokens": tokens,
            "log-level": log_level,
            "config": None if followed is None else followed.path,
        }
        async with (
            open_service(
                store=store,
                database=database,
                library=None if divided is not None else loaded,
                split=divided,
                agents=agents,
                model=model,
                policy=policy,
                configuration=followed,
                workers=workers is not None,
                traces=traces,
                github_url=os.environ.get(GITHUB_VARIABLE),
                principals=None if listed is None else listed.now,
                origin=None if divided is not None else began_with,
                find_tools=None if divided is not None else RememberedTools(database, ask=False),
                **operation,
            ) as service,
            worker_processes(workers or 0, store=store, options=theirs),
        ):
            remember(began_with, service.agents.values())
            bound = partial(ready, service)
            await http.serve(service, host=host, port=port, tokens=known, options=settings, tls=tls, ready=bound)

    asyncio.run(whole())


def must_be_bindable(host: str, tokens: Tokens | None) -> None:
    """Refuse to listen for other machines without tokens."""
    from journeyman.doors import http

    try:
        http.check_binding(host, tokens)
    except ConfigurationError as error:
        raise WrongUsageError(f"--host: {error}; --tokens names the token file") from None


def token_file(tokens: Path | None) -> Tokens | None:
    """Who may use the service, by the token file."""
    try:
        from journeyman.doors import http
    except ImportError as error:
        raise ConfigurationError(f"serving needs more packages: {install_command('serve')}") from error
    try:
        return None if tokens is None else http.read_tokens(tokens)
    except ConfigurationError as error:
        raise WrongUsageError(f"--tokens: {error}") from None


def for_this_machine(token: str | None) -> Tokens:
    from journeyman.doors import http

    try:
        return http.Tokens.for_this_machine(token or "")
    except ConfigurationError as error:
        raise WrongUsageError(f"{TOKEN_VARIABLE}: {error}") from None


def agents_and_tools(
    agent: str | None, library: str | None, *, store: SqlStore, model: str | None
) -> tuple[list[Agent], ToolLibrary | None]:
    """Without an agent and a library, nothing: then the service has the assistant over the tasks toolkit."""
    if agent is not None or library == RESEARCH:
        found, tools = load_agent(agent, library, store=store, model=model)
        return [found], tools
    return [], load_library(library, store=store) if library is not None else None


def who_answers(service: Service) -> Iterator[str]:
    """Which model answers in each agent's name, or why none does."""
    for agent in service.agents.values():
        trouble = service.no_model(agent)
        name = screen.escaped(agent.name)
        if trouble is None:
            yield f"model {screen.escaped(model_name(service.app, agent))} answers as {name}"
        else:
            yield f"no model answers as {name}: {screen.escaped(trouble)}"


def _must_have_queue(store: str, *, instead: str) -> None:
    if file_of(store) is not None:
        raise WrongUsageError(
            f"workers need PostgreSQL and {without_password(store)!r} is SQLite: "
            f"give --store postgresql://USER@HOST/DATABASE, or {instead}"
        )


def _worker_library(agent: str | None, library: str | None) -> str | None:
    """Where workers find the tools of the service's agent; for one of a gram file they look at the run."""
    if agent is None or library is not None or is_document(agent):
        return library
    return split_path(agent)[0]


def operation_given(concurrency: int | None, principal_concurrency: int | None, retention: str | None) -> Operation:
    operation: Operation = {"principal_concurrency": principal_concurrency}
    if retention is not None:
        kept = None if retention == "forever" else options.seconds(retention, option="--retention")
        operation["retention_seconds"] = kept
    if concurrency is not None:
        operation["concurrency"] = concurrency
    return operation


def rules_given(approval_time: str | None, database: SqlStore) -> tuple[Policy | None, Configuration | None]:
    """What --approval-time makes of the policy, and the configuration file, over which it wins."""
    seconds = None if approval_time is None else options.seconds(approval_time, option="--approval-time")
    followed = configuration(database, None if seconds is None else {"approvals.expire_after": seconds})
    if followed is not None or seconds is None:
        return None, followed
    return Policy(stored_approval_seconds=seconds), None


def worker(
    library: options.Library = None,
    split: Split = None,
    model: options.Model = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many runs to work on at once.")] = 16,
    lease: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="After how long a silent worker is replaced.")
    ] = 30.0,
    principal_concurrency: PrincipalConcurrency = None,
    approval_time: ApprovalTime = None,
    retention: Retention = None,
    traces: Traces = None,
    tokens: TokenFile = None,
    store: options.Store = DEFAULT_STORE,
    debug: options.Debug = False,
    log_level: options.Log = None,
) -> None:
    """Work on the runs of a PostgreSQL store, beside other workers, until stopped; what is under way is handed over.

    Without --library each run has the tools it was begun with, where they were named on this machine. With --tokens,
    the service's file, an approved call is checked against what its principal may do by now.
    """
    shown = without_password(store)
    _must_have_queue(store, instead="let one process take runs up with 'journeyman runs resume'")
    try:
        from journeyman.app.worker import work
    except ImportError as error:
        raise ConfigurationError(f"workers need more packages: {install_command('postgres')}") from error
    listed = None if tokens is None else token_file(tokens)
    database = open_at(store, queued=True)
    operation = operation_given(concurrency, principal_concurrency, retention)
    operation["lease_seconds"] = lease
    policy, followed = rules_given(approval_time, database)
    divided = None if split is None else imported(split, LiveSplit, option="--split")
    tools = load_library(library, store=database) if divided is None else divided.arms[divided.control]
    others = divided is not None or library is not None

    def ready() -> None:
        what = screen.counted(len(tools), "tool") if others else "each run's own tools"
        most = screen.counted(concurrency, "run")
        screen.write(f"journeyman worker: ready: {what}, up to {most} at once, on {shown}", stderr=True)

    async def whole() -> None:
        app = Journeyman(
            library=None if divided is not None else tools,
            split=divided,
            store=database,
            model=model,
            policy=policy,
            configuration=followed,
            principals=None if listed is None else listed.now,
            traces=traces,
            find_tools=None if others else RememberedTools(database, ask=False),
            **operation,
        )
        async with app:
            await work(app, store, concurrency=concurrency, ready=ready)

    with screen.printing_to_stderr():
        asyncio.run(whole())
    screen.write("journeyman worker: stopped; what is unfinished is for the next one", stderr=True)
