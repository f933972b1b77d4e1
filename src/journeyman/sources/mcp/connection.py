"""The link to one MCP server: one task owns it from start to end, and starts it again where it breaks.

Cancel scopes must be left by the task that entered them, so nobody but that task opens or closes anything. Requests are
made by whoever needs one, over the session that the owner has put up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from journeyman.core.calls import ToolContext
from journeyman.core.data import LOG_FIELDS, MCP_PAGES, one_line, visible, with_texts
from journeyman.core.errors import ConfigurationError, ErrorCategory, OutcomeUnknownError, Severity, ToolError
from journeyman.sensitive.tokens import redacted
from journeyman.sources.mcp.guard import LOST, UNREACHABLE, UNREADABLE
from journeyman.sources.mcp.http import LOST_WHILE_READ, HttpLink
from journeyman.sources.mcp.stdio import StdioLink
from journeyman.tools.sources import UnusableTool

logger = logging.getLogger("journeyman.mcp")

WAIT_SECONDS = 5.0
"""How long a call waits for a server that is being started again."""
CLOSE_SECONDS = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
STEADY_SECONDS = 30.0
"""A server that was up for so long starts again without much of a pause."""
_LONGEST_ERROR = 2_000
MOST_ROUNDS = 20
"""How often a server may ask for more before it answers one request."""
SAMPLED_TOKENS = 4_096
"""The longest text that a server may ask of a client's model at once."""
_ASKED: dict[str, tuple[str, type[Any]]] = {
    "elicitation/create": ("elicitation", types.ElicitResult),
    "sampling/createMessage": ("sampling", types.CreateMessageResult),
    "roots/list": ("roots", types.ListRootsResult),
}
_LOG_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO, "warning": logging.WARNING}

Link: TypeAlias = StdioLink | HttpLink


def _only_for_developers(record: logging.LogRecord) -> bool:
    return 0 < logging.getLogger(record.name).level <= logging.DEBUG


# The package logs what it cannot read, with its content and as often as a server sends it.
for _name in ("client", "mcp.client.streamable_http"):
    logging.getLogger(_name).addFilter(_only_for_developers)


@dataclass(frozen=True, slots=True)
class _Live:
    """A session that is up, and the link it goes over."""

    session: ClientSession
    link: Link


