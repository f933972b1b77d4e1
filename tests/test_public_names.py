"""Which names are public, that each of them is there, and that importing the package costs next to nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import journeyman
import journeyman.testing
from benchmarks.imports import loaded_here

ROOT = Path(__file__).parents[1]
PUBLIC = [
    "Agent",
    "AgentResponse",
    "Approval",
    "ApprovalError",
    "Approve",
    "Approver",
    "Audio",
    "BindingError",
    "BreakerRule",
    "CallStatus",
    "ConfigurationError",
    "Deny",
    "Document",
    "ErrorInfo",
    "Image",
    "Journeyman",
    "JourneymanError",
    "Limits",
    "Message",
    "Model",
    "ModelError",
    "ModelSettings",
    "Policy",
    "Principal",
    "RateLimit",
    "RiskLevel",
    "Role",
    "RunStatus",
    "Split",
    "StoreError",
    "TaskInput",
    "Tool",
    "ToolCall",
    "ToolCallRecord",
    "ToolCategory",
    "ToolConfiguration",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolLibrary",
    "ToolSpecification",
    "Usage",
    "dump_agents",
    "load_agents",
    "prompt",
    "quarantine",
    "resource",
    "run",
    "run_batch",
    "run_sync",
    "stream",
    "tool",
]
IN_ROOMS = {
    "journeyman.learning": [
        "Advice",
        "Curator",
        "Demonstration",
        "Label",
        "LabelSource",
        "LearningSettings",
        "Playbook",
        "PlaybookBullet",
        "Reflector",
        "StrategySource",
        "ToolCallingStrategy",
    ],
    "journeyman.choosing": [
        "Gap",
        "IntentReader",
        "IntentType",
        "ToolGapDetector",
        "ToolGapReport",
        "UserIntent",
        "add_intent_type",
    ],
    "journeyman.memory": ["MemoryDocument", "MemoryHit", "MemoryManager"],
    "journeyman.models": [
        "Deltas",
        "EmbeddedModel",
        "GgufModel",
        "ModelRequest",
        "ModelResponse",
        "ModelSettings",
        "OpenAIModel",
        "Price",
        "ProviderModel",
        "Timeouts",
    ],
    "journeyman.tasks": ["Attachment", "Task"],
    "journeyman.execution": ["categorize_action_risk", "requires_approval"],
    "journeyman.stores": ["FilePlaybooks"],
    "journeyman.core": [
        "ApprovalStatus",
        "ArgumentSource",
        "AuditError",
        "ChainStep",
        "Clock",
        "DataLabel",
        "ErrorCategory",
        "FlowDecision",
        "InvalidDataError",
        "Journal",
        "ReasoningStep",
        "SessionTakenError",
        "Severity",
        "SignatureError",
    ],
}
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


UNUSED = ("choosing", "experiments", "interop", "learning", "memory", "retrieval", "settings", "sources")
"""Rooms that no program pays for before it uses them."""


def test_the_public_names_are_these() -> None:
    assert journeyman.__all__ == PUBLIC
    assert sorted(journeyman.testing.__all__) == sorted(FOR_TESTS)
    assert {room: import_module(room).__all__ for room in IN_ROOMS} == IN_ROOMS


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(journeyman, name) is not None
    assert name in dir(journeyman)


MOVED = [(name, at) for at, names in journeyman._MOVED.items() for name in names.split()]


@pytest.mark.parametrize(("name", "at"), MOVED, ids=[name for name, _ in MOVED])
def test_a_name_that_has_moved_says_where_it_is(name: str, at: str) -> None:
    assert getattr(import_module(at), name) is not None
    with pytest.raises(ImportError, match=f"write: from {at} import {name}$"):
        exec(f"from journeyman import {name}")
    with pytest.raises(ImportError, match=f"write: from {at} import {name}$"):
        getattr(journeyman, name)


def test_the_changelog_lists_what_has_moved() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for at, names in journeyman._MOVED.items():
        row = next(line for line in changelog.splitlines() if line.startswith(f"| `{at}` |"))
        assert set(re.findall(r"`(\w+)`", row.split("|")[2])) == set(names.split())


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Agnet'"):
        journeyman.Agnet  # type: ignore[attr-defined]  # noqa: B018


def loaded_by(program: str) -> list[str]:
    shown = f"{program}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", shown], check=True, capture_output=True, text=True)
    return list(json.loads(done.stdout.splitlines()[-1]))


def packages(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def rooms(modules: list[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("journeyman.")}


def test_importing_the_package_brings_no_provider_server_or_numbers() -> None:
    assert not packages(loaded_by("import journeyman")) & LATER


def test_importing_the_app_loads_neither_the_path_of_a_run_nor_rooms_that_nobody_uses() -> None:
    modules, lines = loaded_here("from journeyman import Journeyman")
    assert len(modules) <= 95
    assert lines <= 13_000
    assert not rooms(modules) & {*UNUSED, "execution", "models", "stores"}


def test_a_stored_run_loads_no_room_that_it_does_not_use(tmp_path: Path) -> None:
    program = f"""
import asyncio
from journeyman import Agent, Journeyman, tool
from journeyman.testing import ScriptedModel, call, say
@tool(risk="reversible")
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
async def main():
    model = ScriptedModel([call("add", a=1, b=2), say("3")])
    async with Journeyman(store="sqlite:///{tmp_path}/runs.db", model=model) as app:
        handle = await app.start(Agent(name="a", instruction="i", tools=[add]), "1+2?")
        assert (await handle.result()).answer == "3"
asyncio.run(main())
"""
    assert not rooms(loaded_by(program)) & set(UNUSED)


def test_defining_and_running_a_tool_brings_no_provider_or_server() -> None:
    program = """
from journeyman import Agent, run_sync, tool
from journeyman.testing import ScriptedModel, call, say
@tool(risk="reversible")
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
agent = Agent(name="a", instruction="i", tools=[add])
model = ScriptedModel([call("add", a=1, b=2), say("3")])
assert run_sync(agent, "1+2?", model=model).answer == "3"
"""
    loaded = loaded_by(program)
    assert not packages(loaded) & (LATER - {"griffe"})  # which reads docstrings
    assert not rooms(loaded) & set(UNUSED)


PASSED_ON = {
    "Agent", "AgentFile", "Experiment", "ImportedFile", "LearningSettings", "Pace", "Progress", "Report", "SqlStore",
    "ToolLibrary", "rendered", "split_path",
}  # fmt: skip


def test_doors_get_no_more_of_other_rooms_than_this() -> None:
    """The import contract sees only that doors import ``app``; what comes through there is held here, and shrinks."""
    text = (ROOT / "src" / "journeyman" / "app" / "__init__.py").read_text()
    found = re.findall(r"^    from journeyman\.(\w+)\S* import (\w+) as", text, re.MULTILINE)
    assert {name for room, name in found if room != "app"} == PASSED_ON
