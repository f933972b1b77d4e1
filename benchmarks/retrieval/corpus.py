"""Questions and functions of the Berkeley Function-Calling Leaderboard, as things to find. Loading only.

A question counts when exactly one function is right for it. Functions of the same name are one tool.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.bfcl import corpus
from journeyman.core.specification import ToolSpecification
from journeyman.tools.library import searchable

POOLS = {
    "written": (
        "simple_python",
        "simple_java",
        "simple_javascript",
        "multiple",
        "parallel",
        "parallel_multiple",
        "irrelevance",
    ),
    "live": (
        "live_simple",
        "live_multiple",
        "live_parallel",
        "live_parallel_multiple",
        "live_irrelevance",
        "live_relevance",
    ),
}


@dataclass(frozen=True)
class Pool:
    """Texts by name, and questions with the name of the right one."""

    texts: dict[str, str]
    questions: list[tuple[str, str]]


@cache
def load(name: str) -> Pool:
    """One pool, or ``together``: the questions of both among the functions of both."""
    if name == "together":
        both = [load(part) for part in POOLS]
        texts = {tool: text for pool in reversed(both) for tool, text in pool.texts.items()}
        return Pool(texts, [question for pool in both for question in pool.questions])
    data = corpus.HOME / "bfcl_eval" / "data"
    pool = Pool({}, [])
    for category in POOLS[name]:
        file = f"BFCL_v4_{category}.json"
        truths = _truths(data / "possible_answer" / file)
        for entry in _lines(data / file):
            for function in entry["function"]:
                pool.texts.setdefault(function["name"], _text(function))
            right = truths.get(entry["id"], set())
            if len(right) == 1 and right <= pool.texts.keys():
                said = [turn["content"] for turns in entry["question"] for turn in turns if turn["role"] == "user"]
                pool.questions.append((" ".join(said), min(right)))
    return pool


def _text(function: dict[str, Any]) -> str:
    """As the library would index it; not validated, because the corpus writes names and types that are none of ours."""
    return searchable(
        ToolSpecification.model_construct(
            name=function["name"], description=function["description"], parameters=function["parameters"], tags=()
        )
    )


def _truths(path: Path) -> dict[str, set[str]]:
    if not path.exists():  # nothing is right for these; their functions only make the search harder
        return {}
    return {entry["id"]: {name for call in entry["ground_truth"] for name in call} for entry in _lines(path)}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
