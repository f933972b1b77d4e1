"""Turns of conversations with the tools that served them, of corpora that nobody here wrote. Loading only.

BFCL's base multi-turn conversations come with their package; tau-bench's retail tasks are a file whose path is given.
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bfcl import corpus as bfcl
from journeyman.learning.episodes import normalised


@dataclass(frozen=True)
class Turn:
    """One request, what was called for it, and what could have been."""

    id: str
    group: str
    """The conversation, or the user: turns of one group are never memory for each other."""
    request: str
    sequence: tuple[str, ...]
    calls: tuple[tuple[str, dict[str, Any]], ...]
    tools: frozenset[str]
    previous: str | None


def bfcl_turns() -> list[Turn]:
    """Every turn of the base conversations that calls something."""
    bfcl.install()
    data = bfcl.HOME / "bfcl_eval" / "data"
    name = "BFCL_v4_multi_turn_base.json"
    truths = {entry["id"]: entry["ground_truth"] for entry in _lines(data / "possible_answer" / name)}
    tools = _tools(data / "multi_turn_func_doc")
    found: list[Turn] = []
    for entry in _lines(data / name):
        offered = frozenset(tool for kind in entry["involved_classes"] for tool in tools[kind])
        previous: str | None = None
        for number, (said, truth) in enumerate(zip(entry["question"], truths[entry["id"]], strict=True)):
            calls = tuple((made.tool, dict(made.keywords)) for made in map(bfcl.parse, truth))
            request = " ".join(message["content"] for message in said if message["role"] == "user")
            if calls and request.strip():
                sequence = normalised(tool for tool, _ in calls)
                found.append(Turn(f"{entry['id']}/{number}", entry["id"], request, sequence, calls, offered, previous))
            if calls:
                previous = calls[-1][0]
    return found


def _tools(folder: Path) -> dict[str, list[str]]:
    """By class: its tools. The files have names of their own."""
    files = {path.stem: [entry["name"] for entry in _lines(path)] for path in folder.glob("*.json")}
    named = {
        "GorillaFileSystem": "gorilla_file_system",
        "MathAPI": "math_api",
        "MessageAPI": "message_api",
        "TwitterAPI": "posting_api",
        "TicketAPI": "ticket_api",
        "TradingBot": "trading_bot",
        "TravelAPI": "travel_booking",
        "VehicleControlAPI": "vehicle_control",
    }
    return {kind: files[name] for kind, name in named.items()}


def tau_turns(path: Path) -> list[Turn]:
    """Tasks of tau-bench's retail part; the group is the user."""
    rows = _lines(path)
    every = frozenset(tool for row in rows for tool in row["tool_sequence"])
    return [
        Turn(
            id=row["id"],
            group=row["group"],
            request=row["task"],
            sequence=normalised(row["tool_sequence"]),
            calls=tuple((made["name"], made["kwargs"]) for made in row["calls"]),
            tools=every,
            previous=None,
        )
        for row in rows
        if row["tool_sequence"]
    ]


def halves(turns: list[Turn]) -> tuple[list[Turn], list[Turn]]:
    """The turns to tune on and those to report: every other conversation, in the order of their ids."""
    by_group: dict[str, list[Turn]] = defaultdict(list)
    for turn in turns:
        by_group[turn.group].append(turn)
    names = sorted(by_group, key=lambda name: (len(name), name))
    return (
        [turn for name in names[::2] for turn in by_group[name]],
        [turn for name in names[1::2] for turn in by_group[name]],
    )


def ceiling(turns: list[Turn]) -> float:
    """The share of turns whose sequence another group shows at all."""
    groups: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for turn in turns:
        groups[turn.sequence].add(turn.group)
    return sum(bool(groups[turn.sequence] - {turn.group}) for turn in turns) / len(turns)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