@dataclass(slots=True, eq=False)
class Connection:
    """Keeps a session with a server up between ``open`` and ``close``."""

    name: str
    where: str
    make_link: Callable[[Callable[[], None]], Link]
    start_seconds: float
    client: types.Implementation
    secrets: tuple[str, ...] = ()
    allowed: frozenset[str] = frozenset()
    """What of ``sampling`` and ``roots`` the operator lets the server ask for."""
    protocol: str | None = None
    """The only version of the protocol to speak; the newest that both know unless given."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """The tools may be others by now, or the server is gone or back."""
    trouble: str | None = None
    """Why the server is not there."""
    listeners: set[Callable[[str, str | None], None]] = field(default_factory=set)
    """Told of changes: ``prompts``, ``resources``, or ``resource`` with its address."""
    subscribed: set[str] = field(default_factory=set)
    _subscriptions: asyncio.Event = field(default_factory=asyncio.Event)
    _under_way: list[ToolContext] = field(default_factory=list)
    _owner: asyncio.Task[None] | None = None
    _live: _Live | None = None
    _up: asyncio.Event = field(default_factory=asyncio.Event)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _restart: asyncio.Event = field(default_factory=asyncio.Event)

    # --- from start to end

    async def open(self) -> None:
        """Start the server. Raises ConfigurationError, which names it and says why it did not start."""
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(started), name=f"MCP server {self.name}")
        try:
            await asyncio.shield(started)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._stop.set()
        if self._owner is None:
            return
        done, _ = await asyncio.wait((self._owner,), timeout=CLOSE_SECONDS)
        if not done:
            self._owner.cancel()
            await asyncio.wait((self._owner,), timeout=CLOSE_SECONDS)
        self._owner = None

    async def _own(self, started: asyncio.Future[None]) -> None:
        pause, loop = FIRST_PAUSE, asyncio.get_running_loop()
        while not self._stop.is_set():
            begun = loop.time()
            try:
                why = await self._one_session(started)
            except Exception as error:  # whoever waits for the start must hear of it, whatever it is
                why = self._masked(f"the MCP server {self.name!r} ({self.where}) cannot be reached: {error}")
            if not started.done():
                started.set_exception(ConfigurationError(why))
                return
            if self._stop.is_set():
                return
            self.trouble = why
            self.changed.set()
            _log(logging.WARNING, "an MCP server is gone and is started again", self.name, pause=round(pause, 1))
            if loop.time() - begun >= STEADY_SECONDS:
                pause = FIRST_PAUSE
            # Several clients of one server must not come back all at once.
            await _first(pause * random.uniform(0.5, 1.0), self._stop)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _one_session(self, started: asyncio.Future[None]) -> str:
        """From start to end; returns why it ended."""
        link = self.make_link(self.changed.set)
        self._restart.clear()
        error: BaseException | None = None
        limit = anyio.CancelScope(deadline=anyio.current_time() + self.start_seconds)
        up = False
        try:
            with limit:
                async with link.connect() as (read, write), self._session(read, write) as session:
                    await _negotiate(session, link.probe_seconds, self.protocol)
                    limit.deadline, up = math.inf, True
                    self._put_up(_Live(session, link), started)
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._follow_changes, session)
                        await _first(None, self._stop, self._restart, link.ended)
                        self._live = None
                        tasks.cancel_scope.cancel()
        except (Exception, BaseExceptionGroup) as caught:
            error = caught
        finally:
            self._live = None
            self._up.clear()
        if limit.cancelled_caught and not up:
            return self._told(f"did not answer within {self.start_seconds:g} s", link)
        return self._told(_reason(error, link), link)

    def _put_up(self, live: _Live, started: asyncio.Future[None]) -> None:
        self._live, self.trouble = live, None
        self._up.set()
        if started.done():
            self.changed.set()  # it may be a newer version that came back
        else:
            started.set_result(None)

    def _session(self, read: Any, write: Any) -> ClientSession:
        # Where the operator does not allow it, sampling and roots are not declared, and refused.
        async def roots(context: Any) -> Any:
            return await self._pass_on("roots/list", None)

        return ClientSession(
            read,
            write,
            client_info=self.client,
            logging_callback=self._log,
            log_level="info",
            message_handler=self._heard,
            elicitation_callback=lambda _, params: self._pass_on("elicitation/create", params),
            sampling_callback=(lambda _, params: self._pass_on("sampling/createMessage", params))
            if "sampling" in self.allowed
            else None,
            list_roots_callback=roots if "roots" in self.allowed else None,
        )

    async def _follow_changes(self, session: ClientSession) -> None:
        """Servers of the newer protocol tell of changes to whoever has asked for it; older ones are asked once."""
        can = session.server_capabilities or types.ServerCapabilities()
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            for uri in sorted(self.subscribed):  # a server that was started again has forgotten them
                with contextlib.suppress(MCPError, ValidationError):
                    await session.send_request(_subscription(uri), types.EmptyResult)
            return
        pause = FIRST_PAUSE
        while True:
            self._subscriptions.clear()
            wanted: dict[str, Any] = {
                "tools_list_changed": bool(can.tools and can.tools.list_changed),
                "prompts_list_changed": bool(can.prompts and can.prompts.list_changed),
                "resources_list_changed": bool(can.resources and can.resources.list_changed),
            }
            if not any(wanted.values()) and not self.subscribed:
                await self._subscriptions.wait()
                continue
            try:
                async with (
                    listen(session, **wanted, resource_subscriptions=sorted(self.subscribed)) as changes,
                    anyio.create_task_group() as tasks,
                ):
                    pause = FIRST_PAUSE
                    tasks.start_soon(self._until_subscribed, tasks.cancel_scope)
                    async for event in changes:
                        self._tell(_KINDS[type(event)], getattr(event, "uri", None))
                    tasks.cancel_scope.cancel()
            except (MCPError, SubscriptionLost, RuntimeError, TimeoutError, BaseExceptionGroup):
                pass
            if self._subscriptions.is_set():
                continue
            await asyncio.sleep(pause)
            self.changed.set()  # whatever has changed meanwhile was not told
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _until_subscribed(self, scope: anyio.CancelScope) -> None:
        await self._subscriptions.wait()
        scope.cancel()

    async def subscribe(self, uri: str, *, wanted: bool = True) -> None:
        """Hear of changes of one resource, or no more."""
        (self.subscribed.add if wanted else self.subscribed.discard)(uri)
        if self.protocol_version in MODERN_PROTOCOL_VERSIONS:
            self._subscriptions.set()
        else:
            await self.request(_subscription(uri, wanted=wanted), types.EmptyResult)

    async def _heard(self, message: Any) -> None:
        if (kind := _KINDS.get(type(message))) is not None:
            self._tell(kind, str(message.params.uri) if kind == "resource" else None)

    def _tell(self, kind: str, uri: str | None) -> None:
        if kind == "tools":
            self.changed.set()
            return
        for listener in tuple(self.listeners):
            listener(kind, uri)

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        fields: dict[str, Any] = {"severity": params.level}
        # What a server says is content: only for whoever has set our loggers to debug.
        if any(0 < each.level <= logging.DEBUG for each in (logger, logging.getLogger("journeyman"))):
            fields["message"] = self._masked(visible(str(params.data)[:500]))
        _log(_LOG_LEVELS.get(params.level, logging.ERROR), "an MCP server logs", self.name, **fields)
        if (context := self._only_caller()) is not None and context.caller is not None:
            data = with_texts(params.data, lambda text: self._masked(visible(text)))
            context.caller.log(
                params.level, data, f"{self.name}.{visible(params.logger[:80])}" if params.logger else self.name
            )

    # --- what a server asks of whoever has made a call

    def _only_caller(self) -> ToolContext | None:
        """Whom a server speaks to. It does not say of which call it speaks, so there must be one caller alone."""
        contexts = [context for context in self._under_way if context.caller is not None]
        return contexts[0] if len({id(context.caller) for context in contexts}) == 1 else None

    async def _pass_on(self, method: str, params: Any) -> Any:
        """A question that a server of the older protocol asks during a call."""
        context = self._only_caller()
        if context is None:
            why = "nobody can be asked: no call is under way, or several are"
            return types.ErrorData(code=types.INVALID_REQUEST, message=why)
        asked = {} if params is None else params.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            # It waits for the answer in the middle of its work: the call cannot be begun again.
            answers = await self._answers({"question": {"method": method, "params": asked}}, context, held=True)
        except ToolError as error:
            return types.ErrorData(code=types.INVALID_REQUEST, message=error.message)
        return _ASKED[method][1].model_validate(answers["question"], by_name=False)

    async def _answers(
        self, asked: Mapping[str, Mapping[str, Any]], context: ToolContext | None, *, held: bool = False
    ) -> Mapping[str, Mapping[str, Any]]:
        """What the caller answers to a server's questions; each is marked as the server's. Raises ToolError."""
        marked: dict[str, Mapping[str, Any]] = {}
        for key, request in asked.items():
            kind, _ = _ASKED[request["method"]]
            if kind != "elicitation" and kind not in self.allowed:
                why = f"the MCP server {self.name!r} asks for {kind}, which the operator does not allow"
                raise ToolError("MCP_INPUT_REFUSED", why, user_guidance=f"'allow: [{kind}]' of the server allows it")
            params = dict(request.get("params") or {})
            if kind == "elicitation":
                params["message"] = f"The MCP server {self.name!r} asks: {self._shown(str(params.get('message', '')))}"
            elif kind == "sampling":
                params["maxTokens"] = min(int(params.get("maxTokens", SAMPLED_TOKENS)), SAMPLED_TOKENS)
            marked[key] = {**request, "params": params} if params else request
        return await (context or ToolContext()).put(marked, held=held)

    async def exchange(
        self,
        request: Any,
        adapter: TypeAdapter[Any],
        context: ToolContext | None,
        *,
        progress: ProgressFnT | None = None,
        once: bool = False,
    ) -> Any:
        """A request and its result, with whatever the server asks in between. Raises as ``request`` does."""
        for _ in range(MOST_ROUNDS):
            with self._serving(context):
                result = await self.request(request, adapter, progress=progress, once=once)
            if not isinstance(result, types.InputRequiredResult):
                return result
            asked = {
                key: item.model_dump(by_alias=True, mode="json", exclude_none=True)
                for key, item in (result.input_requests or {}).items()
            }
            answers = await self._answers(asked, context) if asked else {}
            responses = {key: _ASKED[asked[key]["method"]][1].model_validate(said) for key, said in answers.items()}
            more = {"input_responses": responses or None, "request_state": result.request_state}
            request = request.model_copy(update={"params": request.params.model_copy(update=more)})
        raise ToolError("MCP_INPUT_REQUIRED", f"the MCP server {self.name!r} asked for more {MOST_ROUNDS} times")

    @contextlib.contextmanager
    def _serving(self, context: ToolContext | None) -> Iterator[None]:
        if context is None:
            yield
            return
        self._under_way.append(context)
        try:
            yield
        finally:
            self._under_way.remove(context)

    # --- requests

    @property
    def capabilities(self) -> types.ServerCapabilities:
        live = self._live
        declared = None if live is None else live.session.server_capabilities
        return declared or types.ServerCapabilities()

    @property
    def protocol_version(self) -> str | None:
        return None if self._live is None else self._live.session.protocol_version

    async def list_tools(self, params: types.PaginatedRequestParams) -> Any:
        """One page. The session's own method, which also reads what arguments go into headers.

        It takes all of a page or nothing: where entries are malformed, it is asked for once more and reads the others.
        """
        live = await self._connected()
        return await self._asked(live, self._tools_page(live, params))

    async def _tools_page(self, live: _Live, params: types.PaginatedRequestParams) -> Any:
        guard = live.link.guard
        try:
            return await live.session.list_tools(params=params)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            wrong = {item["loc"][1]: _problem(item, below=2) for item in reversed(problems) if len(item["loc"]) > 1}
            if any(item["loc"][:1] != ("tools",) or item["loc"][1:2] == () for item in problems):
                raise
            guard.leaving_out = wrong.keys()
            page: Any = await live.session.list_tools(params=params)
        finally:
            guard.leaving_out = frozenset()
        for number, item in guard.left_out:
            name = item.get("name") if isinstance(item, dict) else None
            shown = f"{self.name}.{one_line(str(name), most=80)}"
            page.tools.append(UnusableTool(shown, f"malformed: {wrong[number]}"))
        return page

    async def listed(self, field: str, ask: Callable[[Any], Awaitable[Any]], *, most: int) -> tuple[list[Any], str]:
        """The entries of a list, page by page; and why there may be more: ``circle``, ``many``, or empty."""
        entries: list[Any] = []
        seen: set[str | None] = {None}
        cursor = None
        for _ in range(MCP_PAGES):
            page = await ask(types.PaginatedRequestParams(cursor=cursor))
            entries += getattr(page, field)
            cursor = page.next_cursor
            if cursor in seen:
                return entries, "" if cursor is None else "circle"
            seen.add(cursor)
            if len(entries) > most:
                break
        return entries, "many"

    async def request(
        self,
        request: Any,
        adapter: TypeAdapter[Any] | type[Any],
        *,
        progress: ProgressFnT | None = None,
        once: bool = False,
    ) -> Any:
        """Send a request and return its result. Raises ToolError, or OutcomeUnknownError where the server went away.

        One with effects is sent ``once``, whatever the server answers.
        """
        live = await self._connected()
        if once and isinstance(live.link, HttpLink) and live.session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            # A server that was started again has forgotten the session: found out before the effect, not by it.
            with contextlib.suppress(ToolError, OutcomeUnknownError, TimeoutError):
                async with asyncio.timeout(WAIT_SECONDS):
                    await self.request(types.PingRequest(), types.EmptyResult)
            live = await self._connected()
        try:
            return await self._asked(live, live.session.send_request(request, adapter, progress_callback=progress))
        except _SessionEndedError as error:
            self._restart.set()
            if once:
                raise OutcomeUnknownError(f"{error} ended the session during the call; it is not sent again") from None
            await asyncio.sleep(0)
            live = await self._connected(other_than=live)
            return await self._asked(live, live.session.send_request(request, adapter, progress_callback=progress))

    async def _connected(self, other_than: _Live | None = None) -> _Live:
        loop = asyncio.get_running_loop()
        until = loop.time() + WAIT_SECONDS
        while (live := self._live) is None or live is other_than or live.link.ended.is_set():
            if (left := until - loop.time()) <= 0 or self._stop.is_set():
                raise self._unavailable(self.trouble or f"the MCP server {self.name!r} is not connected")
            if live is None:
                await _first(left, self._up, self._stop)
            else:
                await asyncio.sleep(0.01)  # it is about to be taken down
        return live

    async def _asked(self, live: _Live, request: Any) -> Any:
        try:
            return await request
        except MCPError as error:
            raise self._error_of(live, error) from None
        except ValidationError as error:
            raise _answered_badly(
                f"the MCP server {self.name!r} sent a malformed result ({_first_problem(error)})"
            ) from None
        except RuntimeError as error:  # what the package makes of results that break the protocol
            raise _answered_badly(f"the MCP server {self.name!r}: {self._shown(str(error))}") from None

    def _error_of(self, live: _Live, error: MCPError) -> Exception:
        message = error.message
        who = f"the MCP server {self.name!r}"
        if error.code == types.INVALID_REQUEST and message == "Session terminated":
            return _SessionEndedError(who)
        if LOST_WHILE_READ not in message and (
            error.code in (UNREADABLE, types.PARSE_ERROR) or message.startswith("SSE stream failed")
        ):
            return _answered_badly(f"{who} {self._shown(message)}")
        if error.code == LOST or LOST_WHILE_READ in message or _closed(live, error):
            return OutcomeUnknownError(f"{who} {message if error.code == LOST else 'went away'} during the call")
        if error.code == UNREACHABLE:
            return self._unavailable(f"{who} {message}")
        category = ErrorCategory.INVALID_INPUT if error.code == types.INVALID_PARAMS else ErrorCategory.TOOL_ERROR
        return ToolError(
            "MCP_ERROR", f"{who} answered with error {error.code}: {self._shown(message)}", category=category
        )

    def _unavailable(self, message: str) -> ToolError:
        return ToolError(
            "MCP_UNAVAILABLE",
            message,
            True,
            "Try again later, or go on without it",
            category=ErrorCategory.NETWORK,
            severity=Severity.HIGH,
            user_guidance="See what 'journeyman doctor' or the log says of the server; the call was not sent",
        )

    # --- words

    def _told(self, why: str, link: Link) -> str:
        text = f"the MCP server {self.name!r} ({self.where}) {why}"
        if words := link.last_words.decode("utf-8", "replace").strip():
            text += f"; its standard error ends with: {visible(self._masked(words))}"
        return text

    def _shown(self, text: str) -> str:
        """What a server says, for a model or a person."""
        return visible(self._masked(text[:_LONGEST_ERROR]))

    def _masked(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return redacted(text)


class _SessionEndedError(Exception):
    """The server does not know the session any more."""


_KINDS: dict[type[Any], str] = {
    ToolsListChanged: "tools",
    PromptsListChanged: "prompts",
    ResourcesListChanged: "resources",
    ResourceUpdated: "resource",
    types.PromptListChangedNotification: "prompts",
    types.ResourceListChangedNotification: "resources",
    types.ResourceUpdatedNotification: "resource",
}


def _subscription(uri: str, *, wanted: bool = True) -> Any:
    if wanted:
        return types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    return types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))


async def _negotiate(session: ClientSession, probe_seconds: float | None, protocol: str | None) -> None:
    """Agree on a version: the newer protocol where the server knows it, else the older one's handshake."""
    if protocol is not None:
        await (session.discover() if protocol in MODERN_PROTOCOL_VERSIONS else session.initialize())
        return
    slow = False
    try:
        async with asyncio.timeout(probe_seconds):
            await session.discover()
            return
    except TimeoutError:
        slow = True
    except MCPError as error:
        slow = error.code == types.REQUEST_TIMEOUT
    except (ValidationError, RuntimeError):
        pass  # it answers, and does not know the newer one
    try:
        await session.initialize()
    except MCPError as error:
        if not slow and error.code != types.UNSUPPORTED_PROTOCOL_VERSION:
            raise
        await session.discover()  # slow to start, or to sign in: it knows the newer one after all


