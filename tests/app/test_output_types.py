"""What type checkers make of ``output``: mypy checks this file, and the tests run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

from pydantic import BaseModel

from journeyman import Agent, AgentResponse, Journeyman, run, run_batch
from journeyman.app.handles import Handle
from journeyman.testing import ScriptedModel, call

AGENT = Agent(name="tester", instruction="Be brief.")


class Order(BaseModel):
    id: str


def model() -> ScriptedModel:
    return ScriptedModel([call("finish", id="W-17")])


async def test_a_direct_run_has_the_type_it_was_given() -> None:
    response = await run(AGENT, "Do it.", output=Order, model=model())
    assert_type(response, AgentResponse[Order])
    assert_type(response.output, Order)
    assert response.output.id == "W-17"
    listed = await run(AGENT, "Do it.", output=list[Order], model=ScriptedModel([call("finish", output=[])]))
    assert_type(listed.output, list[Order])
    plain = await run(AGENT, "Do it.", output={"type": "object"}, model=model())
    assert_type(plain.output, Any)
    text = await run(AGENT, "Do it.", model=ScriptedModel(["Done."]))
    assert_type(text, AgentResponse[Any])
    [one] = await run_batch(AGENT, ["Do it."], output=Order, model=model())
    assert_type(one.output, Order)
    assert_type(plain.output_as(Order), Order)


async def test_a_durable_run_has_the_type_it_was_given(tmp_path: Path) -> None:
    async with Journeyman(store=f"sqlite:///{tmp_path}/runs.db", model=model()) as app:
        handle = await app.start(AGENT, "Do it.", output=Order)
        assert_type(handle, Handle[Order])
        assert_type((await handle.result()).output, Order)
        said = await app.session("s").send(AGENT, "Do it.", output=Order)
        assert_type((await said.result()).output, Order)
        assert (await said.result()).output == (await handle.result()).output == Order(id="W-17")
