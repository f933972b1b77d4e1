"""Which tools serve a request, best first: the choice that needs no language model.

Several things are weighed: what the texts mean (where there is an embedder), which words and concepts they share,
whether the tool does what the request wants done, and whether it takes the values that are in the request.
How much each counts was fitted on tuning sets alone: ``python -m benchmarks.choosing.weights``. Tools are taken apart
for comparing once (``Catalogue``); the evidence for each is found for every request.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from journeyman.choosing import value_kinds, wording
from journeyman.choosing.actions import CHANGES, asked_actions, concepts, cued_actions, mood_of, near, tool_actions
from journeyman.choosing.values import Asked, Needs, share
from journeyman.core.errors import ModelError
from journeyman.core.protocols import Embedder
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import packaged_json, stem, words
from journeyman.retrieval.search import BM25, terms
from journeyman.tools.library import searchable

if TYPE_CHECKING:
    from journeyman.core.protocols import Vectors

logger = logging.getLogger(__name__)
K = TypeVar("K")

MOST_COMPARED = 250
"""Tools that are compared in full: of more, those that seem nearest at first sight."""
FIRST_SECONDS = 3.0
"""How long the first request waits for the vectors of tools that are new; until they are there, others do not."""
LONGEST_SECONDS = 60.0
"""The same for a request that has nothing but the ranking to go by: on a busy machine it is late, and not wrong."""
REQUESTS_KEPT = 32
"""The latest: one text is looked at for its intent, for gaps, by a run, and by the next run of the same job."""
MOST_CLAUSES = 4
MOST_EXAMPLES = 12
OPENING_WORDS = 8
OTHER_CUE = -0.5
"""What counts where turns of phrase ask for something else than the tool does."""


class Signals(NamedTuple):
    """What speaks for and against one tool; nearly all of it lies between 0 and 1."""

    plain: float = 0.0
    """How alike the request without its quotations is to what is said of the tool first: name and first sentence. This
    and the next three are 0 without an embedder."""
    clause: float = 0.0
    """The same for the part of the request that is nearest."""
    parameters: float = 0.0
    """How alike the request is to the names of the parameters, with what is said of them."""
    example: float = 0.0
    """By how much the request is nearer to one of the tool's examples than to what is said first."""
    words: float = 0.0
    """How much of the request's words all that is said of the tool holds, rare words counting more."""
    name_said: float = 0.0
    """How much of the tool's name the request says, rare words counting more."""
    concepts: float = 0.0
    """How much of what the request speaks of what is said of the tool speaks of, in whatever words."""
    name_meant: float = 0.0
    """How much of what the tool's name speaks of the request speaks of."""
    opening: float = 0.0
    """How much of what the beginning of the request speaks of what is said first speaks of."""
    same_action: float = 0.0
    """Whether the request's first verb and the tool's are of one action; half where people do not tell them apart."""
    any_action: float = 0.0
    """The same for any verb of the request."""
    reads: float = 0.0
    """Whether the tool says that it only reads, and the request wants nothing changed."""
    identified: float = 0.0
    """1 where the request names one thing by its identifier and the tool needs one, -1 where only one of the two."""
    numbers_missing: float = 0.0
    values_missing: float = 0.0
    choices_said: float = 0.0
    options_said: float = 0.0
    """Whether the request names a value of one of the tool's optional choices, or a flag of it."""
    kinds_taken: float = 0.0
    """The share of the request's addresses, dates, files and the like that the tool has a parameter for."""
    kinds_missing: float = 0.0
    """The share of such values that the tool requires and the request does not have."""
    shape: float = 0.0
    """Whether a value in the request is written like one that the tool gives as an example: "e.g. ABC-123"."""
    prefix: float = 0.0
    """Whether an identifier in the request begins like a word of the tool's name: INC-17 like an incident."""
    takes_identifier: float = 0.0
    """1 where the request names one thing by its identifier and the tool can take one; -1 where it cannot."""
    cued: float = 0.0
    """How far what the tool does is what the request's turns of phrase want: "no need for it any more"."""
    question_changes: float = 0.0
    """Whether the tool changes something, and the request is a question; the next two for the other moods."""
    order_changes: float = 0.0
    statement_changes: float = 0.0


