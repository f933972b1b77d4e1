"""Is the right tool chosen, without a language model? Beside BM25, the embedder alone and the two together.

Requests are those of one written set (``--set tune`` to ``heldout``) among the set's 40 tools and among 500; and BFCL's
multiple-function cases, as given and among 500. Also the types of intents and the values of parameters. What to
expect of new tools is told by ``heldout`` and by ``python -m benchmarks.choosing.weights``: other sets were fitted on.
Intervals are the middle 95 % over requests drawn again.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from benchmarks.choosing.cases import MANY, MULTIPLE, TUNING, Case, Half, among_many, bfcl, pool, toolbox, written
from benchmarks.gaps.vectors import RememberedVectors
from journeyman import ToolSpecification
from journeyman.choosing import UserIntent, ranking
from journeyman.choosing.intents import IntentReader
from journeyman.choosing.parameters import read_parameters
from journeyman.choosing.ranking import ToolRanking
from journeyman.core.gaps import add_intent_type
from journeyman.retrieval.search import BM25, HybridIndex
from journeyman.tools.library import searchable

KNOWN_TYPES = ("summarize", "analyze", "fetch", "explain")
ADDED_TYPES = ("create", "update", "delete", "send")
OFFERED = 20
RESAMPLED = 1_000
TODAY = date(2024, 6, 20)
NEEDED_TOP_1 = 0.90
NEEDED_OFFERED = 0.95
OURS = "journeyman"

Ranks = Mapping[str, Sequence[int]]
"""By contender: the place of the right tool for each case, from 0; a large number where it is not found."""
NOWHERE = 10**6


class Contenders:
    """Everybody who ranks the tools of one list."""

    def __init__(self, tools: Sequence[ToolSpecification], embedder: RememberedVectors) -> None:
        self._tools = tools
        self._said = {tool.name: searchable(tool) for tool in tools}
        self._embedder = embedder
        self._bm25 = BM25(self._said)
        self._hybrid = HybridIndex(embedder=embedder)
        self._ours, self._by_words = ToolRanking(embedder=embedder), ToolRanking()
        self._ready = False

    async def ranked(self, text: str) -> dict[str, Sequence[str]]:
        if not self._ready:
            await self._hybrid.put(self._said)
            self._rows = await self._embedder.embed(list(self._said.values()))
            self._ready = True
        count, names = len(self._tools), list(self._said)
        alike = self._rows @ (await self._embedder.embed([text]))[0]
        return {
            "BM25": [name for name, _ in self._bm25.rank(text, k=count)],
            "MiniLM alone": [names[place] for place in np.argsort(-alike)],
            "both added (library.find)": [hit.id for hit in await self._hybrid.search(text, k=count)],
            "journeyman, words alone": await self._by_words.rank(text, self._tools, k=count),
            OURS: await self._ours.rank(text, self._tools, k=count),
        }


async def places(cases: Sequence[Case], contenders: Callable[[Case], Contenders]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for case in cases:
        for name, ranked in (await contenders(case).ranked(case.request)).items():
            where = [place for place, tool in enumerate(ranked) if tool in case.right]
            found.setdefault(name, []).append(where[0] if where else NOWHERE)
    return found


def interval(hits: Sequence[bool]) -> tuple[float, float]:
    drawing, values = np.random.default_rng(0), np.asarray(hits, dtype=float)
    drawn = values[drawing.integers(0, len(values), (RESAMPLED, len(values)))].mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)


def rate(hits: Sequence[bool]) -> dict[str, Any]:
    return {"share": float(np.mean(hits)), "interval": interval(hits), "requests": len(hits)}


def shares(ranks: Ranks, tops: Sequence[int], kept: Sequence[bool] | None = None) -> dict[str, Any]:
    chosen = [True] * len(next(iter(ranks.values()))) if kept is None else kept
    return {
        name: {
            f"top {top}": rate([place < top for place, keep in zip(each, chosen, strict=True) if keep]) for top in tops
        }
        for name, each in ranks.items()
    }


def chance(cases: Sequence[Case]) -> dict[str, float]:
    """What anybody gets who draws a tool, or always names the one that is right most often."""
    counts: dict[str, int] = {}
    for case in cases:
        for name in case.right:
            counts[name] = counts.get(name, 0) + 1
    drawn = float(np.mean([len(case.right) / len(case.tools) for case in cases]))
    return {"drawn at random": drawn, "the most frequent tool": max(counts.values()) / len(cases)}


async def intents(cases: Sequence[Case], embedder: RememberedVectors) -> dict[str, Any]:
    """Types right, for all and for those that every installation knows; parameters right."""
    reader = IntentReader(cases[0].tools, embedder=embedder)
    read = [await reader.read(case.request) for case in cases]
    kinds = [
        (None if found is None else found.intent_type) == case.intent for found, case in zip(read, cases, strict=True)
    ]
    common = [right for right, case in zip(kinds, cases, strict=True) if case.common]
    base = [right for right, case in zip(kinds, cases, strict=True) if case.intent in KNOWN_TYPES]
    frequent = max(sum(case.intent == name for case in cases) for name in (*KNOWN_TYPES, *ADDED_TYPES, None))
    given = {case.id: read_parameters(case.request, _right(case), today=TODAY) for case in cases}
    return {
        "types": {
            "all": rate(kinds),
            "common": rate(common),
            "summarize, analyze, fetch, explain": rate(base),
            "baseline: always the most frequent": frequent / len(cases),
        },
        "parameters": {
            "of the right tool": _values(cases, given),
            "of the tool that was chosen": _values(cases, _own(cases, read)),
        },
    }


def _right(case: Case) -> ToolSpecification:
    return next(tool for tool in case.tools if tool.name in case.right)


def _own(cases: Sequence[Case], read: Sequence[UserIntent | None]) -> dict[str, Mapping[str, Any]]:
    """What was read for the right tool; what was read for another is all wrong."""
    found: dict[str, Mapping[str, Any]] = {}
    for case, intent in zip(cases, read, strict=True):
        values = {} if intent is None else intent.parameters
        right = intent is not None and intent.suggested_tools[:1] and intent.suggested_tools[0] in case.right
        found[case.id] = values if right else {f"{name} of another tool": value for name, value in values.items()}
    return found


def _values(cases: Sequence[Case], given: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    right = said = wanted = 0
    for case in cases:
        read = given[case.id]
        right += sum(
            name in case.parameters and _plain(value) == _plain(case.parameters[name]) for name, value in read.items()
        )
        said, wanted = said + len(read), wanted + len(case.parameters)
    return {"precision": right / max(1, said), "recall": right / max(1, wanted), "values": wanted}


def _plain(value: Any) -> Any:
    return sorted(map(_plain, value)) if isinstance(value, list) else str(value).strip().rstrip(".").lower()


async def measure(name: str) -> dict[str, Any]:
    embedder = RememberedVectors()
    half: Half = "heldout" if name == "heldout" else "tune"
    cases = written(name)
    common = [case.common for case in cases]
    few = Contenders(toolbox(name), embedder)
    among_own = await places(cases, lambda _: few)
    many = Contenders(among_many(toolbox(name)), embedder)
    among_all = await places(cases, lambda _: many)
    report: dict[str, Any] = {
        "set": name,
        "written": {
            "requests": len(cases),
            "tools": len(toolbox(name)),
            "chance": chance(cases),
            "common": shares(among_own, (1, 3), common),
            "all": shares(among_own, (1, 3)),
        },
        "written, among 500": {
            "common": shares(among_all, (1, OFFERED), common),
            "all": shares(among_all, (1, OFFERED)),
        },
        "intents": await intents(cases, embedder),
        "bfcl": {},
    }
    for kind in MULTIPLE:
        given = bfcl(kind, half)
        ranks = await places(given, lambda case: Contenders(case.tools, embedder))
        report["bfcl"][kind] = {"chance": chance(given)["drawn at random"], **shares(ranks, (1,))}
    kept, tools = pool(half)
    everything = Contenders(tools, embedder)
    report["bfcl, among 500"] = shares(await places(kept, lambda _: everything), (1, OFFERED))
    report["milliseconds"] = await speed(cases, embedder)
    embedder.save()
    report["verdicts"] = verdicts(report)
    return report


async def speed(cases: Sequence[Case], embedder: RememberedVectors) -> dict[str, float]:
    """To rank 500 tools, once they are known: the request's vectors are remembered ones."""
    ranking, tools = ToolRanking(embedder=embedder), among_many(cases[0].tools)
    times = []
    for number in range(3):
        for case in cases:
            began = time.perf_counter()
            await ranking.rank(case.request, tools, k=OFFERED)
            times.append(1_000 * (time.perf_counter() - began))
            if not number:
                times.clear()
    return {"median": float(np.median(times)), "p95": float(np.quantile(times, 0.95))}


