"""The embedded model's adapter: from a conversation and tools to calls, or to an answer made of their results.

The engine alone proposes what to call: no pattern or keyword stands between the user's words and it. Of what it
proposes only that is called which the request shows (see ``evidence``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

from journeyman.core.errors import ErrorCategory, ModelError
from journeyman.core.messages import Message, Role, ToolCall, Usage
from journeyman.core.playbook import DEMONSTRATION
from journeyman.core.protocols import Clock, Deltas, ModelRequest, ModelResponse, SystemClock, moment
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.models.embedded.evidence import Request, Vocabulary
from journeyman.models.embedded.files import EngineFiles, engine_files
from journeyman.models.embedded.filling import Form
from journeyman.models.embedded.format import answer_from, cannot_help
from journeyman.models.embedded.tools import Offer, choice_of, parameters_of, whole_of
from journeyman.models.embedded.worker import Engines, Setup, shared_engines

Rank: TypeAlias = Callable[[str, Sequence[ToolSpecification], int], Sequence[ToolSpecification]]
"""The tools nearest to a text, best first, at most so many."""

GATE = 0.3
"""Tuned on one half of benchmarks/embedded: below it wrong calls outnumber right ones."""
MOST_TOOLS = 16
LEAST = 0.02
"""What the engine itself is less sure of is nothing, whatever speaks for it."""
LONGEST_REQUEST = 4000
LONGEST_RESULT = 1000
"""Of a result the engine only needs to see that it is there and what it is about."""
LONGEST_GUIDANCE = 600
"""Of the agent's instruction and advice, in characters: with much more it is less sure of every choice."""
LONGEST_EXAMPLE = 80
MOST_EXAMPLES = 3
"""Of demonstrations only: a growing conversation would change the system text, and the engine read all tools again."""


class EmbeddedModel:
    """Needle 3, a language model of 35 MB that chooses tools and fills their arguments.

    How sure it is, and whether the request has a word in common with the tool's declaration, becomes the confidence of
    the calls; below ``gate`` it calls nothing and says what it can do instead. When it chooses, it also reads the
    agent's instruction and advice, and which tools the first requests of the conversation led to; arguments come from
    the latest request alone. Of more than ``MOST_TOOLS`` tools it weighs those that ``rank`` puts first, or else the
    first.
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
        self.rank = rank
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
        nearest = self._nearest(conversation.text, weighed, proposed.chosen)
        told = cannot_help(nearest, more=len(tools) - len(weighed))
        return self._answer(request, told, proposed.confidence, usage, deltas)

    async def _proposed(
        self, files: EngineFiles, tools: tuple[ToolSpecification, ...], conversation: Conversation
    ) -> Proposal:
        """What the engine would call: first which tools, then with which arguments."""
        today = moment(self._clock.time()).date()
        system = "; ".join([f"date: {today:%Y-%m-%d %a}", *conversation.guidance])
        choice = choice_of(tools)
        chosen = await self._chosen(Setup(files=files, system=system, tools=choice.text), choice, conversation)
        if not chosen.tools:
            return NOTHING
        if conversation.results:
            return await self._next(files, system, chosen, conversation, today)

        async def ask(form: str, text: str) -> dict[str, Any]:
            # Made to write what the request does not have, it does not come to an end: that is no answer.
            return await self._ask(Setup(files=files, system="", tools=form, lasting=False), [text], unfinished={})

        made, left = list[ToolCall](), conversation.text
        for tool in chosen.tools:
            filled = await Form(tool, today=today).fill(ask, left, several=len(chosen.tools) == 1)
            made += [
                ToolCall(tool_name=tool.name, arguments=each.arguments, confidence=chosen.confidence) for each in filled
            ]
            if len(chosen.tools) > 1:
                # What one call has taken is not the next one's.
                left = Request(left).without(frozenset[int]().union(*(each.places for each in filled)))
        names = tuple(tool.name for tool in chosen.tools)
        return Proposal(tuple(made), confidence=chosen.confidence, reasoning=chosen.reasoning, chosen=names)

    async def _next(
        self, files: EngineFiles, system: str, chosen: Chosen, conversation: Conversation, today: date
    ) -> Proposal:
        """What to call after results: no tool again, and nothing that neither the request nor a result shows."""
        fresh = {tool.name: tool for tool in chosen.tools if not conversation.has_called(tool.name)}
        if not fresh:
            return NOTHING
        whole = whole_of(list(fresh.values()))
        setup = Setup(files=files, system=system, tools=whole.text, lasting=False)
        said = await self._ask(setup, conversation.turns(), unfinished={})
        confidence = min(chosen.confidence, _number(said.get("confidence")))
        known = Request(" ".join(conversation.turns()))
        calls = [
            call
            for call in whole.calls(said.get("function_calls") or (), confidence=confidence, today=today)
            if all(known.of(value) for value in call.arguments.values())
        ]
        return Proposal(tuple(calls), confidence=confidence, reasoning=str(said.get("reasoning") or ""))

    async def _chosen(self, setup: Setup, choice: Offer, conversation: Conversation) -> Chosen:
        """The tools that it is surest of when it is asked in two ways, one for each call that it would make.

        About what comes after results it is asked in one way, the last, whose beginning it remembers.
        """
        ways = WAYS[-1:] if conversation.results else WAYS
        weights: dict[frozenset[str], float] = {}
        denied = True
        heard: dict[frozenset[str], tuple[list[ToolSpecification], str]] = {}
        for way in ways:
            said = await self._ask(setup, conversation.turns(way))
            # It withholds what it is very unsure of; the gate decides here, on all of its answers.
            named = choice.named(said.get("function_calls") or said.get("suppressed_calls") or ())
            key = frozenset(tool.name for tool in named)
            weights[key] = weights.get(key, 0.0) + _number(said.get("confidence")) / len(ways)
            denied = denied and bool((said.get("validation") or {}).get("negation"))
            if key not in heard or len(named) >= len(heard[key][0]):
                heard[key] = (named, str(said.get("reasoning") or ""))
        best = max(weights, key=lambda key: weights[key])
        if not best or denied or weights[best] < LEAST:
            return Chosen(tools=(), confidence=0.0, reasoning="")
        tools, reasoning = heard[best]
        request = Request(conversation.text)
        familiar = any(request.of_stems(Vocabulary(tool, parameters_of(tool)[0]).of_tool) for tool in tools)
        return Chosen(tools=tuple(tools), confidence=(weights[best] + familiar) / 2, reasoning=reasoning)

    async def _ask(
        self, setup: Setup, turns: Sequence[str], *, unfinished: dict[str, Any] | None = None
    ) -> dict[str, Any]:
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
        if unfinished is not None and isinstance(said, dict) and "truncated" in str(said.get("error")):
            return unfinished
        if not isinstance(said, dict) or said.get("error"):
            reason = said.get("error") if isinstance(said, dict) else said
            raise ModelError("MODEL_BAD_ANSWER", f"the embedded engine answered {reason!r}")
        return said

    def _weighed(self, text: str, tools: tuple[ToolSpecification, ...]) -> tuple[ToolSpecification, ...]:
        if len(tools) <= MOST_TOOLS:
            return tools
        return tuple(self.rank(text, tools, MOST_TOOLS) if self.rank else tools[:MOST_TOOLS])

    def _nearest(
        self, text: str, tools: tuple[ToolSpecification, ...], guessed: Sequence[str]
    ) -> Sequence[ToolSpecification]:
        ranked = self.rank(text, tools, len(tools)) if self.rank else ()
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
class Chosen:
    """The tools for a request, and how sure that is."""

    tools: tuple[ToolSpecification, ...]
    confidence: float
    reasoning: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the engine would call, and how sure it is of that."""

    calls: tuple[ToolCall, ...]
    confidence: float
    reasoning: str
    chosen: tuple[str, ...] = ()
    """The tools it would call, also where an argument for them is missing."""


