"""``journeyman trust``, and the one gate for what comes from elsewhere: agent files, configuration files, stores, runs.

What each of them names (``app.trust``) is confirmed once, by a person: code to import, programs to start, addresses to
send to. It is kept by these names and the place they stand in, on this machine, for this user. A store is confirmed as
a whole: before that it can be read, and nothing in it runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from journeyman.app import AgentFile, SqlStore, ToolLibrary
from journeyman.app.loading import agent_files, file_of, open_at
from journeyman.app.service import local_library
from journeyman.app.trust import OTHERS_WRITE, Name, model_names, names_in, origin_names, reasons
from journeyman.core.errors import ApprovalError, ConfigurationError
from journeyman.core.runs import UNFINISHED
from journeyman.core.storing import Origin, RunOrder
from journeyman.doors.cli import screen
from journeyman.doors.cli.options import RunOptions, WrongUsageError, store_is_named
from journeyman.doors.cli.program import must_be_a_person, must_not_be_a_tool, program, replace_file, state_folder
from journeyman.sensitive.tokens import redacted
from journeyman.settings.reading import Loaded, read_settings

if TYPE_CHECKING:
    from journeyman.app import Agent

try:
    import fcntl
except ImportError:  # on Windows, where two programs at once leave what one of them wrote
    fcntl = None  # type: ignore[assignment]  # not on every system

SUFFIXES = (".yaml", ".yml")
RUNS = "runs"
"""The place of what runs were begun with: whichever store they are in."""
MOST_BEGUN = 1_000
_FILE = Name("file", "", "is", "known")
"""Kept of a file that was named, so that it is known also where it names nothing."""
_LOCAL = "journeyman.toolkits.local"
_SQLITE = b"SQLite format 3\0"


def trust(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Agent files, configuration files or stores that you have read."),
    ],
    forget: Annotated[bool, typer.Option("--forget", help="Ask about them again.")] = False,
) -> None:
    """Confirm agent files, a journeyman.yaml or a store beforehand, for programs that cannot be asked.

    A file is asked about again when it names other code, programs or addresses, and not when anything else changes.
    """
    must_be_a_person()
    for path in files:
        if not path.is_file():
            raise WrongUsageError(f"there is no file {screen.escaped(str(path))!r}")
        shown = screen.escaped(str(path))
        if forget:
            _forget(_place(path))
            screen.note(f"{shown} is no longer trusted")
            continue
        for place, names in _named_in(path):
            remember(place, names)
            screen.note(f"{screen.escaped(str(place))} is trusted, with what it names now", *reasons(names))


def _named_in(path: Path) -> Iterator[tuple[Path, list[Name]]]:
    with path.open("rb") as file:
        is_store = file.read(len(_SQLITE)) == _SQLITE
    if is_store:
        yield path, [asyncio.run(_store_at(f"sqlite:///{quote(str(path.absolute()))}"))]
    elif path.suffix in SUFFIXES:
        yield path, names_in(read_settings(path))
    else:
        for item in agent_files(path):
            yield item.path, list(_agent_names(item, None))


# --- asking


def confirm(what: str, place: Path, names: Sequence[Name], *, also: str = "") -> None:
    """Ask about names that nobody has confirmed in their place. Raises WrongUsageError where nobody agrees."""
    if not (new := unconfirmed(place, names)):
        return
    if not screen.interactive():
        raise WrongUsageError(
            f"{what} {'; '.join(reasons(new))}. Nobody can be asked here: read it, then confirm it with: "
            f"{trust_command(place)}{also}"
        )
    screen.note(f"{what} was not used here before, or names something new. It", *reasons(new))
    if not agreed():
        raise WrongUsageError(f"{what} was not confirmed, nothing of it was run")
    remember(place, names)


def trust_command(place: Path) -> str:
    """What confirms a file, to be typed by a person."""
    file = place.absolute()
    shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return f"{program()} trust {shlex.quote(screen.escaped(str(shown)))}"


def agreed() -> bool:
    screen.discard_typed_ahead()
    print("Do you trust it? [y/N] › ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# --- agent files


def confirm_agents(files: Iterable[AgentFile], library: ToolLibrary | None, *, model: str | None = None) -> None:
    """Ask about each file that wants more than its own tools, unless it was confirmed. Raises WrongUsageError.

    Without a library its agents are taken to find the tools over the current folder. A ``model`` given by the user is
    asked in the place of the file's.
    """
    for file in files:
        needed = [name for name in _agent_names(file, library) if model is None or name.kind != "address"]
        if unconfirmed(file.path, needed):
            # The answer is about the whole file, so all of it is told.
            confirm(screen.escaped(str(file.path)), file.path, list(_agent_names(file, library)))


def _agent_names(file: AgentFile, library: ToolLibrary | None) -> Iterator[Name]:
    """What a file asks for that its reader should know: where its agents send what they read, and what that can be."""
    for agent in file.agents:
        yield from model_names(agent.model, f"{agent.name!r} reads")
        names = {tool.name: tool.description for tool in agent.tools}
        for tool in local_library(Path.cwd()) if library is None else library:
            if (
                getattr(tool.function, "__module__", None) == _LOCAL
                and (agent.all_tools or tool.name in names)
                and (library is not None or agent.all_tools or names[tool.name] == tool.specification.description)
            ):
                yield Name("files", tool.name, f"gives {agent.name!r} tools over the files of this folder:", tool.name)


# --- configuration files


def confirm_file(loaded: Loaded, *, named: bool) -> None:
    """Ask about what a file names that nobody has confirmed, before anything of it is used.

    Who has named the file agrees to what it names now, and other commands find it confirmed; what it names later is
    asked about, for a pull may have brought that. Raises WrongUsageError where nobody agrees.
    """
    path, names, shown = loaded.path, names_in(loaded), screen.escaped(str(loaded.path))
    known = any(entry.get("file") == _place(path) for entry in trusted().values())
    if not named:
        also = "" if known else f", or name it with --config {shlex.quote(shown)}"
        confirm(f"{shown} in this folder", path, names, also=also)
    elif known:
        confirm(shown, path, names)
    else:
        with suppress(ApprovalError, ConfigurationError):  # then it is asked about later
            must_be_a_person()
            remember(path, [_FILE, *names])


def remember_own(path: Path, names: Sequence[Name] | None = None) -> None:
    """This program has written a file, or these names of it, as its user wanted."""
    with suppress(ApprovalError, ConfigurationError):
        must_not_be_a_tool()
        remember(path, names_in(read_settings(path)) if names is None else names)


# --- stores and their runs


class Gate:
    """Asked by an app about the store it opens, and about runs that it did not begin itself.

    ``ask`` says whether the person at the terminal may be asked; ``tell``, whether a refusal is told at once.
    """

    def __init__(self, *, ask: bool = False, tell: bool = False) -> None:
        self._ask, self._tell = ask, tell

    async def refuses(self, store: SqlStore) -> str | None:
        """Why nothing in the store may run; None where it was made here, was named, or is confirmed."""
        file = file_of(store.url) if isinstance(store, SqlStore) and store.url is not None else None
        if file is None or not isinstance(store, SqlStore):
            return None  # a server is always named, by its user or by a file that was confirmed
        name = _store_name(await store.identity())
        if store.created or store_is_named():
            with suppress(ApprovalError, ConfigurationError):  # then it is asked about the next time
                must_not_be_a_tool()
                remember(file, [name])
            return None
        if not unconfirmed(file, [name]):
            return None
        runs = screen.counted(await store.runs.count(statuses=UNFINISHED), "unfinished run")
        about = f"the store {screen.escaped(str(file))!r} was made elsewhere or by an earlier version ({runs})"
        if self._ask and screen.interactive():
            screen.note(f"{about}. If you trust it, its runs go on: they ask models and call tools")
            if agreed():
                remember(file, [name])
                return None
        refused = f"{about}. It can be read; nothing in it runs before you confirm it with: {trust_command(file)}"
        if self._tell:
            screen.note(refused)
        return refused

    def check_run(self, order: RunOrder, *, code: bool, model: bool) -> None:
        """Refuse what nobody but the store has named, unless the person at the terminal agrees."""
        names = list(_run_names(order.origin, order.agent)) if model else []
        if code and order.origin is not None:
            names += origin_names(order.origin, order.agent, shown=named(order.origin))
        if not (new := unconfirmed(RUNS, names)):
            return
        about = (
            f"run {order.run_id!r} was not begun on this machine, or by somebody else. It {'; it '.join(reasons(new))}"
        )
        if not self._ask or not screen.interactive():
            typed = [*words(order.origin, model=False)] if code and order.origin is not None else []
            typed += ["--model", _model(order.origin, order.agent)] if any(n.kind == "address" for n in new) else []
            # Behind the "#" of an address stands the model's name, which is no secret.
            shown = ("#".join(map(redacted, word.split("#"))) for word in typed)
            named_by = screen.escaped(" ".join(map(shlex.quote, shown)))
            raise ConfigurationError(
                f"{about}. Nothing was loaded or sent: look at it, then name it yourself with {named_by}"
            )
        screen.note(about)
        if not agreed():
            raise ConfigurationError(f"what run {order.run_id!r} names was not confirmed, nothing of it was run")
        remember(RUNS, names)


def remember_runs(origin: Origin, agents: Iterable[Agent]) -> None:
    """Note that a person has named this code and these models here. Raises ConfigurationError where it cannot be."""
    names: list[Name] = []
    for agent in agents:
        names += origin_names(origin, agent.snapshot, shown=named(origin))
        names += _run_names(origin, agent.snapshot)
    remember(RUNS, names)


def _run_names(origin: Origin | None, agent: dict[str, Any]) -> Iterator[Name]:
    """The address that a run's prompts go to."""
    return model_names(_model(origin, agent), "it reads")


