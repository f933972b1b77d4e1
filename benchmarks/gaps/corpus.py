"""Requests of the Berkeley Function Calling Leaderboard with their tools: those that no tool serves, and others.

The data come from the package that `benchmarks.bfcl` installs. Which half a request is in, its id decides.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from benchmarks.bfcl import corpus
from benchmarks.bfcl.documents import specification
from journeyman import ToolSpecification

UNSERVED = ("irrelevance", "live_irrelevance")
SERVED = ("simple_python", "multiple", "live_simple", "live_multiple")
TALK = {"written": Path(__file__).with_name("small_talk.txt"), "corpus": Path(__file__).with_name("chatterbot.txt")}

Half = Literal["tune", "held_out"]


@dataclass(frozen=True)
class Case:
    id: str
    category: str
    gap: bool
    request: str
    tools: tuple[ToolSpecification, ...]
    half: Half


@cache
def load() -> tuple[Case, ...]:
    """Every request that has tools; without any, there is nothing to tell."""
    corpus.install()
    data = corpus.HOME / "bfcl_eval" / "data"
    known: dict[str, ToolSpecification] = {}
    cases = []
    for category in (*UNSERVED, *SERVED):
        for row in _lines(data / f"BFCL_v4_{category}.json"):
            tools = tuple(_specification(function, known) for function in row["function"])
            said = [turn["content"] for turns in row["question"] for turn in turns if turn["role"] == "user"]
            odd = hashlib.sha256(row["id"].encode()).digest()[0] & 1
            if tools:
                half: Half = "held_out" if odd else "tune"
                cases.append(Case(row["id"], category, category in UNSERVED, " ".join(said), tools, half))
    return tuple(cases)


def _specification(function: dict[str, Any], known: dict[str, ToolSpecification]) -> ToolSpecification:
    key = json.dumps(function, sort_keys=True)
    if key not in known:
        try:
            known[key] = specification(function)
        except ValueError:  # types that JSON does not have; only the texts count here
            fields = {name: function[name] for name in ("name", "description", "parameters")}
            known[key] = ToolSpecification.model_construct(**fields, tags=())
    return known[key]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def talk(kind: str) -> list[str]:
    """Lines in which nothing is asked for; after a ``#`` stands where they are from."""
    lines = TALK[kind].read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("# ")]