_SAID, _FITS = Signals._fields.index("words"), Signals._fields.index("same_action")
"""Where the signals begin that are found by the texts' words, and those by what the tool does and takes."""
_NO_MEANING, _NOTHING_SAID = (0.0,) * _SAID, (0.0,) * (_FITS - _SAID)


class _Profile:
    """What there is to know of one tool, whatever is asked for: its place, its name, all and the first that is said."""

    def __init__(self, tool: ToolSpecification, place: int, *, name: str, said: str, first: str) -> None:
        self.tool, self.name, self.place = tool, tool.name, place
        self.name_terms = frozenset(terms(name))
        self.actions, self.needs = tool_actions(tool), Needs.of(tool)
        self.meant, self.meant_first, self.meant_name = concepts(said), concepts(first), concepts(name)
        self.takes, self.requires = value_kinds.kinds_taken(tool), value_kinds.kinds_required(tool)
        self.identified, self.takes_one = value_kinds.needs_identifier(tool), value_kinds.takes_identifier(tool)
        self.shapes, self.options = value_kinds.example_shapes(tool), value_kinds.optional_values(tool)
        self.alike = (
            *(tool.read_only, self.identified, self.takes_one, self.takes, self.requires),
            *(self.needs, self.shapes, self.options, self.actions),
        )
        """All that the evidence beside words and concepts depends on: many tools of a library have the same."""
        self.kind = place
        """The same for all tools that are alike."""


class _Asked:
    """A request, taken apart once for all tools."""

    def __init__(self, text: str) -> None:
        bare = wording.quotation.sub(" ", text)
        self.values = Asked.of(text)
        self.said = frozenset(stem(word) for word in words(text))
        self.meant, self.begins = concepts(bare), concepts(opening(bare))
        self.first_verb, self.verbs = asked_actions(bare)
        self.changes = bool(self.first_verb & CHANGES)
        self.mood, self.cues = mood_of(bare), cued_actions(bare)
        self.kinds = value_kinds.kinds_said(text)
        self.shapes, self.prefixes = value_kinds.shapes_of(text), tuple(value_kinds.identifier_prefixes(text))
        self.identified = "key" in self.kinds or bool(self.prefixes)
        self._fitting: dict[int, tuple[float, ...]] = {}

    def fitting(self, each: _Profile, *, prefixed: bool) -> tuple[float, ...]:
        """The signals from ``same_action`` on, once for all tools that are alike."""
        key = ~each.kind if prefixed else each.kind
        if (kept := self._fitting.get(key)) is None:
            does, changes = each.actions, not each.tool.read_only
            kept = self._fitting[key] = Signals(
                same_action=near(self.first_verb, does),
                any_action=near(self.verbs, does),
                reads=float(each.tool.read_only and bool(self.first_verb) and not self.changes),
                identified=1.0 if self.identified and each.identified else -float(self.identified != each.identified),
                numbers_missing=each.needs.numbers_missing(self.values),
                values_missing=each.needs.values_missing(self.values),
                choices_said=each.needs.choices_said(self.values),
                options_said=float(any(one <= self.said for one in each.options)),
                kinds_taken=share(len(self.kinds & each.takes), len(self.kinds)),
                kinds_missing=share(len(each.requires - self.kinds), len(each.requires)),
                shape=float(not self.shapes.isdisjoint(each.shapes)),
                prefix=float(prefixed),
                takes_identifier=(1.0 if each.takes_one else -1.0) if self.identified else 0.0,
                cued=(near(self.cues, does) or OTHER_CUE) if self.cues and does else 0.0,
                question_changes=float(self.mood == "question" and changes),
                order_changes=float(self.mood == "order" and changes),
                statement_changes=float(self.mood == "statement" and changes),
            )[_FITS:]
        return kept


