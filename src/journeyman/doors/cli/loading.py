"""From ``module:name`` or a gram file on the command line to the agent and the library it names."""

from __future__ import annotations

import importlib
import sys
from contextlib import redirect_stdout
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from journeyman.app import Agent, Tool, ToolLibrary, hello_library, local_library
from journeyman.app.durable import SqlStore, open_store, task_assistant, task_library
from journeyman.doors.cli.options import DEFAULT_STORE, WrongUsageError

LOCAL = "local"
"""The library that looks around in the current folder, by name."""

_DOCUMENT = ".gram"

INSTRUCTION = (
    "You are a careful assistant. Use your tools where they help, and never invent what a tool could tell you. "
    "When a call fails, read why, and either correct it or say what could not be done. Answer briefly, in plain text."
)


def load_agent(agent: str | None, library: str | None, *, store: SqlStore) -> tuple[Agent, ToolLibrary]:
    """The agent and what it may call. Without an agent, an assistant with the library's tools.

    Without a library, an agent finds its tools in the module it comes from, one that a document describes finds them
    among those that come with Journeyman, and the assistant keeps the tasks that are in ``store``.
    """
    if agent is None:
        tools = load_library(library, store=store)
        return task_assistant(tools) if library is None else assistant(tools), tools
    if is_document(agent):
        described = _described(agent)
        shipped = hello_library() | local_library(Path.cwd()) | task_library(store)
        return described, shipped if library is None else load_library(library, store=store)
    module, found = _find(agent, option="--agent")
    if not isinstance(found, Agent):
        _wrong("--agent", agent, f"is {_kind(found)}, not an Agent", _names_of(module, Agent))
    tools = load_library(library) if library is not None else ToolLibrary(_tools_of(module))
    return found, tools


def is_document(agent: str) -> bool:
    """Whether an agent is named by a gram file, ``FILE.gram`` or ``FILE.gram:NAME``."""
    return agent.endswith(_DOCUMENT) or f"{_DOCUMENT}:" in agent


def library_name(agent: str | None, library: str | None) -> str | None:
    """What to name as --library where a run of this agent is taken up; None where that is not needed."""
    if library is None and agent is not None and not is_document(agent):
        return agent.partition(":")[0]
    return library


def _described(agent: str) -> Agent:
    if agent.endswith(_DOCUMENT):
        return Agent.from_gram(Path(agent))
    path, _, name = agent.partition(f"{_DOCUMENT}:")
    return Agent.from_gram(Path(path + _DOCUMENT), name)


def assistant(library: ToolLibrary) -> Agent:
    """The agent that answers when none is named, with any library."""
    return Agent(name="assistant", instruction=INSTRUCTION, tools=tuple(library.specifications()))


def load_library(reference: str | None, *, store: SqlStore | None = None) -> ToolLibrary:
    """A library by its name, the tools of a module, or those over the tasks in ``store``.

    Without a store these can be looked at, but not called.
    """
    if reference is None:
        return task_library(store or open_store(DEFAULT_STORE))
    if reference == LOCAL:
        return local_library(Path.cwd())
    module, found = _find(reference, option="--library")
    if isinstance(found, ToolLibrary):
        return found
    if not isinstance(found, ModuleType):
        _wrong("--library", reference, f"is {_kind(found)}, not a ToolLibrary", _names_of(module, ToolLibrary))
    tools = _tools_of(found)
    if not tools:
        _wrong("--library", reference, "holds no tools; decorate functions with @tool, or name a ToolLibrary", [])
    return ToolLibrary(tools)


def _find(reference: str, *, option: str) -> tuple[ModuleType, Any]:
    module_name, _, name = reference.partition(":")
    path = Path(module_name)
    if path.suffix == ".py" or len(path.parts) > 1:
        module_name = ".".join(path.with_suffix("").parts)
        _wrong(option, reference, "is a file; write MODULE:NAME", [f"{module_name}:{name or 'NAME'}"])
    if option == "--agent" and not name:
        _wrong(option, reference, "names no agent; write MODULE:NAME, e.g. 'shop:agent'", [])
    module = _module(module_name, reference, option)
    if not name:
        return module, module
    try:
        return module, getattr(module, name)
    except AttributeError:
        near = get_close_matches(name, vars(module), n=1)
        _wrong(option, reference, f"module {module_name!r} has no {name!r}", [f"{module_name}:{n}" for n in near])


def _module(name: str, reference: str, option: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        # What a module prints when it is imported is not part of our answer.
        with redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except Exception as error:  # a module's code can raise anything
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            why = f"names no module here or on the Python path; write MODULE:NAME, e.g. 'shop:{option[2:]}'"
        else:
            why = f"cannot be imported: {type(error).__name__}: {error}"
        _wrong(option, reference, why, [])


def _tools_of(module: ModuleType) -> list[Tool[..., Any]]:
    found = {id(item): item for item in vars(module).values() if isinstance(item, Tool) and not item.unbound}
    return list(found.values())


def _names_of(module: ModuleType, kind: type) -> list[str]:
    return [f"{module.__name__}:{name}" for name, value in vars(module).items() if isinstance(value, kind)]


def _kind(value: object) -> str:
    return "a module" if isinstance(value, ModuleType) else f"a {type(value).__name__}"


def _wrong(option: str, reference: str, problem: str, instead: list[str]) -> NoReturn:
    hint = f"; did you mean {' or '.join(map(repr, instead[:3]))}?" if instead else ""
    raise WrongUsageError(f"{option} {reference!r} {problem}{hint}")
