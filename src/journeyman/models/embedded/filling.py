"""The arguments of a call, asked for one by one.

Asked for one parameter at a time the engine copies the right words of the request; asked for many it mixes them up.
So it is asked for what the tool requires, and then for each optional parameter beside that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

from journeyman.core.specification import ToolSpecification
from journeyman.models.embedded.dates import as_iso
from journeyman.models.embedded.evidence import (
    Claim,
    Places,
    Request,
    Vocabulary,
    claim,
    could_be_said,
    has_date,
    telling,
)
from journeyman.models.embedded.tools import DATES, first_paragraph, first_sentence, parameters_of, plain_name, written

Ask: TypeAlias = Callable[[str, str], Awaitable[dict[str, Any]]]
"""A set of tools and a text, to the engine's answer."""

ONLY_WHEN_SAID = "; include only when stated."
MOST_ASKED = 12
SAME = 0.15
"""Two days that it finds equally likely are both meant: "due tomorrow" is not before and not after tomorrow."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine said about one form."""

    calls: tuple[dict[str, Any], ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Filled:
    """The arguments of one call, and the words of the request that went into them."""

    arguments: dict[str, Any]
    places: Places


class Form:
    """One tool and how its parameters are asked for."""

    def __init__(self, tool: ToolSpecification, *, today: date) -> None:
        self._tool = tool
        self._name = plain_name(tool)
        self._today = today
        self._properties, self._required = parameters_of(tool)
        self._shown = {name: _date_as_words(schema) for name, schema in self._properties.items()}
        self._optional = [name for name in self._properties if name not in self._required]
        self._vocabulary = Vocabulary(tool, self._properties)
        free = [name for name in self._optional if _is_free_text(self._properties[name])]
        self._alone = free[0] if len(free) == 1 else None

    async def fill(self, ask: Ask, text: str, *, several: bool = True) -> list[Filled]:
        """The arguments that a request gives; nothing where a required one is missing.

        ``several``: a request may ask for several calls of this tool, as no other tool is meant.
        """
        request = Request(text)
        required = await self._asked(ask, text, self._required_form(self._required)) if self._required else None
        answers = {
            name: await self._asked(ask, text, self._optional_form(name)) for name in self._worth_asking(request)
        }
        claims = self._believed(answers, request)
        if several and required is not None and all(made.weak for made in claims.values()):
            calls = self._several(required, request)
            if calls:
                return calls
        taken = frozenset[int]().union(*(made.places for made in claims.values() if not made.weak))
        given: dict[str, Any] = {}
        for name in self._required:
            value = await self._required_value(name, required, answers, claims, ask, request, taken, given)
            if value is None:
                return []
            given[name] = value
        places = taken.union(*(request.of(value) for value in given.values()))
        for name, made in claims.items():
            if not (made.weak and made.places & places):
                given[name] = made.value
                places |= made.places
        return [Filled(given, places)]

    def _worth_asking(self, request: Request) -> list[str]:
        mentions = {name: self._vocabulary.mentions(name, request) for name in self._optional}
        dated = has_date(request, self._today)
        possible = [
            name
            for name in self._optional
            if could_be_said(self._properties[name], mentions[name], request, alone=name == self._alone, dated=dated)
        ]
        return sorted(possible, key=lambda name: not mentions[name])[:MOST_ASKED]

    def _several(self, required: Answer, request: Request) -> list[Filled]:
        """The calls of "delete task 3 and task 4": each with words of its own."""
        made: list[Filled] = []
        for call in required.calls:
            each = [request.of(call.get(name)) for name in self._required]
            places = frozenset[int]().union(*each)
            if not all(each) or any(places & other.places for other in made):
                return []
            if not all(self._is_value(name, call[name]) for name in self._required):
                return []
            made.append(Filled({name: self._typed(name, call[name]) for name in self._required}, places))
        return made if len(made) > 1 else []

    def _believed(self, answers: Mapping[str, Answer], request: Request) -> dict[str, Claim]:
        """The claims that stand: the strongest first, and no word twice."""
        claims = [made for name, answer in answers.items() for made in self._claims(name, answer, request)]
        # A word of the new title is no priority: a longer copy that the request announces has it.
        longer = [made.places for made in claims if made.announced]
        claims = [made for made in claims if made.announced or not any(made.places < places for places in longer)]
        claims.sort(key=lambda made: -made.strength)
        believed: dict[str, Claim] = {}
        taken: set[int] = set()
        for made in claims:
            if made.name not in believed and not made.places & taken:
                believed[made.name] = made
                taken |= made.places
        for made in claims:
            if made.name not in believed and self._same_day(made, believed, answers, request):
                believed[made.name] = made
        return believed

    def _claims(self, name: str, answer: Answer, request: Request) -> list[Claim]:
        made = []
        for call in answer.calls:
            value = call.get(name)
            if value in (None, "", []):
                continue
            own = frozenset[int]().union(*(request.of(call[key]) for key in self._required if key in call))
            made.append(
                claim(
                    name,
                    self._properties[name],
                    value,
                    request,
                    self._vocabulary,
                    taken=own,
                    confidence=answer.confidence,
                    alone=name == self._alone,
                    today=self._today,
                )
            )
        return [one for one in made if one is not None]

    def _same_day(
        self, made: Claim, believed: Mapping[str, Claim], answers: Mapping[str, Answer], request: Request
    ) -> bool:
        if self._properties[made.name].get("format") not in DATES:
            return False
        twins = [
            other
            for other in believed.values()
            if self._properties[other.name].get("format") in DATES and other.value == made.value
        ]
        return any(
            abs(answers[twin.name].confidence - answers[made.name].confidence) < SAME
            and not self._vocabulary.mentions(made.name, request)
            and not self._vocabulary.mentions(twin.name, request)
            for twin in twins
        )

    async def _required_value(
        self,
        name: str,
        required: Answer | None,
        answers: Mapping[str, Answer],
        claims: Mapping[str, Claim],
        ask: Ask,
        request: Request,
        taken: Places,
        given: Mapping[str, Any],
    ) -> Any:
        """The value most answers agree on, rather one whose words no other argument has taken."""
        values: dict[str, Any] = {}
        votes: dict[str, float] = {}
        for answer, weight in [
            *([(required, 1.5)] if required else []),
            *((answer, 2.0 if key in claims else 1.0) for key, answer in answers.items()),
        ]:
            for call in answer.calls[:1]:
                if self._is_value(name, call.get(name)):
                    values.setdefault(str(call[name]), call[name])
                    votes[str(call[name])] = votes.get(str(call[name]), 0.0) + weight
        # A free text of which the request has no word is made up.
        free = _is_free_text(self._properties[name])
        votes = {value: weight for value, weight in votes.items() if not free or request.of_stems(telling(value))}
        others = frozenset[int]().union(*(request.of(value) for value in given.values()))

        def rank(value: str) -> tuple[bool, bool, bool, float]:
            places = request.of(value)
            return bool(places), not places & taken, not places & others, votes[value]

        best = max(votes, key=rank, default=None)
        cut = taken | others
        if cut and (best is None or request.of(best) & cut):
            again = await self._asked(ask, request.without(cut), self._required_form([name]))
            found = next((call[name] for call in again.calls if self._is_value(name, call.get(name))), None)
            if found is not None and request.of(found):
                return self._typed(name, found)
        return self._typed(name, values[best]) if best is not None else None

    def _is_value(self, name: str, value: Any) -> bool:
        """Whether this can be meant: of "delete that task" it says that the task is ``that task``."""
        if value in (None, "", []):
            return False
        return not _is_free_text(self._properties[name]) or bool(telling(str(value)) - self._vocabulary.names)

    def _typed(self, name: str, value: Any) -> Any:
        return as_iso(value, self._today) if self._properties[name].get("format") in DATES else value

    async def _asked(self, ask: Ask, text: str, form: str) -> Answer:
        said = await ask(form, text)
        calls = said.get("function_calls") or said.get("suppressed_calls") or ()
        confidence = said.get("confidence")
        return Answer(
            tuple(call.get("arguments") or {} for call in calls),
            float(confidence) if isinstance(confidence, int | float) else 0.0,
        )

    def _required_form(self, names: list[str]) -> str:
        shown = {name: self._shown[name] for name in names}
        return written(self._name, first_sentence(self._tool.description), shown, names)

    def _optional_form(self, name: str) -> str:
        shown = {key: self._shown[key] for key in self._required}
        schema = self._shown[name]
        told = str(schema.get("description", ""))
        if self._properties[name].get("format") in DATES:
            # Where it need not say a day it does not make one up.
            shown[name] = {**schema, "description": told.rstrip(".") + ONLY_WHEN_SAID}
            return written(self._name, first_paragraph(self._tool.description), shown, self._required)
        shown[name] = schema
        action = f"{self._name.partition('_')[0]}_{name}"
        summary = f"{first_sentence(self._tool.description)} {name}: {told}"
        return written(action, summary, shown, [*self._required, name])


def _is_free_text(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "string" and "enum" not in schema and schema.get("format") not in DATES


def _date_as_words(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The engine copies "Friday" well and reckons badly which day that is: the day is worked out from its copy."""
    if schema.get("format") not in DATES:
        return dict(schema)
    told = f"{schema.get('description', '')} Copy the date word for word.".strip()
    return {**{key: value for key, value in schema.items() if key != "format"}, "description": told}
