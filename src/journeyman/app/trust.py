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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from journeyman.core.data import canonical_json, digest, visible
from journeyman.core.model_settings import ModelSettings
from journeyman.core.storing import Origin, RunOrder
from journeyman.models.resolve import MODEL_VARIABLE, address_of, is_configured
from journeyman.sensitive.references import UnresolvedError, references, resolve
from journeyman.sensitive.tokens import bare_url, redacted
from journeyman.settings.reading import Loaded
from journeyman.settings.schema import Http, McpServer, OpenApi

if TYPE_CHECKING:
    from journeyman.stores.store import SqlStore

STORE_VARIABLE = "JOURNEYMAN_STORE"
TOKENS_VARIABLE = "JOURNEYMAN_TOKENS"
MOST_SHOWN = 5
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


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


def names_in(loaded: Loaded) -> list[Name]:
    """What a configuration file names. What the environment says instead is the user's own word."""
    return list(dict.fromkeys(_names_in(loaded)))


def _names_in(loaded: Loaded) -> Iterator[Name]:
    settings = loaded.settings
    runs, learning, slack = settings.runs, settings.learning, settings.doors.slack
    code = [item.import_ for item in settings.tools.values() if item.import_]
    code += [name for name in settings.toolkits or () if ":" in name]
    code += [item.schema_ for item in settings.categories.values() if isinstance(item.schema_, str)]
    code += [settings.agent] if settings.agent is not None and ":" in settings.agent else []
    code += [] if runs.split is None else [runs.split]
    for path in code:
        yield Name("code", path, "runs the code of", path)
    for server in settings.mcp.values():
        if server.enabled:
            yield _server_name(server, loaded)
    for api in settings.openapi.values():
        if api.enabled:
            yield _api_name(api, loaded)
    if settings.model is not None and not os.environ.get(MODEL_VARIABLE):
        yield from _model_setting(settings.model, loaded)
    if not settings.store.startswith("sqlite:") and not os.environ.get(STORE_VARIABLE):
        yield Name("store", _meant(settings.store, loaded), "keeps runs in", bare_url(settings.store))
    if learning.folder is not None:
        yield Name("folder", str(learning.folder), "takes advice from, and keeps it in,", str(learning.folder))
    folder = loaded.path.absolute().parent.resolve()
    if runs.traces is not None and not (folder / runs.traces).resolve().is_relative_to(folder):
        yield Name("folder", str(runs.traces), "writes what runs did into", str(runs.traces))
    yield from _door_names(settings.doors.http)
    lists = [(team, space.bot_token) for team, space in slack.workspaces.items()]
    if lists or slack.app_token or slack.signing_secret or slack.people:
        whole = canonical_json([lists, slack.app_token, slack.signing_secret, str(slack.people or "")])
        yield Name("door", whole, "answers people of", f"the Slack workspaces {', '.join(slack.workspaces)}".rstrip())


def _door_names(http: Http) -> Iterator[Name]:
    """Who may come in, and whose keys and pages are believed."""
    if http.tokens is not None and not os.environ.get(TOKENS_VARIABLE):
        yield Name("door", str(http.tokens), "lets in whoever has a token of", str(http.tokens))
    if http.oauth is not None:
        shown = [http.oauth.issuer, *([] if http.oauth.jwks is None else [f"with the keys of {http.oauth.jwks}"])]
        yield Name("door", canonical_json(shown), "lets in whoever has a token of", " ".join(shown))
    for origin in http.origins:
        yield Name("door", origin, "lets in the pages of", origin)


def _server_name(server: McpServer, loaded: Loaded) -> Name:
    """What starts a server, or where it listens; its folder and its variables decide what a command does, too."""
    if server.command is not None:
        whole = canonical_json([server.command, server.cwd, server.env])
        return Name("command", whole, "starts", shlex.join(server.command))
    issuer = "" if server.oauth is None else server.oauth.issuer or "a browser"
    given = list(server.headers.values())
    given += [] if server.oauth is None else [server.oauth.client_id or "", server.oauth.client_secret or ""]
    sent, told = _sent(given)
    whole = canonical_json([_meant(server.url or "", loaded), issuer, *sent])
    return Name("server", whole, "takes tools from", f"{bare_url(server.url or '')}{told}")


def _api_name(api: OpenApi, loaded: Loaded) -> Name:
    """The document that says what can be called, and where it is called."""
    auth = [api.auth] if isinstance(api.auth, str) else (api.auth or {}).values()
    sent, told = _sent([*auth, *api.headers.values()])
    whole = canonical_json([_meant(api.document, loaded), _meant(api.base_url, loaded), *sent])
    return Name("server", whole, "calls", f"{bare_url(api.base_url)} as {bare_url(api.document)} says{told}")


def _sent(texts: Iterable[str]) -> tuple[list[list[str]], str]:
    """The secrets of this machine that texts stand for: what is confirmed of them, and how a person is told."""
    secrets = sorted({text for text in texts if references(text)})
    return ([secrets] if secrets else []), (f", which is sent {', '.join(secrets)}" if secrets else "")


def _meant(text: str, loaded: Loaded) -> str:
    """A text with what files say in it, which come along with the configuration; variables are the user's own."""
    if not references(text):
        return text
    try:
        return resolve(text, _Unchanged(), folder=loaded.path.parent)
    except UnresolvedError:
        return text


class _Unchanged(dict[str, str]):
    """An environment in which every variable stands for itself."""

    def get(self, key: str, default: object = None) -> str:  # never without a value
        return f"${{{key}}}"


def _model_setting(model: str | ModelSettings, loaded: Loaded) -> Iterator[Name]:
    """The address of the file's model, also where another file holds it; and which secrets are sent there."""
    if isinstance(model, str):
        meant: str | ModelSettings = _meant(model, loaded)
        told = ""
    else:
        base = None if model.base_url is None else _meant(model.base_url, loaded)
        meant = model.model_copy(update={"name": _meant(model.name, loaded), "base_url": base})
        key = "" if model.api_key is None else model.api_key.get_secret_value()
        _, told = _sent([key, *model.headers.values()])
    for name in model_names(meant, "agents read"):
        yield replace(name, text=f"{name.text}{told}", shown=f"{name.shown}{told}")


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
    replaceable = folder.st_mode & OTHERS_WRITE and not folder.st_mode & stat.S_ISVTX
    return file.st_uid in (0, os.geteuid()) and not file.st_mode & OTHERS_WRITE and not replaceable


def unless_own(path: Path, names: Sequence[Name]) -> Sequence[Name]:
    """The rule without anybody to ask: whoever named a file may edit it, and nobody else."""
    return () if is_own(path) else names
