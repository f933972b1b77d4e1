"""The embedded model's adapter: from a conversation and tools to calls, or to an answer made of their results.

The engine alone decides what to call: no pattern or keyword stands between the user's words and it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from journeyman.core.errors import ErrorCategory, ModelError
from journeyman.core.messages import Message, Role, ToolCall, Usage
from journeyman.core.protocols import Clock, Deltas, ModelRequest, ModelResponse, SystemClock, moment
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.models.embedded.files import EngineFiles, engine_files
from journeyman.models.embedded.format import answer_from, cannot_help
from journeyman.models.embedded.tools import choice_of, forms_of
from journeyman.models.embedded.worker import Engines, Setup, shared_engines

Rank: TypeAlias = Callable[[str, Sequence[ToolSpecification], int], Sequence[ToolSpecification]]
"""The tools nearest to a text, best first, at most so many."""

GATE = 0.3
"""Tuned on one half of benchmarks/embedded: below it wrong calls outnumber right ones."""
MOST_TOOLS = 16
LONGEST_REQUEST = 4000
LONGEST_RESULT = 1000
"""Of a result the engine only needs to see that it is there and what it is about."""


class EmbeddedModel:
    """Needle 3, a language model of 35 MB that chooses tools and fills their arguments.

    Its confidence, calibrated by its makers, becomes that of the calls; below ``gate`` it calls nothing and says what
    it can do instead. It reads the latest request only, not the conversation before it, and no instruction. Of more
    than ``MOST_TOOLS`` tools it weighs those that ``rank`` puts first, or else the first.
    """

    name = "embedded"

    def __init__(
        self,
        *,
        gate: float = GATE,
        rank: Rank | None = None,
        folder: Path | None = None,
        timeout: float = 120.0,
        clock: Clock | None = None,
    ) -> None:
        self._gate = gate
        self._rank = rank
        self._folder = folder
        self._timeout = timeout
        self._clock = clock or SystemClock()
        self._engines: Engines = shared_engines()

    def __repr__(self) -> str:
        return f"EmbeddedModel(gate={self._gate:g})"

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        """The next calls, or the answer."""
        files = await asyncio.to_thread(engine_files, self._folder)
        conversation = Conversation(request.messages)
        tools = tuple(tool for tool in request.tools if tool.name not in RESERVED_NAMES)
        weighed = self._weighed(conversation.text, tools)
        if not weighed:
            return self._answer(request, cannot_help(()), 0.0, Usage(), deltas)
        proposed = await self._proposed(files, weighed, conversation)
        usage = Usage(requests=1)
        fresh = tuple(call for call in proposed.calls if conversation.is_new(call))
        if fresh and proposed.confidence >= self._gate:
            if deltas is not None and proposed.reasoning:
                deltas.text(proposed.reasoning)
            return ModelResponse(
                text=proposed.reasoning, calls=fresh, usage=usage, confidence=proposed.confidence, model=self.name
            )
        if conversation.results:
            return self._answer(request, answer_from(conversation.results), conversation.confidence, usage, deltas)
        nearest = self._nearest(conversation.text, weighed, [call.tool_name for call in proposed.calls])
        told = cannot_help(nearest, more=len(tools) - len(weighed))
        return self._answer(request, told, proposed.confidence if proposed.calls else 0.0, usage, deltas)

    async def _proposed(
        self, files: EngineFiles, tools: tuple[ToolSpecification, ...], conversation: Conversation
    ) -> Proposal:
        """What the engine would call: first which tools, then with which arguments."""
        today = moment(self._clock.time()).date()
        system, turns = f"date: {today:%Y-%m-%d %a}", conversation.turns()
        choice = choice_of(tools)
        chosen = await self._ask(Setup(files=files, system=system, tools=choice.text), turns)
        sure = _number(chosen.get("confidence"))
        named = choice.calls(chosen.get("function_calls") or (), confidence=sure, today=today)
        wanted = tuple(tool for tool in tools if tool.name in {call.tool_name for call in named})
        if not wanted:
            return Proposal(calls=(), confidence=0.0, reasoning="")
        forms = forms_of(wanted)
        filled = await self._ask(Setup(files=files, system=system, tools=forms.text), turns)
        # It withholds what it is very unsure of; the gate decides here, on both of its answers.
        said = filled.get("function_calls") or filled.get("suppressed_calls") or ()
        confidence = (sure + _number(filled.get("confidence"))) / 2
        calls = forms.calls(said, confidence=confidence, today=today)
        return Proposal(calls=tuple(calls), confidence=confidence, reasoning=str(filled.get("reasoning") or ""))

    async def _ask(self, setup: Setup, turns: Sequence[str]) -> dict[str, Any]:
        if len(turns[0]) > LONGEST_REQUEST:
            raise ModelError(
                "MODEL_REQUEST_TOO_LONG",
                f"the request has {len(turns[0]):,} characters, the embedded model reads {LONGEST_REQUEST:,}",
                category=ErrorCategory.INVALID_INPUT,
                user_guidance="ask in fewer words, or name a larger model",
            )
        try:
            async with asyncio.timeout(self._timeout):
                said = await self._engines.ask(setup, turns)
        except TimeoutError:
            raise ModelError(
                "MODEL_TIMEOUT",
                f"the embedded model did not answer within {self._timeout:g} s",
                category=ErrorCategory.TIMEOUT,
                retryable=True,
                user_guidance="try again when the machine is less busy, offer fewer tools, or name another model",
            ) from None
        if not isinstance(said, dict) or said.get("error"):
            reason = said.get("error") if isinstance(said, dict) else said
            raise ModelError("MODEL_BAD_ANSWER", f"the embedded engine answered {reason!r}")
        return said

    def _weighed(self, text: str, tools: tuple[ToolSpecification, ...]) -> tuple[ToolSpecification, ...]:
        if len(tools) <= MOST_TOOLS:
            return tools
        return tuple(self._rank(text, tools, MOST_TOOLS) if self._rank else tools[:MOST_TOOLS])

    def _nearest(
        self, text: str, tools: tuple[ToolSpecification, ...], guessed: Sequence[str]
    ) -> Sequence[ToolSpecification]:
        ranked = self._rank(text, tools, len(tools)) if self._rank else ()
        order = {name: place for place, name in enumerate((*guessed, *(tool.name for tool in ranked)))}
        return sorted(tools, key=lambda tool: order.get(tool.name, len(order)))

    def _answer(
        self, request: ModelRequest, text: str, confidence: float, usage: Usage, deltas: Deltas | None
    ) -> ModelResponse:
        if any(tool.name == "finish" for tool in request.tools):
            call = ToolCall(tool_name="finish", arguments={"answer": text}, confidence=confidence)
            return ModelResponse(calls=(call,), usage=usage, confidence=confidence, model=self.name)
        if deltas is not None:
            deltas.text(text)
        return ModelResponse(text=text, usage=usage, confidence=confidence, model=self.name)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the engine would call, and how sure it is of that."""

    calls: tuple[ToolCall, ...]
    confidence: float
    reasoning: str


