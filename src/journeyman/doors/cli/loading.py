"""From what is named on the command line to what is meant: agents, libraries and stores; and how runs remember it."""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from journeyman.app import Agent, SqlStore, ToolLibrary, split_path
from journeyman.app.configuration import rules_of
from journeyman.app.desk import Desk, NotFoundError
from journeyman.app.journeyman import Journeyman
from journeyman.app.loading import SHIPPED, Loader, is_document, is_there, open_at, shipped_library, split_document
from journeyman.core.errors import ConfigurationError, JourneymanError
from journeyman.core.policy import Principal
from journeyman.core.storing import Origin, RunOrder
from journeyman.doors.cli import screen
from journeyman.doors.cli.configured import configuration, file_settings, named_file, naming
from journeyman.doors.cli.options import RunOptions, WrongUsageError, default_store, user_name
from journeyman.doors.cli.printed import printing_to_stderr
from journeyman.doors.cli.program import program
from journeyman.doors.cli.trust import Gate, confirm_agents, named, remember_runs, words

T = TypeVar("T")

_GGUF = "gguf:"

LOOK_SECONDS = 1.0
_NOT_OWN = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]))
GRACE_SECONDS = 5.0
"""How long a person who ends a command waits for the step under way."""

LOADER = Loader(configuration, confirm_agents, printing_to_stderr)
load_agent, load_library, listed_library, imported = LOADER.agent, LOADER.library, LOADER.listed, LOADER.imported


class Edited:
    """Modules of one's own that were written after they were imported: what runs is as it was, and says so."""

    def __init__(self) -> None:
        self._known = self._written()

    @staticmethod
    def _written() -> dict[str, int]:
        files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
        own = (Path(file) for file in files if file and not file.startswith(_NOT_OWN))
        return {str(file): file.stat().st_mtime_ns for file in own if file.is_file()}

    def note(self) -> None:
        now = self._written()
        if edited := [Path(file).name for file, time in now.items() if self._known.get(file, time) != time]:
            screen.note(f"edited, and still run as before: {', '.join(edited)}", "begin this command again to use them")
        self._known = now

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.note()


_LISTS = {
    "approval": "approvals list",
    "run": "runs list",
    "grant": "approvals grants",
    "gap": "gaps list --all",
    "playbook": "playbook list",
    "strategy": "playbook list",
    "experiment": "experiment list",
}


def at_desk(
    url: str,
    work: Callable[[Desk], Awaitable[T]],
    *,
    by: str | None = None,
    library: ToolLibrary | None = None,
    create: bool = False,
    configured: bool = False,
) -> T:
    """Do something as the person here, who may do anything with a store that they can open, and carry out no runs.

    The store must be there, unless it may be created. Of the configuration file the rules hold; where it is
    ``configured``, its tools are there as well.
    """
    person = Principal(by or user_name(), permissions={"*"})

    async def whole() -> T:
        if not create:
            must_exist(url)
        async with opened(open_at(url)) as store:
            policy = None if (loaded := file_settings()) is None else rules_of(loaded).policy
            parts = {"configuration": configuration(store)} if configured else {"library": library, "policy": policy}
            return await work(Desk(Journeyman(store=store, **parts), person, resumes=False))

    with _listed(url):
        return asyncio.run(whole())


@contextmanager
def _listed(url: str) -> Iterator[None]:
    """Have an error of something that is not there say what to type to see what there is."""
    try:
        yield
    except NotFoundError as error:
        if error.kind not in _LISTS:
            raise
        listed = "those in force" if error.kind == "grant" else "what there is"
        what = f"{error}; {listed}: {command(url, _LISTS[error.kind])}"
        raise (WrongUsageError if error.kind == "gap" else ConfigurationError)(what) from None


