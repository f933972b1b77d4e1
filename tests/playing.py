"""Playing a script over real tools: what the tests of the path of a call and of the loop share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from journeyman import Agent, AgentResponse, Message, Role, ToolLibrary, run
from journeyman.core.events import Fact, read_fact
from journeyman.execution.recorder import MemoryJournal
from journeyman.testing import ScriptedModel


@dataclass(frozen=True)
class Played:
    """A run that is over, with everything that was said and noted."""

    response: AgentResponse
    model: ScriptedModel
    facts: Sequence[Fact]

    @property
    def told(self) -> list[str]:
        """What the tools' answers looked like to the model, in order."""
        return [message.content for message in self.response.messages if message.role is Role.FUNCTION]

    @property
    def types(self) -> list[str]:
        return [fact.type for fact in self.facts]


def agent_with(*tools: Any, **options: Any) -> Agent:
    return Agent(name="tester", instruction="Be brief.", tools=tools, **options)


async def play(
    tools: Iterable[Any], turns: Iterable[Any], task: Any = "Do it.", *, agent: Agent | None = None, **options: Any
) -> Played:
    """Run a script to its end and check what must hold for every run."""
    tools = list(tools)
    model, journal = ScriptedModel(turns), options.pop("journal", MemoryJournal())
    library = options.pop("library", None) or ToolLibrary(tools)
    response = await run(agent or agent_with(*tools), task, library=library, model=model, journal=journal, **options)
    facts = await journal.read(response.run_id)
    assert [fact.seq for fact in facts] == list(range(1, len(facts) + 1))
    assert AgentResponse.model_validate_json(response.model_dump_json()).run_id == response.run_id
    assert [read_fact(fact.model_dump_json()).seq for fact in facts] == [fact.seq for fact in facts]
    assert_well_formed(response.messages)
    return Played(response, model, facts)


def assert_well_formed(messages: Sequence[Message]) -> None:
    """Every call is answered exactly once, right after its turn, in the model's order."""
    at = 0
    while at < len(messages):
        message = messages[at]
        answers = messages[at + 1 : at + 1 + len(message.calls)]
        assert message.role is not Role.FUNCTION, "an answer without its call"
        assert [answer.call_id for answer in answers] == [call.id for call in message.calls]
        assert all(answer.role is Role.FUNCTION for answer in answers)
        at += 1 + len(message.calls)
    ids = [call.id for message in messages for call in message.calls]
    assert len(ids) == len(set(ids))
