"""Results too long for a model are cut to head and tail, and ``read_result`` reads the rest."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from journeyman import Limits, Policy, tool
from journeyman.models import ModelRequest
from journeyman.testing import call, say
from journeyman.testing.scripted import ScriptedCall
from tests.playing import play

LIMIT = 2_000
WHOLE = "".join(f'{{"line": {number}}}\n' for number in range(2_000))


@tool(read_only=True)
def report() -> str:
    """Give a long report."""
    return WHOLE


@tool(read_only=True)
def table() -> list[dict[str, Any]]:
    """Give a long table."""
    return [{"name": f"row {number}", "value": number} for number in range(1_000)]


POLICY = Policy(max_result_chars=LIMIT)


async def test_the_model_sees_head_and_tail_and_the_record_keeps_all() -> None:
    played = await play([report], [call("report"), say("long")], policy=POLICY)
    [shown] = played.told
    assert len(shown) <= LIMIT
    assert shown.startswith(WHOLE[:500])
    assert shown.endswith(WHOLE[-200:])
    assert 'read_result(handle="call_1_1", offset=1400)' in shown
    assert played.response.tool_calls[0].result == WHOLE


async def test_read_result_is_offered_only_when_there_is_something_to_read() -> None:
    played = await play([report], [call("report"), say("long")], policy=POLICY)
    assert [[item.name for item in request.tools] for request in played.model.requests] == [
        ["report"],
        ["report", "read_result"],
    ]


@pytest.mark.parametrize("made", [report, table])
async def test_everything_can_be_read_piece_by_piece(made: Any) -> None:
    pieces: list[str] = []

    def read_on(request: ModelRequest) -> ScriptedCall | str:
        last = request.messages[-1].content
        assert len(last) <= LIMIT
        if last.endswith("this is the end]"):
            pieces.append(last.rpartition("\n[")[0])
            return "I have read it all."
        if found := re.search(r"go on with offset=(\d+)\]$", last):
            pieces.append(last.rpartition("\n[")[0])
            return call("read_result", handle="call_1_1", offset=int(found[1]))
        return call("read_result", handle="call_1_1")

    turns = [call(made.name), *[read_on] * 40]
    await play([made], turns, policy=POLICY, limits=Limits(iterations=50))
    whole = made()
    assert "".join(pieces) == (whole if isinstance(whole, str) else json.dumps(whole, separators=(",", ":")))


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ({"handle": "call_1_1", "offset": 10, "length": 5}, "success", WHOLE[10:15] + "\n[characters 10 to 15 of"),
        ({"handle": "call_1_1", "offset": 10**9}, "success", "this is the end"),
        ({"handle": "call_1_1", "length": -5}, "success", "characters 0 to 1 of"),
        ({"handle": "nope"}, "error", "known: call_1_1"),
        ({"handle": "call_1_1", "offset": -1}, "error", "INVALID_ARGUMENTS"),
    ],
)
async def test_odd_requests_are_answered(arguments: dict[str, Any], status: str, said: str) -> None:
    turns = [call("report"), call("read_result", **arguments), say("x")]
    played = await play([report], turns, policy=POLICY)
    assert played.response.tool_calls[1].status == status
    assert said in played.told[1]


async def test_a_long_error_is_cut_too() -> None:
    @tool(read_only=True)
    def fail() -> None:
        """Fail at length."""
        raise ValueError("x" * 100_000)

    played = await play([fail], [call("fail"), say("x")], policy=POLICY)
    assert len(played.told[0]) <= LIMIT
