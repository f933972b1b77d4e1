"""From a name to what it means: agents, libraries and stores, as people name them and as runs remember them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from journeyman.agent.agent import Agent
from journeyman.agent.documents import AgentFile, files_noted, load_agents
from journeyman.app.configuration import SLACK_VARIABLE, Configuration
from journeyman.app.service import (
    assistant,
    hello_library,
    local_library,
    research_library,
    slack_library,
    slack_pace,
    task_library,
)
from journeyman.core.errors import ConfigurationError
from journeyman.core.specification import ToolSpecification
from journeyman.stores.store import SqlStore, open_store, sqlite_file
from journeyman.tools.library import ToolLibrary
from journeyman.tools.paths import ImportPathError, import_path, split_path
from journeyman.tools.tool import Tool

T = TypeVar("T")

LOCAL = "local"
"""The library that looks around in the current folder, by name."""
RESEARCH = "research"
"""The one that searches the web, reads pages and files, and remembers."""
SLACK = "slack"
"""The one that reads, summarises and analyses conversations of Slack."""
SHIPPED = (LOCAL, RESEARCH, SLACK)

DEFAULT_STORE = "sqlite:///journeyman.db"
_DOCUMENT = ".gram"


class WrongNameError(ConfigurationError):
    """What was named is not there, or is something else; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Loader:
    """Loads agents and libraries by their names, as a door lets it."""

    configuration: Callable[[SqlStore | None], Configuration | None]
    """The configuration file at work, where there is one."""
    confirm: Callable[..., None]
    """Raises where nobody agrees to agents of these files, with these tools and this model."""
    printing_elsewhere: Callable[[], AbstractContextManager[None]]
    """Around modules that are imported: what they print is not part of an answer."""

    def agent(
        self,
        agent: str | None,
        library: str | None,
        *,
        store: SqlStore,
        model: str | None = None,
        folder: Path | None = None,
    ) -> tuple[Agent, ToolLibrary]:
        """The agent and what it may call. Without an agent, the library's own, or an assistant with its tools.

        Without a library, an agent has the tools of its module and its own, one that a document describes has those
        that come with Journeyman, and the assistant those over the tasks in ``store``. A document that sends what it
        reads to a server nobody configured, or reaches for files, must have been confirmed; ``model`` is asked instead
        of its own. ``folder`` stands for the current one.
        """
        if agent is None:
            tools = self.library(library, store=store, folder=folder, model=model)
            if self.configuration(store) is not None:
                return assistant(tools, follows=True), tools
            if library == RESEARCH:
                from journeyman.app.research import INSTRUCTION

                return assistant(tools, told=INSTRUCTION), tools
            return self._own_agent(library, folder) or assistant(tools), tools
        if is_document(agent):
            path, name = split_document(agent)
            with files_noted() as files:
                described = Agent.from_gram(path, name or None)
            if library is None:
                tools = self._governed(shipped_library(store, folder=folder), store)
            else:
                tools = self.library(library, store=store, folder=folder)
            self.confirm(files, tools, model=model)
            return described, tools
        place, name = split_path(agent)
        if not name:
            raise WrongNameError(f"--agent {agent!r} names no agent; write MODULE:NAME, e.g. 'shop:agent'")
        named = self.imported(agent, Agent, option="--agent", folder=folder)
        if library is not None:
            return named, self.library(library, store=store, folder=folder)
        module = self.imported(place, ModuleType, option="--agent", folder=folder)
        return named, self._governed(ToolLibrary(_tools_of(module)) | named.own_library, store)

    def _own_agent(self, library: str | None, folder: Path | None) -> Agent | None:
        """The agent of a module of tools, where it has just one."""
        if library is None or library in SHIPPED or split_path(library)[1]:
            return None
        module = self.imported(library, ModuleType, option="--library", folder=folder)
        agents = {item.name: item for item in vars(module).values() if isinstance(item, Agent)}
        return next(iter(agents.values())) if len(agents) == 1 else None

    def _governed(self, library: ToolLibrary, store: SqlStore | None) -> ToolLibrary:
        """A library under the rules of the configuration file, with the tools that this brings."""
        configuration = self.configuration(store)
        return library if configuration is None else configuration.governing(library)

    def library(
        self,
        reference: str | None,
        *,
        store: SqlStore | None = None,
        folder: Path | None = None,
        model: str | None = None,
    ) -> ToolLibrary:
        """A library by its name, the tools of a module, or those over the tasks in ``store``.

        Without a store these can be looked at, but not called. ``folder`` stands for the current one. ``model`` is for
        tools that ask one themselves.
        """
        if reference is None:
            configuration = self.configuration(store)
            return task_library(store or open_store(DEFAULT_STORE)) if configuration is None else configuration.library
        return self._governed(self._named_library(reference, folder, store, model), store)

    def listed(self, reference: str | None) -> ToolLibrary:
        """A library's tools as they are now, to look at; those of servers included."""
        library = self.library(reference)
        if not library.has_sources:
            return library

        async def look() -> ToolLibrary:
            async with library:
                return ToolLibrary(library)

        return asyncio.run(look())

    def _named_library(
        self, reference: str, folder: Path | None, store: SqlStore | None, model: str | None
    ) -> ToolLibrary:
        if reference == LOCAL:
            return local_library(folder or Path.cwd())
        if reference == RESEARCH:
            return research_library(store or open_store(DEFAULT_STORE), folder or Path.cwd())
        if reference == SLACK:
            followed = self.configuration(store)
            limits = None if followed is None else followed.settings.doors.slack.limits
            pace = None if store is None else slack_pace(store, limits)
            return slack_library(model=model, base_url=os.environ.get(SLACK_VARIABLE), pace=pace)
        named = self.imported(reference, object, option="--library", folder=folder)
        if not isinstance(named, ModuleType):
            return self.imported(reference, ToolLibrary, option="--library")
        tools = _tools_of(named)
        if not tools:
            raise WrongNameError(
                f"--library {reference!r} holds no tools; decorate functions with @tool, or name a ToolLibrary"
            )
        return ToolLibrary(tools)

    def imported(self, path: str, kind: type[T], *, option: str, folder: Path | None = None) -> T:
        """What an option names by ``MODULE:NAME`` or ``FILE.py:NAME``; modules of the current folder are found, too.

        ``folder`` goes before the current one.
        """
        for here in (str(Path.cwd()), *([str(folder)] if folder is not None else [])):
            if here not in sys.path:
                sys.path.insert(0, here)
        try:
            # What a module prints when it is imported is not part of our answer.
            with self.printing_elsewhere(), files_noted() as files:
                named = import_path(path, kind=kind)
        except ImportPathError as error:
            raise WrongNameError(f"{option} {error}") from error
        # A module that is ours may still read its agents from files of somebody else's.
        self.confirm(files, None)
        return named


