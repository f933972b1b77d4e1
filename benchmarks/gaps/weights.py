"""How the weights of ``journeyman.choosing.gaps`` were found: logistic regression, judged on kinds that were left out.

A request is served where its best tool fits, so the tool that counts is chosen by the weights themselves, in turns.
Served are the sentences of all tuning sets, gaps those that no tool serves; and, counting less, those whose own tools
are taken away, and those that are asked of another kind's tools. ``python -m benchmarks.gaps.weights``
"""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.choosing.cases import TUNING, written
from benchmarks.embedded.kinds import load
from benchmarks.embedded.sets import FIRST_SENTENCES, HELD_OUT, SETS
from benchmarks.gaps import corpus
from benchmarks.gaps.sentences import groups
from benchmarks.gaps.vectors import RememberedVectors
from journeyman import ToolSpecification
from journeyman.choosing import ranking
from journeyman.choosing.gaps import evidence
from journeyman.choosing.languages import in_english
from journeyman.core.protocols import Embedder
from tests.choosing.gap_requests import TOOLS, TUNING_SERVED, TUNING_UNSERVED

ROUNDS = 6
PENALTY = 1.0
MADE_COUNT = 0.3
"""How much a gap counts that was made of a served request."""
SERVED_COUNT = 1.5
"""How much what is served counts beside gaps, in all: it is a little worse to call it a gap."""
MOST_OF_A_KIND = 40.0
SAMPLED = 120
"""Requests of each side of the leaderboard."""
BY_HAND = {"worded": 2.5, "looks_up": 3.0, "recalls": 2.5, "only_reads": -1.5}
"""What too few sentences have to be fitted on."""
AWAY = {
    "plain": "trips",
    "calendar": "rooms",
    "shop": "outings",
    "rooms": "contacts",
    "contacts": "shop",
    "helpdesk": "wishes",
    "trips": "helpdesk",
    "outings": "calendar",
    "wishes": "rooms",
    "voice": "contacts",
}
"""Of which other tools the sentences of a kind are asked."""
Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """A request among tools: what speaks for each, and which of them serve it, if that is known."""

    kind: str
    text: str
    served: bool
    made: bool
    rows: Rows
    right: NDArray[np.bool_]


def requests() -> Iterator[tuple[str, str, Sequence[ToolSpecification], bool, bool, frozenset[str]]]:
    """Kind, text, tools, whether they serve it, whether it was made of a served one, and which do."""
    tuned = [kind for kind in FIRST_SENTENCES if kind not in HELD_OUT]
    for case in (case for kind in tuned for case in load(kind)):
        assert case.case is not None
        right = frozenset(call["tool"] for calls in case.case.accepted for call in calls)
        yield case.kind, case.request, case.tools, not case.outside, False, right
        if not case.outside:
            others = [tool for tool in case.tools if tool.name not in right]
            yield case.kind, case.request, others, False, True, frozenset()
            if case.kind in AWAY:
                yield case.kind, case.request, SETS[AWAY[case.kind]], False, True, frozenset()
    for each in (each for name in TUNING for each in written(name)):
        yield "written", each.request, each.tools, True, False, each.right
    for half, language, served, tools, lines in groups():
        if half == "tuning" and (language == "de" or len(tools) == 4):
            for line in lines:
                yield f"{language} {len(tools)}", line, tools, served, False, frozenset()
    library = tuple(each.specification for each in TOOLS)
    for served, texts in ((True, TUNING_SERVED), (False, TUNING_UNSERVED)):
        for text in texts:
            yield "library", text, library, served, False, frozenset()
    drawn = sorted(corpus.load(), key=lambda case: hashlib.sha256(f"weights{case.id}".encode()).digest())
    for gap in (True, False):
        for one in [one for one in drawn if one.half == "tune" and one.gap is gap][:SAMPLED]:
            yield "leaderboard", one.request, one.tools, not gap, False, frozenset()


async def examples(embedder: Embedder | None) -> tuple[list[str], list[Example]]:
    found, names = list[Example](), list[str]()
    for kind, text, tools, served, made, right in requests():
        seen, _ = await evidence(in_english(text).text, tools, embedder)
        names = names or [name for name in next(iter(seen.values())) if name != "bias"]
        rows = np.array([[each.get(name, 0.0) for name in names] for each in seen.values()])
        found.append(Example(kind, text, served, made, rows, np.array([name in right for name in seen])))
    return names, found


