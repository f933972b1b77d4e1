"""``journeyman serve`` and ``journeyman worker``: the service over HTTP, and a process that carries out runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from journeyman.app import Agent, SqlStore, ToolLibrary, split_path
from journeyman.app.configuration import operation_of
from journeyman.app.journeyman import Journeyman
from journeyman.app.loading import file_of, is_document, open_at
from journeyman.app.service import model_name
from journeyman.app.splits import Split as LiveSplit
from journeyman.core.errors import ConfigurationError
from journeyman.core.lazy import install_command
from journeyman.core.policy import Principal
from journeyman.core.protocols import beside
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import configuration, naming, settings
from journeyman.doors.cli.loading import (
    Edited,
    RememberedTools,
    imported,
    load_agent,
    load_library,
    origin_of,
    remember,
    without_password,
)
from journeyman.doors.cli.options import STORE_VARIABLE, RunOptions, WrongUsageError
from journeyman.doors.cli.printed import printing_to_stderr
from journeyman.doors.cli.program import TOKEN_VARIABLE, must_not_be_a_tool, new_token, take_from_environment
from journeyman.doors.cli.trust import Gate

if TYPE_CHECKING:
    from journeyman.app.service import Service
    from journeyman.doors.http import ServeOptions, Tokens
    from journeyman.settings.schema import Http

GITHUB_VARIABLE = "GITHUB_API_URL"
PROXIES_VARIABLE = "JOURNEYMAN_FORWARDED_ALLOW_IPS"
PROGRAM = "from journeyman.doors.cli import main; main()"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Before one that died is started again."""
GRACE_SECONDS = 30.0
"""How long they may take to finish the steps under way."""
AWAY_SECONDS = 1.0
"""How long a request waits for a database that is away, before it is answered with 503."""

TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="JOURNEYMAN_TOKENS",
        help='Who may use the service: {"TOKEN or sha256:HEX": {"id": "ada", "permissions": ["approvals:decide"]}}.',
    ),
]


@options.taking("host port tokens insecure_no_token agent library model workers store debug log_level")
def serve(
    bag: RunOptions,
    *,
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
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Leave runs to so many worker processes, started beside the service (PostgreSQL); 0: to those that "
            "'journeyman worker' starts.",
        ),
    ] = None,
) -> None:
    """The service over HTTP: chat, tasks, tools, approvals, and an OpenAI-compatible API under /v1.

    Without --tokens it prints a link with a token that holds until it ends; JOURNEYMAN_TOKEN sets that token. The
    configuration file has the rest, under 'doors.http', 'runs' and 'approvals': limits, https, proxies, retention.
    """
    given = take_from_environment(TOKEN_VARIABLE)  # before anything of the caller's is imported
    must_not_be_a_tool()  # with a service of its own, and the token that this prints, it would decide
    access = admission(tokens, given, host=host, insecure=insecure_no_token)
    from journeyman.doors import http

    said = settings()
    door = said.doors.http
    served = _serve_options(door)
    with naming("{}", "doors", "http", "tls_cert"):
        tls = None if door.tls_cert is None else http.tls_context(door.tls_cert, door.tls_key)
    divided = live_split(said.runs.split, bag.library)
    if workers is not None:
        _must_have_queue(bag.store, instead="leave --workers out")
    database = open_at(bag.store, queued=workers is not None)
    followed = configuration(database)
    agents, loaded = agents_and_tools(bag, database)
    begun = begun_with(bag, agents, database)
    library = bag.library  # where workers find the tools of an agent; for one of a gram file they look at the run
    if library is None and bag.agent is not None and not is_document(bag.agent):
        library = split_path(bag.agent)[0]

    def ready(service: Service, bound: int) -> None:
        place = listening(host, bound, scheme="http" if tls is None else "https")
        if access.made is not None and access.known is not None:
            # A line of its own and never wrapped, so that a terminal makes a link of it.
            screen.write(f"open {place}/?code={access.known.code_for(access.made)}", stderr=True)
            screen.write(f"the link works once; then, and for programs, the token is {access.made}", stderr=True)
        if workers != 0:  # those that somebody else starts may have other models
            tell_who_answers(service)

    async def whole() -> None:
        theirs = {
            "library": library if workers else None,
            "debug": True if bag.debug else None,
            "model": bag.model,
            "tokens": tokens,
            "log-level": bag.log_level,
            "config": None if followed is None else followed.path,
        }
        async with (
            opening(
                bag,
                database,
                library=None if divided is not None else loaded,
                split=divided,
                agents=agents,
                workers=workers is not None,
                traces=said.runs.traces,
                github_url=os.environ.get(GITHUB_VARIABLE),
                principals=access.principals,
                **(operation_of(said.runs) if divided is not None else begun),
            ) as service,
            _worker_processes(workers or 0, store=bag.store, given=theirs),
        ):
            if database.shared_limits:  # while it starts, a server that starts beside it is waited for
                database.retry_for(AWAY_SECONDS)
            bound = partial(ready, service)
            # Where worker processes carry out runs, theirs are the models.
            async with beside(*([service.warm_up()] if workers is None else [])):
                await http.serve(
                    service, host=host, port=port, tokens=access.known, options=served, tls=tls, ready=bound
                )

    asyncio.run(whole())


