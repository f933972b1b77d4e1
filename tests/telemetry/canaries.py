"""A run whose every content is a word that must not be found where only metadata belongs."""

from __future__ import annotations

from typing import Any

from journeyman import AgentResponse, Deny, ModelError, Policy, ToolContext, ToolError, ToolLibrary, run, tool
from journeyman.testing import ScriptedModel, call, say, together
from tests.playing import agent_with

CANARIES = {
    "instruction": "canary-instruction",
    "task": "canary-task",
    "argument": "canary-argument",
    "result": "canary-result",
    "error": "canary-error",
    "secret": "canary-secret",
    "thought": "canary-thought",
    "answer": "canary-answer",
    "reason": "canary-reason",
    "progress": "canary-progress",
    "malformed": "canary-malformed",
}


@tool(read_only=True)
def give(text: str, context: ToolContext) -> dict[str, str]:
    """Give something."""
    context.progress(CANARIES["progress"])
    return {"text": CANARIES["result"], "secret": context.secrets["CANARY"]}


@tool(risk="reversible")
def fail(text: str) -> None:
    """Fail on purpose."""
    raise ToolError("FAILED", f"{CANARIES['error']} {text}")


@tool(risk="reversible")
def explode(text: str, context: ToolContext) -> None:
    """Fail by accident."""
    raise ValueError(f"{CANARIES['error']} {context.secrets['CANARY']}")


@tool
def delete(text: str) -> None:
    """Delete."""


async def sing(*, capture: bool = False, ending: Any = None) -> AgentResponse:
    text = CANARIES["argument"]
    calls = together(*(call(name, text=text) for name in ("give", "fail", "explode", "delete")))
    tools: list[Any] = [give, fail, explode, delete]
    agent = agent_with(*tools).model_copy(update={"instruction": CANARIES["instruction"]})
    first = calls.model_copy(update={"text": CANARIES["thought"]})
    model = ScriptedModel(
        [first, call("give").raw(CANARIES["malformed"]), call(f"no_{text}"), ending or say(CANARIES["answer"])]
    )
    return await run(
        agent,
        CANARIES["task"],
        library=ToolLibrary(tools),
        model=model,
        approver=lambda approval: Deny(reason=CANARIES["reason"]),
        policy=Policy(capture_content=capture),
    )


DOWN = ModelError("DOWN", "the server is down")
