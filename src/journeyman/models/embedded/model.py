"""The embedded model's adapter: from a conversation and tools to calls, or to an answer made of their results.

The engine alone says what to call and with which values, and how sure it is: no pattern stands between the user's words
and it. Only whether a call that it is unsure of is made at all depends on the request's words (see ``is_familiar``).
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

from journeyman.core.data import moment
from journeyman.core.errors import ErrorCategory, ModelError
from journeyman.core.playbook import ADVICE, DEMONSTRATION, NEXT_STEP, REMINDER
from journeyman.core.protocols import Clock, Deltas, ModelRequest, ModelResponse, SystemClock
from journeyman.core.runs import Message, Role, ToolCall, Usage
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.core.words import packaged_json, stem, words
from journeyman.models.arguments import is_excepted, is_iso, mentions, plain_schema, without
from journeyman.models.embedded.files import EngineFiles, engine_files
from journeyman.models.embedded.tools import (
    COPY,
    ToolText,
    begins_like_example,
    cannot_help,
    first_paragraph,
    form_of,
    left_over,
    not_said,
    ordered_form_of,
    small_talk,
    stems,
    whole_of,
    within,
)
from journeyman.models.embedded.worker import Engines, Setup, shared_engines
from journeyman.models.structured import without_finish

Rank: TypeAlias = Callable[[str, Sequence[ToolSpecification]], Awaitable[Sequence[tuple[ToolSpecification, float]]]]
"""Tools in the order in which they serve a text, each with the chance that it is the one, if one of them is."""

Serves: TypeAlias = Callable[[str, Sequence[ToolSpecification]], Awaitable[Mapping[str, float]]]
"""How much speaks for each of some tools, by name, in log odds."""

GATE = 0.05
"""How sure the engine must be of any call."""
SURE = 0.5
"""From here on the engine's choice stands where the ranking has the same tool first; else each is weighed alone."""
WHERE_ADVISED = 3
"""How many times as sure as the gate it must be where a step that served a similar request speaks for a call, and
nothing else does. By some twenty sentences only: below it, wrong values were as frequent as right ones."""
MOST_SPOKEN = 4.0
"""Of log odds: what is beyond says no more."""
NEAREST = 3
"""Tools that it weighs, of those that a ranking puts first. Reading takes a time that grows with the square, and among
more it chooses worse."""
MOST_TOOLS = 16
"""The same where there is no ranking."""
ALONE, TOGETHER = 4.0, 2.0
"""How much counts how sure the engine is of a tool alone, and of its choice, beside the log of its chance."""
LEAST_CHANCE = 0.01
CERTAIN = 0.95
"""The same from which on it is asked for first, alone. Chosen on seven tuned kinds: no answer was another one."""
BY_FAR = 0.6
"""The chance from which on a tool is first by far."""
MOST_PARTS = 3
"""Of a request that may ask for several things."""
AS_IN_EXAMPLE = 5.0
"""How many times as likely a tool is that has an example with the request's first verb."""
LONGEST_REQUEST = 4000
LONGEST_RESULT = 300
"""Of a result the engine only needs to see that it is there and what it is about."""
SEVERAL = re.compile(r"\b(?:and|then|also|after|afterwards|before|next|finally)\b|[,;:]|[.!?]\s+\w", re.IGNORECASE)
"""What a request has that may ask for more than one step; after the results of others the engine need not be asked."""
NAME = re.compile(r"[\w.-]+")
AS_WORDED = 0.5
"""How sure it is of a call that served a request of the same wording before: sure enough to make it, and no reason to
ask nobody where calls that are hard to undo need a person."""
REMEMBERED = re.compile(
    r"\b(?:don['’]?t|do not|never) (?:let (?:me|us) )?forget\b"
    r"|(?:n['’]?t|\bnot) (?:need|want|use) (?!you\b|to\b)[^.;!?]* any ?(?:more|longer)\b",
    re.IGNORECASE,
)
"""Negations that ask for something, or tell why it is asked for."""
LONGEST_GUIDANCE = 600
"""Of the agent's instruction and advice, in characters: with much more it is less sure of every choice."""
LONGEST_EXAMPLE = 80
MOST_EXAMPLES = 3
"""Of demonstrations only: a growing conversation would change the system text, and the engine read all tools again."""


