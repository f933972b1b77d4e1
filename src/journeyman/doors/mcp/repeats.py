"""Calls that a client makes again, and the runs that they have begun.

A call is noted before it begins and forgotten with its answer. Where its gateway dies in between, its client goes away,
or a person must decide first, the same call made again is answered by the run that it has begun, not by a second one.
What only reads is noted when it waits: to make it again does no harm. A client that names its calls (``KEY``) needs no
notes: of two calls with one name the second never begins a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from journeyman.app.desk import ConflictError, Desk
from journeyman.app.runner import ALIVE_SECONDS
from journeyman.core.data import canonical_json, digest, new_id
from journeyman.core.storing import NotedRequest, RunOrder

DOOR = "mcp"
KEY = "journeyman/idempotency-key"
"""Under which a client names a call, in its ``_meta``."""
LONGEST_KEY = 200
Steps = Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Link:
    """Between a call and its run."""

    desk: Desk
    run_id: str
    begun: bool
    digest: str | None
    """Under which it is noted; None where its client has named it."""
    noted: bool = False

    @property
    def named(self) -> bool:
        return self.digest is None

    def metadata(self) -> dict[str, Any]:
        """What its run remembers of where it came from."""
        return {DOOR: {"gateway": self.desk.app.runner.factory.owner}}

    async def note(self, *, unanswered: bool) -> None:
        """Let the same call find the run: at once where it was told to ask again, else if this process dies."""
        if self.digest is not None:
            now = self.desk.app.clock.time()
            request = NotedRequest(digest=self.digest, run_id=self.run_id, asked_at=now, unanswered=unanswered)
            await self.desk.app.store.requests.note(request)
            self.noted = True

    async def forget(self) -> None:
        """Its client has its answer: the same call is a new one."""
        if self.digest is not None and self.noted:
            await self.desk.app.store.requests.forget(self.digest, self.run_id)


class Repeats:
    """Finds the run that a call has begun before."""

    def __init__(self) -> None:
        self.answering: set[str] = set()
        """Runs that somebody here is about to be told of: the same call beside that one is another call."""

    async def link(self, desk: Desk, steps: Steps, params: types.CallToolRequestParams) -> Link:
        """The run that answers a call: one that it has begun before, or a new one, which is not begun here."""
        key = (params.meta or {}).get(KEY)
        if key is not None:
            return await self._named(desk, steps, key)
        mark = digest(DOOR, desk.principal.id, canonical_json(steps))
        if params.request_state is not None:
            run_id = params.request_state.partition(" ")[0]
            order = await desk.app.store.runs.order(run_id)
            if order is None or not _same(order, desk, steps):
                raise MCPError(types.INVALID_PARAMS, "the request state belongs to another call")
            return Link(desk, run_id, begun=True, digest=mark, noted=True)
        noted = await desk.app.store.requests.find(mark)
        if noted is not None and await self._open(desk, noted, steps):
            return Link(desk, noted.run_id, begun=True, digest=mark, noted=True)
        return Link(desk, new_id("run"), begun=False, digest=mark)

    async def _named(self, desk: Desk, steps: Steps, key: Any) -> Link:
        if not isinstance(key, str) or not 1 <= len(key) <= LONGEST_KEY:
            raise MCPError(types.INVALID_PARAMS, f"{KEY!r} must be a text of 1 to {LONGEST_KEY} characters")
        run_id = desk.run_id_for(DOOR, key)
        assert run_id is not None
        try:
            order = await desk.begun_before(run_id, same=lambda order: _same(order, desk, steps))
        except ConflictError:
            raise MCPError(types.INVALID_PARAMS, f"the {KEY!r} belongs to another call; use a new one") from None
        return Link(desk, run_id, begun=order is not None, digest=None)

    async def _open(self, desk: Desk, noted: NotedRequest, steps: Steps) -> bool:
        """Whether a noted call has no answer yet, and nobody is about to get it."""
        if noted.run_id in self.answering:
            return False
        order = await desk.app.store.runs.order(noted.run_id)
        if order is None or not _same(order, desk, steps):
            return False
        if noted.unanswered:
            return True
        gateway = order.task.metadata.get(DOOR, {}).get("gateway")
        return gateway is None or await desk.app.runner.claims.gone(gateway, silent_seconds=ALIVE_SECONDS)


def _same(order: RunOrder, desk: Desk, steps: Steps) -> bool:
    """Whether a run was ordered by this principal and is exactly this call."""
    if order.principal_id != desk.principal.id or not order.chain or len(order.chain) != len(steps):
        return False
    return all(
        step.tool == mine["tool"] and step.args == mine["args"] for step, mine in zip(order.chain, steps, strict=True)
    )
