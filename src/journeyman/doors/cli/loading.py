"""From what is named on the command line to what is meant: agents, libraries and stores."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from journeyman.app import (
    Agent,
    ImportPathError,
    Journeyman,
    SqlStore,
    Tool,
    ToolLibrary,
    files_noted,
    following_assistant,
    hello_library,
    import_path,
    local_library,
    open_store,
    research_assistant,
    research_library,
    rules_of,
    slack_library,
    slack_pace,
    split_path,
    sqlite_file,
    task_assistant,
    task_library,
)
from journeyman.app.service import ASSISTANT, PLAIN_INSTRUCTION
from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli import screen
from journeyman.doors.cli.configured import configuration, file_settings
from journeyman.doors.cli.options import DEFAULT_STORE, WrongUsageError, default_store
from journeyman.doors.cli.program import program
from journeyman.doors.cli.trust import confirm

T = TypeVar("T")

LOCAL = "local"
"""The library that looks around in the current folder, by name."""
RESEARCH = "research"
"""The one that searches the web, reads pages and files, and remembers."""
SLACK = "slack"
"""The one that reads, summarises and analyses conversations of Slack."""
SHIPPED = (LOCAL, RESEARCH, SLACK)

SLACK_VARIABLE = "SLACK_API_URL"
GRACE_SECONDS = 5.0
"""How long a person who ends a command waits for the step under way."""

_DOCUMENT = ".gram"


# --- agents


def load_agent(
    agent: str | None,
    library: str | None,
    *,
    store: SqlStore,
    model: str | None = None,
    folder: Path | None = None,
) -> tuple[Agent, ToolLibrary]:
    """The agent and what it may call. Without an agent, an assistant with the library's tools.

    Without a library, an agent has the tools of its module and its own, one that a document describes has those that
    come with Journeyman, and the assistant those over the tasks in ``store``. A document that sends what it reads to a
    server nobody configured, or reaches for files, must have been confirmed; ``model`` is asked instead of its own.
    ``folder`` stands for the current one.
    """
    if agent is None:
        tools = load_library(library, store=store, folder=folder)
        if configuration(store) is not None:
            return following_assistant(tools), tools
        if library == RESEARCH:
            return research_assistant(tools), tools
        return task_assistant(tools) if library is None else assistant(tools), tools
    if is_document(agent):
        path, name = split_document(agent)
        with files_noted() as files:
            described = Agent.from_gram(path, name or None)
        if library is None:
            tools = _governed(shipped_library(store, folder=folder), store)
        else:
            tools = load_library(library, store=store, folder=folder)
        confirm(files, tools, model=model)
        return described, tools
    place, name = split_path(agent)
    if not name:
        raise WrongUsageError(f"--agent {agent!r} names no agent; write MODULE:NAME, e.g. 'shop:agent'")
    found = imported(agent, Agent, option="--agent", folder=folder)
    if library is not None:
        return found, load_library(library, store=store, folder=folder)
    module = imported(place, ModuleType, option="--agent", folder=folder)
    return found, _governed(ToolLibrary(_tools_of(module)) | found.own_library, store)


def is_document(agent: str) -> bool:
    """Whether an agent is named by a gram file, ``FILE.gram`` or ``FILE.gram:NAME``."""
    return agent.endswith(_DOCUMENT) or f"{_DOCUMENT}:" in agent


def split_document(agent: str) -> tuple[Path, str]:
    """The file of an agent that a gram file describes, and its name there, which may be empty."""
    path, mark, name = agent.rpartition(f"{_DOCUMENT}:")
    return (Path(path + _DOCUMENT), name) if mark else (Path(agent), "")


def assistant(library: ToolLibrary) -> Agent:
    """The agent that answers when none is named, with any library."""
    return Agent(name=ASSISTANT, instruction=PLAIN_INSTRUCTION, tools=tuple(library.specifications()))


# --- libraries


def _governed(library: ToolLibrary, store: SqlStore | None) -> ToolLibrary:
    """A library under the rules of the configuration file, with the tools that this brings."""
    found = configuration(store)
    return library if found is None else found.governing(library)


def shipped_library(store: SqlStore, *, folder: Path | None = None) -> ToolLibrary:
    """Every tool that comes with Journeyman: what an agent of a gram file may have."""
    return hello_library() | local_library(folder or Path.cwd()) | task_library(store)


def load_library(reference: str | None, *, store: SqlStore | None = None, folder: Path | None = None) -> ToolLibrary:
    """A library by its name, the tools of a module, or those over the tasks in ``store``.

    Without a store these can be looked at, but not called. ``folder`` stands for the current one.
    """
    if reference is None:
        found = configuration(store)
        return task_library(store or open_store(DEFAULT_STORE)) if found is None else found.library
    return _governed(_named_library(reference, folder, store), store)


def listed_library(reference: str | None) -> ToolLibrary:
    """A library's tools as they are now, to look at; those of servers included."""
    library = load_library(reference)
    if not library.has_sources:
        return library

    async def look() -> ToolLibrary:
        async with library:
            return ToolLibrary(library)

    return asyncio.run(look())