class Evidence(NamedTuple):
    """What speaks for those of some tools that seem nearest at first sight, and the names of the others."""

    catalogue: Catalogue
    asked: _Asked
    near: Sequence[_Profile]
    rest: Sequence[str]
    said: Mapping[str, tuple[float, ...]]
    """The signals from ``words`` on, of the tools that share something with the request."""
    prefixed: frozenset[str]
    meanings: Vectors | None

    def signals(self) -> dict[str, Signals]:
        rows = [_NO_MEANING] * len(self.catalogue.tools) if self.meanings is None else self.meanings.tolist()
        signals = {}
        for each in self.near:
            fits = self.asked.fitting(each, prefixed=each.name in self.prefixed)
            signals[each.name] = Signals._make((*rows[each.place], *self.said.get(each.name, _NOTHING_SAID), *fits))
        return signals

    def scores(self, weights: Sequence[float]) -> dict[str, float]:
        """The weighed sum of each tool's signals, in their order; where there is nothing, nothing is added."""
        meant = [0.0] * len(self.catalogue.tools)
        if self.meanings is not None:
            columns = [column * weight for column, weight in zip(self.meanings.astype(float).T, weights, strict=False)]
            meant = sum(columns[1:], columns[0]).tolist()
        said_weights, fit_weights = weights[_SAID:_FITS], weights[_FITS:]
        scores, fits, said, prefixed = dict[str, float](), dict[int, list[float]](), self.said, self.prefixed
        for each in self.near:
            name, key, score = each.name, each.kind, meant[each.place]
            if name in prefixed:
                key = ~key
            if key not in fits:
                weighed = map(mul, fit_weights, self.asked.fitting(each, prefixed=key < 0))
                fits[key] = [one for one in weighed if one]
            if name in said:
                score = sum(map(mul, said_weights, said[name]), score)
            scores[name] = sum(fits[key], score)
        return scores


