"""How the weights of ``journeyman.choosing.ranking`` were found: a conditional logit on the tuning sets alone.

Each request is asked among the tools it came with and among 500. Beside the weights it prints what to expect of other
tools: how often the best tool is right for the requests of one written set by weights that were fitted on the others.
``python -m benchmarks.choosing.weights``
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.choosing.cases import MULTIPLE, TUNING, Case, among_many, bfcl, pool, toolbox, written
from benchmarks.gaps.vectors import RememberedVectors
from journeyman.choosing import ranking
from journeyman.choosing.ranking import Signals, ToolRanking
from journeyman.core.protocols import Embedder

PENALTY = 3.0
OWN_COUNT = 4
"""How often a written request among its own tools counts: they are asked as people ask."""
HARDEST = 60
"""Of many tools, those that are fitted on: the most alike, and what is right."""
ALIKE = ("plain", "parameters", "words", "concepts")
OFFERED = 20
EXAMPLE = 3.0
"""No tool of the tuning sets has examples: what they count is set by hand, about as much as a similarity does."""
Rows = NDArray[np.float64]
Choice = tuple[Rows, NDArray[np.bool_]]
"""The evidence for each tool of a case, and whether it is right."""


@dataclass(frozen=True)
class WrittenSet:
    """The evidence for the requests of one set, among its own tools and among many."""

    common: NDArray[np.bool_]
    own: Sequence[Choice]
    many: Sequence[Choice]


async def choices(cases: Sequence[Case], embedder: Embedder | None) -> list[Choice]:
    ranking, found = ToolRanking(embedder=embedder), []
    for case in cases:
        signals, _, _ = await ranking.signals(case.request, case.tools)
        rows = np.array([*signals.values()])
        found.append((rows, np.array([name in case.right for name in signals])))
    return found


def written_set(name: str, embedder: Embedder | None) -> WrittenSet:
    cases, many = written(name), among_many(toolbox(name))
    return WrittenSet(
        common=np.array([case.common for case in cases]),
        own=asyncio.run(choices(cases, embedder)),
        many=asyncio.run(choices([replace(case, tools=many) for case in cases], embedder)),
    )


def fitted(data: Sequence[Choice], penalty: float = PENALTY) -> Rows:
    """Newton's method, in steps that are kept short, on the penalised likelihood of the right tool among all."""
    data = [(rows, right) for rows, right in data if right.any() and not right.all()]
    weights = np.zeros(data[0][0].shape[1])
    for _ in range(100):
        slope, curve = penalty * weights, penalty * np.eye(len(weights))
        for rows, right in data:
            chance = _chances(rows @ weights)
            wanted = np.where(right, chance, 0.0)
            mean = chance @ rows
            slope = slope + mean - wanted / wanted.sum() @ rows
            centred = rows - mean
            curve = curve + (centred * chance[:, None]).T @ centred
        step = np.linalg.solve(curve, slope)
        weights = weights - step * min(1.0, 1.0 / np.abs(step).max())
        if np.abs(step).max() < 1e-3:
            break
    return weights


def _chances(scores: Rows) -> Rows:
    raised = np.exp(scores - np.max(scores))
    return np.asarray(raised / raised.sum())


def hits(data: Sequence[Choice], weights: Rows, top: int = 1) -> NDArray[np.bool_]:
    """Whether a right tool is among the first ``top``."""
    return np.array([bool(right[np.argsort(-(rows @ weights), kind="stable")[:top]].any()) for rows, right in data])


def fitted_on(sets: Sequence[WrittenSet], others: Sequence[Choice]) -> Rows:
    many = [each for one in sets for each in one.many]
    return fitted([*[each for one in sets for each in one.own] * OWN_COUNT, *map(_hardest, (*many, *others))])


def _hardest(choice: Choice) -> Choice:
    rows, right = choice
    kept = right.copy()
    alike = rows @ np.array([name in ALIKE for name in Signals._fields], dtype=float)
    kept[np.argsort(-alike, kind="stable")[:HARDEST]] = True
    return rows[kept], right[kept]


def left_out(sets: Mapping[str, WrittenSet], others: Sequence[Choice]) -> list[str]:
    """For each set, how good weights are that were fitted without it."""
    lines, means = [], []
    for name, one in sets.items():
        weights = fitted_on([each for other, each in sets.items() if other != name], others)
        first, offered = hits(one.own, weights), hits(one.many, weights, OFFERED)
        among_all = hits(one.many, weights)
        row = [first[one.common].mean(), first.mean(), among_all[one.common].mean()]
        row += [offered[one.common].mean(), offered.mean()]
        means.append(row)
        lines.append(_row(name, row))
    return [*lines, _row("mean", np.mean(means, axis=0).tolist())]


def _row(name: str, row: Sequence[float]) -> str:
    return f"# {name:8} " + "  ".join(f"{value:.3f}" for value in row)


def main() -> None:
    ranking.FIRST_SECONDS = 600.0  # nothing may be compared by words alone while vectors are made
    embedder = RememberedVectors()
    kept, tools = pool("tune")
    names = list(Signals._fields)
    for title, chosen in (("by_meaning", embedder), ("by_words", None)):
        sets = {name: written_set(name, chosen) for name in TUNING}
        others = [each for kind in MULTIPLE for each in asyncio.run(choices(bfcl(kind, "tune"), chosen))]
        others += asyncio.run(choices([replace(case, tools=tools) for case in kept], chosen))
        print(
            "# set left out: first of the set's tools (common, all), first of 500 (common), in 20 of 500 (common, all)"
        )
        print("\n".join(left_out(sets, others)))
        found = fitted_on(list(sets.values()), others)
        weights = dict(zip(names, np.round(found, 2).tolist(), strict=True))
        if chosen is not None:
            weights["example"] = EXAMPLE
        print(f'"{title}": {json.dumps(weights, indent=2)}')
    embedder.save()


if __name__ == "__main__":
    main()
