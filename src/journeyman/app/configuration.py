"""A configuration file at work: the library, the rules and the sources it describes, and what an edit changes.

An edit is read, checked and made ready beside what holds; then all of it takes effect in one moment, in which nothing
is waited for. Runs look at their tools and rules before each step, so no call sees half of an edit. What cannot be
used changes nothing, and is kept to be shown.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from journeyman.app.assembly import Rules
from journeyman.app.config_tools import ConfiguredTools, NamedTools, Toolkit, find_tools
from journeyman.app.finding import add_configured
from journeyman.app.trust import Name, NameGate, names_in, reasons, unless_own
from journeyman.core.audit import CONFIGURATION_CHANGED
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ConfigurationError, problem_text, validation_problems
from journeyman.core.gaps import IntentType, remove_intent_type
from journeyman.core.policy import BreakerRule, Policy, RiskLevel
from journeyman.core.runs import Limits
from journeyman.core.specification import Environment
from journeyman.settings.document import Document
from journeyman.settings.problems import Key, Problem, SettingsError
from journeyman.settings.reading import FILE_NAME, FILE_VARIABLE, Loaded, examine, find_file, in_order, read_bytes
from journeyman.settings.schema import RESTART, VERSION, McpServer, OpenApi, Runs, Settings
from journeyman.settings.watching import contents
from journeyman.tools.library import ToolLibrary

if TYPE_CHECKING:
    from journeyman.app.assembly import Shared
    from journeyman.stores.store import SqlStore
    from journeyman.tools.sources import SourceProblem, ToolSource

logger = logging.getLogger("journeyman.settings")

SLACK_VARIABLE = "SLACK_API_URL"
"""Another server than slack.com, for tests."""
_ALL = 2**31
AGAIN_SECONDS = 5.0
"""After a fault in watching."""
AGREED_SECONDS = 1.0
"""How often it is looked whether a person has agreed to an edit that was held back."""


class _NotAgreedError(SettingsError):
    """An edit names code, programs or addresses that nobody has agreed to."""


class Configuration:
    """What a file says, as it holds now. ``library`` follows its edits while it is watched."""

    def __init__(
        self,
        path: Path | str,
        *,
        data: bytes | None = None,
        options: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        database: SqlStore | None = None,
        gate: NameGate = unless_own,
        confirmed_by: str = "a restart",
        watched: bool = True,
    ) -> None:
        """Read and check a file, tools included. Raises SettingsError with every problem.

        Whoever makes it has agreed to what the file names now, or in ``data``, which was read of it. What an edit names
        besides passes ``gate``; ``confirmed_by`` says how a person agrees to what that refuses.
        """
        self.path = Path(path)
        self._gate, self._confirmed_by = gate, confirmed_by
        self._agreed: set[Name] | None = None
        self._held_back: bytes | None = None
        """An edit that names what nobody has agreed to yet."""
        self._taking = asyncio.Lock()
        self._options, self._environ = dict(options or {}), environ
        self._database = database
        self._tasks: ToolLibrary | None = None
        self._slack: ToolLibrary | None = None
        loaded, named = self._checked(read_bytes(self.path) if data is None else data)
        self.loaded = self._started = loaded
        self._agreed = set(names_in(loaded))
        self.rules = rules_of(loaded)
        self.problems: tuple[Problem, ...] = named.later
        """What of the file as it is now does not hold: all of it, where what holds is an earlier one."""
        self.restart_needed: tuple[str, ...] = ()
        """Sections that were edited and hold only from the next start on."""
        self._imported = ToolLibrary(named.tools)
        self._sources = {name: _source(name, item, loaded) for name, item in _servers(loaded).items()}
        self._served = ToolLibrary(sources=self._sources.values(), tolerant=True)
        self._configured = ConfiguredTools(loaded.settings, self._served)
        self._views: dict[ToolLibrary, ToolLibrary] = {}
        """Libraries under the file's rules, and as they are without."""
        self._elsewhere: dict[tuple[ToolLibrary, Environment], tuple[ConfiguredTools, ToolLibrary]] = {}
        self._rules_elsewhere: dict[Environment, Rules] = {}
        self.library = self.governing(ToolLibrary())
        self._watching: asyncio.Future[Any] | None = None
        self._intents: list[IntentType] = []
        self._watched = watched
        self._shared: Shared | None = None
        self._audited: dict[str, Any] | None = None

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def database(self) -> SqlStore:
        """The store that the file names; not opened yet."""
        return self._store_of(self.loaded)

    def _store_of(self, loaded: Loaded) -> SqlStore:
        if self._database is None:
            from journeyman.stores.store import open_store

            self._database = open_store(loaded.secret(loaded.settings.store))
        return self._database

    @property
    def uses_store(self) -> bool:
        """Whether tools work on the store itself."""
        return self._tasks is not None

    def governing(self, library: ToolLibrary) -> ToolLibrary:
        """A library's tools with those of the file, all of them under its rules; follows edits as ``library`` does."""
        plain = library | self._served | self._imported
        view = plain.mapped(self._configured)
        self._views[view] = plain
        return view

    def in_environment(self, library: ToolLibrary, rules: Rules, environment: Environment) -> tuple[ToolLibrary, Rules]:
        """A library that this file governs, and its rules, with what the file says of another environment than its own.

        For tasks that name theirs. What the file does not govern stays as it is.
        """
        if environment == self.settings.environment:
            return library, rules
        if rules is self.rules:
            if environment not in self._rules_elsewhere:
                self._rules_elsewhere[environment] = rules_of(self.loaded, environment)
            rules = self._rules_elsewhere[environment]
        if (plain := self._views.get(library)) is None:
            return library, rules
        if (kept := self._elsewhere.get((library, environment))) is None:
            configured = ConfiguredTools(self.settings.elsewhere(environment), self._served)
            kept = self._elsewhere[library, environment] = configured, plain.mapped(configured)
        return kept[1], rules

    def server_problems(self) -> list[Problem]:
        """What is wrong with servers as they are now, and with what the file says of their tools."""
        self._configured.compare()
        found = [
            self.loaded.problem(_reached_by(self.settings, problem), problem.message)
            for problem in self._served.problems()
        ]
        wrong = self._configured.wrong
        found += [
            self.loaded.problem(key, f"{why}; until it is mended, the tools of {server!r} are off")
            for server, problems in wrong.items()
            for key, why in problems
        ]
        return in_order(self.loaded, found)

    # --- reading

    def _checked(self, data: bytes) -> tuple[Loaded, NamedTools]:
        loaded, problems = examine(self.path, environ=self._environ, options=self._options, data=data)
        if loaded is None:
            raise SettingsError(problems)
        if not any(problem.key == "store" for problem in problems):
            try:
                self._store_of(loaded)
            except ConfigurationError as error:
                problems.append(loaded.problem(("store",), str(error)))
        if not any(problem.key.startswith(("mcp", "openapi")) for problem in problems):
            for name, server in _servers(loaded).items():
                try:
                    _source(name, server, loaded)
                except SettingsError as error:
                    problems += error.problems
        if new := self._not_agreed(loaded):  # before anything of it is imported
            raise _NotAgreedError(
                [
                    Problem(
                        str(self.path),
                        "",
                        f"it now {'; '.join(reasons(new))}; nobody has agreed to that: {self._confirmed_by}",
                    )
                ]
            )
        named = find_tools(loaded, self._toolkits(loaded))
        if problems or named.problems:
            raise SettingsError(in_order(loaded, [*problems, *named.problems]))
        return loaded, named

    def _not_agreed(self, loaded: Loaded) -> list[Name]:
        if self._agreed is None:
            return []
        new = [name for name in names_in(loaded) if name not in self._agreed]
        refused = self._gate(self.path, new) if new else ()
        # Whose file it is says nothing of what another one held, which stood there before it.
        stale = new and not refused and read_bytes(self.path) != loaded.document.source
        return list(new if stale else refused)

    def _toolkits(self, loaded: Loaded) -> dict[str, Toolkit]:
        from journeyman.app.service import hello_library, local_library

        folder = loaded.path.absolute().parent
        return {
            "tasks": self._task_tools,
            "local": lambda: local_library(folder),
            "hello": hello_library,
            "slack": lambda: self._slack_tools(loaded),
        }

    def _task_tools(self) -> ToolLibrary:
        """Made once: the store stays, and tools that stay the same objects are not offered anew."""
        from journeyman.app.service import task_library
        from journeyman.stores.store import open_store

        if self._tasks is None:
            # Where what the file says of the store is wrong, the tools are only looked at.
            self._tasks = task_library(self._database or open_store("sqlite:///journeyman.db"))
        return self._tasks

    def _slack_tools(self, loaded: Loaded) -> ToolLibrary:
        """Made once, too."""
        from journeyman.app.service import slack_library, slack_pace

        if self._slack is None:
            address = (os.environ if self._environ is None else self._environ).get(SLACK_VARIABLE)
            limits = loaded.settings.doors.slack.limits
            pace = None if self._database is None else slack_pace(self._database, limits)
            self._slack = slack_library(base_url=address, pace=pace)
        return self._slack

    # --- following the file

    async def watch(self, shared: Shared) -> None:
        """Take over edits from now on: the rules of an edit hold for the next step of every run.

        Which version holds is written into the audit: the one of now, and each that takes effect later.
        """
        self._shared = shared
        self._take_intents(self.settings)
        await self._audit()
        if self._watched:
            self._watching = asyncio.gather(self._watch_file(), self._try_again())

    async def _audit(self) -> None:
        """Which version of the file holds is in the audit whenever that has changed."""
        if self._shared is None:
            return
        audit, subject, account = self._shared.store.audit, str(self.path.absolute()), self.account()
        if self._audited is None:
            known = await audit.list(kind=CONFIGURATION_CHANGED, limit=_ALL)
            self._audited = next((row.details for row in reversed(known) if row.subject == subject), None)
        if self._audited != account:
            self._audited, now = account, self._shared.clock.time()
            await audit.append(
                CONFIGURATION_CHANGED, actor=None, run_id=None, subject=subject, details=account, now=now
            )

    async def close(self) -> None:
        self._take_intents(None)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    def _take_intents(self, settings: Settings | None) -> None:
        """The types of requests that the file names hold while it does."""
        for kind in self._intents:
            remove_intent_type(kind)
        self._intents = [] if settings is None else add_configured(settings)

    async def _watch_file(self) -> None:
        last: bytes | None = self.loaded.document.source
        while True:
            try:
                async for data in contents(self.path.absolute(), last):
                    last = data
                    await self.take_over(data)
            except Exception:
                logger.exception("the configuration file could not be watched; tried again")
            await asyncio.sleep(AGAIN_SECONDS)

    async def _try_again(self) -> None:
        """Take over an edit that was held back, soon after a person has agreed to it."""
        while True:
            await asyncio.sleep(AGREED_SECONDS)
            if (data := self._held_back) is not None:
                with suppress(Exception):  # whatever it is, it is told when the edit is looked at the next time
                    loaded, _ = await asyncio.to_thread(
                        examine, self.path, environ=self._environ, options=self._options, data=data
                    )
                    if loaded is not None and not self._not_agreed(loaded) and data is self._held_back:
                        await self.take_over(data)

    async def take_over(self, data: bytes | None) -> bool:
        """Let what the file holds now take effect; False where it cannot, and everything stays as it was."""
        async with self._taking:
            return await self._take_over(data)

    async def _take_over(self, data: bytes | None) -> bool:
        self._held_back = None
        if data is None:
            return self._refuse([Problem(str(self.path), "", "the file is gone; what it said last still holds")])
        try:
            # Modules are imported: their code may take its time.
            loaded, named = await asyncio.to_thread(self._checked, data)
            wanted, present = _servers(loaded), _servers(self.loaded)
            gone = [name for name in present if wanted.get(name) != present[name]]
            new = {name: _source(name, wanted[name], loaded) for name in wanted if present.get(name) != wanted[name]}
            rules = rules_of(loaded)
        except SettingsError as error:
            self._held_back = data if isinstance(error, _NotAgreedError) else None
            return self._refuse(error.problems)
        except Exception as error:  # a module's code can raise anything
            return self._refuse([Problem(str(self.path), "", f"{type(error).__name__}: {error}")])

        def take_effect() -> None:
            self._imported.reset(named.tools)
            self._configured.settings = loaded.settings
            for (_, environment), (configured, _) in self._elsewhere.items():
                configured.settings = loaded.settings.elsewhere(environment)
            for view in (*self._views, *(view for _, view in self._elsewhere.values())):
                view.refresh()
            self._rules_elsewhere.clear()
            self.loaded, self.rules = loaded, rules
            self._agreed = {*(self._agreed or ()), *names_in(loaded)}
            self._take_intents(loaded.settings)
            self._sources = {name: item for name, item in self._sources.items() if name not in gone} | new
            if self._shared is not None:
                self._shared.rules = rules

        removed = [self._sources[name] for name in gone]
        try:
            await self._served.exchange_sources(added=new.values(), removed=removed, and_then=take_effect)
        except ConfigurationError as error:
            return self._refuse([Problem(loaded.place(("mcp",)), "mcp", str(error))])
        self._note(named.later)
        await self._audit()
        return True

    def _refuse(self, problems: Any) -> bool:
        self.problems = tuple(problems)
        logger.warning(
            "the configuration was edited and cannot be used; what held before still holds:\n%s",
            "\n".join(map(str, self.problems)),
            extra={LOG_FIELDS: {"file": str(self.path), "problems": len(self.problems)}},
        )
        return False

    def _note(self, later: tuple[Problem, ...]) -> None:
        self.problems = later
        before, now = self._started.settings, self.settings
        self.restart_needed = tuple(name for name in RESTART if getattr(before, name) != getattr(now, name))
        logger.info(
            "the configuration was edited and holds from the next step on",
            extra={LOG_FIELDS: {"file": str(self.path), "digest": self.loaded.digest}},
        )
        for problem in later:
            logger.warning("not taken over: %s", problem)
        if self.restart_needed:
            sections = ", ".join(self.restart_needed)
            logger.warning("edited in the configuration, and taken over only by a restart: %s", sections)

    def account(self) -> dict[str, Any]:
        """What holds, for the audit: which version of the file, and the names of what it brings."""
        return {
            "digest": self.loaded.digest,
            "environment": self.settings.environment,
            "tools": sorted(self.settings.tools),
            "mcp": sorted(_servers(self.loaded)),
        }

    def status(self) -> dict[str, Any]:
        """How the file stands, for whoever watches a service."""
        return {
            "file": str(self.path),
            "digest": self.loaded.digest,
            "environment": self.settings.environment,
            "problems": [str(problem) for problem in (*self.problems, *self.server_problems())],
            "restart_needed": list(self.restart_needed),
        }


