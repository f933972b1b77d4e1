"""Every kind of tools: its requests, split in two, and whether calls answer them. Knows no model."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.embedded import bfcl, judging, toolbox
from benchmarks.embedded.sets import FIRST_SENTENCES, HELD_OUT, SETS
from journeyman import ToolSpecification
from journeyman.core.runs import ToolCall

KINDS = (*bfcl.CATEGORIES, *SETS, "tasks", "newcomer", "plain")
TASKS_SAMPLED = 60
"""Of each half."""
Half = Literal["tuning", "held_out"]


@dataclass(frozen=True)
class Verdict:
    tool: bool
    arguments: bool


@dataclass(frozen=True)
class Asked:
    """One request with the tools for it."""

    id: str
    kind: str
    half: Half
    request: str
    tools: tuple[ToolSpecification, ...]
    truth: Mapping[str, Any] | None = None
    """The leaderboard's accepted values."""
    case: judging.Case | None = None
    """What is right, for requests of our own."""

    @property
    def outside(self) -> bool:
        """Whether no tool serves it."""
        return self.truth is None and (self.case is None or self.case.kind == "out_of_scope")

    def judge(self, calls: Sequence[ToolCall]) -> Verdict:
        if self.outside:
            return Verdict(tool=not calls, arguments=not calls)
        if self.truth is not None:
            right = bfcl.fully_right(self.truth, calls, self.tools)
            return Verdict(bfcl.right_tool(self.truth, calls), right)
        assert self.case is not None
        verdict = judging.judge(self.case, calls, defaults=toolbox.defaults(self.tools))
        return Verdict(verdict.tool, verdict.arguments)


def load(kind: str) -> list[Asked]:
    if kind in bfcl.CATEGORIES:
        asked = list(bfcl.requests(kind))
        halves = halved([each[0] for each in asked])
        return [Asked(name, kind, halves[name], text, tools, truth=truth) for name, text, tools, truth in asked]
    if kind == "tasks":
        cases = sorted(judging.load(), key=lambda case: hashlib.sha256(case.id.encode()).digest())
        taken = [
            case
            for half in ("tuning", "held_out")
            for case in [case for case in cases if case.half == half][:TASKS_SAMPLED]
        ]
        return [Asked(case.id, kind, case.half, case.request, toolbox.TOOLS, case=case) for case in taken]
    tools = SETS.get(kind, toolbox.TOOLS)
    rows = [json.loads(line) for line in (Path(__file__).parent / "sets" / f"{kind}.jsonl").read_text().splitlines()]
    halves = halved([row["id"] for row in rows])
    if kind in FIRST_SENTENCES:
        halves = dict.fromkeys(halves, "held_out" if kind in HELD_OUT else "tuning")
    return [Asked(row["id"], kind, halves[row["id"]], row["request"], tools, case=_case(row, halves)) for row in rows]


def _case(row: Mapping[str, Any], halves: Mapping[str, Half]) -> judging.Case:
    return judging.Case(
        id=row["id"],
        kind="direct" if row["calls"] else "out_of_scope",
        request=row["request"],
        accepted=(tuple(row["calls"]), *map(tuple, row.get("also", ()))),
        half=halves[row["id"]],
    )


def halved(ids: Sequence[str]) -> dict[str, Half]:
    """Two halves in the order of a hash of the id: nobody chose."""
    ordered = sorted(ids, key=lambda each: hashlib.sha256(each.encode()).digest())
    return {each: "tuning" if place % 2 == 0 else "held_out" for place, each in enumerate(ordered)}
