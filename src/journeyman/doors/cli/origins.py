"""What runs and sessions remember of the command that began them, and how another command loads it again.

Names are kept so that they hold in any folder: files by their whole path, modules of the current folder as files. A
store may come from anywhere, and what it names is code: the gate in ``trust`` has agreed before anything is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from journeyman.app import Agent, SqlStore, ToolLibrary, split_path
from journeyman.app.desk import LOCAL, Desk
from journeyman.app.journeyman import Journeyman
from journeyman.app.loading import SHIPPED, is_document, is_there, shipped_library, split_document
from journeyman.core.errors import ConfigurationError, JourneymanError
from journeyman.core.storing import Origin, RunOrder
from journeyman.doors.cli import screen, trust
from journeyman.doors.cli.loading import in_store, load_agent, load_library
from journeyman.doors.cli.options import RunOptions, WrongUsageError

_GGUF = "gguf:"


# --- names that last


def origin_of(given: RunOptions) -> Origin:
    """What was named, as any other command can find it. Called when it was loaded: then its modules are known."""
    agent, library = _lasting(given.agent), _lasting(given.library)
    named = (agent, library)
    looks_around = library in SHIPPED or (library is None and agent is not None and is_document(agent))
    by_module = any(name is not None and name not in SHIPPED and not _is_file(name) for name in named)
    folder = (given.folder or str(Path.cwd())) if looks_around or by_module else ""
    return Origin(agent=agent, library=library, model=_lasting_model(given.model), folder=folder)


def _is_file(name: str) -> bool:
    return is_document(name) or split_path(name)[0].endswith(".py")


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
    found = getattr(sys.modules.get(name), "__file__", None)
    if found is None:
        return None
    file = Path(found).resolve()
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
    return agent, tools, replace(given, origin=origin, repeated=() if known else trust.words(origin))


def remember(origin: Origin, agents: Iterable[Agent]) -> bool:
    """Note on this machine that a person has named these here, so that later commands need not ask; False: cannot."""
    try:
        trust.remember_runs(origin, agents)
    except ConfigurationError as error:
        screen.note(f"{error}; commands that go on with a run must be given its options again")
        return False
    return True


def _with_remembered(given: RunOptions) -> RunOptions:
    """What is not given is taken from the latest run of the session."""
    if given.session is None or given.agent is not None or not is_there(given.store):
        return given
    gate = trust.Gate(ask=True)

    async def latest(app: Journeyman) -> tuple[RunOrder | None, str | None]:
        order = await Desk(app, LOCAL).latest_order(str(given.session))
        return order, None if order is None else await gate.refuses(app.store)

    order, refused = in_store(given.store, latest)
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
    code = taken.agent is not None or given.library is None
    try:
        gate.check_run(order, code=code, model=given.model is None)
    except ConfigurationError as error:
        raise WrongUsageError(str(error)) from None
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
                told = f"run {order.run_id!r} was begun with {trust.named(origin)}, which cannot be loaded: {error}"
                mend = "mend that, or name other tools with --library"
                raise ConfigurationError(f"{told}. The run stays as it is: {mend}") from error
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
