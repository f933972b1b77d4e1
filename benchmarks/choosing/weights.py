"""How the weights of ``journeyman.memory.choosing`` were found: a conditional logit on the tuning halves alone.

Each request is asked among the tools it came with and among 500. Those of the written set count several times: there
are few of them, and they are asked as people ask. Beside the weights it prints how often the best tool
is right where no request for that tool was fitted on.
``python -m benchmarks.choosing.weights``
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.choosing.cases import MULTIPLE, Case, among_many, bfcl, pool, toolbox, written
from benchmarks.gaps.vectors import RememberedVectors
from journeyman.core.protocols import Embedder
from journeyman.memory.catalogue import Signals
from journeyman.memory.choosing import ToolRanking

PENALTY = 3.0
WRITTEN_COUNT = 3
FOLDS = 5
EXAMPLE = 3.0
"""No tool of the tuning halves has examples: what they count is set by hand, about as much as a similarity does."""
Rows = NDArray[np.float64]
Choice = tuple[Rows, NDArray[np.bool_]]
"""The evidence for each tool of a case, and whether it is right."""


async def choices(cases: Sequence[Case], embedder: Embedder | None) -> list[Choice]:
    ranking, found = ToolRanking(embedder=embedder), []
    for case in cases:
        signals, _, _ = await ranking.signals(case.request, case.tools)
        rows = np.array([*signals.values()])
        found.append((rows, np.array([name in case.right for name in signals])))
    return found


def fitted(data: Sequence[Choice]) -> Rows:
    """Newton's method, in steps that are kept short, on the penalised likelihood of the right tool among all."""
    data = [(rows, right) for rows, right in data if right.any() and not right.all()]
    weights = np.zeros(data[0][0].shape[1])
    for _ in range(100):
        slope, curve = PENALTY * weights, PENALTY * np.eye(len(weights))
        for rows, right in data:
            chance = _chances(rows @ weights)
            wanted = np.where(right, chance, 0.0)
            mean = chance @ rows
            slope = slope + mean - wanted / wanted.sum() @ rows
            centred = rows - mean
            curve = curve + (centred * chance[:, None]).T @ centred
        step = np.linalg.solve(curve, slope)
        weights = weights - step * min(1.0, 1.0 / np.abs(step).max())
        if np.abs(step).max() < 1e-4:
            break
    return weights


def _chances(scores: Rows) -> Rows:
    raised = np.exp(scores - scores.max())
    return np.asarray(raised / raised.sum())


def hits(data: Sequence[Choice], weights: Rows) -> NDArray[np.bool_]:
    return np.array([bool(right[(rows @ weights).argmax()]) for rows, right in data])


def cross_validated(
    cases: Sequence[Case], data: Sequence[Choice], among_all: Sequence[Choice], others: Sequence[Choice]
) -> NDArray[np.bool_]:
    """Whether the best tool is right, by weights that no request for the same tool went into."""
    names = sorted({min(case.right) for case in cases})
    fold = np.array([names.index(min(case.right)) % FOLDS for case in cases])
    found = np.zeros(len(cases), dtype=bool)
    for number in range(FOLDS):
        rows = zip(data, among_all, fold, strict=True)
        kept = [each for few, many, other in rows if other != number for each in (few, many)]
        weights = fitted([*kept * WRITTEN_COUNT, *others])
        found[fold == number] = hits([each for each, own in zip(data, fold, strict=True) if own == number], weights)
    return found


def main() -> None:
    embedder = RememberedVectors()
    cases = written("tune")
    common = np.array([case.common for case in cases])
    many, (kept, tools) = among_many(toolbox("tune")), pool("tune")
    names = list(Signals._fields)
    for title, chosen in (("WEIGHTS", embedder), ("WEIGHTS_BY_WORDS", None)):
        data = asyncio.run(choices(cases, chosen))
        among_all = asyncio.run(choices([replace(case, tools=many) for case in cases], chosen))
        others = [each for kind in MULTIPLE for each in asyncio.run(choices(bfcl(kind, "tune"), chosen))]
        others += asyncio.run(choices([replace(case, tools=tools) for case in kept], chosen))
        own = cross_validated(cases, data, among_all, others)
        found = fitted([*[*data, *among_all] * WRITTEN_COUNT, *others])
        weights = dict(zip(names, np.round(found, 2).tolist(), strict=True))
        if chosen is not None:
            weights["example"] = EXAMPLE
        print(f"# cross-validated by tool: {own[common].mean():.3f} of common requests, {own.mean():.3f} of all")
        print(f"{title} = {{")
        print("".join(f'    "{name}": {value},\n' for name, value in weights.items()) + "}")
    embedder.save()


if __name__ == "__main__":
    main()