def _model(origin: Origin | None, agent: dict[str, Any]) -> str:
    return (None if origin is None else origin.model) or str(agent.get("model") or "")


def _store_name(identity: str) -> Name:
    return Name("store", identity, "holds", "runs that go on where they stopped")


async def _store_at(url: str) -> Name:
    store = open_at(url)
    await store.open()
    try:
        return _store_name(await store.identity())
    finally:
        await store.close()


def named(origin: Origin) -> str:
    """What it is, in words."""
    return screen.escaped(" ".join(words(origin, model=False)))


def words(origin: Origin | RunOptions, *, model: bool = True) -> tuple[str, ...]:
    """The options that name all this once more."""
    named = (("--agent", origin.agent), ("--library", origin.library), ("--model", origin.model if model else None))
    return tuple(word for option, name in named if name is not None for word in (option, name))


# --- what was confirmed, by digest


_unwritten: set[str] = set()
"""What was confirmed in this process and could not be kept."""


def unconfirmed(place: Path | str, names: Iterable[Name]) -> list[Name]:
    """Those that nobody has confirmed in this place."""
    wanted, where = list(names), _place(place)
    if not wanted:
        return []
    known = trusted().keys() | _unwritten
    return [name for name in wanted if name.mark(where) not in known]


def remember(place: Path | str, names: Iterable[Name]) -> None:
    """A person has confirmed these. Raises ConfigurationError where it cannot be kept."""
    where = _place(place)
    entries = {
        name.mark(where): {"file": where, "kind": name.kind, "confirmed_at": int(time.time())}
        for name in unconfirmed(place, names)
    }
    if entries:
        try:
            change_trusted(lambda known: _newest(known | entries))
        except ConfigurationError:
            _unwritten.update(entries)
            raise


