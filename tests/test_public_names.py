"""Which names are public, that each of them is there, and that importing the package costs next to nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import journeyman
import journeyman.testing

PUBLIC = [
    "Advice",
    "Agent",
    "AgentResponse",
    "Approval",
    "ApprovalError",
    "ApprovalStatus",
    "Approve",
    "Approver",
    "ArgumentSource",
    "Attachment",
    "AuditError",
    "BindingError",
    "BreakerRule",
    "CallStatus",
    "ChainStep",
    "Clock",
    "ConfigurationError",
    "Curator",
    "Deltas",
    "Demonstration",
    "Deny",
    "ErrorCategory",
    "ErrorInfo",
    "FilePlaybooks",
    "Gap",
    "IntentReader",
    "IntentType",
    "InvalidDataError",
    "Journal",
    "Journeyman",
    "JourneymanError",
    "Label",
    "LabelSource",
    "LearningSettings",
    "Limits",
    "MemoryDocument",
    "MemoryHit",
    "Message",
    "Model",
    "ModelError",
    "ModelRequest",
    "ModelResponse",
    "Playbook",
    "PlaybookBullet",
    "Policy",
    "Price",
    "Principal",
    "RateLimit",
    "ReasoningStep",
    "Reflector",
    "Researcher",
    "RiskLevel",
    "Role",
    "RunStatus",
    "SessionTakenError",
    "Severity",
    "SignatureError",
    "Split",
    "StoreError",
    "StrategySource",
    "Task",
    "TaskInput",
    "Tool",
    "ToolCall",
    "ToolCallRecord",
    "ToolCallingStrategy",
    "ToolCategory",
    "ToolConfiguration",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolGapDetector",
    "ToolGapReport",
    "ToolLibrary",
    "ToolSpecification",
    "Usage",
    "UserIntent",
    "add_intent_type",
    "categorize_action_risk",
    "dump_agents",
    "load_agents",
    "requires_approval",
    "run",
    "run_batch",
    "run_sync",
    "stream",
    "tool",
]
FOR_TESTS = [
    "CrashPoint",
    "FakeClock",
    "Recovery",
    "ScriptedModel",
    "ScriptedServer",
    "call",
    "crash_and_recover",
    "crash_points",
    "crashing",
    "cut",
    "hang",
    "html",
    "http",
    "raw",
    "say",
    "together",
]
LATER = {
    "aiohttp",
    "anthropic",
    "google",
    "griffe",
    "jsonschema_rs",
    "numpy",
    "openai",
    "opentelemetry",
    "rich",
    "sqlite3",
    "starlette",
    "tree_sitter",
    "tree_sitter_gram",
    "typer",
    "uvicorn",
}


def test_the_public_names_are_these() -> None:
    assert journeyman.__all__ == PUBLIC
    assert sorted(journeyman.testing.__all__) == sorted(FOR_TESTS)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(journeyman, name) is not None
    assert name in dir(journeyman)


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Agnet'"):
        journeyman.Agnet  # type: ignore[attr-defined]  # noqa: B018


def loaded_by(program: str) -> set[str]:
    shown = f"{program}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", shown], check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_importing_the_package_brings_no_provider_server_or_numbers() -> None:
    assert not loaded_by("import journeyman") & LATER


def test_defining_and_running_a_tool_brings_no_provider_or_server() -> None:
    program = """
from journeyman import Agent, ToolLibrary, run_sync, tool
from journeyman.testing import ScriptedModel, call, say
@tool(risk="reversible")
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
agent = Agent(name="a", instruction="i", tools=[add])
model = ScriptedModel([call("add", a=1, b=2), say("3")])
assert run_sync(agent, "1+2?", library=ToolLibrary([add]), model=model).answer == "3"
"""
    assert not loaded_by(program) & (LATER - {"griffe"})  # which reads docstrings
