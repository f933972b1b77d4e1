"""What the entities refuse, which state may follow which, and that all of them survive JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from journeyman import (
    Agent,
    AgentResponse,
    Approval,
    Approve,
    CallStatus,
    Deny,
    ErrorInfo,
    Limits,
    Message,
    Policy,
    Principal,
    RateLimit,
    RiskLevel,
    Role,
    RunStatus,
    TaskInput,
    ToolCall,
    ToolCallRecord,
    ToolCategory,
    ToolConfiguration,
    ToolDefinitionError,
    ToolError,
    ToolSpecification,
    Usage,
    tool,
)
from journeyman.choosing import ToolGapReport, UserIntent
from journeyman.core import ApprovalStatus, ErrorCategory, ReasoningStep, Severity, events
from journeyman.core.data import unchecked
from journeyman.core.errors import InvalidDataError
from journeyman.core.events import CallProgress, TextDelta, UnknownFact, read_fact
from journeyman.core.playbook import Advice, StrategyState
from journeyman.core.policy import BreakerRule
from journeyman.learning import PlaybookBullet, ToolCallingStrategy
from journeyman.models import ModelResponse
from journeyman.tasks import Attachment, Task

REFUSALS = (InvalidDataError, ValidationError)  # the latter from model_validate
NOW = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1.5)
ERROR = ErrorInfo(code="X", message="went wrong")
ADA = Principal("ada", permissions={"orders:read", "notes:*"})
TURNS = (Message.user("Look."), Message(role=Role.ASSISTANT, content="Looked."))
CALL = ToolCall(id="c1", tool_name="look", arguments={"at": [1, {"deep": None}]}, confidence=0.5)


def record(**changes: Any) -> ToolCallRecord:
    made: dict[str, Any] = {"status": CallStatus.SUCCESS, "result": {"ok": True}, **changes}
    return ToolCallRecord(
        execution_id="r.c1", call_id="c1", tool_name="look", start_time=NOW, **({"end_time": LATER} | made)
    )


def step(**changes: Any) -> ReasoningStep:
    made: dict[str, Any] = {"iteration": 1, "thought": "Looks.", "action": "call_tool", "calls": (record(),)}
    return ReasoningStep(**{**made, "timestamp": 1.0, "duration_ms": 2.0, **changes})


def response(**changes: Any) -> AgentResponse:
    made: dict[str, Any] = {"task_id": "t", "run_id": "r", "status": RunStatus.COMPLETED, "answer": "yes"}
    return AgentResponse(**{**made, "reasoning": "Looked.", "confidence": 0.9, **changes})


def approval(**changes: Any) -> Approval:
    made: dict[str, Any] = {"id": "a", "run_id": "r", "call_id": "c1", "tool_name": "look", "arguments": {"x": 1}}
    return Approval(
        **{**made, "digest": "d", "risk": "irreversible", "requested_at": NOW, "expires_at": LATER, **changes}
    )


SPECIFICATION = ToolSpecification(
    name="look", description="Look at it.", signature="(at::String)==>(n::Integer {default: 1})==>(::String)"
)
ENTITIES: list[BaseModel] = [
    SPECIFICATION,
    ToolSpecification(name="bare", description="No parameters.", permissions=frozenset({"a:b"}), deprecated="use look"),
    Agent(name="a", instruction="i", tools=(SPECIFICATION,), max_iterations=3, finish=True),
    CALL,
    ToolCall(tool_name="look", malformed="{"),
    Message(role=Role.ASSISTANT, content="", calls=(CALL,)),
    Message(role=Role.FUNCTION, name="look", call_id="c1", content="seen"),
    Usage(input_tokens=1, output_tokens=2, requests=3),
    record(),
    record(status=CallStatus.ERROR, result=None, error=ERROR, risk=RiskLevel.IRREVERSIBLE, attempts=2),
    step(),
    step(action="finish", calls=(), observation="yes"),
    response(structured_trace=(step(),), messages=(Message.user("hi"),), metadata={"slack": {"channel_id": "C"}}),
    response(status=RunStatus.FAILED, answer="", error=ERROR),
    TaskInput(description="do", principal=ADA, available_tools=("look",), environment="staging", session_id="s"),
    Limits(),
    Limits(iterations=None, seconds=2.5),
    approval(principal=ADA, status=ApprovalStatus.DENIED, decided_at=LATER, reason="no"),
    Approve(arguments={"x": 2}, by="grace"),
    Deny(reason="no"),
    ADA,
    ERROR,
    Policy(risks={"look": RiskLevel.REVERSIBLE}, rate_limits={"look": RateLimit(calls=2)}, breaker=BreakerRule()),
    ModelResponse(text="t", calls=(CALL,), confidence=0.3),
    PlaybookBullet(content="Look twice."),
    ToolCallingStrategy(content="Look.", tool_sequence=("look",), helpful_count=3, harmful_count=1),
    ToolConfiguration(tool_name="look", rate_limits={"per_minute": 3}),
    ToolCategory(name="general", tools={"look": ToolConfiguration(tool_name="look")}),
    Task(
        id="1", title="t", created_at=NOW, updated_at=NOW, eta=datetime(2025, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    ),
    Attachment(id="1", task_id="1", type="url", reference="https://x", created_at=NOW, updated_at=NOW),
    UserIntent(intent_type="fetch", confidence=1.0),
    ToolGapReport(missing_tools=("stocks",), attempted_task="Show my stocks"),
]


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: type(entity).__name__)
def test_every_entity_survives_json(entity: BaseModel) -> None:
    again = type(entity).model_validate_json(entity.model_dump_json())
    assert again == entity
    with pytest.raises(ValidationError, match="frozen"):
        setattr(again, next(iter(type(again).model_fields)), None)


def test_limits_that_were_left_out_are_still_left_out_after_json() -> None:
    for limits in (Limits(), Limits(iterations=None), Limits(tokens=7)):
        again = Limits.model_validate_json(limits.model_dump_json())
        assert again.model_fields_set == limits.model_fields_set


FACTS: list[BaseModel] = [
    events.RunStarted(agent={"name": "a"}, task=TaskInput(description="do"), principal=ADA, limits=Limits(tokens=None)),
    events.RunResumed(owner="w1"),
    events.StrategiesInjected(advice=(Advice(text="Look twice"), Advice(strategy_id="s1", form="turns", turns=TURNS))),
    events.MessageReceived(iteration=1, text="t", calls=(CALL,), usage=Usage(requests=1), confidence=0.5, model="m"),
    events.CallsPlanned(iteration=1, calls=(CALL,)),
    events.ApprovalRequested(approval=approval()),
    events.ApprovalDecided(approval_id="a", call_id="c1", status=ApprovalStatus.APPROVED, arguments={"x": 2}),
    events.CallStarted(call_id="c1", execution_id="r.c1", tool_name="look", attempt=1, arguments={"x": [1]}),
    events.CallFinished(record=record()),
    events.CallResolved(call_id="c1", action="done", result={"ok": True}),
    events.StepFinished(iteration=1, thought="Looks.", duration_ms=1.5, nudge="say more"),
    events.StepRestarted(iteration=2),
    events.ToolsOffered(iteration=2, reason="fallback", added=("b",), dropped=("a",), because="c"),
    events.Answered(text="yes", reasoning="seen", confidence=0.9),
    events.RunSuspended(status=RunStatus.AWAITING_APPROVAL, waiting_for=("a",)),
    events.RunForked(parent_id="r", parent_seq=3, iteration=2, say="and then?"),
    events.RunFinished(status=RunStatus.LIMIT_REACHED, error=ERROR),
    events.RunFailed(error=ERROR),
]


def test_the_list_of_facts_is_complete() -> None:
    union = get_args(get_args(events.Fact)[0])
    assert {type(fact) for fact in FACTS} == set(union) - {UnknownFact}


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.type)
def test_every_fact_survives_json(fact: events.Fact) -> None:
    fact.stamp("run_1", 7, 12.5)
    again = read_fact(fact.model_dump_json())
    assert again == fact
    assert (again.run_id, again.seq, again.time) == ("run_1", 7, 12.5)


@pytest.mark.parametrize(
    "signal", [TextDelta(iteration=1, text="t"), CallProgress(call_id="c", message="half", fraction=0.5)]
)
def test_signals_survive_json_and_are_no_facts(signal: BaseModel) -> None:
    assert type(signal).model_validate_json(signal.model_dump_json()) == signal
    with pytest.raises(ValidationError):
        read_fact(signal.model_dump_json())


def test_the_response_of_a_run_is_told_and_not_journalled() -> None:
    fact = events.RunFinished(status=RunStatus.COMPLETED, response=response())
    assert "response" not in fact.model_dump_json()


# --- refusals name the field, the value and the rule


def refused(match: str, make: Any, kind: type[Exception] | tuple[type[Exception], ...] = REFUSALS) -> None:
    with pytest.raises(kind, match=match):
        make()


def test_an_agent_says_who_it_is_and_what_to_do() -> None:
    for field in ("name", "model", "instruction"):
        for value in ("", "  "):
            refused(field, lambda field=field, value=value: Agent(**{"name": "a", "instruction": "i", field: value}))
    refused("max_iterations", lambda: Agent(name="a", instruction="i", max_iterations=0))
    refused("more than once: look", lambda: Agent(name="a", instruction="i", tools=[SPECIFICATION, SPECIFICATION]))
    reserved = SPECIFICATION.model_copy(update={"name": "finish"})
    refused("reserved tool names: finish", lambda: Agent(name="a", instruction="i", tools=[reserved]))
    refused("intsruction", lambda: Agent.model_validate({"name": "a", "instruction": "i", "intsruction": "typo"}))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": ""}, 'name: must have at least 1 character, got ""'),
        ({"name": "two words"}, """tool 'two words': name: a tool's name has no spaces .*, got "two words\""""),
        ({"name": None}, "name: must be a string, got null"),
        ({"description": " \n"}, "description: a tool needs a description"),
        ({"timeout_seconds": 0.5}, "timeout_seconds: must be greater than or equal to 1, got 0.5"),
        ({"timeout_seconds": 301}, "timeout_seconds: must be less than or equal to 300, got 301"),
        ({"permissions": {"a b"}}, "permission 'a b' is not well-formed"),
        ({"risk": "never"}, "risk: must be 'reversible', .*, got \"never\""),
        ({"read_only": True, "risk": "irreversible"}, "read-only tool is reversible, this one says 'irreversible'"),
        ({"parameters": {"type": "array"}}, 'parameters: must be .* type \'object\', got {"type": "array"}'),
        ({"parameters": {"type": "object", "required": "a"}}, "parameters: the parameters' schema has .* of the wrong"),
        ({"signature": "(a::String)"}, 'signature: 1:12: the signature ends here; expected .*, got "\\(a::String'),
        ({"signature": 5}, "signature: must be a string, got 5"),
        ({"timeout": 5}, r"timeout: unknown field \(known: name, description, .*timeout_seconds"),
        (
            {"signature": "(a::String)==>(::String)", "parameters": {"type": "object", "properties": {"b": {}}}},
            "do not agree with the signature '\\(a::String\\)==>\\(::String\\)': a: only in the specification; b: only",
        ),
    ],
)
def test_a_specification_is_consistent(fields: dict[str, Any], told: str) -> None:
    described = {"name": "n", "description": "d", **fields}
    refused(told, lambda: ToolSpecification(**described), ToolDefinitionError)
    refused(told, lambda: ToolSpecification.model_validate(described), ToolDefinitionError)
    refused(told, lambda: Agent(name="a", instruction="i", tools=[described]), ToolDefinitionError)  # type: ignore[list-item]


