"""What a program gives its runs: dependencies for tools, and instructions that are made from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Approve, Journeyman, Principal, RunStatus, ToolContext, run, tool
from journeyman.core.specification import ToolSpecification
from journeyman.testing import ScriptedModel, call, say
from journeyman.tools.checks import lint_tools


@dataclass
class Shop:
    orders: dict[str, str] = field(default_factory=lambda: {"W-17": "shipped"})
    customer: str = "Ada"


@tool(read_only=True)
def where_is(order: str, context: ToolContext[Shop]) -> str:
    """Look up an order."""
    return f"{order}: {context.deps.orders[order]}"


def greeting(context: ToolContext[Shop]) -> str:
    return f"You help {context.deps.customer}."


AGENT = Agent(name="shop", instruction=greeting, tools=[where_is])


def connect(principal: Principal | None) -> Shop:
    return Shop(customer="nobody" if principal is None else principal.id)


async def test_tools_and_instructions_get_what_the_run_was_given() -> None:
    model = ScriptedModel([call("where_is", order="W-17"), say("Shipped.")])
    response = await run(AGENT, "Where is W-17?", model=model, deps=Shop(customer="Grace"))
    assert response.tool_calls[0].result == "W-17: shipped"
    assert model.requests[0].messages[0].content == "You help Grace."
    assert "context" not in where_is.specification.parameters["properties"]
    assert "Grace" not in response.model_dump_json()


async def test_an_instruction_may_be_awaited_and_is_kept_with_further_tools() -> None:
    async def later(context: ToolContext[Shop]) -> str:
        return f"Later for {context.deps.customer}."

    model = ScriptedModel([say("Hi")])
    agent = Agent(name="shop", instruction=later).with_tools(where_is).with_output(str)
    assert (await run(agent, "Hello", model=model, deps=Shop())).output == "Hi"
    assert model.requests[0].messages[0].content.startswith("Later for Ada.")


async def test_an_instruction_that_cannot_be_made_fails_the_run_and_says_why() -> None:
    response = await run(AGENT, "Hello", model=ScriptedModel([]))
    assert response.status is RunStatus.FAILED
    assert response.error is not None
    assert "greeting, which raised AttributeError" in response.error.message


@pytest.mark.parametrize("factory", [connect, f"{__name__}:connect"])
async def test_a_stored_run_gets_what_the_app_s_factory_makes(factory: object, tmp_path: Path) -> None:
    model = ScriptedModel([call("where_is", order="W-17"), say("Shipped.")])
    async with Journeyman(store=f"sqlite:///{tmp_path}/a.db", model=model, deps=factory) as app:  # type: ignore[arg-type]
        handle = await app.start(AGENT, "Where is W-17?", principal=Principal(id="ada"))
        assert (await handle.result()).answer == "Shipped."
    assert model.requests[0].messages[0].content == "You help ada."


async def test_another_program_does_not_take_the_place_of_an_instruction_for_one() -> None:
    stored = Agent.stored(AGENT.snapshot)
    response = await run(stored.model_copy(update={"tools": ()}), "Hello", model=ScriptedModel([say("Hi")]))
    assert response.error is not None
    assert "which this program has not got" in response.error.message


async def test_a_plain_function_that_nobody_can_agree_to_is_told_in_the_first_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def ship(order: str) -> str:
        """Ship an order."""
        return f"shipped {order}"

    agent = Agent(name="shop", instruction="Ship orders.", tools=[ship])
    turns: list[Any] = [call("ship", order="W-17"), say("Shipped.")]
    response = await run(agent, "Ship W-17", model=ScriptedModel(turns))
    assert "calls of ship will be denied: pass approver=" in caplog.text
    assert (response.outcome, response.reasoning.partition("'ship'")[0]) == ("not", "Not done: ")
    assert "@tool(read_only=True)" in response.reasoning
    first, second, *_ = response.reasoning_trace.splitlines()
    assert (first.endswith("@tool(risk='reversible')."), second) == (True, "1. Calls ship.")
    asked = await run(agent, "Ship W-17", model=ScriptedModel(turns), approver=lambda _: Approve())
    assert (asked.outcome, asked.tool_calls[0].result) == ("achieved", "shipped W-17")


@pytest.mark.parametrize(
    ("name", "returns", "suggested"),
    [
        ("get_order", {"type": "string"}, True),
        ("shop.look_up", None, True),
        ("count_boxes", {"type": "integer"}, True),
        ("checkout_cart", {"type": "string"}, False),
        ("listen_to", {"type": "string"}, False),
        ("send_mail", {"type": "string"}, False),
        ("get_rid_of", {"type": "null"}, False),
    ],
)
def test_reads_that_say_so_in_name_and_signature_are_suggested_as_such(
    name: str, returns: dict[str, Any] | None, suggested: bool
) -> None:
    item = ToolSpecification(
        name=name, description="Does it. Use when it is wanted.", parameters={"type": "object"}, returns=returns
    )
    [finding] = [found for found in lint_tools([item]) if found.rule == "risk-undeclared"]
    assert ("read_only=True" in finding.message) is suggested
