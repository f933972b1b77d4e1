"""Which tools serve a request, best first: the choice that needs no language model.

Several things are weighed: what the texts mean (where there is an embedder), which words they share, whether the verb
of the request and that of the tool's name agree, and whether the values in the request are those that the tool takes.
How much each counts was fitted on tuning halves alone: ``python -m benchmarks.choosing.weights``.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from journeyman.core.budgets import SEARCHED_CHARS
from journeyman.core.errors import ModelError
from journeyman.core.protocols import Embedder
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import stem, words
from journeyman.memory.actions import CHANGES, POLITE, READS, asked_actions, near, tool_actions
from journeyman.memory.concepts import concepts
from journeyman.memory.fitting import Asked, compare
from journeyman.memory.value_kinds import (
    example_shapes,
    identifier_prefixes,
    kinds_required,
    kinds_said,
    kinds_taken,
    needs_identifier,
    shapes_of,
)
from journeyman.retrieval.bm25 import BM25, terms
from journeyman.tools.library import searchable

if TYPE_CHECKING:
    from journeyman.core.protocols import Vectors

SHORTLIST = 64
"""Tools that are compared in full: of more, those that seem nearest at first sight."""
CATALOGUES_KEPT = 8
MOST_CLAUSES = 4
QUOTED = re.compile(r"\"[^\"]{3,}\"|“[^”]{3,}”|(?<!\w)'[^']{3,}'(?!\w)|```.*?```", re.DOTALL)
_CLAUSES = re.compile(r"(?<=[.!?;\n])\s+|,\s+(?:and|then|but)\s+")
OPENING_WORDS = 8
_OPENING_ENDS = re.compile(r"[:;]\s|[.!?]\s|,\s|\s(?:that|then|and then|because|so that)\s", re.IGNORECASE)
_FIRST_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Signals:
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
    words_first: float = 0.0
    """The same of what is said first: name and first sentence."""
    name_said: float = 0.0
    """How much of the tool's name the request says, rare words counting more."""
    concepts: float = 0.0
    """How much of what the request speaks of what is said of the tool speaks of, in whatever words."""
    concepts_first: float = 0.0
    """The same of what is said first."""
    name_meant: float = 0.0
    """How much of what the tool's name speaks of the request speaks of."""
    opening: float = 0.0
    """How much of what the beginning of the request speaks of what is said first speaks of."""
    same_action: float = 0.0
    """Whether the request's first verb and the tool's are of one action; half where people do not tell them apart."""
    any_action: float = 0.0
    """The same for any verb of the request."""
    other_effect: float = 0.0
    """Whether one of them changes something and the other only reads."""
    reads: float = 0.0
    """Whether the tool says that it only reads, and the request wants nothing changed."""
    identified: float = 0.0
    """1 where the request names one thing by its identifier and the tool needs one, -1 where only one of the two."""
    numbers_missing: float = 0.0
    values_missing: float = 0.0
    choices_said: float = 0.0
    kinds_taken: float = 0.0
    """The share of the request's addresses, dates, files and the like that the tool has a parameter for."""
    kinds_missing: float = 0.0
    """The share of such values that the tool requires and the request does not have."""
    shape: float = 0.0
    """Whether a value in the request is written like one that the tool gives as an example: "e.g. ABC-123"."""
    prefix: float = 0.0
    """Whether an identifier in the request begins like a word of the tool's name: INC-17 like an incident."""


WEIGHTS = {
    "plain": 3.21,
    "clause": 3.46,
    "parameters": 2.51,
    "example": 3.0,
    "words": 1.44,
    "words_first": 0.54,
    "name_said": 0.61,
    "concepts": 2.08,
    "concepts_first": 1.0,
    "name_meant": 3.77,
    "opening": 1.32,
    "same_action": 0.6,
    "any_action": 0.25,
    "other_effect": -0.34,
    "reads": 1.03,
    "identified": 0.62,
    "numbers_missing": -0.6,
    "values_missing": -0.62,
    "choices_said": 0.71,
    "kinds_taken": 1.64,
    "kinds_missing": -0.87,
    "shape": 1.55,
    "prefix": 0.62,
}
WEIGHTS_BY_WORDS = {
    "plain": 0.0,
    "clause": 0.0,
    "parameters": 0.0,
    "example": 0.0,
    "words": 3.06,
    "words_first": 1.35,
    "name_said": 1.43,
    "concepts": 2.84,
    "concepts_first": 1.37,
    "name_meant": 4.19,
    "opening": 1.52,
    "same_action": 0.6,
    "any_action": 0.27,
    "other_effect": -0.42,
    "reads": 0.99,
    "identified": 0.56,
    "numbers_missing": -0.71,
    "values_missing": -0.59,
    "choices_said": 1.16,
    "kinds_taken": 1.85,
    "kinds_missing": -0.78,
    "shape": 1.45,
    "prefix": 0.65,
}

_MEANINGS = ("plain", "clause", "parameters", "example")
"""The signals that take an embedder, in the order of ``Catalogue.meanings``."""


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


