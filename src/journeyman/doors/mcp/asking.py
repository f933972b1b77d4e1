"""Reaches a client while a call of its runs: questions for its user, and what is logged.

A client of the older protocol is sent each question. One of the newer is answered with all of them, and makes its
request again with the answers, or looks after a task and brings them there; the call waits meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from journeyman.core.data import new_id
from journeyman.core.errors import ToolError

Context = ServerRequestContext[Any, Any]
ANSWER_SECONDS = 300.0
"""How long a person has for an answer where the call waits in this process."""
TASK_ANSWER_SECONDS = 86_400.0
"""The same where the client looks after a task."""
LEVEL = "journeyman/log-level"
"""Under which a connection's level is kept, where its client has set one."""
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_REQUEST: TypeAdapter[Any] = TypeAdapter(types.InputRequest)
_RESULTS: dict[str, type[Any]] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}


def answered_by(ctx: Context) -> list[str]:
    """The kinds of questions that a client has said it answers."""
    can = ctx.session.client_capabilities
    if can is None:
        return []
    # Clients of the first version with elicitation knew forms only, and named no kinds.
    forms = can.elicitation is not None and (can.elicitation.form is not None or can.elicitation.url is None)
    there = {"elicitation": forms, "sampling": can.sampling is not None, "roots": can.roots is not None}
    return [method for method in _RESULTS if there[method.partition("/")[0]]]


def missing_capability(capabilities: Mapping[str, Any], why: str) -> MCPError:
    """What a client is told that has not said that it can what is needed."""
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, why, data={"requiredCapabilities": dict(capabilities)})


class Asking:
    """Whoever has made one call, for as long as it runs; without ``ctx``, somebody who may come back for it.

    Questions wait here until a request of theirs takes them to their program and brings the answers.
    """

    def __init__(self, ctx: Context | None, *, answers: Sequence[str], level: str = "emergency") -> None:
        self.ctx = ctx
        """Of the latest request about the call."""
        self.asked = asyncio.Event()
        """Set while questions wait."""
        self.question = ""
        self.requests: dict[str, Any] = {}
        """Those that have no answer yet."""
        self.task = False
        """Whether the client was told to look after the call as a task; then there is more time."""
        self.missing: dict[str, Any] = {}
        """What the client would have to be capable of."""
        self._methods, self._level = answers, level
        self._one = asyncio.Lock()
        """One set of questions at a time."""
        self._answers: dict[str, Any] = {}
        self._done, self._failed = asyncio.Event(), ""
        self._sending: set[asyncio.Task[None]] = set()

    async def ask(self, requests: Mapping[str, Mapping[str, Any]], *, held: bool) -> Mapping[str, Mapping[str, Any]]:
        """Put questions to the client. Raises ToolError where it takes none of this kind, or nobody answers."""
        for request in requests.values():
            if request["method"] not in self._methods:
                self.missing = {request["method"].partition("/")[0]: {}}
                why = f"the server asks for {request['method']!r}, which the client does not answer"
                raise ToolError("NOBODY_TO_ASK", why)
        seconds = TASK_ANSWER_SECONDS if self.task else ANSWER_SECONDS
        try:
            async with asyncio.timeout(seconds), self._one:
                self.question, self._answers, self._failed = new_id("question"), {}, ""
                self._done.clear()
                self.requests = {key: _REQUEST.validate_python(each, by_name=False) for key, each in requests.items()}
                self.asked.set()
                await self._done.wait()
                answers = self._answers
        except TimeoutError:
            raise ToolError("NO_ANSWER", f"nobody answered the server's question in {seconds:g} s") from None
        finally:
            self.asked.clear()
        if self._failed:
            raise ToolError("NO_ANSWER", f"the client did not answer the server's question: {self._failed}")
        return {key: each.model_dump(by_alias=True, mode="json", exclude_none=True) for key, each in answers.items()}

    async def put(self) -> None:
        """Send the questions to a client of the older protocol, and take its answers. One that is gone gives none."""
        assert self.ctx is not None
        ctx, question = self.ctx, self.question
        related = ServerMessageMetadata(related_request_id=ctx.request_id)
        try:
            for key, request in tuple(self.requests.items()):
                said = await ctx.session.send_request(request, _RESULTS[request.method], metadata=related)
                if question == self.question:
                    self.answer({key: said})
        except MCPError as error:
            if question == self.question and ctx is self.ctx:
                self._failed = error.message or "it failed"
                self._end()

    def answer(self, responses: Mapping[str, Any]) -> None:
        """Take a client's answers; what has none yet stays asked. Raises MCPError where one does not fit."""
        for key in self.requests.keys() & responses.keys():
            kind, given = _RESULTS[self.requests[key].method], responses[key]
            try:
                said = given if isinstance(given, kind) else kind.model_validate(given, by_name=False)
            except ValidationError:
                raise MCPError(types.INVALID_PARAMS, f"the answer {key!r} does not fit what was asked") from None
            self._answers[key] = said
            del self.requests[key]
        if self.asked.is_set() and not self.requests:
            self._end()

    def _end(self) -> None:
        self.asked.clear()
        self._done.set()

    def log(self, level: str, data: Any, logger: str | None) -> None:
        """Pass on what is logged, from the level on that the client has set."""
        if LEVELS.index(level) < LEVELS.index(self._level) or self.ctx is None:
            return
        task = asyncio.ensure_future(self._log(self.ctx, level, data, logger))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _log(self, ctx: Context, level: Any, data: Any, logger: str | None) -> None:
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=logger)
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or level in ctx.session._allowed_log_levels:
            with suppress(Exception):  # it is gone
                await ctx.session._notify(types.LoggingMessageNotification(params=params), request_scoped=True)

    async def drain(self) -> None:
        """Wait until what was logged is sent: it goes before the answer."""
        if self._sending:
            await asyncio.wait(tuple(self._sending), timeout=1.0)