def _named_library(reference: str, folder: Path | None, store: SqlStore | None) -> ToolLibrary:
    if reference == LOCAL:
        return local_library(folder or Path.cwd())
    if reference == RESEARCH:
        return research_library(store or open_store(DEFAULT_STORE), folder or Path.cwd())
    if reference == SLACK:
        said = file_settings()
        limits = None if said is None else said.settings.doors.slack.limits
        pace = None if store is None else slack_pace(store, limits)
        return slack_library(base_url=os.environ.get(SLACK_VARIABLE), pace=pace)
    found = imported(reference, object, option="--library", folder=folder)
    if not isinstance(found, ModuleType):
        return imported(reference, ToolLibrary, option="--library")
    tools = _tools_of(found)
    if not tools:
        raise WrongUsageError(
            f"--library {reference!r} holds no tools; decorate functions with @tool, or name a ToolLibrary"
        )
    return ToolLibrary(tools)


def imported(path: str, kind: type[T], *, option: str, folder: Path | None = None) -> T:
    """What an option names by ``MODULE:NAME`` or ``FILE.py:NAME``; modules of the current folder are found, too.

    ``folder`` goes before the current one.
    """
    for here in (str(Path.cwd()), *([str(folder)] if folder is not None else [])):
        if here not in sys.path:
            sys.path.insert(0, here)
    try:
        # What a module prints when it is imported is not part of our answer.
        with screen.printing_to_stderr(), files_noted() as files:
            found = import_path(path, kind=kind)
    except ImportPathError as error:
        raise WrongUsageError(f"{option} {error}") from error
    # A module that is ours may still read its agents from files of somebody else's.
    confirm(files, None)
    return found


def _tools_of(module: ModuleType) -> list[Tool[..., Any]]:
    """The tools of a module, and those that only its agents have: a run of theirs is resumed with the module's name."""
    values = list(vars(module).values())
    found = {id(item): item for item in values if isinstance(item, Tool) and not item.unbound}
    names = {item.name for item in found.values()}
    own = {tool.name: tool for item in values if isinstance(item, Agent) for tool in item.own_tools}
    return [*found.values(), *(tool for name, tool in own.items() if name not in names)]


# --- stores


def open_at(url: str, *, retry_seconds: float = 10.0, queued: bool = False) -> SqlStore:
    """The store behind --store, not opened yet."""
    try:
        return open_store(url, retry_seconds=retry_seconds, queued=queued)
    except ConfigurationError as error:
        raise WrongUsageError(f"--store: {error}") from None


def in_store(
    url: str, work: Callable[[Journeyman], Awaitable[T]], *, library: ToolLibrary | None = None, create: bool = False
) -> T:
    """Do something with an app that carries out no runs. The store must be there, unless it may be created."""

    async def whole() -> T:
        if not create:
            must_exist(url)
        async with opened(open_at(url)) as store:
            policy = None if (loaded := file_settings()) is None else rules_of(loaded).policy
            return await work(Journeyman(library=library, store=store, policy=policy))

    return asyncio.run(whole())


@asynccontextmanager
async def running_app(store: SqlStore, **parts: Any) -> AsyncIterator[Journeyman]:
    """An app that carries out runs as long as the command lasts. It purges no old ones: that is ``runs purge``."""
    app = Journeyman(
        store=store,
        configuration=configuration(store),
        grace_seconds=GRACE_SECONDS,
        retention_seconds=None,
        **parts,
    )
    with _pauses_noted():
        async with app:
            yield app


@asynccontextmanager
async def opened(store: SqlStore, *, upgrade: bool = True) -> AsyncIterator[SqlStore]:
    """A store as long as it is needed; without ``upgrade``, with whatever schema it has."""
    await store.open(upgrade=upgrade)
    try:
        yield store
    finally:
        await store.close()


class _NoteHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        screen.note(record.getMessage())


@contextmanager
def _pauses_noted() -> Iterator[None]:
    """Note when runs pause because the store cannot be reached, unless logs do so already."""
    if any(not isinstance(handler, logging.NullHandler) for handler in logging.getLogger("journeyman").handlers):
        yield
        return
    handler = _NoteHandler()
    logger = logging.getLogger("journeyman.store")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def must_exist(url: str) -> None:
    """Refuse a SQLite file that is not there: looking into it would create it, and hide a typing error."""
    if not is_there(url):
        raise WrongUsageError(
            f"there is no store {url!r}; {command(url, 'run TASK --durable')!r} makes one, --store names another"
        )


def is_there(url: str) -> bool:
    """Whether the file of a SQLite store exists; of a server nothing is known before it is asked."""
    return (file := file_of(url)) is None or file.exists()


def file_of(url: str) -> Path | None:
    """The file of a SQLite store; None for any other store."""
    try:
        return sqlite_file(url)
    except ConfigurationError as error:
        raise WrongUsageError(f"--store: {error}") from None


def without_password(url: str) -> str:
    parts = urlsplit(url)
    return url.replace(f":{parts.password}@", ":***@", 1) if parts.password else url


def command(url: str, words: str, *values: str) -> str:
    """What to type next, with --store where the store would not be found otherwise.

    ``values`` are quoted: they come from elsewhere, and are pasted into a shell.
    """
    parts = [program(), words, *map(shlex.quote, values)]
    if url != default_store():
        parts += ["--store", shlex.quote(without_password(url))]
    return " ".join(parts)