def test_a_zero_argument_tool_is_a_tool() -> None:
    @tool
    def now() -> str:
        """Tell the time."""
        return "noon"

    assert now.specification.parameters["properties"] == {}


def test_a_function_message_carries_its_tools_name() -> None:
    refused("name of its tool", lambda: Message(role=Role.FUNCTION, content="x"))
    refused("only an assistant", lambda: Message(role=Role.USER, calls=(CALL,)))


def test_a_task_says_something_and_may_run_at_least_once() -> None:
    refused("description", lambda: TaskInput(description=""))
    refused("blank", lambda: TaskInput(description=" \t"))
    refused("task_id", lambda: TaskInput(description="do", task_id=""))
    for number in (0, -1):
        refused("max_iterations", lambda n=number: TaskInput(description="do", max_iterations=n))
    refused("environment", lambda: TaskInput(description="do", environment="moon"))
    assert TaskInput(description="do").task_id != TaskInput(description="do").task_id


def test_a_step_is_consistent() -> None:
    refused("iteration", lambda: step(iteration=0))
    refused("thought", lambda: step(thought=""))
    refused("must have calls", lambda: step(calls=()))
    refused("answer as its observation", lambda: step(action="finish", calls=(), observation=""))
    refused("duration_ms", lambda: step(duration_ms=-1))
    assert (step().tool_name, step().tool_args) == ("look", {})


