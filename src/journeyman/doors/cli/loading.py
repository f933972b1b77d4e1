"""From ``module:name`` on the command line to the agent and the library it names."""

from __future__ import annotations

import importlib
import sys
from contextlib import redirect_stdout
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from journeyman.app import Agent, Tool, ToolLibrary, builtin_library
from journeyman.doors.cli.options import WrongUsageError

INSTRUCTION = (
    "You are a careful assistant. Use your tools where they help, and never invent what a tool could tell you. "
    "When a call fails, read why, and either correct it or say what could not be done. Answer briefly, in plain text."
)


def load_agent(agent: str | None, library: str | None) -> tuple[Agent, ToolLibrary]:
    """The agent and what it may call. Without an agent, an assistant with the library's tools.

    Without a library, an agent finds its tools in the module it comes from.
    """
    if agent is None:
        tools = load_library(library)
        return assistant(tools), tools
    module, found = _find(agent, option="--agent")
    if not isinstance(found, Agent):
        _wrong("--agent", agent, f"is {_kind(found)}, not an Agent", _names_of(module, Agent))
    tools = load_library(library) if library is not None else ToolLibrary(_tools_of(module))
    return found, tools


def assistant(library: ToolLibrary) -> Agent:
    """The agent that answers when none is named."""
    return Agent(name="assistant", instruction=INSTRUCTION, tools=tuple(library.specifications()))


def load_library(reference: str | None) -> ToolLibrary:
    """A library by its name, the tools of a module, or those that come with Journeyman."""
    if reference is None:
        return builtin_library(Path.cwd())
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
