"""From what is named on the command line to what is meant: agents, libraries and stores."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from journeyman.app import SqlStore, ToolLibrary
from journeyman.app.configuration import rules_of
from journeyman.app.desk import Desk, InvalidInputError, NotFoundError
from journeyman.app.journeyman import Journeyman
from journeyman.app.loading import Loader, is_there, open_at
from journeyman.core.errors import ConfigurationError
from journeyman.core.policy import Principal
from journeyman.doors.cli import screen
from journeyman.doors.cli.configured import configuration, file_settings, named_file
from journeyman.doors.cli.options import WrongUsageError, default_store, user_name
from journeyman.doors.cli.printed import printing_to_stderr
from journeyman.doors.cli.program import program
from journeyman.doors.cli.trust import Gate, confirm_agents

T = TypeVar("T")

GRACE_SECONDS = 5.0
"""How long a person who ends a command waits for the step under way."""

LOADER = Loader(configuration, confirm_agents, printing_to_stderr)
load_agent, load_library, listed_library, imported = LOADER.agent, LOADER.library, LOADER.listed, LOADER.imported


def in_store(
    url: str,
    work: Callable[[Journeyman], Awaitable[T]],
    *,
    library: ToolLibrary | None = None,
    create: bool = False,
    configured: bool = False,
) -> T:
    """Do something with an app that carries out no runs. The store must be there, unless it may be created.

    Of the configuration file it has the rules; where it is ``configured``, the tools as well.
    """

    async def whole() -> T:
        if not create:
            must_exist(url)
        async with opened(open_at(url)) as store:
            if configured:
                return await work(Journeyman(store=store, configuration=configuration(store)))
            policy = None if (loaded := file_settings()) is None else rules_of(loaded).policy
            return await work(Journeyman(library=library, store=store, policy=policy))

    return asyncio.run(whole())


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
) -> T:
    """Do something as the person here, who may do anything with a store that they can open."""
    person = Principal(by or user_name(), permissions={"*"})
    try:
        return in_store(url, lambda app: work(Desk(app, person, resumes=False)), library=library, create=create)
    except NotFoundError as error:
        raise not_there(url, error) from None
    except InvalidInputError as error:
        raise WrongUsageError(str(error)) from None


def not_there(url: str, error: NotFoundError) -> Exception:
    """The same error with what to type to see what there is."""
    if error.kind not in _LISTS:
        return error
    listed = "those in force" if error.kind == "grant" else "what there is"
    what = f"{error}; {listed}: {command(url, _LISTS[error.kind])}"
    return WrongUsageError(what) if error.kind == "gap" else ConfigurationError(what)


def in_running_app(store: SqlStore, work: Callable[[Journeyman], Awaitable[T]], **parts: Any) -> T:
    """Do something with an app that carries out runs meanwhile. It purges no old ones: that is ``runs purge``."""

    async def whole() -> T:
        given = {"gate": Gate(), "configuration": configuration(store), "retention_seconds": None, **parts}
        app = Journeyman(store=store, grace_seconds=GRACE_SECONDS, **given)
        with _pauses_noted(), printing_to_stderr():  # a run that is started goes on at once, whatever the command does
            async with app:
                return await work(app)

    try:
        return asyncio.run(whole())
    except NotFoundError as error:
        raise not_there(str(store.url), error) from None


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
