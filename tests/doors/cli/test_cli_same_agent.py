"""The agent that a module brings answers at every door, and what one sees first is about its tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman import Principal, ToolLibrary, tool
from journeyman.app.desk import Desk
from journeyman.app.operations.service import list_agents
from journeyman.app.service import PLAIN_INSTRUCTION, assistant, open_service, starters
from journeyman.doors.cli.loading import load_agent
from journeyman.stores.store import open_store

SHOP = '''
from journeyman import Agent, tool

@tool(read_only=True, examples=["Where is order W-17?"])
def where_is(order: str) -> str:
    """Look up an order. Use when the user asks where one is."""
    return order
'''


@tool(read_only=True, examples=["Where is order W-17?"])
def where_is(order: str) -> str:
    """Look up an order. Use when the user asks where one is."""
    return order


def test_a_module_of_tools_is_answered_for_by_its_own_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    Path("own_shop.py").write_text(SHOP + '\nclerk = Agent(name="clerk", instruction="Be kind.", tools=[where_is])\n')
    Path("tools_only.py").write_text(SHOP)
    agent, tools = load_agent(None, "own_shop.py", store=store)
    assert (agent.name, agent.instruction, [item.name for item in tools]) == ("clerk", "Be kind.", ["where_is"])
    plain, _ = load_agent(None, "tools_only.py", store=store)
    assert plain.instruction == PLAIN_INSTRUCTION
    assert starters(plain, plain.tools) == ("Where is order W-17?",)


async def test_the_first_screen_counts_the_tools_of_an_agent_that_has_all(tmp_path: Path) -> None:
    library = ToolLibrary([where_is])
    agents = [assistant(library, follows=True)]
    async with open_service(store=f"sqlite:///{tmp_path}/a.db", library=library, agents=agents) as service:
        [shown] = (await list_agents(Desk(service.app, Principal(id="ada"), service=service))).agents
    assert (shown.tools, shown.starters) == (["where_is"], ["Where is order W-17?"])