# --- what settings mean


def found_file(path: Path | str | None) -> Path:
    """The configuration file. Raises ConfigurationError where none is named and none is here."""
    file = find_file(path)
    if file is None:
        raise ConfigurationError(
            f"there is no {FILE_NAME} in {str(Path.cwd())!r}, and neither --config nor {FILE_VARIABLE} names one; "
            "'journeyman init' writes one"
        )
    return file


def operation_of(runs: Runs) -> dict[str, Any]:
    """How runs are worked on, as ``Journeyman`` takes it."""
    given: dict[str, Any] = {
        "principal_concurrency": runs.principal_concurrency,
        "lease_seconds": runs.lease,
        "grace_seconds": runs.grace,
    }
    if runs.concurrency is not None:
        given["concurrency"] = runs.concurrency
    if runs.retention is not None:
        given["retention_seconds"] = None if math.isinf(runs.retention) else runs.retention
    return given


def rules_of(loaded: Loaded, environment: Environment | None = None) -> Rules:
    """The rules that settings amount to, in their environment or another one."""
    settings = loaded.settings if environment is None else loaded.settings.elsewhere(environment)
    policy, approvals, limits = settings.policy, settings.approvals, settings.limits
    here = {name: item.in_environment(settings.environment) for name, item in settings.tools.items()}
    tools = {item.rename or name: item for name, item in here.items()}
    breaker = BreakerRule(
        failures=policy.breaker.failures, rest_seconds=policy.breaker.rest, probes=policy.breaker.probes
    )
    same = {name: value for name, value in (*policy, *approvals) if name in Policy.model_fields}
    same["breaker"] = breaker if policy.breaker.enabled else None
    model = settings.model
    return Rules(
        policy=Policy(
            **same,
            least_risks={name: item.risk for name, item in tools.items() if item.risk is not None},
            approval_confidence=policy.confidence,
            approval_seconds=approvals.expire_in_process,
            stored_approval_seconds=approvals.expire_after,
            grant_risk=None if approvals.grants.risk == "none" else RiskLevel(approvals.grants.risk),
            grant_uses=approvals.grants.uses,
            grant_seconds=approvals.grants.for_,
            rate_limits={name: item.rate_limit for name, item in tools.items() if item.rate_limit},
            category_rate_limits={
                name: item.rate_limit for name, item in settings.categories.items() if item.rate_limit
            },
            principal_rate_limit=limits.calls_per_principal,
            principal_rate_limits=limits.principals,
            overall_rate_limit=limits.calls,
            wait_seconds=policy.wait,
            retry_backoff_seconds=policy.retry_backoff,
        ),
        limits=Limits(**{name: value for name, value in limits if name in Limits.model_fields and value is not None}),
        model=None if model is None else lambda: loaded.model(model),
    )


