"""From what is named on the command line to what is meant: agents, libraries and stores."""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
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
    hello_library,
    import_path,
    local_library,
    open_store,
    split_path,
    sqlite_file,
    task_assistant,
    task_library,
)
from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli import screen
from journeyman.doors.cli.options import DEFAULT_STORE, WrongUsageError, default_store

T = TypeVar("T")

LOCAL = "local"
"""The library that looks around in the current folder, by name."""

GRACE_SECONDS = 5.0
"""How long a person who ends a command waits for the step under way."""

INSTRUCTION = (
    "You are a careful assistant. Use your tools where they help, and never invent what a tool could tell you. "
    "When a call fails, read why, and either correct it or say what could not be done. Answer briefly, in plain text."
)
_DOCUMENT = ".gram"


# --- agents


def load_agent(agent: str | None, library: str | None, *, store: SqlStore) -> tuple[Agent, ToolLibrary]:
    """The agent and what it may call. Without an agent, an assistant with the library's tools.

    Without a library, an agent has the tools of its module and its own, one that a document describes has those that
    come with Journeyman, and the assistant those over the tasks in ``store``.
    """
    if agent is None:
        tools = load_library(library, store=store)
        return task_assistant(tools) if library is None else assistant(tools), tools
    if is_document(agent):
        path, mark, name = agent.rpartition(f"{_DOCUMENT}:")
        described = Agent.from_gram(Path(path + _DOCUMENT), name) if mark else Agent.from_gram(Path(agent))
        shipped = hello_library() | local_library(Path.cwd()) | task_library(store)
        return described, shipped if library is None else load_library(library, store=store)
    place, name = split_path(agent)
    if not name:
        raise WrongUsageError(f"--agent {agent!r} names no agent; write MODULE:NAME, e.g. 'shop:agent'")
    found = imported(agent, Agent, option="--agent")
    if library is not None:
        return found, load_library(library)
    module = imported(place, ModuleType, option="--agent")
    return found, ToolLibrary(_tools_of(module)) | found.own_library


def is_document(agent: str) -> bool:
    """Whether an agent is named by a gram file, ``FILE.gram`` or ``FILE.gram:NAME``."""
    return agent.endswith(_DOCUMENT) or f"{_DOCUMENT}:" in agent


def assistant(library: ToolLibrary) -> Agent:
    """The agent that answers when none is named, with any library."""
    return Agent(name="assistant", instruction=INSTRUCTION, tools=tuple(library.specifications()))


# --- libraries


def load_library(reference: str | None, *, store: SqlStore | None = None) -> ToolLibrary:
    """A library by its name, the tools of a module, or those over the tasks in ``store``.

    Without a store these can be looked at, but not called.
    """
    if reference is None:
        return task_library(store or open_store(DEFAULT_STORE))
    if reference == LOCAL:
        return local_library(Path.cwd())
    found = imported(reference, object, option="--library")
    if not isinstance(found, ModuleType):
        return imported(reference, ToolLibrary, option="--library")
    tools = _tools_of(found)
    if not tools:
        raise WrongUsageError(
            f"--library {reference!r} holds no tools; decorate functions with @tool, or name a ToolLibrary"
        )
    return ToolLibrary(tools)


def imported(path: str, kind: type[T], *, option: str) -> T:
    """What an option names by ``MODULE:NAME`` or ``FILE.py:NAME``; modules of the current folder are found, too."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        # What a module prints when it is imported is not part of our answer.
        with redirect_stdout(sys.stderr):
            return import_path(path, kind=kind)
    except ImportPathError as error:
        raise WrongUsageError(f"{option} {error}") from error


def _tools_of(module: ModuleType) -> list[Tool[..., Any]]:
    """The tools of a module, and those that only its agents have: a run of theirs is resumed with the module's name."""
    values = list(vars(module).values())
    found = {id(item): item for item in values if isinstance(item, Tool) and not item.unbound}
    names = {item.name for item in found.values()}
    own = {tool.name: tool for item in values if isinstance(item, Agent) for tool in item.own_tools}
    return [*found.values(), *(tool for name, tool in own.items() if name not in names)]


# --- stores


def open_at(url: str, *, retry_seconds: float = 10.0) -> SqlStore:
    """The store behind --store, not opened yet."""
    try:
        return open_store(url, retry_seconds=retry_seconds)
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
            return await work(Journeyman(library=library, store=store))

    return asyncio.run(whole())


@asynccontextmanager
async def running_app(
    store: SqlStore, *, library: ToolLibrary | None = None, model: str | None = None
) -> AsyncIterator[Journeyman]:
    """An app that carries out runs as long as the command lasts. It purges no old ones: that is ``runs purge``."""
    app = Journeyman(library=library, store=store, model=model, grace_seconds=GRACE_SECONDS, retention_seconds=None)
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
            f"there is no store {url!r}; 'journeyman run --durable TASK' makes one, --store names another"
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


def command(url: str, words: str) -> str:
    """What to type next, with --store where the store would not be found otherwise."""
    named = "" if url == default_store() else f" --store {shlex.quote(without_password(url))}"
    return f"journeyman {words}{named}"
