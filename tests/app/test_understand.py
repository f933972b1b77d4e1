"""Requests in an app: understood with the tools one may use, the types of its file, and its model if it has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman import Journeyman, Principal, ToolLibrary, tool
from journeyman.core.gaps import intent_types
from journeyman.testing import ScriptedModel, call
from tests.app.test_configuration import edit, folder, problems, write

__all__ = ["folder"]

SHOP = "tools: {look: {import: 'cfg_shop:look'}, send: {import: 'cfg_shop:send'}}\n"
TRIAGE = "intents: {triage: {description: Find out who must act., examples: [who must act on this?], tools: [send]}}"


@tool(read_only=True)
def find_orders(query: str) -> str:
    """Find orders by words. Use when orders are looked for."""
    return query


@tool(read_only=True, permissions={"staff:read"})
def find_staff(name: str) -> str:
    """Find people of the staff by name. Use when somebody is looked for."""
    return name


def app_with(tmp_path: Path, model: ScriptedModel | None = None) -> Journeyman:
    library = ToolLibrary([find_orders, find_staff])
    return Journeyman(library=library, store=f"sqlite:///{tmp_path / 'x.db'}", model=model)


async def test_only_tools_that_one_may_use_are_suggested(tmp_path: Path) -> None:
    async with app_with(tmp_path) as app:
        request = "find the people named Ada among our staff"
        anybody = await app.understand(request)
        staff = await app.understand(request, principal=Principal("ada", permissions={"staff:read"}))
        assert anybody is not None
        assert staff is not None
        assert "find_staff" not in {*anybody.suggested_tools, *anybody.fallback_options}
        assert staff.suggested_tools[0] == "find_staff"
        assert await app.understand("Thank you!") is None


async def test_the_apps_model_is_asked_unless_told_otherwise(tmp_path: Path) -> None:
    model = ScriptedModel([call("report_intent", intent_type="explain", tool="find_orders", parameters={"query": "x"})])
    async with app_with(tmp_path, model) as app:
        asked = await app.understand("find the orders with blue shoes")
        alone = await app.understand("find the orders with blue shoes", offline=True)
        assert asked is not None
        assert alone is not None
        assert (asked.intent_type, asked.parameters) == ("explain", {"query": "x"})
        assert alone.intent_type == "fetch"


async def test_types_of_the_file_hold_while_it_does_and_an_edit_takes_effect(folder: Path) -> None:
    async with Journeyman.from_config(write(folder, SHOP + TRIAGE)) as app:
        found = await app.understand("who must act on this problem?", offline=True)
        assert found is not None
        assert (found.intent_type, found.suggested_tools) == ("triage", ("send",))
        await edit(app, folder, SHOP + TRIAGE.replace("triage", "escalate"))
        assert "triage" not in intent_types()
        assert intent_types()["escalate"].tools == ("send",)
        await edit(app, folder, SHOP + TRIAGE.replace("[send]", "[sent]"))
        assert app.configuration is not None
        assert "there is no tool 'sent'" in str(app.configuration.problems[0])
        assert "escalate" in intent_types()
    assert "escalate" not in intent_types()


@pytest.mark.parametrize(
    ("intents", "expected"),
    [
        (
            "intents: {triage: {tools: [sent]}}",
            "4:28: intents.triage.tools[0]: there is no tool 'sent'; did you mean 'send'",
        ),
        ("intents: {triage: {categories: [shops]}}", "4:33: intents.triage.categories[0]: no tool has this category"),
        (
            "intents: {Two words: {tools: [send]}}",
            "4:11: intents.Two words: intent type 'Two words': use a small letter",
        ),
        ("intents: {triage: {tool: [send]}}", "4:20: intents.triage.tool: unknown key"),
    ],
)
def test_wrong_types_are_refused_with_their_place(folder: Path, intents: str, expected: str) -> None:
    [problem] = problems(folder, SHOP + intents)
    assert problem.startswith(expected)


def test_tools_of_a_server_may_be_named_before_it_is_reached(folder: Path) -> None:
    text = SHOP + "mcp: {crm: {command: [crm]}}\nintents: {triage: {tools: [crm.find_account]}}"
    write(folder, text)
    from journeyman.app.configuration import Configuration

    assert Configuration(folder / "journeyman.yaml").settings.intents["triage"].tools == ["crm.find_account"]
