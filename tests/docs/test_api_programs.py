"""The programs of the public surface, as a user writes them, and what each of their lines guarantees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from journeyman import (
    Agent,
    Approval,
    Approve,
    CallStatus,
    ConfigurationError,
    Deny,
    Limits,
    Message,
    Policy,
    Principal,
    RiskLevel,
    Role,
    RunStatus,
    TaskInput,
    ToolContext,
    ToolError,
    ToolLibrary,
    run,
    run_sync,
    stream,
    tool,
)
from journeyman.core import ApprovalStatus
from journeyman.core.events import Event
from journeyman.learning import Advice
from journeyman.models import ModelRequest
from journeyman.testing import ScriptedModel, call, say, together
from tests.playing import Played, agent_with, play


@tool(risk=RiskLevel.REVERSIBLE, read_only=True)
def lookup_order(order_id: str, *, verbose: bool = False) -> dict[str, Any]:
    """Look up an order.

    Use when the user names an order.

    Args:
        order_id: The order's number, e.g. "W-17".
    """
    if order_id == "W-404":
        raise ToolError("ORDER_NOT_FOUND", f"No order {order_id!r}", recover_action="Ask the user for the number")
    return {"order_id": order_id, "status": "shipped"}


library = ToolLibrary([lookup_order])
agent = Agent(name="support", model="openai:gpt-5-mini", instruction="Help with orders.", tools=[lookup_order])


def shipped() -> ScriptedModel:
    return ScriptedModel([call("lookup_order", order_id="W-17"), say("It is shipped.")])


# --- a tool, a library, an agent


def test_a_tool_is_still_an_ordinary_function() -> None:
    assert lookup_order("W-17") == {"order_id": "W-17", "status": "shipped"}
    specification = lookup_order.specification
    assert specification.name == "lookup_order"
    assert specification.description == "Look up an order.\n\nUse when the user names an order."
    assert specification.parameters["properties"]["order_id"]["description"].startswith("The order's number")
    assert specification.parameters["required"] == ["order_id"]
    assert specification.signature.startswith("(order_id::String")
    assert (specification.risk, specification.read_only) == (RiskLevel.REVERSIBLE, True)


def test_functions_and_bound_methods_become_tools_by_a_plain_call() -> None:
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    class Shop:
        def close(self, reason: str) -> str:
            """Close the shop."""
            return f"closed: {reason}"

    made: list[Any] = [tool(double, risk=RiskLevel.REVERSIBLE), tool(Shop().close, risk="reversible")]
    assert [item.name for item in made] == ["double", "close"]
    assert made[0](4) == 8
    response = run_sync(
        agent_with(*made),
        "go",
        library=ToolLibrary(made),
        model=ScriptedModel([together(call("double", number=4), call("close", reason="late")), say("ok")]),
    )
    assert [record.result for record in response.tool_calls] == [8, "closed: late"]


def test_an_agent_takes_tools_or_specifications() -> None:
    other = Agent(name="support", instruction="Help with orders.", tools=library.specifications())
    assert other.tools == agent.tools
    assert other.model == "auto"
    assert Agent.model_validate_json(agent.model_dump_json()) == agent


# --- a run


def test_the_first_program() -> None:
    response = run_sync(agent, "Where is W-17?", library=library, model=shipped())
    assert response.answer == "It is shipped."
    assert response.status == "completed"
    assert [c.status for c in response.tool_calls] == ["success"]
    assert response.structured_trace[0].iteration == 1
    assert response.total_iterations == 2
    assert response.tools_used == ["lookup_order"]
    assert response.reasoning
    assert "lookup_order → success" in response.reasoning_trace
    assert response.usage.requests == 2


async def test_run_sync_says_what_to_write_inside_an_event_loop() -> None:
    with pytest.raises(ConfigurationError, match="await run"):
        run_sync(agent, "Where is W-17?", library=library, model=shipped())


async def test_a_conversation_goes_on() -> None:
    first = await run(agent, "Where is W-17?", library=library, model=shipped())
    model = ScriptedModel([say("Yesterday.")])
    second = await run(
        agent, TaskInput(description="Since when?"), library=library, model=model, history=first.messages
    )
    asked = model.requests[0].messages
    assert [m.content for m in asked] == [
        "Help with orders.",
        *(m.content for m in first.messages),
        "Since when?",
    ]
    assert [m.role for m in first.messages] == ["user", "assistant", "function", "assistant"]
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[-1].content == "Yesterday."
    assert second.tool_calls == ()


async def test_an_error_raised_on_purpose_reaches_the_model_with_its_way_out() -> None:
    played = await play([lookup_order], [call("lookup_order", order_id="W-404"), say("Which number?")])
    record = played.response.tool_calls[0]
    assert record.error is not None
    assert (record.status, record.error.code, record.result) == ("error", "ORDER_NOT_FOUND", None)
    assert "Ask the user for the number" in played.model.requests[1].messages[-1].content


async def collected(*arguments: Any, **options: Any) -> list[Event]:
    return [event async for event in stream(*arguments, **options)]


async def test_the_same_run_as_events_in_order() -> None:
    events = await collected(agent, "Where is W-17?", library=library, model=shipped())
    facts = [event.type for event in events if event.seq is not None]
    assert facts == [
        "run_started",
        "message",
        "calls_planned",
        "call_started",
        "call_finished",
        "step_finished",
        "message",
        "step_finished",
        "answer",
        "run_finished",
    ]
    assert [event.seq for event in events if event.seq is not None] == list(range(1, 11))
    assert "".join(event.text for event in events if event.type == "text_delta") == "It is shipped."
    last = events[-1]
    assert last.type == "run_finished"
    assert last.response is not None
    assert last.response.answer == "It is shipped."
    assert {event.run_id for event in events} == {last.response.run_id}


async def test_leaving_the_events_early_cancels_the_run() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @tool(risk="reversible")
    async def wait() -> None:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    events = stream(agent_with(wait), "go", library=ToolLibrary([wait]), model=ScriptedModel([call("wait")]))
    async for event in events:
        if event.type == "call_started":
            await begun.wait()
            break
    await events.aclose()  # type: ignore[attr-defined]  # an async generator behind the protocol
    assert cancelled.is_set()


async def test_what_cannot_start_is_raised_by_every_door() -> None:
    nobody = Agent(name="x", instruction="y", tools=[lookup_order])
    for start in (run(nobody, "go", library=ToolLibrary(), model="m"), collected(nobody, "go", library=ToolLibrary())):
        with pytest.raises(Exception, match="no implementation is registered"):
            await start


async def test_calls_in_one_turn_run_together_and_keep_the_models_order() -> None:
    both = asyncio.Barrier(2)

    @tool(risk="reversible")
    async def a() -> str:
        """Give a."""
        await both.wait()
        await asyncio.sleep(0)
        return "a"

    @tool(risk="reversible")
    async def b(x: int) -> str:
        """Give b."""
        await both.wait()
        return f"b{x}"

    played = await play([a, b], [together(call("a"), call("b", x=1)), say("done")])
    assert [record.result for record in played.response.tool_calls] == ["a", "b1"]
    assert played.told == ["a", "b1"]
    assert played.response.total_iterations == 2


async def test_a_script_plays_by_the_runs_step() -> None:
    model = shipped()
    responses = await asyncio.gather(
        *(run(agent, "Where is W-17?", library=library, model=model) for _ in range(5)),
    )
    assert {response.answer for response in responses} == {"It is shipped."}


def test_the_name_of_a_scripted_call_can_also_be_an_argument() -> None:
    assert call("greet", name="Ada").tool_call.arguments == {"name": "Ada"}


# --- the approver


ran: list[dict[str, Any]] = []


@tool(permissions=())
def delete_order(order_id: str, reason: str = "asked for", notes: list[str] = [], *, verbose: bool = False) -> str:  # noqa: B006
    """Delete an order for good."""
    ran.append({"order_id": order_id, "reason": reason, "notes": list(notes), "verbose": verbose})
    notes.append("changed by the tool")
    return "deleted"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


async def asked_to_delete(approver: Any, **options: Any) -> Played:
    turns = [call("delete_order", order_id="W-17", notes=["n"]), say("over")]
    return await play([delete_order], turns, approver=approver, **options)


async def test_the_approver_sees_exactly_the_arguments_that_run() -> None:
    seen: list[Approval] = []

    async def approver(approval: Approval) -> Approve:
        seen.append(approval.model_copy(deep=True))
        approval.arguments["order_id"] = "W-18"
        approval.arguments["notes"].append("changed by the approver")
        return Approve(by="grace")

    ada = Principal("ada")
    played = await asked_to_delete(approver, principal=ada)
    expected = {"order_id": "W-17", "reason": "asked for", "notes": ["n"], "verbose": False}
    [approval], [record] = seen, played.response.tool_calls
    assert approval.arguments == ran[0] == record.arguments == expected
    assert (approval.tool_name, approval.risk, approval.confidence) == ("delete_order", "irreversible", None)
    assert (approval.principal, approval.status) == (ada, ApprovalStatus.PENDING)
    assert (approval.run_id, approval.call_id) == (played.response.run_id, record.call_id)
    assert (approval.expires_at - approval.requested_at).total_seconds() == 300
    assert (record.status, record.approval_id, record.risk) == ("success", approval.id, "irreversible")
    started = next(fact for fact in played.facts if fact.type == "call_started")
    assert started.arguments == expected
    assert played.types.index("approval_requested") < played.types.index("approval_decided")
    assert played.types.index("approval_decided") < played.types.index("call_started")


async def test_edited_arguments_are_validated_and_run() -> None:
    edits: dict[str, Any] = {"order_id": "W-99", "notes": ["kept"]}

    def approver(approval: Approval) -> Approve:
        return Approve(arguments=edits)

    played = await asked_to_delete(approver)
    expected = {"order_id": "W-99", "reason": "asked for", "notes": ["kept"], "verbose": False}
    assert ran == [expected]
    assert played.response.tool_calls[0].arguments == expected
    decided = next(fact for fact in played.facts if fact.type == "approval_decided")
    assert decided.arguments == {"order_id": "W-99", "notes": ["kept"]}


@pytest.mark.parametrize(
    ("edited", "said"),
    [
        ({"order_id": 7}, "must be a string"),
        ({"order_id": "W-1", "extra": 1}, "unknown argument"),
        ({"order_id": float("nan")}, "not JSON"),
        ({"order_id": object()}, "not JSON"),
    ],
)
async def test_edited_arguments_that_do_not_conform_are_denied(edited: dict[str, Any], said: str) -> None:
    played = await asked_to_delete(lambda approval: Approve(arguments=edited))
    assert played.response.tool_calls[0].status is CallStatus.DENIED
    assert said in played.told[0]
    assert ran == []


async def test_edited_arguments_are_graded_again() -> None:
    @tool(risk=RiskLevel.REVERSIBLE_WITH_DELAY)
    def show(path: str) -> str:
        """Show a file."""
        return path

    played = await play(
        [show],
        [call("show", path="notes.txt"), say("ok")],
        approver=lambda a: Approve(arguments={"path": "/etc/shadow"}),
    )
    record = played.response.tool_calls[0]
    assert (record.status, record.risk) == ("success", "irreversible")


async def test_the_model_sees_the_reason_of_a_denial() -> None:
    played = await asked_to_delete(lambda approval: Deny(reason="not on a Friday", by="grace"))
    assert played.response.tool_calls[0].status is CallStatus.DENIED
    assert "not on a Friday" in played.model.requests[1].messages[-1].content
    assert "Do not repeat the call" in played.told[0]
    assert played.response.status is RunStatus.COMPLETED
    assert ran == []


def raising(approval: Approval) -> Approve:
    raise ValueError("lost the keyboard")


async def timing_out(approval: Approval) -> Approve:
    raise TimeoutError("of its own")


@pytest.mark.parametrize("answer", [None, True, "yes", {"arguments": {}}, Approve])
async def test_anything_else_denies(answer: Any) -> None:
    played = await asked_to_delete(lambda approval: answer)
    assert played.response.tool_calls[0].status is CallStatus.DENIED
    assert "APPROVAL_DENIED" in played.told[0]
    assert ran == []


@pytest.mark.parametrize("approver", [raising, timing_out])
async def test_an_approver_that_fails_denies(approver: Callable[[Approval], Any]) -> None:
    played = await asked_to_delete(approver)
    assert played.response.tool_calls[0].status is CallStatus.DENIED
    assert "the approver failed" in played.told[0]
    assert ran == []


async def test_with_nobody_to_ask_the_call_is_denied() -> None:
    played = await asked_to_delete(None)
    assert played.response.tool_calls[0].status is CallStatus.DENIED
    assert "no approver was given" in played.told[0]
    assert ran == []


async def test_an_approval_that_nobody_answers_expires_and_the_run_goes_on() -> None:
    async def never(approval: Approval) -> Approve:
        await asyncio.Event().wait()
        return Approve()

    played = await asked_to_delete(never, policy=Policy(approval_seconds=0.05))
    record = played.response.tool_calls[0]
    assert record.error is not None
    assert (record.status, record.error.code) == ("denied", "APPROVAL_EXPIRED")
    assert played.response.answer == "over"
    decided = next(fact for fact in played.facts if fact.type == "approval_decided")
    assert decided.status is ApprovalStatus.EXPIRED
    assert ran == []


@pytest.mark.parametrize(("confidence", "asked"), [(None, 1), (0.84, 1), (0.85, 0), (1.0, 0)])
async def test_a_call_that_is_hard_to_undo_is_asked_about_when_the_adapter_is_unsure(
    confidence: float | None, asked: int
) -> None:
    questions: list[Approval] = []

    @tool
    def send_email(to: str) -> str:
        """Send an email."""
        return "sent"

    def approver(approval: Approval) -> Approve:
        questions.append(approval)
        return Approve()

    made = call("send_email", to="ada")
    turns = [made if confidence is None else made.with_confidence(confidence), say("ok, I am 100 % sure")]
    played = await play([send_email], turns, approver=approver)
    assert len(questions) == asked
    assert played.response.tool_calls[0].confidence == confidence
    assert played.response.tool_calls[0].risk is RiskLevel.REVERSIBLE_WITH_DELAY


# --- limits, keywords, principals


def endless(iterations: int = 40) -> list[Any]:
    return [call("lookup_order", order_id=f"W-{number}") for number in range(iterations)]


@pytest.mark.parametrize(
    ("limits", "task", "own", "expected"),
    [
        (None, None, None, 10),
        (Limits(), None, 3, 3),
        (Limits(), 4, 3, 4),
        (Limits(iterations=2), 4, 3, 2),
        (Limits(seconds=60), 4, 3, 4),
        (Limits(iterations=None), 4, 3, 40),
    ],
)
async def test_a_limit_left_out_falls_through_a_number_replaces_and_none_lifts(
    limits: Limits | None, task: int | None, own: int | None, expected: int
) -> None:
    played = await play(
        [lookup_order],
        [*endless(39), say("done")],
        TaskInput(description="go", max_iterations=task),
        agent=agent_with(lookup_order, max_iterations=own),
        limits=limits,
    )
    response = played.response
    assert response.total_iterations == expected
    assert response.iteration_limit_reached is (expected < 40)
    assert response.status == ("completed" if expected == 40 else "limit_reached")


@pytest.mark.parametrize(
    ("limits", "sent"), [(Limits(), 101), (Limits(history_messages=9), 10), (Limits(history_messages=None), 158)]
)
async def test_the_history_that_is_sent_is_capped(limits: Limits, sent: int) -> None:
    turns = [*endless(78), say("done")]
    wide = Limits(iterations=None, **limits.model_dump())
    played = await play([lookup_order], turns, limits=wide)
    assert len(played.response.messages) == 158
    assert sent - 1 <= len(played.model.requests[-1].messages) <= sent
    assert "Do it." in [message.content for message in played.model.requests[-1].messages]


async def test_keywords_win_over_the_tasks_fields() -> None:
    @tool(risk="reversible")
    def who(context: ToolContext) -> str:
        """Say who asks."""
        return context.principal.id if context.principal else "nobody"

    task = TaskInput(description="go", principal=Principal("task"), max_iterations=1)
    given: list[tuple[dict[str, Any], str, int]] = [
        ({}, "task", 1),
        ({"principal": Principal("keyword"), "limits": Limits(iterations=2)}, "keyword", 2),
    ]
    for options, name, iterations in given:
        played = await play([who], [call("who"), say("x")], task, **options)
        assert played.response.tool_calls[0].result == name
        assert played.response.total_iterations == iterations
        assert played.response.task_id == task.task_id


async def test_no_principal_means_no_permissions() -> None:
    @tool(risk="reversible", permissions={"orders:write"})
    def change() -> str:
        """Change an order."""
        return "changed"

    turns = [call("change"), say("ok")]
    statuses = [
        (await play([change], turns, principal=principal)).response.tool_calls[0].status
        for principal in (
            None,
            Principal("ada"),
            Principal("ada", permissions={"orders:read"}),
            Principal("ada", permissions={"orders:write"}),
            Principal("ada", permissions={"orders:*"}),
            Principal("root", permissions={"*"}),
        )
    ]
    assert statuses == ["denied", "denied", "denied", "success", "success", "success"]


async def test_the_model_given_to_run_wins_over_the_agents() -> None:
    response = await run(agent, "go", library=library, model=ScriptedModel([say("scripted")]))
    assert response.answer == "scripted"


async def test_a_tasks_tools_narrow_the_agents() -> None:
    task = TaskInput(description="go", available_tools=("lookup_order",))
    played = await play([lookup_order, delete_order], [call("delete_order", order_id="W"), say("x")], task)
    assert [item.name for item in played.model.requests[0].tools] == ["lookup_order"]
    error = played.response.tool_calls[0].error
    assert error is not None
    assert error.code == "UNKNOWN_TOOL"
    with pytest.raises(ConfigurationError, match="did you mean 'lookup_order'"):
        await play([lookup_order], [say("x")], TaskInput(description="go", available_tools=("lookup_orders",)))


async def test_advice_is_put_before_the_model_and_noted() -> None:
    class Playbook:
        async def advise(self, text: str, *, tools: Sequence[str], **who: Any) -> Sequence[Advice]:
            shown = (Message.user("A like task"), Message(role=Role.ASSISTANT, content="Its answer"))
            return [
                Advice(strategy_id="s1", text=f"For {text!r} use {', '.join(tools)}"),
                Advice(strategy_id="s2", form="turns", turns=shown),
                Advice(strategy_id="s3", text="Kept from the model", holdout=True),
            ]

    task = TaskInput(description="go", playbook_bullets=("Be polite",))
    played = await play([lookup_order], [say("x")], task, playbook=Playbook())
    system = played.model.requests[0].messages[0].content
    assert "- Be polite\n- For 'go' use lookup_order" in system
    assert "Kept from" not in system
    assert [message.content for message in played.model.requests[0].messages[1:]] == ["A like task", "Its answer", "go"]
    assert "strategies_injected" in played.types


async def test_a_model_is_anything_that_answers() -> None:
    from journeyman.models import ModelResponse

    class Parrot:
        async def respond(self, request: ModelRequest, deltas: Any = None) -> ModelResponse:
            return ModelResponse(text=request.messages[-1].content)

    assert (await run(agent, "Polly", library=library, model=Parrot())).answer == "Polly"
