"""What stays in the conversation: no huge arguments of calls that never ran, no promises of an earlier run."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman import Policy, Role, ToolCall, tool
from journeyman.execution.results import shrink, without_the_rest
from journeyman.models import ModelResponse
from journeyman.testing import call, say
from tests.playing import Played, play

HUGE = "x" * 100_000
WHOLE = "".join(f"line {number}\n" for number in range(2_000))
POLICY = Policy(max_result_chars=2_000)


@tool(read_only=True)
def look(at: str = "") -> str:
    """Look."""
    return "nothing"


@tool(read_only=True, permissions={"vault:open"})
def open_vault(code: Any = None) -> str:
    """Open the vault."""
    return "open"


@tool(read_only=True)
def report() -> str:
    """Give a long report."""
    return WHOLE


def sent(played: Played) -> list[str]:
    """The arguments of the calls, as the model was sent them in the end."""
    last = played.model.requests[-1].messages
    return [f"{asked.arguments}{asked.malformed}" for message in last for asked in message.calls]


@pytest.mark.parametrize(
    "refused",
    [
        call("no_such_tool", text=HUGE),
        call("open_vault", code=HUGE),
        call("open_vault", code=[1_000_000] * 15_000),
        call("open_vault", code=[{"n": 10**4000}] * 20),
        call("open_vault", code={str(number): None for number in range(10_000)}),
        call("look", at=[HUGE]),
        ModelResponse(calls=(ToolCall(tool_name="look", malformed=HUGE),)),
    ],
    ids=["unknown tool", "not permitted", "long list", "long numbers", "many keys", "wrong type", "malformed"],
)
async def test_huge_arguments_of_a_call_that_did_not_run_are_not_sent_again(refused: Any) -> None:
    played = await play([look, open_vault], [refused, say("over")])
    assert not played.response.tool_calls[0].success
    assert sent(played) == ["{}(left out: they were too large)"]
    # The facts keep the whole.
    assert len(next(fact for fact in played.facts if fact.type == "calls_planned").model_dump_json()) > 30_000


async def test_a_repeated_call_is_not_sent_again_either_but_what_ran_is() -> None:
    played = await play([look], [call("look", at=HUGE)] * 3 + [say("over")])
    assert [record.status for record in played.response.tool_calls] == ["success", "success", "denied"]
    assert [len(text) > 100_000 for text in sent(played)] == [True, True, False]


async def test_small_arguments_of_a_refused_call_stay() -> None:
    played = await play([look], [call("no_such_tool", text="short", number=1), say("over")])
    assert "short" in sent(played)[0]


async def test_a_later_run_is_not_promised_what_it_cannot_read() -> None:
    turns = [call("report"), call("read_result", handle="call_1_1"), say("long")]
    first = await play([report], turns, policy=POLICY)
    assert 'read_result(handle="call_1_1", offset=1400) reads on' in first.told[0]
    assert "go on with offset=" in first.told[1]
    second = await play([report], [say("again")], policy=POLICY, history=first.response.messages)
    [request] = second.model.requests
    shown = [message.content for message in request.messages if message.role is Role.FUNCTION]
    assert not any("reads on" in text or "go on with" in text for text in shown)
    assert f"of {len(WHOLE):,} characters left out; not available any more] …\n" in shown[0]
    assert shown[0].startswith(WHOLE[:1_400])
    assert shown[0].endswith(WHOLE[-400:])
    assert shown[1].endswith("the rest is not available any more]")
    third = await play([report], [say("once more")], policy=POLICY, history=second.response.messages)
    assert third.told == second.told


async def test_the_run_itself_can_still_read_on_after_history() -> None:
    first = await play([report], [call("report"), say("long")], policy=POLICY)
    second = await play([report], [call("report"), say("again")], policy=POLICY, history=first.response.messages)
    assert ["reads on" in text for text in second.told] == [False, True]


def test_a_tools_own_words_are_left_alone() -> None:
    note = shrink(WHOLE, handle="call_1_1", limit=2_000)
    assert without_the_rest(note, handle="call_1_1") != note
    for quoted in (f"The log says: {note}", note + "more", note[1:], note.replace("offset=1400", "offset=14000")):
        assert without_the_rest(quoted, handle="call_1_1") == quoted
    assert without_the_rest(note, handle="r2") == note