class EmbeddedModel:
    """Needle 3, a language model of 35 MB that chooses tools and fills their arguments.

    How sure it is of the choice and of the arguments, whichever is less, becomes the confidence of the calls; below
    ``gate`` it calls nothing and says what it can do instead. It also reads the agent's instruction and advice, and
    which tools the first requests of the conversation led to. Where a request is worded like one that was served, it
    makes the same calls, and a refused call again with what was looked up; where only the next step of a similar one
    is told, that only reads, and it would call nothing or is unsure, it is asked what it makes of that one tool. Of
    more than ``MOST_TOOLS`` tools it weighs those that ``rank`` puts first, or else the first.
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
        self.serves: Serves | None = None
        """Whether a call is made depends on it as well; without it, the engine must be ``SURE``. Where the engine would
        call nothing, what the ranking puts first is told to it as an order, if that serves the request."""
        self._folder = folder
        self._timeout = timeout
        self._clock = clock or SystemClock()
        self._engines: Engines = shared_engines()

    def __repr__(self) -> str:
        return f"EmbeddedModel(gate={self._gate:g})"

    async def warm_up(self, tools: Sequence[ToolSpecification]) -> None:
        """Start an engine and rank the tools once, so that the first request finds both ready."""
        asked = tuple(tool for tool in tools if tool.name not in RESERVED_NAMES)
        await self.respond(ModelRequest(messages=(Message.user("Which tools are there?"),), tools=asked, step=1))

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        """The next calls, or the answer."""
        if request.output is not None:
            return await self._with_data(request)
        files = await asyncio.to_thread(engine_files, self._folder)
        conversation = LatestRequest(request.messages)
        tools = tuple(tool for tool in request.tools if tool.name not in RESERVED_NAMES)
        advised = conversation.advised(tools)
        ranked = await self._ranked(conversation.text, tools)
        parts = SEVERAL.split(conversation.text)[:MOST_PARTS] if SEVERAL.search(conversation.text) else ()
        firsts = [next(iter(await self._ranked(part, tools)), None) for part in parts if len(words(part)) > 1]
        weighed = self._weighed([*ranked[:1], *filter(None, firsts), *ranked[1:]], advised)
        of_them = [tool for tool, _ in weighed]
        if not weighed:
            return self._answer(request, cannot_help(()), 0.0, Usage(), deltas)
        if request.suggested is not None:
            if request.suggested.tool_name == "finish":
                return self._of_results(conversation, Usage())
            made = await self._as_suggested(files, request.suggested, tools, conversation)
            if made is not None:
                return ModelResponse(
                    calls=(made,), usage=Usage(requests=1), confidence=made.confidence, model=self.name
                )
        # Only what reads is tried because a similar request was served so.
        advised = advised if advised is None or advised.read_only else None
        if conversation.results and not SEVERAL.search(conversation.text) and advised is None:
            return self._of_results(conversation, Usage())
        proposed = await self._proposed(files, weighed, conversation)
        fits = None if self.serves is None else await self.serves(conversation.text, tools)
        if not proposed.calls and not proposed.forbidden and not conversation.results:
            proposed = await self._ordered(files, weighed, conversation, fits or {}) or proposed
        alone = conversation.unadvised()
        if alone.guidance != conversation.guidance and any(not tool.read_only for tool in proposed.tools):
            # What changes something it must choose without having been told of it.
            proposed = await self._proposed(files, weighed, alone)
        proposed = await self._completed(files, proposed, conversation)
        usage = Usage(requests=1)
        missing = {call.tool_name: names for call in proposed.calls if (names := left_empty(call, of_them))}
        calls = tuple(call for call in proposed.calls if not left_empty(call, of_them) and conversation.allows(call))
        follows = advised is not None and any(call.tool_name == advised.name for call in calls)
        talk = small_talk(conversation.text, tools)
        today = moment(self._clock.time()).date()
        evident = any(is_evident(conversation.text, call, of_them, today) for call in calls)
        stands = proposed.confidence >= (self._gate * WHERE_ADVISED if follows else SURE)
        if calls and fits is not None and not follows:
            chances = {tool.name: chance for tool, chance in ranked}
            stands = speaks_for(evidence(conversation, proposed, chances, fits, today)) >= 0
        # A tool that takes nothing of what is asked for, and has no word of it, is another one.
        bare = not any(call.arguments for call in calls)
        left = [left_over(conversation.text, tool, {}, today) for tool in proposed.tools]
        stands &= evident or not (bare and all(left))
        answerable = talk is not None and bare and not evident
        served = bool(calls) and proposed.confidence >= self._gate and stands and not answerable
        sure = served and proposed.confidence >= SURE
        if advised is not None and talk is None and not sure and not (served and follows):
            shown = await self._as_advised(files, advised, conversation)
            if shown.calls:
                return ModelResponse(calls=shown.calls, usage=usage, confidence=shown.confidence, model=self.name)
        if served:
            # What the engine says beside a call is a draft of it, and often another one: it is not passed on.
            return ModelResponse(calls=calls, usage=usage, confidence=proposed.confidence, model=self.name)
        if conversation.results:
            return self._of_results(conversation, usage)
        if talk is not None:
            return self._answer(request, talk, 1.0, usage, deltas)
        if missing and proposed.confidence >= self._gate:
            [tool] = [tool for tool in tools if tool.name == next(iter(missing))]
            return self._answer(request, not_said(tool, missing[tool.name]), 0.0, usage, deltas)
        told = cannot_help([tool for tool, _ in ranked])
        # A tool that cannot be called, for want of what it needs, is none for this request.
        return self._answer(request, told, proposed.confidence if calls else 0.0, usage, deltas)

    async def _as_advised(self, files: EngineFiles, tool: ToolSpecification, conversation: LatestRequest) -> Proposal:
        """What it makes of the one tool that served a similar request; no calls where it would still rather not."""
        form = form_of([tool], conversation.text, moment(self._clock.time()).date())
        proposed = await self._filled(files, form, conversation)
        calls = [call for call in proposed.calls if not left_empty(call, (tool,)) and conversation.allows(call)]
        return replace(proposed, calls=tuple(calls) if proposed.confidence >= self._gate * WHERE_ADVISED else ())

    async def _as_suggested(
        self, files: EngineFiles, call: ToolCall, tools: Sequence[ToolSpecification], conversation: LatestRequest
    ) -> ToolCall | None:
        """The call that served a request of the same wording; what it does not say is filled in. None without it."""
        tool = next((item for item in tools if item.name == call.tool_name), None)
        if tool is None or is_excepted(call.arguments.values(), conversation.text):
            return None
        confidence = AS_WORDED
        if not call.arguments or not_given(call, tool):
            form = form_of([tool], conversation.text, moment(self._clock.time()).date())
            proposed = await self._filled(files, form, conversation)
            filled = {name: value for made in proposed.calls[:1] for name, value in made.arguments.items()}
            call = call.model_copy(update={"arguments": {**filled, **call.arguments}})
            confidence = min(confidence, proposed.confidence)
            if not_given(call, tool):
                return None
        return call.model_copy(update={"confidence": confidence})

    async def _with_data(self, request: ModelRequest) -> ModelResponse:
        """The next calls of tools or, where there are none, ``finish`` with what the request and the results say."""
        if tools := without_finish(request):
            made = await self.respond(replace(request, output=None, tools=tools))
            if made.calls:
                return made
        files = await asyncio.to_thread(engine_files, self._folder)
        # It fills a form for what the data is; of a form "for the final answer" it makes nothing.
        about = {"description": str((request.output or {}).get("description") or "What is asked for.")}
        form = whole_of([tool.model_copy(update=about) for tool in request.tools if tool.name == "finish"])
        text = " ".join(LatestRequest(request.messages).turns())
        said = await self._ask(Setup(files=files, system="", tools=form.text), [text])
        confidence, today = _number(said.get("confidence")), moment(self._clock.time()).date()
        filled = form.calls(_calls(said), text=text, confidence=confidence, today=today)[:1]
        before = [call.arguments for message in request.messages for call in message.calls]
        if not filled or confidence < self._gate or filled[0].arguments in before:
            raise ModelError(
                "MODEL_FOUND_NO_DATA",
                "the embedded model finds nothing in the request and the results that fits the output",
                category=ErrorCategory.INVALID_INPUT,
                user_guidance="say every value in the request, or name a larger model",
            )
        return ModelResponse(calls=tuple(filled), usage=Usage(requests=1), confidence=confidence, model=self.name)

    async def _proposed(
        self, files: EngineFiles, weighed: Sequence[tuple[ToolSpecification, float]], conversation: LatestRequest
    ) -> Proposal:
        """What the engine would call of the tools weighed, and where it is in doubt, what of each of them alone."""
        tools, today = [tool for tool, _ in weighed], moment(self._clock.time()).date()
        if (
            self.rank
            and weighed[0][1] >= CERTAIN
            and not SEVERAL.search(conversation.text)
            and conversation.unadvised().guidance == conversation.guidance
        ):
            # One form is read in a third of the time of three.
            made = await self._filled(files, form_of(tools[:1], conversation.text, today), conversation, guided=True)
            sure = len(made.calls) == 1 and made.confidence >= SURE
            if sure and is_evident(conversation.text, made.calls[0], tools, today):
                return replace(made, confirmed=True)
        form = form_of(tools, conversation.text, today)
        together = await self._filled(files, form, conversation, guided=True)
        named = {call.tool_name for call in together.calls}
        several = len(named) > 1 and SEVERAL.search(conversation.text)
        evident = any(is_evident(conversation.text, call, tools, today) for call in together.calls)
        if several or (len(tools) == 1 and together.calls):
            return together
        if together.confidence >= SURE and named == {tools[0].name} and evident:
            return surest(
                together, await self._filled(files, form_of(tools[:1], conversation.text, today), conversation)
            )
        forms = (ordered_form_of(tool, conversation.text, today, worded=True) for tool in tools)
        if worded := None if together.forbidden else next((form for form in forms if form), None):
            [tool] = worded.tools.values()
            if tool.name in named:  # as it is said, it copies better
                made = await self._filled(files, form_of([tool], conversation.text, today), conversation)
                if made.calls:
                    return surest(together, made)
            made = await self._filled(files, worded, conversation)
            if made.calls:
                return replace(made, confirmed=True)
        if len(tools) == 1 or not together.calls:
            return together
        weights, alone = dict[str, float](), dict[str, Proposal]()
        for tool, chance in weighed[:NEAREST]:
            made = await self._filled(files, form_of([tool], conversation.text, today), conversation)
            if made.calls or tool.name in named:
                alone[tool.name] = made
                weights[tool.name] = math.log(max(chance, LEAST_CHANCE)) + ALONE * made.sureness
                weights[tool.name] += TOGETHER * together.sureness if tool.name in named else 0.0
        if not weights:
            return together
        best = max(weights, key=weights.__getitem__)
        return surest(together, alone[best]) if best in named else alone[best]

    async def _ordered(
        self,
        files: EngineFiles,
        weighed: Sequence[tuple[ToolSpecification, float]],
        conversation: LatestRequest,
        fits: Mapping[str, float],
    ) -> Proposal | None:
        """What it makes of an order for the tool that the ranking puts first by far, if that serves the request."""
        (tool, chance), today = weighed[0], moment(self._clock.time()).date()
        if chance < BY_FAR or fits.get(tool.name, -1.0) < 0:
            return None
        form = ordered_form_of(tool, conversation.text, today)
        made = Proposal() if form is None else await self._filled(files, form, conversation)
        return replace(made, confirmed=True) if made.calls else None

    async def _completed(self, files: EngineFiles, proposed: Proposal, conversation: LatestRequest) -> Proposal:
        """The same with what it makes of words that no argument took up, where the tool has a parameter for a text."""
        if len(proposed.calls) != 1 or conversation.results:
            return proposed
        (call,), [tool], today = proposed.calls, proposed.tools, moment(self._clock.time()).date()
        left = left_over(conversation.text, tool, call.arguments, today)
        form = form_of([tool], conversation.text, today, every_text=True)
        if not left or form == form_of([tool], conversation.text, today):
            return proposed
        made = await self._filled(files, form, conversation)
        if len(made.calls) != 1:
            return proposed
        added = {
            name: value
            for name, value in made.calls[0].arguments.items()
            if name not in call.arguments and isinstance(value, str) and not left.isdisjoint(stems(value))
        }
        least = min(made.confidence, proposed.confidence) if added else proposed.confidence
        call = call.model_copy(update={"confidence": least, "arguments": {**call.arguments, **added}})
        return replace(proposed, calls=(call,), confidence=least)

    async def _filled(
        self, files: EngineFiles, form: ToolText, conversation: LatestRequest, *, guided: bool = False
    ) -> Proposal:
        """What the engine makes of a form. Arguments come from the request alone."""
        today = moment(self._clock.time()).date()
        # Where a day is to be copied it is not told today's, or it reckons.
        date_told = [] if COPY in form.text else [f"date: {today:%Y-%m-%d %a}"]
        system = "; ".join([*date_told, *(conversation.guidance if guided else ())])
        turns = [form.asked, *conversation.turns()[1:]]
        said = await self._ask(Setup(files=files, system=system, tools=form.text), turns)
        confidence = _number(said.get("confidence"))
        forbidden = is_forbidden(said, conversation.text)
        made = () if forbidden else _calls(said)
        calls = form.calls(made, text=conversation.text, confidence=confidence, today=today)
        called = {call.tool_name for call in calls}
        tools = tuple(tool for tool in form.tools.values() if tool.name in called)
        return Proposal(tuple(calls), confidence, tools, forbidden=forbidden)

    async def _ask(self, setup: Setup, turns: Sequence[str]) -> dict[str, Any]:
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
        if isinstance(said, dict) and "truncated" in str(said.get("error")):
            return {}  # made to write what the request does not have, it does not come to an end: that is no answer
        if not isinstance(said, dict) or said.get("error"):
            reason = said.get("error") if isinstance(said, dict) else said
            raise ModelError("MODEL_BAD_ANSWER", f"the embedded engine answered {reason!r}")
        return said

    async def _ranked(self, text: str, tools: Sequence[ToolSpecification]) -> Sequence[tuple[ToolSpecification, float]]:
        if self.rank is None:
            return [(tool, 1.0) for tool in tools]
        ranked = [
            (tool, chance * AS_IN_EXAMPLE if begins_like_example(text, tool) else chance)
            for tool, chance in await self.rank(text, tools)
        ]
        return sorted(ranked, key=lambda each: -each[1])

    def _weighed(
        self, ranked: Sequence[tuple[ToolSpecification, float]], advised: ToolSpecification | None
    ) -> list[tuple[ToolSpecification, float]]:
        """As many as it can weigh, with their chances: those that come first, and the one that it is advised to use."""
        most = MOST_TOOLS if self.rank is None else NEAREST
        different = list({tool.name: (tool, chance) for tool, chance in reversed(ranked)}.values())[::-1]
        return [*different[:most], *(each for each in different[most:] if each[0] is advised)]

    def _of_results(self, conversation: LatestRequest, usage: Usage) -> ModelResponse:
        """It writes no prose: what the tools returned is the answer."""
        return ModelResponse(usage=usage, confidence=conversation.confidence, model=self.name, from_results=True)

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

    calls: tuple[ToolCall, ...] = ()
    confidence: float = 0.0
    tools: tuple[ToolSpecification, ...] = ()
    confirmed: bool | None = None
    """Whether it would call the same tool among others and alone, or the request is worded like an example of it; None
    where it was not asked twice."""

    forbidden: bool = False

    @property
    def sureness(self) -> float:
        return self.confidence if self.calls else 0.0


def surest(together: Proposal, alone: Proposal) -> Proposal:
    """What the engine makes of a tool alone, where it would call it so: it copies better. The smaller figure counts."""
    if not alone.calls:
        return replace(together, confirmed=False)
    least = min(alone.confidence, together.confidence)
    calls = tuple(call.model_copy(update={"confidence": least}) for call in alone.calls)
    return replace(alone, calls=calls, confidence=least, confirmed=True)


class LatestRequest:
    """The latest request of the user, and what has been called and returned since."""

    def __init__(self, messages: Sequence[Message]) -> None:
        beside = (NEXT_STEP, REMINDER)
        asked = [at for at, said in enumerate(messages) if said.role is Role.USER and said.name not in beside]
        asked_at = asked[-1] if asked else None
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
        self._before = messages[:asked_at]
        self.guidance = _guidance(self._before)
        self.guidance += [said.content for said in messages[asked_at:] if said.name == NEXT_STEP]
        self._next_step = next((said.content for said in reversed(messages) if said.name == NEXT_STEP), "")
        self._since = messages[asked_at + 1 :]
        self._calls = [call for message in self._since for call in message.calls]
        self.results = [message for message in self._since if message.role is Role.FUNCTION]

    def unadvised(self) -> LatestRequest:
        """The same with the instruction alone."""
        alone = copy(self)
        alone.guidance = _guidance([said for said in self._before if said.role is Role.SYSTEM], advice=False)
        return alone

    @property
    def confidence(self) -> float:
        """That of the weakest call."""
        return min((call.confidence for call in self._calls if call.confidence is not None), default=0.0)

    def advised(self, tools: Sequence[ToolSpecification]) -> ToolSpecification | None:
        """The tool that the next step names, as a similar request was served; None without such advice."""
        told = [name.rstrip(".") for name in NAME.findall(self._next_step)]
        named = sorted((tool for tool in tools if tool.name in told), key=lambda tool: told.index(tool.name))
        return named[0] if named else None

    def allows(self, call: ToolCall) -> bool:
        """After results no tool is called again, and nothing with what neither the request nor a result shows.

        Nothing is ever done to what the request excepts.
        """
        if is_excepted(call.arguments.values(), self.text):
            return False
        if not self.results:
            return True
        known = set(words(" ".join(self.turns())))
        return all(call.tool_name != made.tool_name for made in self._calls) and all(
            set(words(str(value))) <= known for value in call.arguments.values()
        )

    def turns(self) -> list[str]:
        """The request, then the results of each step, as the engine takes them."""
        turns, results = [self.text], list[Any]()
        for message in (*self._since, None):
            if message is not None and message.role is Role.FUNCTION:
                results.append(_result_value(message.content))
            elif results:
                turns.append(json.dumps(results, ensure_ascii=False))
                results = []
        return turns


def evidence(
    conversation: LatestRequest,
    proposed: Proposal,
    chances: Mapping[str, float],
    fits: Mapping[str, float],
    today: date,
) -> dict[str, float]:
    """What speaks for calls and against them; of several, for the one for which least does."""
    text, known = conversation.text, set(words(" ".join(conversation.turns())))
    names = {call.tool_name for call in proposed.calls}
    values = [str(value) for call in proposed.calls for value in call.arguments.values()]
    given = {f"{at}": value for at, value in enumerate(values)}
    left = [left_over(text, tool, given, today) for tool in proposed.tools]
    made_up = [value for value in values if not is_iso(value) and not set(words(value)) <= known]
    odds = math.log((proposed.confidence + 0.01) / (1.01 - proposed.confidence))
    spoken = min(fits.get(name, -MOST_SPOKEN) for name in names) if fits else 0.0
    return {
        "bias": 1.0,
        "sure": odds,
        "confirmed": float(proposed.confirmed is True),
        "refuted": float(proposed.confirmed is False),
        "chance": math.log(max(min(chances.get(name, 0.0) for name in names), LEAST_CHANCE)),
        "serves": max(-MOST_SPOKEN, min(MOST_SPOKEN, spoken)),
        "worded": float(any(within(text, request) for tool in proposed.tools for request in tool.requests)),
        "verb": float(any(begins_like_example(text, tool) for tool in proposed.tools)),
        "left_over": max(len(each) for each in left) / max(1, len(stems(text))),
        "made_up": len(made_up) / max(1, len(values)),
        "bare": float(not values),
        "twice": float(len(names) < len(proposed.calls) and not SEVERAL.search(text)),
    }


def speaks_for(seen: Mapping[str, float]) -> float:
    """The log odds that calls are right: ``python -m benchmarks.embedded.calls``."""
    weights: dict[str, float] = packaged_json("journeyman.models.embedded", "calls.json")
    return sum(weight * seen[name] for name, weight in weights.items())


def is_evident(text: str, call: ToolCall, tools: Sequence[ToolSpecification], today: date) -> bool:
    """Whether a request says the tool's name or, where there was a choice, any word of what it says of itself.

    Days are no such words: they belong to no tool.
    """
    for each in reversed(mentions(text, today)):
        text = without(text, each)
    tool = next(tool for tool in tools if tool.name == call.tool_name)
    name, said = words(tool.name.replace("_", " ")), {stem(word) for word in words(text)}
    if len(tools) == 1 or {stem(word) for word in name} <= said:
        return {stem(word) for word in name} <= said
    told = " ".join([*name, *plain_schema(tool.parameters).get("properties", ()), *tool.requests]).replace("_", " ")
    return bool(stems(text) & stems(f"{told} {first_paragraph(tool.description)}"))


def not_given(call: ToolCall, tool: ToolSpecification) -> tuple[str, ...]:
    """The required arguments that a call has not, or leaves empty."""
    given = call.arguments
    return tuple(name for name in tool.parameters.get("required", ()) if not str(given.get(name, "")).strip())


def left_empty(call: ToolCall, tools: Sequence[ToolSpecification]) -> tuple[str, ...]:
    """The required texts that a call leaves empty: the request does not tell them."""
    tool = next(tool for tool in tools if tool.name == call.tool_name)
    given = ((name, call.arguments.get(name)) for name in tool.parameters.get("required", ()))
    return tuple(name for name, value in given if isinstance(value, str) and not value.strip())


def _guidance(messages: Sequence[Message], *, advice: bool = True) -> list[str]:
    """What was said before the request, for the engine's system text: the instruction and advice, and examples."""
    said = (message.content for message in messages if message.role is Role.SYSTEM)
    told = " ".join(" ".join(text if advice else text.partition(ADVICE)[0] for text in said).split())
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


def _result_value(content: str) -> Any:
    if len(content) > LONGEST_RESULT:
        return content[:LONGEST_RESULT]
    try:
        return json.loads(content)
    except ValueError:
        return content


def _number(value: Any) -> float:
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 0.0


def is_forbidden(said: Mapping[str, Any], text: str) -> bool:
    """Whether a request says what not to do."""
    return bool((said.get("validation") or {}).get("negation")) and not REMEMBERED.search(text)


def _calls(said: Mapping[str, Any]) -> Iterable[Any]:
    """It withholds what it is very unsure of; here the gate decides."""
    return said.get("function_calls") or said.get("suppressed_calls") or ()
