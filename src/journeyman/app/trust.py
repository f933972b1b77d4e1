"""The trust gate: what files, stores and runs from elsewhere name that runs, is started, or is sent to.

A name is code to import, a program to start, or an address that prompts and secrets go to. What was confirmed is kept
by exactly these names and the place they stand in, so that a person is asked again when these change and not when
anything else does. Who is asked, and where the answers are kept, is a door's business; a program that uses the library
has named its files and stores itself.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from journeyman.core.data import canonical_json, digest, visible
from journeyman.core.model_settings import ModelSettings
from journeyman.core.storing import Origin, RunOrder
from journeyman.models.resolve import MODEL_VARIABLE, address_of, is_configured
from journeyman.sensitive.tokens import bare_url, redacted
from journeyman.settings.schema import McpServer, OpenApi, Settings

if TYPE_CHECKING:
    from journeyman.stores.store import SqlStore

STORE_VARIABLE = "JOURNEYMAN_STORE"
MOST_SHOWN = 5
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Name:
    """One thing that is named: what it is confirmed by, and how a person is told of it."""

    kind: str
    text: str
    verb: str = field(compare=False)
    shown: str = field(compare=False)

    def mark(self, place: str) -> str:
        """What is remembered of it. A digest: commands and addresses may hold secrets."""
        return digest(place, self.kind, self.text)


NameGate: TypeAlias = Callable[[Path, Sequence[Name]], Sequence[Name]]
"""Of the names in a file, those that nobody has agreed to."""


class TrustGate(Protocol):
    """Decides about stores, and about runs that stand in one."""

    async def refuses(self, store: SqlStore) -> str | None:
        """Why nothing in a store may run; None where it may."""

    def check_run(self, order: RunOrder, *, code: bool, model: bool) -> None:
        """Refuse a stored run for the code it would load, or the model it would ask. Raises ConfigurationError."""


def reasons(names: Iterable[Name]) -> list[str]:
    """What a file would do, in words."""
    told: dict[str, list[str]] = {}
    for name in names:
        told.setdefault(name.verb, []).append(visible(redacted(name.shown)))
    return [
        f"{verb} {', '.join(shown[:MOST_SHOWN])}"
        + (f" and {more} more" if (more := len(shown) - MOST_SHOWN) > 0 else "")
        for verb, shown in told.items()
    ]


# --- what is named


def names_in(settings: Settings) -> list[Name]:
    """What a configuration file names. What the environment says instead is the user's own word."""
    return list(dict.fromkeys(_names_in(settings)))


def _names_in(settings: Settings) -> Iterator[Name]:
    code = [item.import_ for item in settings.tools.values() if item.import_]
    code += [name for name in settings.toolkits or () if ":" in name]
    code += [item.schema_ for item in settings.categories.values() if isinstance(item.schema_, str)]
    code += [name for name in (settings.agent, settings.runs.split) if name is not None and ":" in name]
    for path in code:
        yield Name("code", path, "runs the code of", path)
    for server in settings.mcp.values():
        if server.enabled:
            yield server_name(server)
    for api in settings.openapi.values():
        if api.enabled:
            yield api_name(api)
    if settings.model is not None and not os.environ.get(MODEL_VARIABLE):
        yield from model_names(settings.model, "agents read")
    if not settings.store.startswith("sqlite:") and not os.environ.get(STORE_VARIABLE):
        yield Name("store", settings.store, "keeps runs in", bare_url(settings.store))


def server_name(server: McpServer) -> Name:
    """What starts a server, or where it listens; its folder and its variables decide what a command does, too."""
    if server.command is not None:
        whole = canonical_json([server.command, server.cwd, server.env])
        return Name("command", whole, "starts", shlex.join(server.command))
    issuer = "" if server.oauth is None else server.oauth.issuer or "a browser"
    return Name("server", canonical_json([server.url, issuer]), "takes tools from", bare_url(server.url or ""))


def api_name(api: OpenApi) -> Name:
    """The document that says what can be called, and where it is called."""
    whole = canonical_json([api.document, api.base_url])
    return Name("server", whole, "calls", f"{bare_url(api.base_url)} as {bare_url(api.document)} says")


def model_names(model: str | ModelSettings, read: str) -> Iterator[Name]:
    """The address in a model's name, unless the environment names the same."""
    address = address_of(model)
    if address is not None and not is_configured(address):
        yield Name("address", address, f"sends what {read} to", f"{address}, which you have not configured")


def origin_names(origin: Origin | None, agent: dict[str, Any], *, shown: str) -> Iterator[Name]:
    """The code that a run was begun with; what comes with Journeyman is nobody's code.

    Each run is remembered with its agent as it begins: an agent that only the store has could have the same tools do
    something else.
    """
    if origin is not None and any(origin.code):
        yield Name("code", canonical_json([origin.code, agent]), "loads", shown)


# --- by ownership


def is_own(path: Path) -> bool:
    """Whether only this user, or the system's administrator, can change a file."""
    if not hasattr(os, "geteuid"):
        return True  # on Windows, where a folder of one's own is another's business
    try:
        file, folder = path.stat(), path.resolve().parent.stat()
    except OSError:
        return False
    replaceable = folder.st_mode & _OTHERS_WRITE and not folder.st_mode & stat.S_ISVTX
    return file.st_uid in (0, os.geteuid()) and not file.st_mode & _OTHERS_WRITE and not replaceable


def unless_own(path: Path, names: Sequence[Name]) -> Sequence[Name]:
    """The rule without anybody to ask: whoever named a file may edit it, and nobody else."""
    return () if is_own(path) else names