def _newest(entries: dict[str, Any]) -> dict[str, Any]:
    """Every change of an agent leaves an entry; of very many the oldest are forgotten, and asked about again."""
    begun = [mark for mark, entry in entries.items() if entry.get("file") == RUNS]
    forgotten = set(begun[:-MOST_BEGUN])
    return {mark: entry for mark, entry in entries.items() if mark not in forgotten}


def _forget(where: str) -> None:
    change_trusted(lambda known: {mark: entry for mark, entry in known.items() if entry.get("file") != where})


def _place(place: Path | str) -> str:
    return place if isinstance(place, str) else str(place.resolve())


def _trust_file() -> Path:
    return state_folder() / "trusted.json"


def trusted() -> dict[str, Any]:
    """What a person has confirmed on this machine, by what it is."""
    place = _trust_file()
    try:
        with place.open(encoding="utf-8") as file:
            held = os.fstat(file.fileno())
            if held.st_mode & OTHERS_WRITE or (hasattr(os, "geteuid") and held.st_uid != os.geteuid()):
                raise ConfigurationError(
                    f"others can write {str(place)!r}, so it says nothing about whom you trust; delete it, or chmod 600"
                )
            value = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{str(place)!r} cannot be read ({type(error).__name__}); delete it") from None
    return value if isinstance(value, dict) else {}


def change_trusted(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Read, change and write, one program at a time."""
    place = _trust_file()
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with place.with_name(f"{place.name}.lock").open("w") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            replace_file(place, json.dumps(change(trusted()), indent=1).encode())
    except OSError as error:
        raise ConfigurationError(f"{str(place)!r} cannot be written: {error.strerror}") from None