def _serve_options(said: Http) -> ServeOptions:
    from journeyman.doors import http

    given = served_as(said)
    limits = http.ConnectionLimits(connections=said.connections, connections_per_address=said.connections_per_address)
    for name, value in given.items():
        with naming("{}", "doors", "http", name):
            http.ServeOptions(**{name: value})
    return http.ServeOptions(said.body_bytes, said.requests_per_minute, limits=limits, **given)


def served_as(said: Http) -> dict[str, Any]:
    """How the file wants the service to be served; JOURNEYMAN_FORWARDED_ALLOW_IPS wins over it."""
    listed = os.environ.get(PROXIES_VARIABLE)
    proxies = said.forwarded_allow_ips if listed is None else listed.replace(",", " ").split()
    return {
        "forwarded_allow_ips": tuple(proxies),
        "origins": frozenset(item.rstrip("/") for item in said.origins),
        "root_path": said.root_path.rstrip("/"),
    }


def live_split(name: str | None, library: str | None) -> LiveSplit | None:
    if name is None:
        return None
    if library is not None:
        with naming("{}", "runs", "split"):
            raise ConfigurationError("a split brings its libraries along; leave --library out")
    return imported(name, LiveSplit, option="runs.split")


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use a server that a command starts."""

    known: Tokens | None
    """None: everybody on this machine."""
    made: str | None = None
    """The token that was made, where nobody has given one."""
    principals: Callable[[Principal], Principal | None] | None = None
    """Who a principal is by now, where a file or an authorization server says so."""


def admission(tokens: Path | None, given: str | None, *, host: str, insecure: bool) -> Access:
    """By what was typed, by the token in the environment, or by one that is made. Raises WrongUsageError."""
    if tokens is not None and insecure:
        raise WrongUsageError("--tokens says who may use the service, --insecure-no-token that everybody may: give one")
    listed = token_file(tokens)
    must_be_bindable(host, listed)
    if insecure or listed is not None:
        return Access(None if insecure else listed, principals=None if listed is None else listed.now)
    from journeyman.doors import http

    made = new_token() if given is None else None
    with naming(f"{TOKEN_VARIABLE}: {{}}"):
        return Access(http.Tokens.for_this_machine(given or made or ""), made)


def listening(host: str, port: int, *, scheme: str = "http", path: str = "") -> str:
    """Tell where a server listens; returns that."""
    place = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{path}"
    screen.write(f"listening on {place} (Ctrl-C ends)", stderr=True)
    return place


def begun_with(given: RunOptions, agents: list[Agent], database: SqlStore) -> dict[str, Any]:
    """What a service keeps with its runs, how it finds the tools of others', and how it works on them."""
    origin = origin_of(given)
    remember(origin, agents)
    return {"origin": origin, "find_tools": RememberedTools(database), **operation_of(settings().runs)}


def must_be_bindable(host: str, tokens: Tokens | None) -> None:
    """Refuse to listen for other machines without tokens."""
    from journeyman.doors import http

    with naming("--host: {}; --tokens names the token file"):
        http.check_binding(host, tokens)


def token_file(tokens: Path | None) -> Tokens | None:
    """Who may use the service, by the token file and the authorization server that the configuration names."""
    try:
        from journeyman.doors import http
    except ImportError as error:
        raise ConfigurationError(f"serving needs more packages: {install_command('serve')}") from error
    with naming("--tokens: {}"):
        listed = None if tokens is None else http.read_tokens(tokens)
    if (said := settings().doors.http.oauth) is not None:
        listed = listed or http.Tokens({})
        listed.oauth = http.AccessTokens(**said.model_dump())
    return listed


def agents_and_tools(given: RunOptions, store: SqlStore) -> tuple[list[Agent], ToolLibrary | None]:
    """Without an agent and a library, nothing: then the service has the assistant over the tasks toolkit."""
    if given.agent is None and given.library is None:
        return [], None
    agent, tools = load_agent(given.agent, given.library, store=store, model=given.model)
    return [agent], tools


