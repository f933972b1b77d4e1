"""Where arguments came from: what must come from somewhere, where it is found, and what it costs to look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import Agent, Approve, Deny, Policy, RiskLevel, run, run_sync, tool
from journeyman.core.approvals import Approval
from journeyman.core.calls import value_at
from journeyman.core.runs import AgentResponse, Message, ReasoningStep, Role
from journeyman.core.specification import ToolSpecification
from journeyman.provenance import index
from journeyman.provenance.index import finders, is_identifier
from journeyman.provenance.ledger import Ledger
from journeyman.testing import ScriptedModel, call, say

ANYTHING = ToolSpecification(name="anything", description="Takes anything.")


@dataclass
class Said:
    messages: list[Message] = field(default_factory=list)
    task_at: int = 0
    steps: Sequence[ReasoningStep] = ()

    def result(self, text: str, call_id: str = "call_1") -> None:
        self.messages.append(Message(role=Role.FUNCTION, content=text, name="look_up", call_id=call_id))


def after(*texts: str) -> Ledger:
    said = Said([Message.user(texts[0])])
    for at, text in enumerate(texts[1:], start=1):
        said.result(text, f"call_{at}")
    return Ledger(said)


def origin(ledger: Ledger, value: Any, name: str = "order_id") -> str:
    [source] = ledger.trace(ANYTHING, {name: value})
    return source.origin


# --- what is an identifier


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recipient", "nia@example.com"),
        ("where", "https://example.com/x"),
        ("order_id", "W-17"),
        ("userId", "u_7"),
        ("order_id", 12446),
        ("reference", "#W6067464"),
        ("phone", "+1 438-673-7985"),
        ("account", 40024179),
        ("host", "192.168.10.14"),
        ("file", "/etc/hosts"),
        ("email_id", "last_email_from_nadia"),
    ],
)
def test_addresses_ids_long_numbers_and_paths_are_identifiers(name: str, value: Any) -> None:
    assert is_identifier(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("when", "2024-05-01T10:00:00Z"),
        ("when", "20240501"),
        ("when", "10:30 AM"),
        ("amount", 1500000),
        ("amount", 12345.678),
        ("price", "1,234.56"),
        ("title", "Buy 3 eggs"),
        ("quarter", "2023-Q3"),
        ("count", 250),
        ("item_id", 2),
        ("user_id", "me"),
        ("done", True),
        ("zip", "10083"),
        ("version", "1.2.3"),
    ],
)
def test_dates_quantities_and_words_are_not(name: str, value: Any) -> None:
    assert not is_identifier(name, value)


# --- where it is found


@pytest.mark.parametrize(
    "said",
    [
        "Cancel W-4190.",
        "(order: W-4190)",
        '{"order":"W-4190"}',
        "is it #W-4190?",
        "w 4190 please",
        "a\\nW-4190\\nb",
        "W, then 4190",
    ],
)
def test_an_identifier_is_found_however_it_is_written(said: str) -> None:
    assert origin(after(said), "W-4190") == "request"


@pytest.mark.parametrize("said", ["Cancel W-41901", "XW-4190", "order 419", "Cancel my last order"])
def test_part_of_another_word_does_not_count(said: str) -> None:
    assert origin(after(said), "W-4190") == "nowhere"


@pytest.mark.parametrize("said", ["Write to Nia at example.com", "nia@other.com knows example.com"])
def test_an_address_is_not_made_of_parts(said: str) -> None:
    assert origin(after(said), "nia@example.com", "to") == "nowhere"


def test_words_that_were_said_make_no_identifier() -> None:
    assert origin(after("Delete the last email", '[{"email_id": "4190"}]'), "last_email_id", "email_id") == "nowhere"


def test_a_path_may_be_put_together_of_what_was_said() -> None:
    ledger = after("Copy report.txt into the folder docs/old")
    assert origin(ledger, "./docs/old/report.txt", "path") == "request"
    assert origin(ledger, "./docs/new/report.txt", "path") == "nowhere"


@pytest.mark.parametrize("filler", [0, 40, 400, 4_000])
def test_the_source_is_the_first_that_said_it_in_texts_of_any_length(filler: int) -> None:
    pad = "filler " * filler
    ledger = after(f"Cancel Ada's order {pad}", f"{pad} W-4190 {pad}", f"{pad} W-4190 W-4191")
    [source] = ledger.trace(ANYTHING, {"order_id": "W-4190"})
    assert (source.origin, source.call_id, source.tool_name) == ("result", "call_1", "look_up")
    [source] = ledger.trace(ANYTHING, {"order_id": "W-4191"})
    assert source.call_id == "call_2"
    assert origin(ledger, "W-4192") == "nowhere"


def test_nested_values_are_found_and_named() -> None:
    arguments = {"items": [{"sku": "A-1001"}, {"sku": "B-2002"}]}
    sources = after("I want A-1001").trace(ANYTHING, arguments)
    assert [(item.argument, item.origin) for item in sources] == [
        ("items[0].sku", "request"),
        ("items[1].sku", "nowhere"),
    ]
    assert value_at(arguments, "items[1].sku") == "B-2002"


def test_defaults_enums_and_what_a_model_may_write_are_told_apart() -> None:
    @tool
    def book(day: str, room: str = "R-1000", size: int = 4) -> str:
        """Book a room."""
        return day

    sources = after("Book a room for tomorrow").trace(
        book.specification, {"day": "2024-05-02", "room": "R-1000", "size": 5}
    )
    assert [item.origin for item in sources] == ["computed", "default", "computed"]
    enum = ToolSpecification(
        name="x",
        description="X.",
        parameters={"type": "object", "properties": {"mode": {"type": "string", "enum": ["M-1000", "M-2000"]}}},
    )
    [source] = after("hello").trace(enum, {"mode": "M-1000"})
    assert source.origin == "enum"


def test_history_system_text_and_the_request_are_told_apart() -> None:
    said = Said([Message.user("My order is W-4190"), Message(role=Role.ASSISTANT, content="Yes?")], task_at=2)
    said.messages.append(Message.user("Cancel it, not W-4191"))
    ledger = Ledger(said, system="Escalate to boss@shop.example")
    assert [origin(ledger, value) for value in ("W-4190", "W-4191", "boss@shop.example")] == [
        "history",
        "request",
        "system",
    ]


def test_what_the_model_said_itself_vouches_for_nothing() -> None:
    said = Said([Message.user("Cancel my order")])
    said.messages.append(Message(role=Role.ASSISTANT, content="I take W-4190 to be the one."))
    assert origin(Ledger(said), "W-4190") == "nowhere"


# --- what it costs


def test_a_step_reads_only_what_was_said_since_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    pieces = index._pieces

    def counted(text: str) -> Any:
        read.append(len(text))
        return pieces(text)

    monkeypatch.setattr(index, "_pieces", counted)
    said = Said([Message.user("Where is order W-1000?")])
    ledger = Ledger(said)
    for step in range(200):
        ledger.trace(ANYTHING, {"order_id": f"W-{1000 + step}", "note": "in words"})
        said.result(f'{{"next": "W-{1001 + step}", "lines": "{"x " * step * 5}"}}', f"call_{step}")
    total = sum(len(message.content) for message in said.messages)
    assert sum(read) <= 2 * total  # once as tokens, and once more as words


@given(st.text(alphabet="wW-1234 .,:#@\"'\\n{}", max_size=600), st.text(alphabet="wW-1234.@", min_size=1, max_size=8))
def test_searching_and_taking_apart_agree(text: str, value: str) -> None:
    long, short = index.SHORT_TEXT, after(text)
    apart = Ledger(Said([Message.user(text)]))
    try:
        index.SHORT_TEXT = 10_000
        expected = origin(apart, value)
        index.SHORT_TEXT = 0
        assert origin(short, value) == expected
    finally:
        index.SHORT_TEXT = long


@pytest.mark.parametrize("text", ["a" * 1_000_000, "w-4190x " * 125_000, "w-" * 500_000, "\\" * 1_000_000])
def test_a_megabyte_of_hostile_text_is_read(text: str) -> None:
    ledger = after(text)
    assert origin(ledger, "W-4190") == "nowhere"
    assert origin(ledger, "W-4190") == "nowhere"


# --- in a run


@tool(risk=RiskLevel.REVERSIBLE, read_only=True)
def search_orders(customer: str) -> list[dict[str, str]]:
    """Find the orders of a customer."""
    return [{"order_id": "W-17"}]


@tool(risk=RiskLevel.REVERSIBLE)
def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    return "cancelled"


AGENT = Agent(name="support", instruction="Help.", tools=[search_orders, cancel_order])
INVENTS = [call("cancel_order", order_id="W-99"), call("search_orders", customer="Ada")]
THEN_RIGHT: list[Any] = [*INVENTS, call("cancel_order", order_id="W-17"), say("Done.")]


def played(policy: Policy, **options: Any) -> AgentResponse:
    return run_sync(AGENT, "Cancel Ada's order", model=ScriptedModel(THEN_RIGHT), policy=policy, **options)


def test_the_record_and_the_trace_say_where_arguments_came_from() -> None:
    response = played(Policy())
    first, looked_up, second = response.tool_calls
    assert first.ungrounded == ("order_id",)
    assert first.success
    assert looked_up.grounding is not None
    assert looked_up.grounding[0].origin == "request"
    assert second.grounding is not None
    assert second.grounding[0].text == "result of search_orders"
    assert "may be invented: order_id" in response.reasoning_trace
    assert AgentResponse.model_validate_json(response.model_dump_json()).tool_calls == response.tool_calls


def test_a_refusal_names_the_value_and_the_tool_that_looks_it_up() -> None:
    first, _, second = played(Policy(grounding="refuse")).tool_calls
    assert first.error is not None
    assert first.error.code == "UNGROUNDED_ARGUMENT"
    assert 'order_id = "W-99"' in first.error.message
    assert "search_orders" in (first.error.recover_action or "")
    assert not first.attempts
    assert second.success


async def test_a_person_is_asked_only_about_calls_with_effects_and_their_word_counts() -> None:
    asked: list[Approval] = []

    async def approver(approval: Approval) -> Approve:
        asked.append(approval)
        return Approve(by="grace")

    turns: list[Any] = [
        call("search_orders", customer="nobody@example.com"),
        call("cancel_order", order_id="W-99"),
        call("cancel_order", order_id="W-99"),
        say("Done."),
    ]

    @tool(risk=RiskLevel.REVERSIBLE, repeatable=True)
    def cancel_order(order_id: str) -> str:
        """Cancel an order."""
        return f"{order_id} is cancelled"

    agent = Agent(name="support", instruction="Help.", tools=[search_orders, cancel_order])
    policy = Policy(grounding="ask")
    response = await run(agent, "Cancel it", model=ScriptedModel(turns), policy=policy, approver=approver)
    assert [approval.ungrounded for approval in asked] == [("order_id",)]
    assert asked[0].risk_raised, "no grant for the session may cover it"
    assert [record.success for record in response.tool_calls] == [True, True, True]


async def test_what_a_person_put_in_the_place_of_an_argument_came_from_them() -> None:
    response = await run(
        AGENT,
        "Cancel Ada's order",
        model=ScriptedModel([call("cancel_order", order_id="W-99"), say("Done.")]),
        policy=Policy(grounding="ask"),
        approver=lambda _: Approve(arguments={"order_id": "W-50"}),
    )
    [record] = response.tool_calls
    assert record.grounding is not None
    assert record.grounding[0].origin == "person"
    denied = await run(
        AGENT,
        "Cancel Ada's order",
        model=ScriptedModel([call("cancel_order", order_id="W-99"), say("No.")]),
        policy=Policy(grounding="ask"),
        approver=lambda _: Deny(reason="wrong one"),
    )
    assert [(label.value, label.decision) for label in denied.labels] == [("bad", "denied")]


def test_an_error_that_repeats_an_invented_value_does_not_vouch_for_it() -> None:
    @tool(risk=RiskLevel.REVERSIBLE, repeatable=True)
    def pay(invoice_id: str) -> str:
        """Pay an invoice."""
        return f"There is no invoice {invoice_id}."

    agent = Agent(name="payer", instruction="Pay.", tools=[pay])
    turns: list[Any] = [call("pay", invoice_id="I-7777"), call("pay", invoice_id="I-7777"), say("Hm.")]
    response = run_sync(agent, "Pay it", model=ScriptedModel(turns))
    assert [record.ungrounded for record in response.tool_calls] == [("invoice_id",)] * 2


def test_tools_that_need_the_same_identifier_are_no_help() -> None:
    @tool(read_only=True)
    def get_order(order_id: str) -> str:
        """Show an order."""
        return order_id

    specifications = [item.specification for item in (get_order, search_orders, cancel_order)]
    assert finders(["order_id"], specifications, of="cancel_order") == ["search_orders"]
