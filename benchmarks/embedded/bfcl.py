"""Requests of the Berkeley Function Calling Leaderboard, and its own rules of what answers them.

The data come from the package that `benchmarks.bfcl` installs. Each request has tools of its own.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.bfcl import corpus
from benchmarks.bfcl.documents import specification
from journeyman import ToolSpecification
from journeyman.core.runs import ToolCall

CATEGORIES = {
    "simple": "simple_python",
    "multiple": "multiple",
    "live_simple": "live_simple",
    "live_multiple": "live_multiple",
    "irrelevance": "irrelevance",
}
SAMPLED = {"irrelevance": 120}
"""Of the others 60."""
LONGEST_TOOLS = 5_000
"""In characters: reading more takes the engine a minute."""


def requests(kind: str) -> Iterator[tuple[str, str, tuple[ToolSpecification, ...], Mapping[str, Any] | None]]:
    """The first by the hash of their ids: id, request, tools and the accepted values of the one call's arguments."""
    corpus.install()
    data = corpus.HOME / "bfcl_eval" / "data"
    name = f"BFCL_v4_{CATEGORIES[kind]}.json"
    answers = data / "possible_answer" / name
    truths = {row["id"]: row["ground_truth"] for row in _lines(answers)} if answers.exists() else {}
    taken = 0
    for row in sorted(_lines(data / name), key=lambda row: hashlib.sha256(row["id"].encode()).digest()):
        (turn, *more), truth = row["question"], truths.get(row["id"], [None])
        if more or [said["role"] for said in turn] != ["user"] or len(truth) != 1 or taken == SAMPLED.get(kind, 60):
            continue
        try:
            tools = tuple(specification(function) for function in row["function"])
        except ValueError:  # a type that JSON does not have
            continue
        if len(json.dumps([tool.parameters for tool in tools])) > LONGEST_TOOLS:
            continue
        taken += 1
        yield row["id"], turn[0]["content"], tools, truth[0]


def _lines(path: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def right_tool(truth: Mapping[str, Any], calls: Sequence[ToolCall]) -> bool:
    (name,) = truth
    return [call.tool_name for call in calls] == [name.replace(" ", "_")]


def fully_right(truth: Mapping[str, Any], calls: Sequence[ToolCall], tools: Sequence[ToolSpecification]) -> bool:
    """As the leaderboard's checker does: each argument has one of its accepted values, none is missing or too many."""
    if not right_tool(truth, calls):
        return False
    given, (accepted,) = calls[0].arguments, truth.values()
    schema = next(tool.parameters for tool in tools if tool.name == calls[0].tool_name)
    properties = schema.get("properties", {})
    if any(name not in given for name in schema.get("required", ())):
        return False
    if any(name not in given and "" not in values for name, values in accepted.items()):
        return False
    return all(
        name in accepted and _of_type(value, properties.get(name, {})) and _accepted(value, accepted[name])
        for name, value in given.items()
    )


def _of_type(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return not isinstance(value, bool) and isinstance(value, int if kind == "integer" else int | float)
    expected = {"string": str, "boolean": bool, "array": list, "object": dict}.get(str(kind))
    return expected is None or isinstance(value, expected)


def _accepted(value: Any, values: Sequence[Any]) -> bool:
    if isinstance(value, dict):
        return any(isinstance(each, dict) and _same_record(value, each) for each in values)
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return any(
            isinstance(each, list) and len(each) == len(value) and all(map(_same_record, value, each))
            for each in values
        )
    if isinstance(value, list):
        wanted = [_plain(item) for item in value]
        return any(isinstance(each, list) and wanted == [_plain(item) for item in each] for each in values)
    return any(_plain(value) == _plain(each) and isinstance(value, bool) == isinstance(each, bool) for each in values)


def _same_record(value: Mapping[str, Any], accepted: Mapping[str, Any]) -> bool:
    known = all(name in accepted and _accepted(item, accepted[name]) for name, item in value.items())
    return known and all(name in value or "" in values for name, values in accepted.items())


def _plain(value: Any) -> Any:
    return re.sub(r"[ ,./\-_*^]", "", value).lower().replace("'", '"') if isinstance(value, str) else value
