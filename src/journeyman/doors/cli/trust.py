"""``journeyman trust``, and the questions that agent files and stores from elsewhere raise before anything runs.

An agent file is data, but it decides which server reads everything the agent sees, and which files the agent may look
at. A file that asks for either is confirmed once, by its digest: a changed file is a new one. A store names the code
that its runs were begun with; whoever has named it on this machine, for that agent, has confirmed it.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from journeyman.app import AgentFile, ToolLibrary, address_of, files_noted, is_configured, load_agents, local_library
from journeyman.core.data import canonical_json, digest
from journeyman.core.errors import ConfigurationError
from journeyman.core.storing import Origin, RunOrder
from journeyman.doors.cli import screen
from journeyman.doors.cli.options import WrongUsageError
from journeyman.doors.cli.people import must_be_a_person
from journeyman.doors.cli.program import program
from journeyman.doors.cli.state import replace_file, state_folder

try:
    import fcntl
except ImportError:  # on Windows, where two programs at once leave what one of them wrote
    fcntl = None  # type: ignore[assignment]  # not on every system

MOST_BEGUN = 1_000
_BEGUN = "begun:"
_LOCAL = "journeyman.toolkits.local"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def trust(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Agent or configuration files that you have read.", show_default=False),
    ],
    forget: Annotated[bool, typer.Option("--forget", help="Ask about them again.")] = False,
) -> None:
    """Confirm agent files or a journeyman.yaml beforehand, for programs that cannot be asked.

    An agent file that changes is asked about again; a configuration where it is not yours, or others can write it.
    """
    from journeyman.doors.cli.found_file import SUFFIXES, forget_file, remember_file

    must_be_a_person()
    with files_noted() as found:
        for path in files:
            if path.suffix in SUFFIXES:
                if not path.is_file():
                    raise WrongUsageError(f"there is no file {screen.escaped(str(path))!r}")
                (forget_file if forget else remember_file)(path)
                screen.note(f"{screen.escaped(str(path))} is {'no longer ' if forget else ''}trusted")
            else:
                load_agents(path)
    for file in found:
        name = screen.escaped(str(file.path))
        if forget:
            _forget(file)
            screen.note(f"{name} is no longer trusted")
            continue
        _remember(file)
        screen.note(f"{name} is trusted as it is now (sha256 {file.digest[:16]}…)", *_reasons(file, None))


def confirm(files: Iterable[AgentFile], library: ToolLibrary | None, *, model: str | None = None) -> None:
    """Ask about each file that wants more than its own tools, unless it was confirmed. Raises WrongUsageError.

    Without a library its agents are taken to find the tools over the current folder. A ``model`` given by the user is
    asked in the place of the file's.
    """
    for file in files:
        needed = _reasons(file, library, addresses=model is None)
        if not needed or file.digest in trusted():
            continue
        # The answer is about the whole file, so all of it is told.
        reasons, name = _reasons(file, library), screen.escaped(str(file.path))
        if not screen.interactive():
            raise WrongUsageError(
                f"{name} {'; '.join(reasons)}. Nobody can be asked here: "
                f"read the file, then confirm it with: {program()} trust {shlex.quote(name)}"
            )
        screen.note(f"{name} was not used here before, or has changed. It", *reasons)
        if not agreed():
            raise WrongUsageError(f"{name} was not confirmed, nothing of it was run")
        _remember(file)


def agreed() -> bool:
    screen.discard_typed_ahead()
    print("Do you trust it? [y/N] › ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _reasons(file: AgentFile, library: ToolLibrary | None, *, addresses: bool = True) -> list[str]:
    """What a file asks for that its reader should know."""
    reasons = []
    for agent in file.agents:
        address = address_of(agent.model)
        if addresses and address is not None and not is_configured(address):
            reasons.append(
                f"sends what {agent.name!r} reads to {screen.escaped(address)}, which you have not configured"
            )
        names = {tool.name: tool.description for tool in agent.tools}
        used = [
            tool.name
            for tool in (local_library(Path.cwd()) if library is None else library)
            if getattr(tool.function, "__module__", None) == _LOCAL
            and (agent.all_tools or tool.name in names)
            and (library is not None or agent.all_tools or names[tool.name] == tool.specification.description)
        ]
        if used:
            reasons.append(f"gives {agent.name!r} tools over the files of this folder: {', '.join(used)}")
    return reasons


# --- what runs were begun with


def remember_origins(origin: Origin, agents: Iterable[dict[str, Any]]) -> None:
    """Note that a person has named this code here, for these agents. Raises ConfigurationError where it cannot be."""
    if not any(origin.code):
        return  # only what comes with Journeyman is loaded
    marks = {_origin_digest(origin, agent) for agent in agents}
    if not marks <= trusted().keys():
        entry = {"file": named(origin), "confirmed_at": int(time.time())}
        change_trusted(lambda entries: _newest(entries | dict.fromkeys(marks, entry)))


def _newest(entries: dict[str, Any]) -> dict[str, Any]:
    """Every change of an agent leaves an entry; of very many the oldest are forgotten, and asked about again."""
    begun = [mark for mark in entries if mark.startswith(_BEGUN)]
    return {mark: entry for mark, entry in entries.items() if mark not in set(begun[:-MOST_BEGUN])}


def confirm_origin(order: RunOrder, *, ask: bool) -> None:
    """Refuse to load code that nobody but the store has named, unless the person at the terminal agrees.

    The agent counts as well: another one could have the same tools do something else. Raises ConfigurationError.
    """
    origin = order.origin
    if origin is None or not any(origin.code) or _origin_digest(origin, order.agent) in trusted():
        return
    told = f"run {order.run_id!r} was not begun on this machine, or by somebody else. It loads {named(origin)}"
    if not ask or not screen.interactive():
        option = " ".join(shlex.quote(word) for word in _options(origin))
        raise ConfigurationError(f"{told}. Nothing was loaded: look at it, then name it yourself with {option}")
    screen.note(f"{told}, and runs its code")
    if not agreed():
        raise ConfigurationError(f"{named(origin)} was not confirmed, nothing of it was loaded")
    remember_origins(origin, [order.agent])


def named(origin: Origin) -> str:
    """What it is, in words."""
    return screen.escaped(" ".join(_options(origin)))


def _options(origin: Origin) -> list[str]:
    options = (("--agent", origin.agent), ("--library", origin.library))
    return [word for option, name in options if name is not None for word in (option, name)]


def _origin_digest(origin: Origin, agent: dict[str, Any]) -> str:
    return _BEGUN + digest("origin", canonical_json(origin.code), canonical_json(agent))


# --- what was confirmed, by digest


def _place() -> Path:
    return state_folder() / "trusted.json"


def trusted() -> dict[str, Any]:
    """What a person has confirmed on this machine, by what it is."""
    place = _place()
    try:
        with place.open(encoding="utf-8") as file:
            found = os.fstat(file.fileno())
            if found.st_mode & _OTHERS_WRITE or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
                raise ConfigurationError(
                    f"others can write {str(place)!r}, so it says nothing about whom you trust; delete it, or chmod 600"
                )
            value = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{str(place)!r} cannot be read ({type(error).__name__}); delete it") from None
    return value if isinstance(value, dict) else {}


def _remember(file: AgentFile) -> None:
    entry = {"file": str(file.path.resolve()), "confirmed_at": int(time.time())}
    change_trusted(lambda entries: entries | {file.digest: entry})


def _forget(file: AgentFile) -> None:
    change_trusted(lambda entries: {mark: entry for mark, entry in entries.items() if mark != file.digest})


def change_trusted(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Read, change and write, one program at a time."""
    place = _place()
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with place.with_name(f"{place.name}.lock").open("w") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            replace_file(place, json.dumps(change(trusted()), indent=1).encode())
    except OSError as error:
        raise ConfigurationError(f"{str(place)!r} cannot be written: {error.strerror}") from None
