"""How the weights of the types of intents were found, as in ``weights``: ``python -m benchmarks.choosing.types``.

It prints how often the type is right for the requests of one written set by weights that were fitted on the others.
"""

import asyncio
from collections.abc import Sequence

import numpy as np

from benchmarks.choosing.accuracy import ADDED_TYPES
from benchmarks.choosing.cases import TUNING, Case, written
from benchmarks.choosing.weights import Choice, fitted, hits
from benchmarks.gaps.vectors import RememberedVectors
from journeyman.choosing import ranking
from journeyman.choosing.intents import UNKNOWN, IntentReader, TypeSignals
from journeyman.choosing.ranking import ToolRanking
from journeyman.core.gaps import add_intent_type
from journeyman.core.protocols import Embedder

PENALTY = 1.0


async def choices(cases: Sequence[Case], embedder: Embedder) -> list[Choice]:
    ranking, tools = ToolRanking(embedder=embedder), cases[0].tools
    reader, found = IntentReader(tools, embedder=embedder, ranking=ranking), []
    for case in cases:
        ranked = await ranking.ranked(case.request, tools)
        signals = await reader.type_signals(case.request, ranked, {tool.name: tool for tool in tools})
        found.append((np.array([*signals.values()]), np.array([name == (case.intent or UNKNOWN) for name in signals])))
    return found


def main() -> None:
    ranking.FIRST_SECONDS = 600.0  # nothing may be compared by words alone while vectors are made
    for name in ADDED_TYPES:
        add_intent_type(name)
    embedder = RememberedVectors()
    data = {name: asyncio.run(choices(written(name), embedder)) for name in TUNING}
    print("# set left out: type right (common, all)")
    for name in TUNING:
        weights = fitted([each for other in TUNING if other != name for each in data[other]], PENALTY)
        right, common = hits(data[name], weights), np.array([case.common for case in written(name)])
        print(f"# {name:8} {right[common].mean():.3f}  {right.mean():.3f}")
    weights = fitted([each for name in TUNING for each in data[name]], PENALTY)
    print(dict(zip(TypeSignals._fields, np.round(weights, 2).tolist(), strict=True)))
    embedder.save()


if __name__ == "__main__":
    main()