def _reached_by(settings: Settings, problem: SourceProblem) -> Key:
    """The key to mend where a source cannot be reached; the whole of it where one of its tools is the problem."""
    where = (settings.section(problem.source), problem.source)
    server = settings.sources[problem.source]
    if isinstance(server, OpenApi):  # which compares these with its document itself
        schemes = server.auth if isinstance(server.auth, dict) else {}
        said: list[tuple[str, str | int, str]] = [("auth", name, repr(name)) for name in schemes]
        said += [("only", number, f"'only' names {name!r}") for number, name in enumerate(server.only or ())]
        for part, step, told in said:
            if told in problem.message:
                return (*where, part, step)
        return where if problem.tool is not None else (*where, "document")
    if problem.tool is not None:
        return where
    if server.cwd is not None and not Path(server.cwd).is_dir():
        return (*where, "cwd")
    return (*where, "command" if server.command is not None else "url")


def _servers(loaded: Loaded) -> dict[str, McpServer | OpenApi]:
    return {name: item for name, item in loaded.settings.sources.items() if item.enabled}


def source_of(section: str, name: str, entry: Mapping[str, Any], path: Path) -> ToolSource:
    """The source that an entry of a file would be. An API may leave it to its document where it is called."""
    given = {"start": 60.0, **entry} if section == "mcp" else {"base_url": "-", **entry}
    try:
        settings = Settings.model_validate({"version": VERSION, section: {name: given}})
    except ValidationError as error:
        raise ConfigurationError(f"{name}: {problem_text(validation_problems(error))}") from None
    server = settings.sources[name]
    if isinstance(server, OpenApi) and "base_url" not in entry:
        server = server.model_copy(update={"base_url": ""})
    return _source(name, server, Loaded(path=path, settings=settings, document=Document(), environ=os.environ))