def fitted(data: Sequence[Example], names: Sequence[str]) -> Rows:
    """Bias and weights; Newton's method on the penalised likelihood, over the best tool of each."""
    counts = Counter((each.kind, each.served, each.made) for each in data)
    mass = np.array([min(1.0, MOST_OF_A_KIND / counts[each.kind, each.served, each.made]) for each in data])
    mass *= [MADE_COUNT if each.made else 1.0 for each in data]
    served = np.array([float(each.served) for each in data])
    mass[served == 1] *= SERVED_COUNT * mass[served == 0].sum() / mass[served == 1].sum()
    set_by_hand = np.array([0.0, *(BY_HAND.get(name, 0.0) for name in names)])
    free = np.array([True, *(name not in BY_HAND for name in names)])
    weights = set_by_hand + np.array([0.0, *(float(name in ("plain", "words", "concepts")) for name in names)])
    for _ in range(ROUNDS):
        best = np.array([_best(each, weights) for each in data])
        weights = set_by_hand.copy()
        weights[free] = regression(best[:, free[1:]], served, mass=mass, fixed=best @ set_by_hand[1:])
    return np.asarray(weights)


def regression(rows: Rows, served: Rows, *, mass: Rows | float = 1.0, fixed: Rows | float = 0.0) -> Rows:
    """Bias and weights; Newton's method on the penalised likelihood. ``fixed`` is added to the log odds of each."""
    given = np.c_[np.ones(len(rows)), rows]
    weights = np.zeros(given.shape[1])
    penalty = PENALTY * np.eye(given.shape[1])
    penalty[0, 0] = 0.0
    for _ in range(30):
        chance = 1 / (1 + np.exp(-(given @ weights + fixed)))
        slope = given.T @ (mass * (chance - served)) + penalty @ weights
        curve = (given * (mass * chance * (1 - chance))[:, None]).T @ given + penalty
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-4:
            break
    return np.asarray(weights)


def _best(each: Example, weights: Rows) -> Rows:
    scores = each.rows @ weights[1:]
    place = np.argmax(np.where(each.right, scores, -np.inf)) if each.right.any() else np.argmax(scores)
    best: Rows = each.rows[place]
    return best


def score(each: Example, weights: Rows) -> float:
    return float(np.max(each.rows @ weights[1:]) + weights[0])


def left_out(data: Sequence[Example], names: Sequence[str]) -> list[str]:
    """For each kind, how good weights are that were fitted without it."""
    lines, wrong, of = [], Counter[bool](), Counter[bool]()
    for kind in dict.fromkeys(each.kind for each in data):
        weights = fitted([each for each in data if each.kind != kind], names)
        own = [each for each in data if each.kind == kind and not each.made]
        made = [score(each, weights) >= 0 for each in data if each.kind == kind and each.made]
        bad, all_ = Counter[bool](), Counter(each.served for each in own)
        for each in own:
            bad[each.served] += (score(each, weights) >= 0) != each.served
        lines.append(
            f"# {kind:12} false {bad[True]:3} of {all_[True]:3}  missed {bad[False]:3} of {all_[False]:3}"
            f"  of the made ones {sum(made):3} of {len(made):3}"
        )
        wrong, of = wrong + bad, of + all_
    return [*lines, f"# all          false {wrong[True]} of {of[True]}, missed {wrong[False]} of {of[False]}"]


def main() -> None:
    ranking.FIRST_SECONDS = 600.0  # nothing may be compared by words alone while vectors are made
    embedder, shown = RememberedVectors(), {}
    for title, chosen in (("by_meaning", embedder), ("by_words", None)):
        names, data = asyncio.run(examples(chosen))
        embedder.save()
        print("\n".join(left_out(data, names)), flush=True)
        weights = dict(zip(["bias", *names], np.round(fitted(data, names), 2).tolist(), strict=True))
        shown[title] = {name: value for name, value in weights.items() if value}
    print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