def _closed(live: _Live, error: MCPError) -> bool:
    """Whether the connection was closed, which a server could also only say."""
    if error.code != types.CONNECTION_CLOSED:
        return False
    return live.link.ended.is_set() or error.message == "Connection closed" or error.message.startswith("SSE stream")


def _first_problem(error: ValidationError) -> str:
    """Where a result is wrong. Not what stands there: that may be anything."""
    return _problem(error.errors(include_url=False, include_context=False, include_input=False)[0])


def _problem(problem: Any, *, below: int = 0) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem["loc"][below:])
    return one_line(f"{place.lstrip('.')}: {problem['msg']}", most=200)


def _answered_badly(message: str) -> ToolError:
    return ToolError(
        "MCP_BAD_ANSWER",
        message,
        recover_action="Do not repeat the call: it has run. Go on without its result",
        severity=Severity.HIGH,
        user_guidance="The server breaks the protocol; tell whoever maintains it",
    )


def _reason(error: BaseException | None, link: Link) -> str:
    """Why a session ended, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if link.fault is not None:
        return link.fault
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return f"cannot be started: there is no such command or folder ({error.filename!r})"
        case OSError():
            return f"cannot be started: {error.strerror or type(error).__name__}"
        case MCPError() if error.code != types.CONNECTION_CLOSED:
            return f"refused to begin: {visible(error.message[:_LONGEST_ERROR])}"
        case MCPError() | None if link.exit_code is not None:
            return f"ended with exit code {link.exit_code}"
        case MCPError() | None:
            return "closed the connection"
        case ValidationError():
            return "sent a malformed answer"
        case _:
            return f"failed: {type(error).__name__}: {visible(str(error)[:300])}"


async def _first(seconds: float | None, *events: asyncio.Event) -> None:
    """Return when one of the events is set, or after so many seconds."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _log(level: int, message: str, server: str, **fields: Any) -> None:
    logger.log(level, message, extra={LOG_FIELDS: {"source": server, **fields}})
