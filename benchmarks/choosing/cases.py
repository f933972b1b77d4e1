"""Labelled requests: the written sets beside this file, and the multiple-function cases of BFCL.

The written sets were made by people who had not seen the rules; ``heldout`` was looked at once, when all was frozen.
The first set that was held out is ``tune1b`` now. Of BFCL the id decides the half, as in ``benchmarks.gaps``.
"""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from benchmarks.bfcl import corpus, documents
from benchmarks.gaps.corpus import _specification as bfcl_specification
from journeyman import ToolSpecification

SETS = Path(__file__).with_name("sets")
MULTIPLE = ("multiple", "live_multiple")
SAMPLED = 100
"""Cases of each category of BFCL that are asked among many tools."""
MANY = 500
"""Tools among which the right one must be found."""

Half = Literal["tune", "heldout"]
"""Of BFCL."""
TUNING = ("tune", "tune1b", "tune2", "tune3")
"""Written sets that were looked at while the rules were made, each by another writer, for other tools."""


@dataclass(frozen=True)
class Case:
    """A request, the tools it is asked among, and which of them serve it."""

    id: str
    request: str
    tools: tuple[ToolSpecification, ...]
    right: frozenset[str]
    """The names that count as right; none where no tool serves it."""
    common: bool = True
    intent: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


@cache
def bfcl(category: str, half: Half) -> tuple[Case, ...]:
    """Requests with the functions that the leaderboard offers with each."""
    corpus.install()
    data, name = corpus.HOME / "bfcl_eval" / "data", f"BFCL_v4_{category}.json"
    truths = {row["id"]: row["ground_truth"] for row in _lines(data / "possible_answer" / name)}
    known: dict[str, ToolSpecification] = {}
    cases = []
    for row in _lines(data / name):
        odd = hashlib.sha256(row["id"].encode()).digest()[0] & 1
        if (half == "heldout") != bool(odd):
            continue
        tools = tuple(bfcl_specification(function, known) for function in row["function"])
        said = [turn["content"] for turns in row["question"] for turn in turns if turn["role"] == "user"]
        names = {name.replace(" ", "_") for call in truths[row["id"]] for name in call}
        if len(names) == 1 and names <= {tool.name for tool in tools}:
            cases.append(Case(row["id"], " ".join(said), tools, frozenset(names)))
    return tuple(cases)


@cache
def distractors() -> tuple[ToolSpecification, ...]:
    """Every function of BFCL once, in an order that is random and always the same."""
    corpus.install()
    known: dict[str, ToolSpecification] = {}
    found: dict[str, ToolSpecification] = {}
    for function in documents.function_documents():
        tool = bfcl_specification(function, known)
        found.setdefault(tool.name, tool)
    names = sorted(found)
    random.Random(0).shuffle(names)
    return tuple(found[name] for name in names)


def pool(half: Half) -> tuple[list[Case], tuple[ToolSpecification, ...]]:
    """BFCL's cases of which all functions fit into one list of tools with different names, and that list."""
    known: dict[str, ToolSpecification] = {}
    kept: list[Case] = []
    for kind in MULTIPLE:
        for case in bfcl(kind, half)[:SAMPLED]:
            if all(known.get(tool.name, tool) is tool for tool in case.tools):
                fresh = {tool.name: tool for tool in case.tools}
                if len(known | fresh) <= MANY:
                    known |= fresh
                    kept.append(case)
    return kept, among_many(list(known.values()))


def among_many(tools: Sequence[ToolSpecification], count: int = MANY) -> tuple[ToolSpecification, ...]:
    """These tools and others, ``count`` in all."""
    names = {tool.name for tool in tools}
    others = [tool for tool in distractors() if tool.name not in names]
    return (*tools, *others[: max(0, count - len(tools))])


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@cache
def toolbox(name: str) -> tuple[ToolSpecification, ...]:
    """The tools of a written set."""
    rows = json.loads((SETS / name / "tools.json").read_text(encoding="utf-8"))
    return tuple(ToolSpecification(**row) for row in rows)


@cache
def written(name: str) -> tuple[Case, ...]:
    """The requests of a written set, each among all tools of the set."""
    return tuple(
        Case(
            id=f"{name}-{number}",
            request=row["request"],
            tools=toolbox(name),
            right=frozenset(row["tools"]),
            common=row["common"],
            intent=None if row["intent"] == "other" else row["intent"],
            parameters=row["arguments"],
        )
        for number, row in enumerate(_lines(SETS / name / "requests.jsonl"))
    )