def verdicts(report: Mapping[str, Any]) -> dict[str, bool]:
    top_1 = report["written"]["common"][OURS]["top 1"]["share"]
    offered = report["written, among 500"]["all"][OURS][f"top {OFFERED}"]["share"]
    served = report["bfcl, among 500"][OURS][f"top {OFFERED}"]["share"]
    return {
        f"the right tool first for {NEEDED_TOP_1:.0%} of common requests": top_1 >= NEEDED_TOP_1,
        f"among {OFFERED} of {MANY} for {NEEDED_OFFERED:.0%} of all requests": offered >= NEEDED_OFFERED,
        "the same for BFCL's": served >= NEEDED_OFFERED,
    }


def _table(title: str, rows: Mapping[str, Any]) -> list[str]:
    lines = [title]
    for name, tops in rows.items():
        told = "  ".join(
            f"{top} {one['share']:.3f} ({one['interval'][0]:.3f} to {one['interval'][1]:.3f})"
            for top, one in tops.items()
        )
        lines.append(f"  {name:28} {told}")
    return lines


def text(report: Mapping[str, Any]) -> str:
    own, many = report["written"], report["written, among 500"]
    lines = [f"set {report['set']}: {own['requests']} requests, {own['tools']} tools"]
    lines += [f"  {name:28} top 1 {value:.3f}" for name, value in own["chance"].items()]
    lines += _table("common requests, among the set's tools", own["common"]) + _table("all requests", own["all"])
    lines += _table(f"common requests, among {MANY} tools", many["common"]) + _table("all requests", many["all"])
    for kind, rows in report["bfcl"].items():
        drawn = rows["chance"]
        rest = {name: each for name, each in rows.items() if name != "chance"}
        lines += _table(f"BFCL {kind}, as given (drawn at random {drawn:.3f})", rest)
    lines += _table(f"BFCL, among {MANY} tools", report["bfcl, among 500"])
    lines.append("types of intents")
    for name, one in report["intents"]["types"].items():
        if isinstance(one, float):
            lines.append(f"  {name:36} {one:.3f}")
        else:
            lines.append(f"  {name:36} {one['share']:.3f} ({one['interval'][0]:.3f} to {one['interval'][1]:.3f})")
    for name, one in report["intents"]["parameters"].items():
        lines.append(f"parameters {name}: precision {one['precision']:.3f}, recall {one['recall']:.3f}")
    took = report["milliseconds"]
    lines.append(f"ranking {MANY} tools: median {took['median']:.1f} ms, p95 {took['p95']:.1f} ms, without the vectors")
    lines += [f"{'pass' if passed else 'FAIL'}  {name}" for name, passed in report["verdicts"].items()]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choosing accuracy", description=__doc__)
    parser.add_argument("--set", choices=(*TUNING, "heldout"), default="tune")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the tables")
    chosen = parser.parse_args(arguments)
    for name in ADDED_TYPES:
        add_intent_type(name)
    ranking.FIRST_SECONDS = 600.0  # nothing may be compared by words alone while vectors are made
    report = asyncio.run(measure(chosen.set))
    print(json.dumps(report, indent=1) if chosen.json else text(report))
    return 0 if all(report["verdicts"].values()) else 1
