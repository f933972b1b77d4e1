"""Reaches a client while a call of its runs: questions for its user, and what is logged.

A client of the older protocol is sent each question. One of the newer is answered with all of them, and makes its
request again with the answers; the call waits meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from journeyman.core.data import new_id
from journeyman.core.errors import ToolError

Context = ServerRequestContext[Any, Any]
ANSWER_SECONDS = 300.0
"""How long a person has for an answer where the call waits in this process."""
LEVEL = "journeyman/log-level"
"""Under which a connection's level is kept, where its client has set one."""
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_REQUEST: TypeAdapter[Any] = TypeAdapter(types.InputRequest)
_RESULTS: dict[str, type[Any]] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}


def can_be_asked(ctx: Context, method: str) -> bool:
    """Whether a client has said that it answers such requests."""
    can = ctx.session.client_capabilities
    if can is None:
        return False
    if method != "elicitation/create":
        return (can.sampling if method.startswith("sampling/") else can.roots) is not None
    # Clients of the first version with elicitation knew forms only, and named no kinds.
    return can.elicitation is not None and (can.elicitation.form is not None or can.elicitation.url is None)


class Asking:
    """Whoever has made one call, for as long as it runs."""

    def __init__(self, ctx: Context, *, level: str) -> None:
        self.ctx = ctx
        """Of the latest request about the call."""
        self.asked = asyncio.Event()
        """Set while questions wait for the client's next request."""
        self.question = ""
        self.requests: dict[str, Any] = {}
        self._level = level
        self._one = asyncio.Lock()
        """One question at a time: a client of the newer protocol is told of one."""
        self._answers: asyncio.Future[dict[str, Any]] | None = None
        self._sending: set[asyncio.Task[None]] = set()

    async def ask(self, requests: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """Put questions to the client. Raises ToolError where it takes none of this kind, or nobody answers."""
        for request in requests.values():
            if not can_be_asked(self.ctx, request["method"]):
                why = f"the server asks for {request['method']!r}, which the client does not answer"
                raise ToolError("NOBODY_TO_ASK", why)
        typed = {key: _REQUEST.validate_python(request, by_name=False) for key, request in requests.items()}
        try:
            async with asyncio.timeout(ANSWER_SECONDS), self._one:
                found = await (self._later(typed) if self._modern else self._now(typed))
        except TimeoutError:
            raise ToolError("NO_ANSWER", f"nobody answered the server's question in {ANSWER_SECONDS:g} s") from None
        except MCPError as error:
            raise ToolError("NO_ANSWER", f"the client did not answer the server's question: {error.message}") from None
        finally:
            self.asked.clear()
        return {key: said.model_dump(by_alias=True, mode="json", exclude_none=True) for key, said in found.items()}

    @property
    def _modern(self) -> bool:
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def _now(self, typed: dict[str, Any]) -> dict[str, Any]:
        related = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        return {
            key: await self.ctx.session.send_request(request, _RESULTS[request.method], metadata=related)
            for key, request in typed.items()
        }

    async def _later(self, typed: dict[str, Any]) -> dict[str, Any]:
        self.question, self.requests = new_id("question"), typed
        self._answers = asyncio.get_running_loop().create_future()
        self.asked.set()
        return await self._answers

    def answer(self, question: str, responses: Mapping[str, Any]) -> bool:
        """Take a client's answers to the questions of this name; where some are missing, they stay asked."""
        open_ = self._answers is not None and not self._answers.done() and question == self.question
        if open_ and self._answers is not None and responses.keys() >= self.requests.keys():
            for key, request in self.requests.items():
                if not isinstance(responses[key], _RESULTS[request.method]):
                    raise MCPError(types.INVALID_PARAMS, f"the answer {key!r} does not fit what was asked")
            self.asked.clear()
            self._answers.set_result({key: responses[key] for key in self.requests})
        return open_

    def log(self, level: str, data: Any, logger: str | None) -> None:
        """Pass on what is logged, from the level on that the client has set."""
        if LEVELS.index(level) < LEVELS.index(self._level):
            return
        task = asyncio.ensure_future(self._log(level, data, logger))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _log(self, level: Any, data: Any, logger: str | None) -> None:
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=logger)
        session = self.ctx.session
        if not self._modern or level in session._allowed_log_levels:
            await session._notify(types.LoggingMessageNotification(params=params), request_scoped=True)

    async def drain(self) -> None:
        """Wait until what was logged is sent: it goes before the answer."""
        if self._sending:
            await asyncio.wait(tuple(self._sending), timeout=1.0)