class Catalogue:
    """Some tools, prepared once for all requests."""

    def __init__(self, tools: Sequence[ToolSpecification]) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self._said = {name: searchable(tool) for name, tool in self.tools.items()}
        self._names = {name: " ".join(words(name)) for name in self.tools}
        self._first = {name: f"{self._names[name]}. {first_sentence(tool)}" for name, tool in self.tools.items()}
        self._by_words = BM25(self._said)
        self._profiles = {
            name: _Profile(tool, place, name=self._names[name], said=self._said[name], first=self._first[name])
            for place, (name, tool) in enumerate(self.tools.items())
        }
        kinds: dict[tuple[object, ...], int] = {}
        for each in self._profiles.values():
            each.kind = kinds.setdefault(each.alike, each.place)
        named = Counter(one for each in self._profiles.values() for one in each.name_terms)
        spoken = Counter(one for each in self._profiles.values() for one in each.meant_first)
        self._rarity = {one: math.log(1 + len(self.tools) / count) for one, count in named.items()}
        self._concept_rarity = {one: math.log(1 + len(self.tools) / count) for one, count in spoken.items()}
        self._unspoken = math.log(1 + len(self.tools))
        self._name_rarity = {
            name: sum(self._rarity[one] for one in each.name_terms) for name, each in self._profiles.items()
        }
        each_of = self._profiles.items()
        self._by_name_word = _holders((name, frozenset(words(name))) for name in self.tools)
        self._by_name_term = _holders((name, each.name_terms) for name, each in each_of)
        self._by_meant = _holders((name, each.meant) for name, each in each_of)
        self._by_meant_name = _holders((name, each.meant_name) for name, each in each_of)
        self._by_meant_first = _holders((name, each.meant_first) for name, each in each_of)
        self._name_weight = {name: self._weight(each.meant_name) for name, each in self._profiles.items()}
        self._numbers = {name: frozenset(_NUMBER.findall(name)) for name in self.tools}
        self._by_number = _holders(self._numbers.items())
        self._asked = lru_cache(REQUESTS_KEPT)(_Asked)
        self._covered: tuple[ToolSpecification, ...] | None = None
        """Some that it was found to cover."""
        self.vectors: Vectors | None = None
        self._making: asyncio.Task[None] | None = None
        self._waited = False
        self._examples: list[tuple[int, int]] = []

    async def meanings(self, text: str, embedder: Embedder | None, *, patient: bool = False) -> Vectors | None:
        """A row for each tool: how alike the request is to what is said of it, in four ways."""
        if embedder is None:
            return None
        import numpy as np

        from journeyman.retrieval.index import unit

        if self.vectors is None and not await self._embedded(embedder, patient):
            return None
        assert self.vectors is not None
        bare = unquoted(text)
        clauses = [part for part in wording.between_clauses.split(bare) if sum(map(str.isalpha, part)) > 3]
        clauses = clauses[:MOST_CLAUSES] if len(clauses) > 1 else []
        asked = unit(await embedder.embed([text, bare, *clauses]))
        count = len(self.tools)
        first, parameters = self.vectors[:count], self.vectors[count : 2 * count]
        plain = first @ asked[1]
        clause = (first @ asked[2:].T).max(axis=1) if clauses else plain
        example = np.zeros_like(plain)
        for row, place in self._examples:
            example[place] = max(example[place], float(self.vectors[row] @ asked[0]) - float(plain[place]))
        return np.stack([plain, clause, parameters @ asked[0], example], axis=1)

    async def _embedded(self, embedder: Embedder, patient: bool) -> bool:
        """Whether the tools' vectors are there. Those of hundreds take seconds: until then, words must do."""
        if self._making is None or self._making.done() or self._making.get_loop() is not asyncio.get_running_loop():
            self._making = asyncio.create_task(self._embed(embedder), name="vectors of tools")
        seconds = LONGEST_SECONDS if patient else 0 if self._waited else FIRST_SECONDS
        done, _ = await asyncio.wait({self._making}, timeout=seconds)
        self._waited = True
        for made in done:
            made.result()
        return bool(done)

    async def _embed(self, embedder: Embedder) -> None:
        from journeyman.retrieval.index import unit

        self.vectors = unit(await embedder.embed(self._texts()))

    def _texts(self) -> list[str]:
        tools = self.tools.values()
        texts = [*self._first.values(), *(parameters_text(tool) or self._names[tool.name] for tool in tools)]
        self._examples = []
        for place, tool in enumerate(tools):
            for request in tool.requests[:MOST_EXAMPLES]:
                self._examples.append((len(texts), place))
                texts.append(request)
        return texts

    def _weight(self, spoken: frozenset[int]) -> float:
        # Nearly always there is nothing in common.
        return sum(self._concept_rarity.get(one, self._unspoken) for one in spoken) if spoken else 0.0

    def covers(self, tools: Sequence[ToolSpecification]) -> bool:
        """Whether it holds all of these, as they are."""
        covered = tools is self._covered or all(self.tools.get(tool.name) is tool for tool in tools)
        if covered and isinstance(tools, tuple):
            self._covered = tools
        return covered

    def _at_first_sight(
        self, names: list[str], meant: Iterable[int], by_words: Mapping[str, float], meanings: Vectors | None
    ) -> tuple[list[str], list[str]]:
        """The tools to compare in full, and the others."""
        if len(names) <= MOST_COMPARED:
            return names, []
        shared = Counter(name for one in meant for name in self._by_meant.get(one, ()))
        nearness = [0.0] * len(self.tools)
        if meanings is not None:
            plain, _, parameters, _ = meanings.astype(float).T
            nearness = (plain + parameters).tolist()
        sight = dict(zip(self.tools, nearness, strict=True))
        for name in by_words.keys() | shared.keys():
            sight[name] += 2 * by_words.get(name, 0.0) + 0.1 * shared[name]
        ordered = sorted(names, key=sight.__getitem__, reverse=True)
        return ordered[:MOST_COMPARED], ordered[MOST_COMPARED:]

    def compare(self, text: str, meanings: Vectors | None, *, among: Iterable[str]) -> Evidence:
        """The evidence for those of some tools that seem nearest at first sight."""
        by_words, asked = self._by_words.shares(text), self._asked(text)
        near_ones, rest = self._at_first_sight(list(dict.fromkeys(among)), asked.meant, by_words, meanings)
        weight, begins = self._weight(asked.meant) + self._unspoken, self._weight(asked.begins) + self._unspoken
        named = _found(self._by_name_term, asked.said, self._rarity, 0.0)
        meant = _found(self._by_meant, asked.meant, self._concept_rarity, self._unspoken)
        meant_name = _found(self._by_meant_name, asked.meant, self._concept_rarity, self._unspoken)
        meant_first = _found(self._by_meant_first, asked.begins, self._concept_rarity, self._unspoken)
        prefixed = frozenset(
            name
            for word, names in (self._by_name_word.items() if asked.prefixes else ())
            if word.startswith(asked.prefixes)
            for name in names
        )
        said = {
            name: (
                by_words.get(name, 0.0),
                share(named.get(name, 0.0), self._name_rarity[name]),
                meant.get(name, 0.0) / weight,
                meant_name.get(name, 0.0) / (self._name_weight[name] + self._unspoken / 2),
                meant_first.get(name, 0.0) / begins,
            )
            for name in {*by_words, *named, *meant, *meant_name, *meant_first}.intersection(near_ones)
        }
        return Evidence(self, asked, [self._profiles[name] for name in near_ones], rest, said, prefixed, meanings)

    def named_in(self, text: str) -> set[str]:
        """The tools that a request names outright, or by the numbers in their names."""
        said = frozenset(_NUMBER.findall(text))
        numbered = {name for one in said for name in self._by_number.get(one, ()) if said >= self._numbers[name]}
        whole = self.tools if "_" in text else ()
        return numbered | {n for n in whole if "_" in n and n in text and not (said and self._numbers[n])}