def in_running_app(store: SqlStore, work: Callable[[Journeyman], Awaitable[T]], **parts: Any) -> T:
    """Do something with an app that carries out runs meanwhile. It purges no old ones: that is ``runs purge``."""

    async def whole() -> T:
        given = {"gate": Gate(), "configuration": configuration(store), "retention_seconds": None, **parts}
        app = Journeyman(store=store, grace_seconds=GRACE_SECONDS, **given)
        with _pauses_noted(), printing_to_stderr():  # a run that is started goes on at once, whatever the command does
            async with app:
                return await work(app)

    with _listed(str(store.url)):
        return asyncio.run(whole())


@asynccontextmanager
async def opened(store: SqlStore, *, upgrade: bool = True) -> AsyncIterator[SqlStore]:
    """A store as long as it is needed; without ``upgrade``, with whatever schema it has."""
    await store.open(upgrade=upgrade)
    if store.read_only:
        screen.note("the store can only be read here: what is shown is as it was left, and nothing can be changed")
    try:
        if store.created:
            await Gate().refuses(store)  # it is its user's from now on
        yield store
    finally:
        await store.close()


@contextmanager
def _pauses_noted() -> Iterator[None]:
    """Note when runs pause because the store cannot be reached, unless logs do so already."""
    if any(not isinstance(handler, logging.NullHandler) for handler in logging.getLogger("journeyman").handlers):
        yield
        return
    handler, logger = logging.Handler(), logging.getLogger("journeyman.store")
    handler.emit = lambda record: screen.note(record.getMessage())  # type: ignore[method-assign]
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


def without_password(url: str) -> str:
    parts = urlsplit(url)
    return url.replace(f":{parts.password}@", ":***@", 1) if parts.password else url


def command(url: str, words: str, *values: str) -> str:
    """What to type next, with --config and --store where they would not be found otherwise.

    ``values`` are quoted: they come from elsewhere, and are pasted into a shell.
    """
    parts = [program(), words, *map(shlex.quote, values)]
    if (named := named_file()) is not None:
        parts += ["--config", shlex.quote(str(named))]
    if url != default_store():
        parts += ["--store", shlex.quote(without_password(url))]
    return " ".join(parts)


def decisions(url: str, approval_id: str, *answer: str) -> list[str]:
    """What to type to decide about a call, or to give an answer."""
    return [command(url, "approvals approve", approval_id, *answer), command(url, "approvals deny", approval_id)]


def resolutions(url: str, run_id: str, call_id: str) -> list[str]:
    """What to type to say what became of a call."""
    return [command(url, "runs resolve", run_id, call_id, choice) for choice in ("rerun", "done", "skip")]


# --- what runs and sessions remember of the command that began them

# Names are kept so that they hold in any folder: files by their whole path, modules of the current folder as files. A
# store may come from anywhere, and what it names is code: the gate in ``trust`` has agreed before anything is loaded.


def origin_of(given: RunOptions) -> Origin:
    """What was named, as any other command can find it. Called when it was loaded: then its modules are known."""
    agent, library = _lasting(given.agent), _lasting(given.library)
    named = (agent, library)
    looks_around = library in SHIPPED or (library is None and agent is not None and is_document(agent))
    modules = (name for name in named if name is not None and name not in SHIPPED and not is_document(name))
    by_module = any(not split_path(name)[0].endswith(".py") for name in modules)
    folder = (given.folder or str(Path.cwd())) if looks_around or by_module else ""
    return Origin(agent=agent, library=library, model=_lasting_model(given.model), folder=folder)


def _lasting(name: str | None) -> str | None:
    if name is None or name in SHIPPED:
        return name
    if is_document(name):
        document, agent = split_document(name)
        return f"{document.resolve()}:{agent}" if agent else str(document.resolve())
    place, attribute = split_path(name)
    file = Path(place) if place.endswith(".py") else _file_of_module(place)
    if file is not None:
        place = str(file.resolve())
    return f"{place}:{attribute}" if attribute else place


