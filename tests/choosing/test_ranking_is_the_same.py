"""The ranking takes short ways; what it gives is the plain weighed sum of all signals, tool by tool."""

from __future__ import annotations

import math
import random
import re
from functools import cache

import pytest

from benchmarks.choosing.cases import SETS, toolbox, written
from benchmarks.overhead.toolbox import toolbox as overhead_tools
from journeyman import tool
from journeyman.app.finding import gap_embedder
from journeyman.choosing import ranking
from journeyman.choosing.ranking import Catalogue, Signals, ToolRanking
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import packaged_json, words

NAMES = sorted(folder.name for folder in SETS.iterdir())
Tools = tuple[ToolSpecification, ...]


@cache
def everything() -> Tools:
    """The tools of all sets, and as many of one kind: more than are compared in full."""
    alike = [tool(function).specification for function in overhead_tools(count=100)]
    return tuple({item.name: item for item in [*(item for name in NAMES for item in toolbox(name)), *alike]}.values())


async def plainly(text: str, tools: Tools, plain: ToolRanking) -> list[tuple[str, float]]:
    """Each tool by itself, with nothing kept from one to the next."""
    catalogue = plain._catalogue(tools)
    meanings = await catalogue.meanings(text, plain._embedder, patient=True)
    asked, by_words = ranking._Asked(text), catalogue._by_words.shares(text)
    rows = None if meanings is None else meanings.tolist()
    weights = packaged_json("journeyman.choosing", "ranking.json")["by_words" if rows is None else "by_meaning"]
    numbers = set(re.findall(r"\d+", text))

    def sight(name: str) -> float:
        each = catalogue._profiles[name]
        seen = 2 * by_words.get(name, 0.0) + 0.1 * len(asked.meant & each.meant)
        return seen if rows is None else seen + (rows[each.place][0] + rows[each.place][2])

    names = [item.name for item in tools]
    if len(names) > ranking.MOST_COMPARED:
        names.sort(key=sight, reverse=True)
    scores = {}
    for name in names[: ranking.MOST_COMPARED]:
        meaning = None if rows is None else rows[catalogue._profiles[name].place]
        score = 0.0
        for weight, signal in zip(weights.values(), one_by_one(catalogue, name, text, meaning), strict=True):
            score += weight * signal
        own = re.findall(r"\d+", name)
        named = numbers >= set(own) if numbers and own else "_" in name and name in text
        scores[name] = score + ranking.NAMED * named
    chances = {name: math.exp(score - max(scores.values())) for name, score in scores.items()}
    ordered = sorted(chances.items(), key=lambda item: -item[1])
    return [(name, chance / sum(chances.values())) for name, chance in ordered] + [
        (name, 0.0) for name in names[ranking.MOST_COMPARED :]
    ]


def one_by_one(catalogue: Catalogue, name: str, text: str, meaning: list[float] | None) -> Signals:
    each, asked = catalogue._profiles[name], ranking._Asked(text)

    def weight(spoken: frozenset[int]) -> float:
        return sum(catalogue._concept_rarity.get(one, catalogue._unspoken) for one in spoken)

    prefixed = bool(asked.prefixes) and any(word.startswith(asked.prefixes) for word in words(name))
    whole = sum(catalogue._rarity[one] for one in each.name_terms)
    said = (
        catalogue._by_words.shares(text).get(name, 0.0),
        sum(catalogue._rarity[one] for one in asked.said if one in each.name_terms) / whole if whole else 0.0,
        weight(asked.meant & each.meant) / (weight(asked.meant) + catalogue._unspoken),
        weight(asked.meant & each.meant_name) / (weight(each.meant_name) + catalogue._unspoken / 2),
        weight(asked.begins & each.meant_first) / (weight(asked.begins) + catalogue._unspoken),
    )
    return Signals._make((*(meaning or (0.0,) * 4), *said, *asked.fitting(each, prefixed=prefixed)))


async def compared(text: str, tools: Tools, quick: ToolRanking, plain: ToolRanking) -> None:
    told, expected = (await quick.ranked(text, tools, patient=True)).tools, await plainly(text, tools, plain)
    # What is as likely but for the last bit, which depends on the order in which sets are walked, may change places.
    assert [chance for _, chance in told] == pytest.approx([chance for _, chance in expected], rel=1e-9), text
    chances = dict(expected)
    assert dict(told) == pytest.approx(chances, rel=1e-9), text
    for (name, chance), (other, _) in zip(told, expected, strict=True):
        assert name == other or chances[name] == pytest.approx(chances[other], rel=1e-9), text
        assert chance == pytest.approx(chances[name], rel=1e-9)
    assert await quick.rank(text, tools, k=20) == [name for name, _ in told[:20]]
    evidence, rest, _ = await quick.signals(text, tools)
    assert {*evidence, *rest} == {item.name for item in tools}


@pytest.mark.parametrize("embedded", [False, True])
async def test_the_order_is_that_of_the_plain_sums_for_random_requests_and_tools(embedded: bool) -> None:
    embedder, draw = gap_embedder() if embedded else None, random.Random(11)
    quick, plain = ToolRanking(embedder=embedder), ToolRanking(embedder=embedder)
    requests = [case.request for name in NAMES for case in written(name)]
    for size in (1, 7, 60, len(everything())):
        tools = tuple(draw.sample(everything(), size))
        for _ in range(2):
            said = [word for request in draw.sample(requests, 3) for word in request.split()]
            text = " ".join(draw.sample(said, min(len(said), draw.randrange(1, 25))))
            for more in (
                "",
                f" {draw.choice(tools).name}",
                f" INC-{draw.randrange(99)} and lookup {draw.randrange(99)}",
            ):
                await compared(text + more, tools, quick, plain)


@pytest.mark.parametrize("name", NAMES)
async def test_the_order_is_that_of_the_plain_sums_for_the_labelled_requests(name: str) -> None:
    quick, plain = ToolRanking(embedder=gap_embedder()), ToolRanking(embedder=gap_embedder())
    for case in random.Random(5).sample(written(name), 12):
        await compared(case.request, tuple(toolbox(name)), quick, plain)
        await compared(case.request, everything(), quick, plain)


def test_a_tool_is_named_by_all_of_its_numbers_or_outright() -> None:
    catalogue = Catalogue(everything())
    assert catalogue.named_in("lookup 17") == {"lookup_17"}
    assert catalogue.named_in("call lookup_17, not nap_sync") == {"lookup_17", "nap_sync"}
    assert catalogue.named_in("nap_sync") == {"nap_sync"}
    assert not catalogue.named_in("nap sync")
