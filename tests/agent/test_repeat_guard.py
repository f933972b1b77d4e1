"""A call that gave the same answer twice is answered with a hint; what may have changed is tried again."""

from __future__ import annotations

import itertools

from journeyman import Limits, tool
from journeyman.testing import call, say, together
from tests.playing import play

ran: list[str] = []


@tool(read_only=True)
def look(at: str = "here") -> str:
    """Look."""
    ran.append(at)
    return f"nothing at {at}"


@tool(risk="reversible")
def change(what: str = "it") -> str:
    """Change something."""
    return "changed"


@tool(read_only=True, repeatable=True)
def poll() -> str:
    """Ask whether it is done."""
    return "not yet"


def repeats(name: str, times: int) -> list[object]:
    return [*[call(name)] * times, say("done")]


async def statuses(tools: list[object], turns: list[object], **options: object) -> list[str]:
    played = await play(tools, turns, limits=Limits(iterations=30), **options)  # type: ignore[arg-type]
    return [record.status.value for record in played.response.tool_calls]


async def test_the_third_time_the_model_gets_a_hint() -> None:
    ran.clear()
    played = await play([look], repeats("look", 5))
    assert [c.status for c in played.response.tool_calls] == ["success", "success", "denied", "denied", "denied"]
    assert len(ran) == 2
    hint = played.model.requests[3].messages[-1].content
    assert "REPEATED_CALL" in hint
    assert "iterations 1 and 2" in hint
    assert "other arguments" in hint


async def test_it_holds_for_tools_with_effects_and_for_tools_that_do_not_exist() -> None:
    assert await statuses([change], repeats("change", 3)) == ["success", "success", "denied"]
    assert await statuses([look], repeats("lok", 3)) == ["error", "error", "denied"]


async def test_it_holds_for_arguments_that_are_not_json() -> None:
    turns = [call("look").raw("{"), call("look").raw("{"), call("look").raw("{"), call("look").raw("["), say("x")]
    assert await statuses([look], turns) == ["error", "error", "denied", "error"]


async def test_other_arguments_are_another_call_and_their_order_is_not() -> None:
    @tool(read_only=True)
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    turns = [call("add", a=1, b=2), call("add", b=2, a=1), call("add", a=1, b=2), call("add", a=2, b=2), say("x")]
    assert await statuses([add], turns) == ["success", "success", "denied", "success"]


async def test_an_answer_that_changes_is_worth_asking_for() -> None:
    numbers = itertools.count()

    @tool(read_only=True)
    def count() -> int:
        """Count."""
        return next(numbers)

    assert await statuses([count], repeats("count", 6)) == ["success"] * 6


async def test_a_different_call_with_effects_in_between_makes_it_worth_trying_again() -> None:
    turns = [
        call("look"),
        call("look"),
        call("look"),
        call("change"),
        call("look"),
        call("look"),
        call("look"),
        say("x"),
    ]
    expected = ["success", "success", "denied", "success", "success", "success", "denied"]
    assert await statuses([look, change], turns) == expected


async def test_a_different_call_that_only_reads_changes_nothing() -> None:
    turns = [call("look"), call("look", at="there"), call("look"), call("look", at="there"), call("look"), say("x")]
    assert await statuses([look], turns) == ["success", "success", "success", "success", "denied"]


async def test_a_different_call_that_was_refused_changes_nothing() -> None:
    @tool
    def destroy() -> str:
        """Destroy."""
        return "gone"

    turns = [call("look"), call("destroy"), call("look"), call("look"), say("x")]
    assert await statuses([look, destroy], turns) == ["success", "denied", "success", "denied"]


async def test_siblings_in_one_turn_are_no_repeats() -> None:
    turns = [together(*[call("look")] * 5), call("look"), call("look"), say("x")]
    assert await statuses([look], turns) == [*["success"] * 6, "denied"]


async def test_a_tool_for_polling_is_exempt() -> None:
    assert await statuses([poll], repeats("poll", 8)) == ["success"] * 8


async def test_a_person_who_said_no_twice_is_not_asked_a_third_time() -> None:
    asked = []

    @tool
    def destroy() -> str:
        """Destroy."""
        return "gone"

    def approver(approval: object) -> None:
        asked.append(approval)

    assert await statuses([destroy], repeats("destroy", 4), approver=approver) == ["denied"] * 4
    assert len(asked) == 2