def _holders(spoken: Iterable[tuple[str, frozenset[K]]]) -> dict[K, list[str]]:
    """The names that have each of these: for a request only those are looked at that share something with it."""
    holders: dict[K, list[str]] = {}
    for name, those in spoken:
        for one in those:
            holders.setdefault(one, []).append(name)
    return holders


def _found(
    holders: Mapping[K, Sequence[str]], asked: Iterable[K], weights: Mapping[K, float], otherwise: float
) -> dict[str, float]:
    """How much of what is asked each name has, by weight; those that have nothing are left out."""
    held: dict[str, float] = {}
    for one in asked:
        weight = weights.get(one, otherwise)
        for name in holders.get(one, ()):
            held[name] = held.get(name, 0.0) + weight
    return held


def unquoted(text: str) -> str:
    return " ".join(wording.quotation.sub(" ", text).split()) or text


def opening(text: str) -> str:
    """The first words of a request, in which people say what they want before they say the rest."""
    return " ".join(wording.opening_ends.split(wording.polite.sub("", text), maxsplit=1)[0].split()[:OPENING_WORDS])


def first_sentence(tool: ToolSpecification) -> str:
    return wording.first_sentence_ends.split(tool.description.strip(), maxsplit=1)[0][:300]


def parameters_text(tool: ToolSpecification) -> str:
    """The names of the parameters with what is said of them."""
    properties: Mapping[str, object] = tool.parameters.get("properties", {})
    said = []
    for name, schema in properties.items():
        described = str(schema.get("description", "")) if isinstance(schema, dict) else ""
        said.append(f"{' '.join(words(name))} {described}".strip())
    return "; ".join(said)[:2_000]


# --- the order

CATALOGUES_KEPT = 8
MANY, MOST_MORE = 64, 200
"""From how many tools on a catalogue that holds so many more is used for them as well."""
LONGEST_REQUEST = 8_000
"""In characters; of a longer one the beginning counts."""

NAMED = 4.0
"""What counts that a request names a tool outright, or by the number in its name. Set by hand: no request of the sets
does so."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Ranked:
    """Tools for a request."""

    tools: tuple[tuple[str, float], ...]
    """Names, best first, each with the chance that it is the one, if one of them is; together 1."""
    by_words: bool = False
    """Whether nothing but words could be compared."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.tools)


