"""How the weights of ``journeyman.choosing.gaps`` were found: logistic regression on the tuning half.

A request is served where its best tool fits, so the tool that counts is chosen by the weights themselves, in turns.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.gaps.corpus import load
from benchmarks.gaps.scoring import evidence
from benchmarks.gaps.vectors import RememberedVectors

ROUNDS = 8
PENALTY = 1.0
Rows = NDArray[np.float64]


def regression(rows: Rows, served: Rows) -> Rows:
    """Bias and weights; Newton's method on the penalised likelihood."""
    given = np.c_[np.ones(len(rows)), rows]
    weights = np.zeros(given.shape[1])
    penalty = PENALTY * np.eye(given.shape[1])
    penalty[0, 0] = 0.0
    for _ in range(30):
        chance = 1 / (1 + np.exp(-given @ weights))
        slope = given.T @ (chance - served) + penalty @ weights
        curve = (given * (chance * (1 - chance))[:, None]).T @ given + penalty
        weights -= np.linalg.solve(curve, slope)
    return weights


def found(tools: Sequence[Rows], served: Rows) -> Rows:
    """Weights over the best tool of each case."""
    best = np.array([rows[np.argmax(rows[:, 0] + rows[:, 1] + rows[:, 3])] for rows in tools])
    weights = regression(best, served)
    for _ in range(ROUNDS):
        best = np.array([rows[np.argmax(rows @ weights[1:])] for rows in tools])
        weights = regression(best, served)
    return weights


def main() -> None:
    embedder = RememberedVectors()
    cases = [case for case in load() if case.half == "tune"]
    served = np.array([float(not case.gap) for case in cases])
    for name, chosen in (("", embedder), ("_BY_WORDS", None)):
        tools = [np.array([astuple(item) for item in asyncio.run(evidence(case, chosen))]) for case in cases]
        bias, *weights = np.round(found(tools, served), 2).tolist()
        print(f"WEIGHTS{name} = {tuple(weights)}\nBIAS{name} = {bias}")
    embedder.save()


if __name__ == "__main__":
    main()