def test_a_response_is_consistent() -> None:
    refused("a completed run must have an answer", lambda: response(answer=" "))
    refused("a failed run must say why", lambda: response(status=RunStatus.FAILED, answer=""))
    refused("reasoning", lambda: response(reasoning=""))
    for confidence in (-0.1, 1.1, float("nan")):
        refused("confidence", lambda c=confidence: response(confidence=c))
    assert response(status=RunStatus.LIMIT_REACHED, answer="").total_iterations == 0


def test_a_record_has_exactly_one_of_result_and_error() -> None:
    refused("has no error", lambda: record(error=ERROR))
    refused("has no result", lambda: record(status=CallStatus.ERROR, error=ERROR))
    for status in ("error", "timeout", "cancelled", "denied", "unknown"):
        refused(f"{status}' must say why", lambda s=status: record(status=s, result=None))
    refused("is before start_time", lambda: record(end_time=NOW - timedelta(seconds=1)))
    refused("attempts", lambda: record(attempts=-1))
    made = record()
    assert (made.success, made.duration_ms, made.parameters, made.error_message) == (True, 1500.0, {}, None)
    assert record(result=None).success
    shown = made.model_dump(mode="json")
    assert (shown["success"], shown["duration_ms"]) == (True, 1500.0)


def test_permissions_are_well_formed() -> None:
    refused("'orders write'", lambda: Principal("ada", permissions={"orders write"}))
    refused("not the string", lambda: Principal("ada", permissions="orders:write"))
    refused("id", lambda: Principal(""))
    refused("id", lambda: Principal.model_validate({}))
    refused(
        "permisions", lambda: TaskInput.model_validate({"description": "x", "principal": {"id": "a", "permisions": []}})
    )
    assert ADA.may("orders:read")
    assert ADA.may("notes:write:own")
    assert not ADA.may("orders:write")
    assert not ADA.may("notes")