def _best_first(chances: Mapping[str, float]) -> list[str]:
    return sorted(chances, key=chances.__getitem__, reverse=True)


class ToolRanking:
    """Orders tools by how well they serve a request. Without an ``embedder`` words alone are compared."""

    def __init__(self, *, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._catalogues: list[Catalogue] = []
        """The latest first."""

    async def rank(self, text: str, tools: Sequence[ToolSpecification], *, k: int) -> list[str]:
        """The names of at most ``k`` of these tools, best first."""
        chances, rest, _ = await self._chances(text, tools)
        return [*_best_first(chances), *rest][:k]

    async def ranked(self, text: str, tools: Sequence[ToolSpecification], *, patient: bool = False) -> Ranked:
        """All of these tools with how likely each is."""
        chances, rest, by_words = await self._chances(text, tools, patient)
        total = sum(chances.values())
        ranked = [(name, chances[name] / total) for name in _best_first(chances)]
        return Ranked((*ranked, *((name, 0.0) for name in rest)), by_words)

    async def _chances(
        self, text: str, tools: Sequence[ToolSpecification], patient: bool = False
    ) -> tuple[dict[str, float], Sequence[str], bool]:
        """How likely each of the nearest is beside the best; the names of the others; whether there were only words."""
        if (evidence := await self._evidence(text, tools, patient)) is None:
            return {}, [tool.name for tool in tools], self._embedder is None
        by_words = evidence.meanings is None
        # What counts how much, with an embedder and without: see ``Signals``.
        known = packaged_json("journeyman.choosing", "ranking.json")
        scores = evidence.scores(tuple(known["by_words" if by_words else "by_meaning"].values()))
        for name in evidence.catalogue.named_in(text) & scores.keys():
            scores[name] += NAMED
        best = max(scores.values())
        return {name: math.exp(score - best) for name, score in scores.items()}, evidence.rest, by_words

    async def signals(
        self, text: str, tools: Sequence[ToolSpecification], *, patient: bool = False
    ) -> tuple[dict[str, Signals], Sequence[str], bool]:
        """The evidence for the tools that seem nearest; the names of the others; whether there were only words."""
        if (evidence := await self._evidence(text, tools, patient)) is None:
            return {}, [tool.name for tool in tools], self._embedder is None
        return evidence.signals(), evidence.rest, evidence.meanings is None

    def first_vectors(self, tools: Sequence[ToolSpecification]) -> Vectors | None:
        """The vectors of what is said first of these tools, and perhaps of some more; None before they are made."""
        kept = self._catalogue(tools)
        return None if kept.vectors is None else kept.vectors[: len(kept.tools)]

    async def _evidence(self, text: str, tools: Sequence[ToolSpecification], patient: bool = False) -> Evidence | None:
        """None where nothing is asked, or there is no tool."""
        text = text[:LONGEST_REQUEST]
        if not tools or not any(map(str.isalnum, text)):
            return None
        catalogue = self._catalogue(tools)
        try:
            meanings = await catalogue.meanings(text, self._embedder, patient=patient)
        except ModelError as error:
            logger.warning("choosing tools by words alone: %s", error)
            meanings = None
        return catalogue.compare(text, meanings, among=[tool.name for tool in tools])

    def _catalogue(self, tools: Sequence[ToolSpecification]) -> Catalogue:
        """These tools, prepared; of many, also some more: a run that looks again leaves out what it has."""
        for place, kept in enumerate(self._catalogues):
            same = len(kept.tools) == len(tools)
            if (same or len(kept.tools) - MOST_MORE <= len(tools) >= MANY) and kept.covers(tools):
                self._catalogues.insert(0, self._catalogues.pop(place))
                return kept
        self._catalogues.insert(0, Catalogue(tools))
        del self._catalogues[CATALOGUES_KEPT:]
        return self._catalogues[0]