class Conversation:
    """The latest request of the user, and what has been called and returned since."""

    def __init__(self, messages: Sequence[Message]) -> None:
        asked_at = max((index for index, message in enumerate(messages) if message.role is Role.USER), default=None)
        if asked_at is None:
            raise ModelError(
                "MODEL_NO_REQUEST",
                "the conversation has no message of the user",
                category=ErrorCategory.INVALID_INPUT,
                user_guidance="the embedded model answers requests; send one",
            )
        self.text = messages[asked_at].content
        self._since = messages[asked_at + 1 :]
        self._calls = [call for message in self._since for call in message.calls]
        self.results = [message for message in self._since if message.role is Role.FUNCTION]

    @property
    def confidence(self) -> float:
        """That of the weakest call."""
        return min((call.confidence for call in self._calls if call.confidence is not None), default=0.0)

    def is_new(self, call: ToolCall) -> bool:
        """Whether this call has not been made for this request."""
        return all((call.tool_name, call.arguments) != (made.tool_name, made.arguments) for made in self._calls)

    def turns(self) -> list[str]:
        """The request, then the results of each step, as the engine takes them."""
        turns, results = [self.text], list[Any]()
        for message in (*self._since, None):
            if message is not None and message.role is Role.FUNCTION:
                results.append(_shown(message.content))
            elif results:
                turns.append(json.dumps(results, ensure_ascii=False))
                results = []
        return turns


def _shown(content: str) -> Any:
    if len(content) > LONGEST_RESULT:
        return content[:LONGEST_RESULT]
    try:
        return json.loads(content)
    except ValueError:
        return content


def _number(value: Any) -> float:
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 0.0