def test_the_error_sets_are_closed() -> None:
    assert [c.value for c in ErrorCategory] == [
        "network", "authentication", "permission", "rate_limit", "invalid_input", "tool_error", "timeout",
        "system_error",
    ]  # fmt: skip
    assert [s.value for s in Severity] == ["critical", "high", "medium", "low", "info"]
    with pytest.raises(ValueError, match="weather"):
        ToolError("X", "x", category="weather")
    told = ToolError("X", "x", retryable=True, recover_action="wait").to_dict()
    assert told == {"error": "x", "code": "X", "retryable": True, "recover_action": "wait"}


def test_strategies_gaps_configurations_and_tasks_are_checked() -> None:
    refused("tool_sequence", lambda: ToolCallingStrategy(content="x", tool_sequence=()))
    refused("helpful_count", lambda: PlaybookBullet(content="x", helpful_count=-1))
    strategy = ToolCallingStrategy(content="x", tool_sequence=("look",), helpful_count=3, harmful_count=1)
    assert (strategy.tool_success_rate, strategy.state) == (0.75, StrategyState.SHADOW)
    assert ToolCallingStrategy(content="x", tool_sequence=("look",)).tool_success_rate == 0
    refused("missing_tools", lambda: ToolGapReport(missing_tools=(), attempted_task="x"))
    refused("attempted_task", lambda: ToolGapReport(missing_tools=("a",), attempted_task=" "))
    refused("per_week", lambda: ToolConfiguration(tool_name="look", rate_limits={"per_week": 3}))
    refused("rate_limits", lambda: ToolConfiguration(tool_name="look", rate_limits={"per_minute": 0}))
    refused("timeout_seconds", lambda: ToolConfiguration(tool_name="look", timeout_seconds=0))
    refused("calls", lambda: RateLimit(calls=0))
    for title in ("", "x" * 256):
        refused("title", lambda t=title: Task(id="1", title=t, created_at=NOW, updated_at=NOW))
    made = Task(id="1", title="x", created_at=NOW, updated_at=NOW)
    assert (made.status, made.priority) == ("pending", "medium")
    refused("type", lambda: Attachment(id="1", task_id="1", type="fax", reference="x", created_at=NOW, updated_at=NOW))
    refused("confidence", lambda: UserIntent(intent_type="fetch", confidence=2))


def test_the_time_zone_of_a_tasks_end_is_kept() -> None:
    made = Task.model_validate_json(
        '{"id":"1","title":"t","created_at":"2025-01-01T00:00:00Z","updated_at":"2025-01-01T00:00:00Z",'
        '"eta":"2025-06-01T12:00:00+05:00"}'
    )
    assert made.eta is not None
    assert made.eta.utcoffset() == timedelta(hours=5)


# --- states


def test_which_runs_have_ended_and_which_wait_for_a_person() -> None:
    for status in RunStatus:
        assert status.ended is (status.value in {"completed", "failed", "cancelled", "limit_reached"})
        assert status.waiting is status.value.startswith(("awaiting", "stuck"))


def test_every_answer_to_an_approval_is_final() -> None:
    assert [status for status in ApprovalStatus if not status.final] == ["pending"]


def test_an_entity_made_of_good_values_is_the_one_the_constructor_makes() -> None:
    made = unchecked(ToolCall, {"tool_name": "add", "arguments": {"a": 1}})
    assert made == ToolCall(tool_name="add", arguments={"a": 1})
    assert made.model_dump_json() == ToolCall(tool_name="add", arguments={"a": 1}).model_dump_json()
    assert made.model_copy(update={"id": "x"}).id == "x"
    assert made.id == ""
    with pytest.raises(ValidationError, match="frozen"):
        made.id = "y"  # type: ignore[misc]


def test_what_is_made_without_a_check_is_checked_while_tests_run() -> None:
    with pytest.raises(InvalidDataError):
        unchecked(ToolCall, {"tool_name": 3})


def test_a_refusal_names_its_field_once() -> None:
    with pytest.raises(InvalidDataError) as caught:
        TaskInput(description=" ")
    assert str(caught.value) == 'TaskInput: description: a task must say what to do, this one is blank, got " "'
    assert caught.value.problems[0][0] == "description"