SERVED_VARIABLE = "JOURNEYMAN_SERVERS_OF"
"""Handed down to servers that are started: the files that name them, and those that name whoever reads these."""
_ABOVE = frozenset(filter(None, os.environ.get(SERVED_VARIABLE, "").split(os.pathsep)))


def sign_in_file(path: Path, server: str) -> Path:
    """Where the tokens of somebody who has signed in to a server are kept."""
    return path.absolute().parent / ".journeyman-secrets" / f"{server}.oauth.json"


async def sign_in(name: str, loaded: Loaded, show: Callable[[str], None]) -> int:
    """Let a person sign in to a server with a browser; how many tools it has then. Raises ConfigurationError."""
    server = loaded.settings.mcp.get(name)
    if server is None or server.oauth is None or not server.oauth.sign_in:
        raise ConfigurationError(f"{loaded.path}: no server {name!r} under 'mcp' has 'oauth: {{sign_in: true}}'")
    from journeyman.sources import McpServer as Source
    from journeyman.sources.mcp.signing import SIGN_IN_SECONDS, signing_in

    url = loaded.secret(server.url or "")
    async with signing_in(url, sign_in_file(loaded.path, name), show) as auth:
        source = Source(name=name, url=url, auth=auth, start_seconds=SIGN_IN_SECONDS)
        async with ToolLibrary(sources=[source]) as tools:
            return len(tools)


