"""What a caller adds to the agent's instruction for one task."""

from __future__ import annotations

from journeyman import Agent, TaskInput, run
from journeyman.core.protocols import ModelRequest, ModelResponse
from journeyman.testing import ScriptedModel, say


async def test_rules_of_a_task_stand_in_the_instruction_and_not_under_advice() -> None:
    seen: list[str] = []

    def look(request: ModelRequest) -> ModelResponse:
        seen.append(request.messages[0].content)
        return say("ok")

    task = TaskInput(description="go", rules=("Only whispers.",), playbook_bullets=("Be polite",))
    await run(Agent(name="a", instruction="Help."), task, model=ScriptedModel([look]))
    before, _, after = seen[0].partition("Be polite")
    assert before.startswith("Help.\n\nOnly whispers.\n\n")
    assert "whispers" not in after
    assert "rules" not in TaskInput(description="go").model_dump()
