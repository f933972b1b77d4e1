"""The loop: what the model is told, what ends a run, and that conversations stay well-formed whatever happens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import Approve, Limits, Message, ModelError, Role, RunStatus, ToolError, ToolLibrary, Usage, run, tool
from journeyman.core.events import Event
from journeyman.execution.recorder import MemoryJournal, Recorder
from journeyman.models import ModelRequest, ModelResponse
from journeyman.testing import FakeClock, ScriptedModel, call, say, together
from tests.playing import agent_with, play


@tool(read_only=True)
def echo(text: str) -> str:
    """Give a text back."""
    return text


@tool(risk="reversible")
def fail(how: str = "badly") -> str:
    """Fail."""
    if how == "on purpose":
        raise ToolError("NO", "not today", recover_action="Come back tomorrow")
    raise ValueError(how)


@tool
def delete(what: str) -> str:
    """Delete for good."""
    return f"{what} is gone"


async def test_plain_text_is_the_answer() -> None:
    played = await play([], [say("  Hello.\n")])
    assert played.response.answer == "Hello."
    assert played.response.reasoning == "Answered directly, without calling a tool."
    [step] = played.response.structured_trace
    assert (step.action, step.observation, step.iteration) == ("finish", "Hello.", 1)


async def test_the_model_sees_instruction_task_calls_and_results() -> None:
    played = await play([echo], [call("echo", text="a").with_id("x"), say("done")], "Say a.")
    last = played.model.requests[1]
    assert [(m.role.value, m.content, m.call_id) for m in last.messages] == [
        ("system", "Be brief.", None),
        ("user", "Say a.", None),
        ("assistant", "", None),
        ("function", "a", "call_1_1"),
    ]
    assert last.messages[2].calls[0].arguments == {"text": "a"}
    assert last.messages[3].name == "echo"
    assert (last.step, last.run_id) == (2, played.response.run_id)


async def test_the_offer_and_the_messages_are_the_same_objects_at_every_step() -> None:
    played = await play([echo], [call("echo", text="a"), call("echo", text="b"), say("done")])
    first, second, third = played.model.requests
    assert first.tools is second.tools is third.tools
    assert first.memo is third.memo
    assert all(mine is theirs for mine, theirs in zip(second.messages, third.messages, strict=False))


async def test_a_thought_is_never_empty() -> None:
    said = ModelResponse(text="I look.", calls=(call("echo", text="a").tool_call,))
    turns: list[Any] = [
        said,
        call("echo", text="b"),
        together(call("echo", text="c"), call("fail"), call("delete", what="x")),
    ]
    played = await play([echo, fail, delete], [*turns, say("done")])
    thoughts = [step.thought for step in played.response.structured_trace]
    assert thoughts == ["I look.", "Calls echo.", "Calls echo, fail and delete.", "done"]
    assert played.response.reasoning.endswith("I look. Calls echo. Calls echo, fail and delete.")


async def test_a_failing_sibling_costs_the_others_nothing() -> None:
    turn = together(call("fail"), call("echo", text="b"), call("nothing"), call("echo"), call("delete", what="x"))
    played = await play([echo, fail, delete], [turn, say("done")])
    assert [c.status for c in played.response.tool_calls] == ["error", "success", "error", "error", "denied"]
    assert played.response.tool_calls[1].result == "b"
    assert played.response.status is RunStatus.COMPLETED


async def test_a_model_s_ids_are_replaced_by_ours_whether_missing_or_used_twice() -> None:
    same = call("echo", text="a").with_id("x")
    turns = [together(same, same, call("echo", text="b")), together(same, call("echo", text="c")), say("done")]
    first = await play([echo], turns)
    ids = [c.call_id for c in first.response.tool_calls]
    assert ids == ["call_1_1", "call_1_2", "call_1_3", "call_2_1", "call_2_2"]
    second = await play([echo], [same, say("done")], history=first.response.messages)
    assert second.response.tool_calls[0].call_id not in ids


async def test_usage_adds_up() -> None:
    class Costly:
        async def respond(self, request: ModelRequest, deltas: Any = None) -> ModelResponse:
            usage = Usage(input_tokens=10, output_tokens=2, requests=1)
            calls = (call("echo", text=str(request.step)).tool_call,) if request.step < 3 else ()
            return ModelResponse(text="t", calls=calls, usage=usage)

    response = await run(agent_with(echo), "go", library=ToolLibrary([echo]), model=Costly())
    assert response.usage == Usage(input_tokens=30, output_tokens=6, requests=3)


# --- replies that are neither a call nor an answer


@pytest.mark.parametrize("nothing", ["", " \n\t"])
async def test_an_empty_reply_is_answered_and_the_run_goes_on(nothing: str) -> None:
    played = await play([echo], [nothing, nothing, say("sorry")])
    assert played.response.answer == "sorry"
    assert played.response.total_iterations == 3
    assert "Your reply was empty" in played.model.requests[1].messages[-1].content
    assert played.response.structured_trace[0].observation == "(the reply was empty)"


async def test_a_model_that_stays_silent_fails_the_run_with_its_trace() -> None:
    played = await play([echo], [call("echo", text="a"), *["  "] * 3, say("never")])
    response = played.response
    assert (response.status, response.answer, response.confidence) == (RunStatus.FAILED, "", 0.0)
    assert response.error is not None
    assert response.error.code == "EMPTY_ANSWER"
    assert response.error.user_guidance
    assert response.total_iterations == 4
    assert played.types[-1] == "run_failed"


async def test_a_call_in_between_starts_the_count_of_empty_replies_again() -> None:
    played = await play([echo], ["", "", call("echo", text="a"), "", "", say("there")])
    assert played.response.answer == "there"


# --- adapters that fail


@pytest.mark.parametrize(
    "fault", [ModelError("DOWN", "the model is down", user_guidance="start it"), ValueError("bug"), TimeoutError("own")]
)
async def test_a_failing_adapter_ends_the_run_with_its_trace(fault: Exception) -> None:
    played = await play([echo], [call("echo", text="a"), fault], limits=Limits(seconds=60))
    response = played.response
    assert response.status is RunStatus.FAILED
    assert [c.status for c in response.tool_calls] == ["success"]
    assert response.error is not None
    assert response.error.user_guidance
    told = f"{response.error.message} ({response.error.user_guidance})"
    if isinstance(fault, ModelError):
        assert str(fault.args[0]).removeprefix("DOWN: ") in told
    else:
        assert response.error.message == f"the model adapter raised {type(fault).__name__}"
    assert "Ended early" in response.reasoning
    again = await play([echo], [say("better now")], "Try again.", history=response.messages)
    assert again.response.answer == "better now"


@pytest.mark.parametrize("answer", [None, "text", {"text": "x"}])
async def test_an_adapter_that_returns_something_else_is_named(answer: Any) -> None:
    class Wrong:
        async def respond(self, request: ModelRequest, deltas: Any = None) -> Any:
            return answer

    response = await run(agent_with(), "go", model=Wrong())
    assert response.status is RunStatus.FAILED
    assert response.error is not None
    assert f"returned {type(answer).__name__}" in response.error.message


# --- listeners and facts


async def test_a_listener_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise ValueError("broken listener")

    from journeyman.core.events import StepRestarted

    recorder = Recorder("r", MemoryJournal(), clock=FakeClock(), listeners=[broken, heard.append])
    await recorder.record(StepRestarted(iteration=1))
    assert [event.seq for event in heard] == [1]
    assert "a listener failed" in caplog.text


async def test_a_state_that_cannot_follow_its_facts_stops_the_run() -> None:
    from journeyman.core.events import StepRestarted

    def broken(event: Event) -> None:
        raise ValueError("the journal is damaged")

    recorder = Recorder("r", MemoryJournal(), clock=FakeClock(), fold=broken)
    with pytest.raises(ValueError, match="damaged"):
        await recorder.record(StepRestarted(iteration=1))


async def test_listeners_hear_facts_in_order_even_if_the_journal_takes_them_out_of_order() -> None:
    from journeyman.core.events import StepRestarted

    first, heard = asyncio.Event(), []

    class Slow(MemoryJournal):
        async def append(self, run_id: str, facts: Any, *, sync: bool = False) -> None:
            if facts[0].seq == 1:
                await first.wait()

    recorder = Recorder("r", Slow(), clock=FakeClock(), listeners=[lambda event: heard.append(event.seq)])
    slow = asyncio.ensure_future(recorder.record(StepRestarted(iteration=1)))
    await asyncio.sleep(0)
    await recorder.record(StepRestarted(iteration=2))
    assert heard == []
    first.set()
    await slow
    assert heard == [1, 2]


async def test_every_call_is_planned_then_started_then_finished() -> None:
    played = await play([echo, fail], [together(call("echo", text="a"), call("fail")), say("x")])
    order = {kind: played.types.index(kind) for kind in ("message", "calls_planned", "call_started", "call_finished")}
    assert sorted(order, key=lambda kind: order[kind]) == ["message", "calls_planned", "call_started", "call_finished"]
    assert played.types.count("call_started") == played.types.count("call_finished") == 2
    assert played.types.index("step_finished") > max(i for i, t in enumerate(played.types) if t == "call_finished")


# --- whatever happens, the conversation stays well-formed

outcomes = st.sampled_from(
    [
        call("echo", text="a"),
        call("echo", text="b").with_id("same"),
        call("echo", text="x" * 900),
        call("echo"),
        call("echo", text=3, more=1),
        call("echo").raw('{"text": '),
        call("fail"),
        call("fail", how="on purpose"),
        call("delete", what="x"),
        call("delete", what="y"),
        call("nowhere"),
        call(""),
        call("read_result", handle="same"),
        call("finish", answer="x"),
    ]
)
turns = st.lists(outcomes, min_size=1, max_size=4).map(lambda calls: together(*calls)) | st.sampled_from(["", " "])


@given(st.lists(turns, max_size=9), st.integers(1, 12), st.booleans())
async def test_conversations_stay_well_formed_whatever_happens(script: list[Any], limit: int, finish: bool) -> None:
    model = ScriptedModel([*script, say("end"), say("end"), say("end")])
    tools: list[Any] = [echo, fail, delete]
    response = await run(
        agent_with(*tools, finish=finish),
        "go",
        library=ToolLibrary(tools),
        model=model,
        approver=lambda approval: Approve() if approval.arguments["what"] == "x" else None,  # type: ignore[arg-type,return-value]
        limits=Limits(history_messages=limit, iterations=12),
    )
    assert response.status in (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.LIMIT_REACHED)
    check(response.messages)
    for request in model.requests:
        assert request.messages[0].role is Role.SYSTEM
        check(request.messages[1:])
        assert "go" in [message.content for message in request.messages if message.role is Role.USER]


def check(messages: Any) -> None:
    waiting: list[Message] = list(messages)
    while waiting:
        message = waiting.pop(0)
        assert message.role is not Role.FUNCTION
        for made in message.calls:
            answer = waiting.pop(0)
            assert (answer.role, answer.call_id) == (Role.FUNCTION, made.id)
            assert answer.content
