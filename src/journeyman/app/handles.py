"""What a caller holds: a handle on one run, a session of several. Both are names; everything is in the store."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from journeyman.agent.ending import response
from journeyman.agent.state import RunState
from journeyman.app.owners import dead
from journeyman.app.settling import settle
from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import Event
from journeyman.core.messages import Message
from journeyman.core.runs import AgentResponse, RunStatus, TaskInput

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent
    from journeyman.app.journeyman import Journeyman
    from journeyman.core.principals import Principal
    from journeyman.core.runs import Limits

_POLL_SECONDS = 0.25
"""How often a run that another process works on is looked at."""


class Handle:
    """One run of the store, wherever it is worked on."""

    def __init__(self, app: Journeyman, run_id: str) -> None:
        self._app = app
        self.run_id = run_id

    def __repr__(self) -> str:
        return f"<Handle {self.run_id!r}>"

    async def status(self) -> RunStatus:
        """Where the run stands now."""
        row = await self._app.store.runs.get(self.run_id)
        if row is None:
            raise ConfigurationError(f"there is no run {self.run_id!r}: it was never started, or purged since")
        return row.status

    async def wait(self) -> RunStatus:
        """Return when the run has ended or needs a person."""
        watch = self._app.watch(self.run_id)
        try:
            while True:
                if (trouble := self._app.trouble(self.run_id)) is not None:
                    raise trouble
                watch.clear()
                if not self._app.at_work(self.run_id):
                    status = await self.status()
                    if status.ended or (status.waiting and not await self._goes_on()):
                        return status
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_SECONDS):
                        await watch.wait()
        finally:
            self._app.unwatch(self.run_id, watch)

    async def _goes_on(self) -> bool:
        """Whether a waiting run has been given what it waits for."""
        now = self._app.clock.time()
        gone = dead(await self._app.store.runs.owners())
        return bool(await self._app.store.runs.due(now=now, dead=gone, run_id=self.run_id))

    async def result(self) -> AgentResponse:
        """Wait as ``wait()`` does, then give what the run amounts to, whatever its status."""
        status = await self.wait()
        return response(self.run_id, await self._state(), status=status)

    async def so_far(self) -> AgentResponse | None:
        """What the run amounts to as it stands, without waiting; None before it has begun."""
        status, state = await self.status(), await self._state()
        return None if state.task is None else response(self.run_id, state, status=status)

    async def unknown(self) -> tuple[ToolCallRecord, ...]:
        """Calls that were under way when their process died, and whose fate a person must ``resolve``."""
        turn = (await self._state()).turn
        pasts = {} if turn is None else turn.pasts
        return tuple(
            past.unknown
            for call_id, past in pasts.items()
            if past.unknown is not None and turn is not None and call_id not in turn.records
        )

    async def _state(self) -> RunState:
        state = RunState(result_limit=self._app.policy.max_result_chars)
        for fact in await self._app.store.runs.facts(self.run_id):
            state.apply(fact)
        return state

    async def events(self, *, after: int = 0) -> AsyncIterator[Event]:
        """Facts from the store, in order and each once, and signals while the run is worked on here; to the end."""
        signals: deque[tuple[int, Event]] = deque()
        heard = after
        watch = self._app.watch(self.run_id)

        def hear(event: Event) -> None:
            nonlocal heard
            if event.seq is not None:
                heard = event.seq
                return
            signals.append((heard, event))
            watch.set()

        try:
            while True:
                watch.clear()
                self._app.listen(self.run_id, hear)
                ended = (await self.status()).ended and not self._app.at_work(self.run_id)
                facts = await self._app.store.runs.facts(self.run_id, after=after)
                for fact in facts:
                    # Each signal in its place: after the fact that came before it.
                    while signals and signals[0][0] <= after:
                        yield signals.popleft()[1]
                    after = fact.seq or after
                    yield fact
                while signals and signals[0][0] <= after:
                    yield signals.popleft()[1]
                if ended and not facts:
                    return
                if not facts:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_POLL_SECONDS):
                            await watch.wait()
        finally:
            self._app.unwatch(self.run_id, watch)

    async def cancel(self) -> None:
        """Cancel the run; what is under way is interrupted and recorded as such."""
        await self._app.cancel(self.run_id)

    async def resolve(
        self, call_id: str, action: Literal["rerun", "done", "skip"], *, result: Any = None, by: str | None = None
    ) -> None:
        """Settle a call whose outcome is unknown: run it again, take it as done with a result, or leave it out."""
        await settle(self._app, self.run_id, call_id, action, result=result, by=by)


class Session:
    """A stored conversation."""

    def __init__(self, app: Journeyman, session_id: str) -> None:
        self._app = app
        self.id = session_id

    async def send(
        self,
        agent: Agent,
        task: TaskInput | str,
        *,
        principal: Principal | None = None,
        limits: Limits | None = None,
        priority: int = 0,
    ) -> Handle:
        """Say something. The run begins when the session's earlier ones have ended, with all that was said by then."""
        return await self._app.start(
            agent, task, principal=principal, limits=limits, session_id=self.id, priority=priority
        )

    async def messages(self, *, last: int | None = None) -> Sequence[Message]:
        return await self._app.store.conversations.messages(self.id, last=last)