NOTHING = Proposal((), confidence=0.0, reasoning="")


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
        if len(self.text) > LONGEST_REQUEST:
            raise ModelError(
                "MODEL_REQUEST_TOO_LONG",
                f"the request has {len(self.text):,} characters, the embedded model reads {LONGEST_REQUEST:,}",
                category=ErrorCategory.INVALID_INPUT,
                user_guidance="ask in fewer words, or name a larger model",
            )
        self.guidance = _guidance(messages[:asked_at])
        self._since = messages[asked_at + 1 :]
        self._calls = [call for message in self._since for call in message.calls]
        self.results = [message for message in self._since if message.role is Role.FUNCTION]

    @property
    def confidence(self) -> float:
        """That of the weakest call."""
        return min((call.confidence for call in self._calls if call.confidence is not None), default=0.0)

    def has_called(self, name: str) -> bool:
        return any(call.tool_name == name for call in self._calls)

    def is_new(self, call: ToolCall) -> bool:
        """Whether this call has not been made for this request."""
        return all((call.tool_name, call.arguments) != (made.tool_name, made.arguments) for made in self._calls)

    def turns(self, way: Callable[[str], str] = str) -> list[str]:
        """The request, put in some way, then the results of each step, as the engine takes them."""
        turns, results = [way(self.text)], list[Any]()
        for message in (*self._since, None):
            if message is not None and message.role is Role.FUNCTION:
                results.append(_shown(message.content))
            elif results:
                turns.append(json.dumps(results, ensure_ascii=False))
                results = []
        return turns


def _guidance(messages: Sequence[Message]) -> list[str]:
    """What was said before the request, for the engine's system text: the instruction and advice, and examples."""
    told = " ".join(" ".join(message.content for message in messages if message.role is Role.SYSTEM).split())
    if len(told) > LONGEST_GUIDANCE:  # the instruction begins it, advice ends it
        told = f"{told[: LONGEST_GUIDANCE // 2]} … {told[-LONGEST_GUIDANCE // 2 :]}"
    examples, request = list[str](), ""
    for message in messages:
        if message.role is Role.USER and message.name == DEMONSTRATION:
            request = " ".join(message.content.split())[:LONGEST_EXAMPLE]
        elif message.calls and request:
            names = ", ".join(dict.fromkeys(call.tool_name for call in message.calls))
            examples.append(f"earlier: {request!r} -> {names}")
            request = ""
    return [*([told] if told else []), *examples[-MOST_EXAMPLES:]]


def _as_sentence(text: str) -> str:
    return text.rstrip(".?! ") + "."


def _as_question(text: str) -> str:
    return f"Can you {text[:1].lower()}{text[1:].rstrip('.?! ')}?"


WAYS = (_as_question, _as_sentence)
"""It chooses better among tools for a finished sentence, and better still when it is asked in two ways."""


def _shown(content: str) -> Any:
    if len(content) > LONGEST_RESULT:
        return content[:LONGEST_RESULT]
    try:
        return json.loads(content)
    except ValueError:
        return content


def _number(value: Any) -> float:
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 0.0