def _file_of_module(name: str) -> Path | None:
    """The file of a module that was imported from the current folder; None where the file alone would not do."""
    place = getattr(sys.modules.get(name), "__file__", None)
    if place is None:
        return None
    file = Path(place).resolve()
    root = file.parent if file.name != "__init__.py" else file.parent.parent
    for _ in name.split(".")[1:]:
        if not (root / "__init__.py").is_file():
            return None
        root = root.parent
    return file if root == Path.cwd() and file.suffix == ".py" else None


def _lasting_model(name: str | None) -> str | None:
    if name is None or not name.startswith(_GGUF):
        return name
    return f"{_GGUF}{Path(name.removeprefix(_GGUF)).expanduser().resolve()}"


# --- beginning


def load_for_run(given: RunOptions, *, store: SqlStore) -> tuple[Agent, ToolLibrary, RunOptions]:
    """The agent and the tools of runs that are kept, and the options with what their session remembers.

    A ``--model`` is kept with the agent: whoever resumes one of its runs asks the same model.
    """
    given = _with_remembered(given)
    folder = Path(given.folder) if given.folder else None
    agent, tools = load_agent(given.agent, given.library, store=store, model=given.model, folder=folder)
    origin = origin_of(given)
    if origin.model is not None:
        agent = agent.model_copy(update={"model": origin.model})
    known = remember(origin, [agent])
    return agent, tools, replace(given, origin=origin, repeated=() if known else words(origin))


def remember(origin: Origin, agents: Iterable[Agent]) -> bool:
    """Note on this machine that a person has named these here, so that later commands need not ask; False: cannot."""
    try:
        remember_runs(origin, agents)
    except ConfigurationError as error:
        screen.note(f"{error}; commands that go on with a run must be given its options again")
        return False
    return True


def _with_remembered(given: RunOptions) -> RunOptions:
    """What is not given is taken from the latest run of the session."""
    if given.session is None or given.agent is not None or not is_there(given.store):
        return given
    gate = Gate(ask=True)

    async def latest(desk: Desk) -> tuple[RunOrder | None, str | None]:
        order = await desk.latest_order(str(given.session))
        return order, None if order is None else await gate.refuses(desk.app.store)

    order, refused = at_desk(given.store, latest)
    if order is None or order.origin is None:
        return given
    if refused is not None:
        raise WrongUsageError(refused)
    origin = order.origin
    taken = replace(
        given,
        agent=origin.agent,
        library=given.library or origin.library,
        model=given.model or origin.model,
        folder=origin.folder if given.library is None else "",
    )
    with naming():
        gate.check_run(order, code=taken.agent is not None or given.library is None, model=given.model is None)
    return taken


# --- going on


class RememberedTools:
    """Finds the tools of a run by the names it was begun with. Raises ConfigurationError; the run stays as it is."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._found: dict[tuple[str | None, str | None, str], ToolLibrary] = {}

    def __call__(self, order: RunOrder) -> ToolLibrary:
        origin = order.origin
        assert origin is not None
        if origin.code not in self._found:
            try:
                self._found[origin.code] = self._load(origin)
            except (WrongUsageError, JourneymanError) as error:
                begun = f"run {order.run_id!r} was begun with {named(origin)}, which cannot be loaded: {error}"
                mend = "mend that, or name other tools with --library"
                raise ConfigurationError(f"{begun}. The run stays as it is: {mend}") from error
        return self._found[origin.code]

    def _load(self, origin: Origin) -> ToolLibrary:
        folder = Path(origin.folder) if origin.folder else None
        if folder is not None and not folder.is_dir():
            raise ConfigurationError(f"the folder {origin.folder!r} is not there")
        if origin.agent is None or origin.library is not None:
            return load_library(origin.library, store=self._store, folder=folder)
        if is_document(origin.agent):  # what it says is kept with the run
            return shipped_library(self._store, folder=folder)
        return load_agent(origin.agent, None, store=self._store, folder=folder)[1]