class ToolRanking:
    """Orders tools by how well they serve a request. Without an ``embedder`` words alone are compared."""

    def __init__(self, *, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._catalogues: OrderedDict[tuple[int, ...], Catalogue] = OrderedDict()

    async def rank(self, text: str, tools: Sequence[ToolSpecification], *, k: int) -> list[str]:
        """The names of at most ``k`` of these tools, best first."""
        return list((await self.ranked(text, tools)).names[:k])

    async def ranked(self, text: str, tools: Sequence[ToolSpecification]) -> Ranked:
        """All of these tools with how likely each is."""
        signals, rest, by_words = await self.signals(text, tools)
        weights = tuple((WEIGHTS_BY_WORDS if by_words else WEIGHTS).values())
        scores = {name: sum(map(_product, weights, astuple(each))) for name, each in signals.items()}
        best = max(scores.values(), default=0.0)
        chances = {name: math.exp(score - best) for name, score in scores.items()}
        total = sum(chances.values())
        ordered = sorted(chances.items(), key=lambda item: -item[1])
        return Ranked(
            (*((name, chance / total) for name, chance in ordered), *((name, 0.0) for name in rest)), by_words
        )

    async def signals(
        self, text: str, tools: Sequence[ToolSpecification]
    ) -> tuple[dict[str, Signals], list[str], bool]:
        """The evidence for the tools that seem nearest; the names of the others; whether there were only words."""
        text = text[:SEARCHED_CHARS]
        if not tools or not any(map(str.isalnum, text)):
            return {}, [tool.name for tool in tools], self._embedder is None
        catalogue = self._catalogue(tools)
        try:
            meanings = await catalogue.meanings(text, self._embedder)
        except ModelError as error:
            logger.warning("choosing tools by words alone: %s", error)
            meanings = None
        found, rest = catalogue.compare(text, meanings)
        return found, rest, meanings is None

    def _catalogue(self, tools: Sequence[ToolSpecification]) -> Catalogue:
        # Whose identities these are, the catalogue holds: they cannot be given to others meanwhile.
        key = tuple(map(id, tools))
        if (kept := self._catalogues.get(key)) is None:
            kept = self._catalogues[key] = Catalogue(tools)
            while len(self._catalogues) > CATALOGUES_KEPT:
                self._catalogues.popitem(last=False)
        self._catalogues.move_to_end(key)
        return kept


def _product(one: float, other: float) -> float:
    return one * other


class Catalogue:
    """Some tools, prepared once for all requests."""

    def __init__(self, tools: Sequence[ToolSpecification]) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self._said = {name: searchable(tool) for name, tool in self.tools.items()}
        self._names = {name: " ".join(words(name)) for name in self.tools}
        self._first = {name: f"{self._names[name]}. {first_sentence(tool)}" for name, tool in self.tools.items()}
        self._by_all, self._by_first = BM25(self._said), BM25(self._first)
        self._actions = {name: tool_actions(tool) for name, tool in self.tools.items()}
        self._name_terms = {name: frozenset(terms(spelled)) for name, spelled in self._names.items()}
        holders: dict[str, int] = {}
        for each in self._name_terms.values():
            for one in each:
                holders[one] = holders.get(one, 0) + 1
        self._rarity = {one: math.log(1 + len(self.tools) / count) for one, count in holders.items()}
        self._kinds = {name: (kinds_taken(tool), kinds_required(tool)) for name, tool in self.tools.items()}
        self._meant = {name: concepts(said) for name, said in self._said.items()}
        self._meant_first = {name: concepts(said) for name, said in self._first.items()}
        self._meant_name = {name: concepts(said) for name, said in self._names.items()}
        spoken = Counter(one for each in self._meant_first.values() for one in each)
        self._concept_rarity = {one: math.log(1 + len(self.tools) / count) for one, count in spoken.items()}
        self._unspoken = math.log(1 + len(self.tools))
        self._identifies = {name: needs_identifier(tool) for name, tool in self.tools.items()}
        self._words_of = {name: words(name) for name in self.tools}
        self._shapes = {name: example_shapes(tool) for name, tool in self.tools.items()}
        self._places = {name: place for place, name in enumerate(self.tools)}
        self._vectors: Vectors | None = None
        self._examples: list[tuple[int, int]] = []

    async def meanings(self, text: str, embedder: Embedder | None) -> Vectors | None:
        """A row for each tool: how alike the request is to what is said of it, in four ways."""
        if embedder is None:
            return None
        import numpy as np

        if self._vectors is None:
            self._vectors = _unit(await embedder.embed(self._texts()))
        bare = " ".join(QUOTED.sub(" ", text).split()) or text
        clauses = [part for part in _CLAUSES.split(bare) if sum(map(str.isalpha, part)) > 3]
        clauses = clauses[:MOST_CLAUSES] if len(clauses) > 1 else []
        asked = _unit(await embedder.embed([text, bare, *clauses]))
        count = len(self.tools)
        first, parameters = self._vectors[:count], self._vectors[count : 2 * count]
        plain = first @ asked[1]
        clause = (first @ asked[2:].T).max(axis=1) if clauses else plain
        example = np.zeros_like(plain)
        for row, place in self._examples:
            example[place] = max(example[place], float(self._vectors[row] @ asked[0]) - float(plain[place]))
        return np.stack([plain, clause, parameters @ asked[0], example], axis=1)

    def _texts(self) -> list[str]:
        tools = self.tools.values()
        texts = [*self._first.values(), *(parameters_text(tool) or self._names[tool.name] for tool in tools)]
        self._examples = []
        for place, tool in enumerate(tools):
            for request in tool.requests[:5]:
                self._examples.append((len(texts), place))
                texts.append(request)
        return texts

    def _weight(self, spoken: frozenset[int]) -> float:
        return sum(self._concept_rarity.get(one, self._unspoken) for one in spoken)

    def compare(self, text: str, meanings: Vectors | None) -> tuple[dict[str, Signals], list[str]]:
        """The evidence for those tools that seem nearest at first sight, and the names of the others."""
        by_all, by_first = self._by_all.shares(text), self._by_first.shares(text)
        bare = QUOTED.sub(" ", text)
        meant, begins = concepts(bare), concepts(opening(bare))
        weight, weight_begins = self._weight(meant) + self._unspoken, self._weight(begins) + self._unspoken
        shared = {name: self._weight(meant & each) / weight for name, each in self._meant.items()}
        sight = {name: by_all.get(name, 0.0) + by_first.get(name, 0.0) + shared[name] for name in self.tools}
        if meanings is not None:
            alike = meanings[:, 0].tolist()
            sight = {name: sight[name] + 2 * alike[place] for name, place in self._places.items()}
        ordered = sorted(self.tools, key=lambda name: -sight[name])
        near_ones, rest = ordered[:SHORTLIST], ordered[SHORTLIST:]
        asked, said = Asked.of(text), frozenset(stem(word) for word in words(text))
        first_verb, verbs = asked_actions(bare)
        kinds = kinds_said(text)
        written, prefixes = shapes_of(text), identifier_prefixes(text)
        coded = "key" in kinds or bool(prefixes)
        rows = None if meanings is None else meanings.tolist()
        found = {}
        for name in near_ones:
            tool, actions = self.tools[name], self._actions[name]
            evidence = compare(asked, tool, searchable=self._said[name], similarity=0.0, described=0.0)
            spelled = self._name_terms[name]
            rarity = sum(self._rarity[one] for one in spelled)
            takes, needs = self._kinds[name]
            alike = {} if rows is None else dict(zip(_MEANINGS, rows[self._places[name]], strict=True))
            found[name] = Signals(
                **alike,
                words=by_all.get(name, 0.0),
                words_first=by_first.get(name, 0.0),
                name_said=sum(self._rarity[one] for one in spelled & said) / rarity if rarity else 0.0,
                concepts=shared[name],
                concepts_first=self._weight(meant & self._meant_first[name]) / weight,
                name_meant=self._weight(meant & self._meant_name[name])
                / (self._weight(self._meant_name[name]) + self._unspoken / 2),
                opening=self._weight(begins & self._meant_first[name]) / weight_begins,
                same_action=near(first_verb, actions),
                any_action=near(verbs, actions),
                other_effect=_other_effect(first_verb, actions),
                reads=float(tool.read_only and bool(first_verb) and not first_verb & CHANGES),
                identified=_identified(coded, self._identifies[name]),
                numbers_missing=evidence.numbers_missing,
                values_missing=evidence.values_missing,
                choices_said=evidence.choices_said,
                kinds_taken=len(kinds & takes) / len(kinds) if kinds else 0.0,
                kinds_missing=len(needs - kinds) / len(needs) if needs else 0.0,
                shape=float(bool(written & self._shapes[name])),
                prefix=float(any(word.startswith(one) for one in prefixes for word in self._words_of[name])),
            )
        return found, rest


def _other_effect(asked: frozenset[str], does: frozenset[str]) -> float:
    """1 where one of them surely changes something and the other surely only reads."""
    if not asked or not does:
        return 0.0
    return float((asked <= CHANGES and does <= READS) or (asked <= READS and does <= CHANGES))


def _identified(said: bool, needed: bool) -> float:
    return float(said and needed) - float(said != needed)


def opening(text: str) -> str:
    """The first words of a request, in which people say what they want before they say the rest."""
    return " ".join(_OPENING_ENDS.split(POLITE.sub("", text), maxsplit=1)[0].split()[:OPENING_WORDS])


def first_sentence(tool: ToolSpecification) -> str:
    return _FIRST_SENTENCE.split(tool.description.strip(), maxsplit=1)[0][:300]


def parameters_text(tool: ToolSpecification) -> str:
    """The names of the parameters with what is said of them."""
    properties: Mapping[str, object] = tool.parameters.get("properties", {})
    said = []
    for name, schema in properties.items():
        told = str(schema.get("description", "")) if isinstance(schema, dict) else ""
        said.append(f"{' '.join(words(name))} {told}".strip())
    return "; ".join(said)[:2_000]


def _unit(rows: Vectors) -> Vectors:
    import numpy as np

    found = np.asarray(rows, dtype=np.float32)
    scaled: Vectors = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
    return scaled