def _source(name: str, server: McpServer | OpenApi, loaded: Loaded) -> ToolSource:
    """A source's tools. Its secrets are looked up here, where it is about to be reached."""
    from journeyman import sources

    given: dict[str, Any] = {key: getattr(server, key) for key in ("timeout_seconds", "permissions", "only")}
    given |= {"name": name, "category": server.category or name, "cache_seconds": server.cache}
    section = loaded.settings.section(name)
    try:
        if isinstance(server, OpenApi):
            document = loaded.secret(server.document)
            at = document if "://" in document else loaded.path.absolute().parent / document
            given |= {
                "base_url": loaded.secret(server.base_url) or None,
                "auth": server.auth,
                "headers": server.headers,
            }
            return sources.OpenApi(at, look_up=loaded.secret, **given)
        return sources.McpServer(**given, **_mcp_options(name, server, loaded))
    except ConfigurationError as error:
        part = next((part for part in ("url", "base_url") if f"the {part}" in str(error)), None)
        key = (section, name) if part is None else (section, name, part)
        raise SettingsError([loaded.problem(key, str(error))]) from None


def _mcp_options(name: str, server: McpServer, loaded: Loaded) -> dict[str, Any]:
    same = ("trust_annotations", "resources", "prompts", "allow", "protocol")
    given: dict[str, Any] = {key: getattr(server, key) for key in same} | {"start_seconds": server.start}
    if server.command is not None:
        if (own := str(loaded.path.absolute())) in _ABOVE:
            raise ConfigurationError(
                "it is started by a program that reads this very file, and would start itself without end: "
                "give the inner program a file of its own with --config, or another folder with 'cwd'"
            )
        os.environ[SERVED_VARIABLE] = os.pathsep.join((*sorted(_ABOVE), own))
        given |= {"command": list(server.command), "cwd": server.cwd}
        if server.env:
            given["env"] = {variable: loaded.secret(text) for variable, text in server.env.items()}
    else:
        given["url"] = loaded.secret(server.url or "")
        if server.headers:
            given["headers"] = {header: loaded.secret(text) for header, text in server.headers.items()}
        if server.oauth is not None:
            said = server.oauth.model_dump(exclude_none=True, exclude={"sign_in"})
            said |= {name: loaded.secret(said[name]) for name in ("client_id", "client_secret") if name in said}
            given["oauth"] = {"file": sign_in_file(loaded.path, name)} if server.oauth.sign_in else said
    return given