def is_document(agent: str) -> bool:
    """Whether an agent is named by a gram file, ``FILE.gram`` or ``FILE.gram:NAME``."""
    return agent.endswith(_DOCUMENT) or f"{_DOCUMENT}:" in agent


def split_document(agent: str) -> tuple[Path, str]:
    """The file of an agent that a gram file describes, and its name there, which may be empty."""
    path, mark, name = agent.rpartition(f"{_DOCUMENT}:")
    return (Path(path + _DOCUMENT), name) if mark else (Path(agent), "")


def agent_files(path: Path) -> Sequence[AgentFile]:
    """A gram file, and those that its agents come from."""
    with files_noted() as files:
        load_agents(path)
    return files


def shipped_library(store: SqlStore, *, folder: Path | None = None) -> ToolLibrary:
    """Every tool that comes with Journeyman: what an agent of a gram file may have."""
    return hello_library() | local_library(folder or Path.cwd()) | task_library(store)


def _tools_of(module: ModuleType) -> list[Tool[..., Any]]:
    """The tools of a module, and those that only its agents have: a run of theirs is resumed with the module's name."""
    values = list(vars(module).values())
    tools = {id(item): item for item in values if isinstance(item, Tool) and not item.unbound}
    names = {item.name for item in tools.values()}
    own = {tool.name: tool for item in values if isinstance(item, Agent) for tool in item.own_tools}
    return [*tools.values(), *(tool for name, tool in own.items() if name not in names)]


# --- stores


def open_at(url: str, *, retry_seconds: float = 10.0, queued: bool = False) -> SqlStore:
    """The store behind --store, not opened yet."""
    try:
        return open_store(url, retry_seconds=retry_seconds, queued=queued)
    except ConfigurationError as error:
        raise WrongNameError(f"--store: {error}") from None


def is_there(url: str) -> bool:
    """Whether the file of a SQLite store exists; of a server nothing is known before it is asked."""
    return (file := file_of(url)) is None or file.exists()


def file_of(url: str) -> Path | None:
    """The file of a SQLite store; None for any other store."""
    try:
        return sqlite_file(url)
    except ConfigurationError as error:
        raise WrongNameError(f"--store: {error}") from None


def tools_document(specifications: Sequence[ToolSpecification]) -> str:
    """Tools as a document that agents in gram files can be written with."""
    from journeyman.gram import dump_tools

    return dump_tools(specifications)
