"""The requests, how they are split in two, and whether calls are the expected ones. Knows no model."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.embedded.toolbox import TOOLS, defaults
from journeyman.core.runs import ToolCall

REQUESTS = Path(__file__).with_name("requests.jsonl")
NOW = 1_794_819_600.0
"""Monday, 16 November 2026, 09:00 UTC: the requests' "tomorrow" is the day after."""

FILLERS = frozenset(["a", "an", "the", "my", "task", "tasks", "to", "of", "for", "about", "please", "called", "named"])
EXTRA_WORDS = 2
DEFAULTS = defaults(TOOLS)

Half = Literal["tuning", "held_out"]
Defaults = Mapping[tuple[str, str], Any]
Kind = Literal["direct", "indirect", "multi", "out_of_scope"]


@dataclass(frozen=True)
class Case:
    """One request with every set of calls that is right for it; no calls means that none is right."""

    id: str
    kind: Kind
    request: str
    accepted: tuple[tuple[dict[str, Any], ...], ...]
    half: Half


@dataclass(frozen=True)
class Verdict:
    tool: bool
    """The right tools, in any order."""
    arguments: bool
    """And the right arguments, no more and no less."""


def load() -> list[Case]:
    rows = [json.loads(line) for line in REQUESTS.read_text().splitlines()]
    halves = split(rows)
    return [
        Case(
            id=row["id"],
            kind=row["kind"],
            request=row["request"],
            accepted=(tuple(row["calls"]), *map(tuple, row.get("also", ()))),
            half=halves[row["id"]],
        )
        for row in rows
    ]


def split(rows: Sequence[Mapping[str, Any]]) -> dict[str, Half]:
    """The second batch in two equal halves of each kind and tool, in the order of a hash of the request: nobody chose.

    The first batch was looked at in both of its halves before there was a second one; it is for tuning.
    """
    halves: dict[str, Half] = {row["id"]: "tuning" for row in rows if row["batch"] == 1}
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["batch"] != 1:
            first = row["calls"][0]["tool"] if row["kind"] == "direct" else ""
            groups.setdefault((row["kind"], first), []).append(row)
    for group in groups.values():
        group.sort(key=lambda row: hashlib.sha256(row["request"].encode()).digest())
        for place, row in enumerate(group):
            halves[row["id"]] = "tuning" if place % 2 == 0 else "held_out"
    return halves


def judge(case: Case, calls: Sequence[ToolCall], *, defaults: Defaults = DEFAULTS) -> Verdict:
    tools = sorted(call.tool_name for call in calls)
    return Verdict(
        tool=any(tools == sorted(call["tool"] for call in accepted) for accepted in case.accepted),
        arguments=any(_all_match(accepted, calls, defaults) for accepted in case.accepted),
    )


def _all_match(expected: Iterable[Mapping[str, Any]], calls: Sequence[ToolCall], defaults: Defaults) -> bool:
    left = list(calls)
    for wanted in expected:
        found = next((call for call in left if _matches(wanted, call, defaults)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _matches(wanted: Mapping[str, Any], call: ToolCall, defaults: Defaults) -> bool:
    if call.tool_name != wanted["tool"]:
        return False
    expected = _said(call.tool_name, wanted["arguments"], defaults)
    given = _said(call.tool_name, call.arguments, defaults)
    return expected.keys() == given.keys() and all(fits(matcher, given[name]) for name, matcher in expected.items())


def _said(tool: str, arguments: Mapping[str, Any], defaults: Defaults) -> dict[str, Any]:
    """The arguments without those that change nothing: empty ones, and a parameter's own default."""
    return {
        name: value
        for name, value in arguments.items()
        if value not in (None, "", []) and not fits(value, defaults.get((tool, name)))
    }


def fits(matcher: Any, value: Any) -> bool:
    """A plain value: the same, whatever the case. ``words``: all of them and little else. ``date``: that day.

    ``any``: one of them.
    """
    if isinstance(matcher, dict) and "any" in matcher:
        return any(fits(one, value) for one in matcher["any"])
    if isinstance(matcher, dict) and "words" in matcher:
        wanted, found = content_words(matcher["words"]), content_words(str(value))
        return set(wanted) <= set(found) and len(found) <= len(wanted) + EXTRA_WORDS
    if isinstance(matcher, dict) and "date" in matcher:
        return isinstance(value, str) and value[:10] == matcher["date"]
    if isinstance(matcher, list):
        return isinstance(value, list) and sorted(map(_folded, value)) == sorted(map(_folded, matcher))
    return _same(value, matcher)


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, int | float) and isinstance(other, int | float):
        return value == other and isinstance(value, bool) == isinstance(other, bool)
    return _folded(value) == _folded(other)


def content_words(text: str) -> list[str]:
    found = re.findall(r"[\w:/.#'-]*\w", text.casefold().replace("’", "'"))
    stripped = (word.strip("'") for word in found)
    return [word for word in stripped if word and word not in FILLERS]


def _folded(value: Any) -> str:
    return str(value).strip().strip("'\"").casefold()
