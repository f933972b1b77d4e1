"""How the weights of ``calls.json`` were found: logistic regression, judged on kinds of tools that were left out.

They tell whether the calls that the embedded model would make are right, all arguments too.
``python -m benchmarks.embedded.calls``
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.embedded.contenders import contender
from benchmarks.embedded.kinds import load
from benchmarks.embedded.sets import FIRST_SENTENCES, HELD_OUT
from benchmarks.gaps.weights import regression
from journeyman.models.embedded import model

BY_HAND = {"worded": 1.0, "verb": 0.7}
"""What too few tools have to be fitted on: examples."""
Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Made:
    """What would be called for a sentence: what speaks for it, and whether it is right; nothing, if nothing would."""

    kind: str
    text: str
    outside: bool
    seen: Mapping[str, float] | None
    right: bool


@contextmanager
def recorded() -> Iterator[list[Mapping[str, float]]]:
    """What was seen of each call; all are made."""
    seen = list[Mapping[str, float]]()

    def record(found: Mapping[str, float]) -> float:
        seen.append(found)
        return 1.0

    with patch.object(model, "speaks_for", record):
        yield seen


async def collected() -> list[Made]:
    ask, found = contender("embedded"), list[Made]()
    for kind in (kind for kind in FIRST_SENTENCES if kind not in HELD_OUT):
        for case in load(kind):
            with recorded() as seen:
                calls = await ask(case.request, case.tools)
            right = case.judge(calls).arguments
            found.append(Made(kind, case.request, case.outside, seen[-1] if seen and calls else None, right))
    return found


def fitted(data: Sequence[Made], names: Sequence[str]) -> Rows:
    called = [each for each in data if each.seen is not None]
    given = np.array([[each.seen[name] for name in names] for each in called if each.seen is not None])
    right = np.array([float(each.right and not each.outside) for each in called])
    weights = regression(given, right)
    return np.array([weights[0], *(BY_HAND.get(name, each) for name, each in zip(names, weights[1:], strict=True))])


def judged(data: Sequence[Made], weights: Mapping[str, float]) -> tuple[int, int, int, int, int]:
    """Right, wrong, of how many that tools serve; nothing called, of how many that none does."""
    inside, outside = [each for each in data if not each.outside], [each for each in data if each.outside]

    def called(each: Made) -> bool:
        return each.seen is not None and sum(weight * each.seen[name] for name, weight in weights.items()) >= 0

    right = sum(called(each) and each.right for each in inside)
    wrong = sum(called(each) and not each.right for each in inside)
    return right, wrong, len(inside), sum(not called(each) for each in outside), len(outside)


def main() -> None:
    data = asyncio.run(collected())
    names = [name for name in next(each.seen for each in data if each.seen is not None) if name != "bias"]
    total = np.zeros(5, dtype=int)
    for kind in dict.fromkeys(each.kind for each in data):
        weights = dict(zip(["bias", *names], fitted([each for each in data if each.kind != kind], names), strict=True))
        figures = judged([each for each in data if each.kind == kind], weights)
        total += figures
        print("# {:9} right {:3} wrong {:3} of {:3}, nothing called {:3} of {:3}".format(kind, *figures))
    print("# {:9} right {:3} wrong {:3} of {:3}, nothing called {:3} of {:3}".format("all", *total))
    print(json.dumps(dict(zip(["bias", *names], np.round(fitted(data, names), 2).tolist(), strict=True)), indent=1))


if __name__ == "__main__":
    main()
