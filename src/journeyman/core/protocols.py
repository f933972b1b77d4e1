"""All protocols: what a language model, a journal, a gate, a limiter, a clock must be able to do.

Rooms are written against these; concrete parts meet in ``app`` alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pydantic import Field

from journeyman.core.approvals import Approval, Decision
from journeyman.core.data import Entity
from journeyman.core.events import Event, Fact
from journeyman.core.policy import BreakerRule, RateLimit
from journeyman.core.runs import FinishReason, Message, ToolCall, Usage
from journeyman.core.specification import ToolSpecification

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"
"""One vector, or a row for each text. Named here as a type only: the core runs without numpy."""

Listener: TypeAlias = Callable[[Event], None]
"""Is told every event of a run, in order. Must return at once and must not raise."""


# --- language models -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ModelRequest:
    """One question to a language model. Nobody changes one; that it could be changed makes it cheap."""

    messages: Sequence[Message]
    """The system message first. The same Message objects come again at the next step."""
    tools: tuple[ToolSpecification, ...]
    """The same tuple object at every step of a run, unless the offer changes."""
    step: int
    """The iteration of the run, from 1."""
    run_id: str = ""
    timeout: float | None = None
    """Seconds the run has left."""
    memo: dict[Any, Any] = field(default_factory=dict)
    """The adapter's own scratch space, one per run and alive as long as it: e.g. messages already encoded.

    Empty again after a restart; an adapter must work without it.
    """
    call_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids that the model's server gave to calls of this run, by ours: for what is sent back to it and nothing else.

    Not kept over a restart, and not for every call: where there is none, ours is sent.
    """
    suggested: ToolCall | None = None
    """The call that a playbook would make next, with the arguments that are known: where the request is worded like one
    that was served, or a call was refused. After the last one, ``finish`` without arguments.

    The last message tells it in words: an adapter need not look.
    """
    output: dict[str, Any] | None = None
    """The JSON Schema, always of an object, of the answer that ends the run; None where the answer is text.

    The same object at every step. ``tools`` then has ``finish``, whose parameters it is: an adapter need do no more
    than offer it. One whose server can be held to a schema may leave ``finish`` out and ask for the object as text.
    """
    asked_again: Callable[[str, float], None] | None = None
    """Told before an adapter asks again: why, and in how many seconds. It stands for ``restart`` of the deltas, too."""


class ModelResponse(Entity):
    """What the model said."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    confidence: float | None = Field(default=None, ge=0, le=1)
    """Calibrated by the adapter, where it can; never parsed out of the text."""
    model: str = ""
    finish: FinishReason | None = None
    """Why it stopped, where the server says so."""
    returned: dict[str, Any] | None = None
    """What the server wants back with the calls at the next step, under the adapter's name; plain JSON."""
    from_results: bool = False
    """The adapter writes no prose and has nothing more to call: what its calls came to, rendered for people, is the
    answer."""


class Deltas(Protocol):
    """Where an adapter that streams puts its text."""

    def text(self, delta: str) -> None: ...

    def restart(self) -> None:
        """What was written so far is void: the adapter asks again."""


class Model(Protocol):
    """Anything that answers. One method; ``deltas`` is None when nobody wants to see the text grow.

    One that takes more than text says so in an attribute ``media`` (image, audio, document): these are then in
    ``media`` of the messages, with their bytes. Others are told of them in words.
    """

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse: ...


# --- choosing tools --------------------------------------------------------------------------------------------------


class ToolRanker(Protocol):
    """Says which tools fit a request best; asked where an agent has more tools than its model is told of."""

    async def rank(self, text: str, tools: Sequence[ToolSpecification], *, k: int) -> Sequence[str]:
        """The names of at most ``k`` of these tools, best first; fewer where no other fits.

        ``text`` is the user's request, or what a model says that it looks for. Only tools that are there, enabled and
        permitted are given. Names that are not among them are left out. Where a ranker fails, or takes
        long, the words of the tools decide.
        """


# --- facts -----------------------------------------------------------------------------------------------------------


class Journal(Protocol):
    """The append-only facts of runs."""

    async def append(self, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
        """Write facts whose ``seq`` are the run's next numbers.

        With ``sync`` they survive power loss when this returns; without, the journal may batch them, in order.
        Raises JournalConflictError where a number is taken: another process owns the run.
        """

    async def read(self, run_id: str, *, after: int = 0) -> Sequence[Fact]:
        """The facts of a run with a number above ``after``, in order."""


# --- governance ------------------------------------------------------------------------------------------------------


class ApprovalGate(Protocol):
    """Who is asked."""

    async def ask(self, approval: Approval) -> Decision | None:
        """The decision, or None when there is none yet: then the run suspends."""


class RateLimiter(Protocol):
    """Token buckets by name, and the pauses that tools have asked for."""

    async def take(self, tool_name: str, limits: Mapping[str, RateLimit]) -> float:
        """Take a token from every bucket and return 0, or from none and return the seconds until a call may pass."""

    async def pause(self, tool_name: str, seconds: float) -> None:
        """Let no call of a tool pass for so long."""


class CircuitBreaker(Protocol):
    """Tools that keep failing get a rest."""

    async def blocked(self, tool_name: str, rule: BreakerRule) -> float:
        """0 when a call may go through, else the seconds until the next try."""

    async def report(self, tool_name: str, rule: BreakerRule, *, healthy: bool) -> None:
        """How a call that went through ended."""


class Clock(Protocol):
    """Time, so that tests can bring their own."""

    def time(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The real one."""

    # The functions themselves, since every step asks fifteen times what time it is.
    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def beside(*works: Awaitable[Any]) -> AsyncIterator[Sequence[asyncio.Future[Any]]]:
    """Do these meanwhile. What is not done in the end is cancelled, and waited for."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# --- retrieval ------------------------------------------------------------------------------------------------------


class Embedder(Protocol):
    """Texts as vectors. Vectors of embedders with different names never meet in one index."""

    @property
    def name(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text, all of the same length. Raises ModelError when it cannot."""