@contextlib.asynccontextmanager
async def opening(given: RunOptions, database: SqlStore, **parts: Any) -> AsyncIterator[Service]:
    """The service of a command, under the configuration file; it tells which stores and runs nobody has confirmed."""
    from journeyman.app.service import open_service

    followed, gate = configuration(database), Gate(tell=True)
    named: dict[str, Any] = {"store": given.store, "model": given.model, "gate": gate}
    async with (
        open_service(database=database, configuration=followed, **named, **parts) as service,
        beside(Edited().watch()),
    ):
        yield service


def tell_who_answers(service: Service) -> None:
    """Which model answers in each agent's name, or why none does."""
    for agent in service.agents.values():
        trouble, name = service.no_model(agent), screen.escaped(agent.name)
        text = f"no model answers as {name}: {screen.escaped(trouble or '')}"
        if trouble is None:
            text = f"model {screen.escaped(model_name(service.app, agent))} answers as {name}"
        screen.write(text, stderr=True)


def _must_have_queue(store: str, *, instead: str) -> None:
    if file_of(store) is not None:
        raise WrongUsageError(
            f"workers need PostgreSQL and {without_password(store)!r} is SQLite: "
            f"give --store postgresql://USER@HOST/DATABASE, or {instead}"
        )


@options.taking("library model concurrency tokens store debug log_level")
def worker(
    bag: RunOptions,
    *,
    concurrency: Annotated[int, typer.Option(min=1, help="How many runs to work on at once.")] = 16,
    tokens: TokenFile = None,
) -> None:
    """Work on the runs of a PostgreSQL store, beside other workers, until stopped; what is under way is handed over.

    Without --library each run has the tools it was begun with, where they were named on this machine. With --tokens,
    the service's file, an approved call is checked against what its principal may do by now.
    """
    store, library = bag.store, bag.library
    _must_have_queue(store, instead="let one process take runs up with 'journeyman runs resume'")
    try:
        from journeyman.app.worker import work
    except ImportError as error:
        raise ConfigurationError(f"workers need more packages: {install_command('postgres')}") from error
    listed = None if tokens is None else token_file(tokens)
    database = open_at(store, queued=True)
    runs = settings().runs
    followed = configuration(database)
    divided = live_split(runs.split, library)
    tools = load_library(library, store=database) if divided is None else divided.arms[divided.control]
    others = divided is not None or library is not None

    def ready() -> None:
        what = screen.counted(len(tools), "tool") if others else "each run's own tools"
        most, where = screen.counted(concurrency, "run"), without_password(store)
        screen.write(f"journeyman worker: ready: {what}, up to {most} at once, on {where}", stderr=True)

    async def whole() -> None:
        app = Journeyman(
            library=None if divided is not None else tools,
            split=divided,
            store=database,
            model=bag.model,
            configuration=followed,
            principals=None if listed is None else listed.now,
            traces=runs.traces,
            find_tools=None if others else RememberedTools(database),
            gate=Gate(tell=True),
            **{**operation_of(runs), "concurrency": concurrency},
        )
        async with app, beside(Edited().watch()):
            await work(app, store, concurrency=concurrency, ready=ready)

    with printing_to_stderr():
        asyncio.run(whole())
    screen.write("journeyman worker: stopped; what is unfinished is for the next one", stderr=True)


@contextlib.asynccontextmanager
async def _worker_processes(count: int, *, store: str, given: Mapping[str, Any]) -> AsyncIterator[None]:
    """So many workers beside the service, with those of these options that are given; True stands for a flag."""
    words = []
    for name, value in given.items():
        if value is not None:
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    # The store's address may hold a password, and everybody can read the arguments of a process.
    environment = {**os.environ, STORE_VARIABLE: store}
    async with beside(*(_keep_one(words, environment) for _ in range(count))):
        yield


async def _keep_one(given: list[str], environment: Mapping[str, str]) -> None:
    pause = FIRST_PAUSE
    while True:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, "worker", *given, env=environment, stdin=asyncio.subprocess.DEVNULL
        )
        began = asyncio.get_running_loop().time()
        try:
            code = await process.wait()
        finally:
            await _ended(process)
        if asyncio.get_running_loop().time() - began > LONGEST_PAUSE:
            pause = FIRST_PAUSE
        screen.note(f"a worker process ended with code {code}; another begins in {pause:g} s")
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End a process that is still there: kindly first."""
    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await process.wait()
