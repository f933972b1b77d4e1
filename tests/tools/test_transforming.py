"""Tools told otherwise: renamed, with arguments renamed, hidden and given, with less in their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Approval, Approve, ToolDefinitionError, ToolLibrary, run, tool
from journeyman.app.configuration import Configuration
from journeyman.settings.problems import SettingsError
from journeyman.sources import Transformed, transformed
from journeyman.testing import ScriptedModel, call, say

SHOP = '''
from journeyman import tool

@tool(read_only=True)
def find_pets(query: str, limit: int = 10, tenant: str = "all", debug: bool = False) -> list[dict]:
    """Find pets."""
    return [{"id": n, "name": query, "owner": {"name": tenant, "secret": "s"}} for n in range(limit)]

@tool
def drop_pets(query: str, tenant: str) -> str:
    """Drop pets."""
    return f"{query} of {tenant}"
'''


@tool(sends="to")
def send(to: str, text: str, copy: bool = False) -> str:
    """Send a text."""
    return f"{text} to {to}, {copy}"


async def called(library: ToolLibrary, name: str, approver: Any = None, **arguments: Any) -> Any:
    agent = Agent(name="a", instruction="Test.", tools=[library[name].specification])
    model = ScriptedModel([call(name, **arguments), say("done")])
    response = await run(agent, "Go on.", library=library, model=model, approver=approver)
    [record] = response.tool_calls
    return record


async def test_a_person_is_asked_about_what_runs_with_what_was_given_for_good() -> None:
    change = {"rename": "mail", "arguments": {"text": {"rename": "words"}, "copy": {"value": True}}}
    library = ToolLibrary([send]).mapped(Transformed({"send": change}))
    assert library.names() == ["mail"]
    assert list(library["mail"].specification.parameters["properties"]) == ["to", "words"]
    asked: list[Approval] = []

    async def yes(approval: Approval) -> Approve:
        asked.append(approval)
        return Approve()

    record = await called(library, "mail", yes, to="ada", words="hello", copy=False)
    assert record.result == "hello to ada, True"
    assert asked[0].arguments == {"to": "ada", "text": "hello", "copy": True}


async def test_what_is_edited_by_a_person_is_under_the_tools_own_names() -> None:
    library = ToolLibrary([send]).mapped(Transformed({"*": {"arguments": {"text": {"rename": "words"}}}}))

    async def other(_: Approval) -> Approve:
        return Approve(arguments={"to": "ada", "text": "edited"})

    assert (await called(library, "send", other, to="ada", words="hello")).result == "edited to ada, False"


def test_a_tool_that_has_not_changed_stays_the_same_object() -> None:
    changed = Transformed({"send": {"description": "Another text."}})
    assert changed(send) is changed(send)
    assert Transformed({})(send) is send


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"arguments": {"no": {"hide": True}}}, "has no parameter 'no'; it has to, text, copy"),
        ({"arguments": {"text": {"hide": True}}}, "'text' is required: to hide it, give it a 'value'"),
        ({"arguments": {"text": {"rename": "copy"}}}, "cannot be called 'copy'"),
        ({"arguments": {"text": {"rename": "a b"}}}, "cannot be called 'a b'"),
        ({"arguments": {"text": {"hides": True}}}, "'hides' is not one of"),
        ({"arguments": {"to": {"rename": "whom"}}}, "'to' names a recipient"),
        ({"result": {"fields": ["a"]}}, "result takes select, items and chars, not 'fields'"),
        ({"rename": "a b"}, "no spaces"),
    ],
)
def test_what_cannot_be_is_said(change: Any, why: str) -> None:
    with pytest.raises(ToolDefinitionError, match=why):
        transformed(send, **change)


def test_a_recipient_that_was_given_for_good_is_the_only_one() -> None:
    assert transformed(send, arguments={"to": {"value": "ada"}}).specification.sends == ("to:ada",)


@pytest.mark.parametrize(
    ("change", "value", "expected"),
    [
        ({"select": ["a.b", "c"]}, {"a": {"b": 1, "x": 2}, "c": 3, "d": 4}, {"a": {"b": 1}, "c": 3}),
        ({"select": ["items.id"]}, {"items": [{"id": 1, "x": 2}, {"id": 3}]}, {"items": [{"id": 1}, {"id": 3}]}),
        ({"select": ["*.id"]}, {"x": {"id": 1, "y": 2}}, {"x": {"id": 1}}),
        ({"select": ["id"]}, [{"id": 1, "x": 2}], [{"id": 1}]),
        ({"select": ["id"]}, '{"id": 1, "x": 2}', {"id": 1}),
        ({"select": ["id"]}, "no JSON", "no JSON"),
        ({"items": 2}, {"a": [1, 2, 3, 4]}, {"a": [1, 2, "… (2 more)"]}),
        ({"chars": 3}, ["abcdef"], ["abc… (3 more characters)"]),
        ({}, [1], [1]),
    ],
)
async def test_results_are_shortened_before_anybody_sees_them(change: Any, value: Any, expected: Any) -> None:
    @tool(read_only=True, name="give")
    def give() -> Any:
        """Give it."""
        return value

    library = ToolLibrary([transformed(give, result=change)])
    assert (await called(library, "give")).result == expected


# --- in the file


def configured(folder: Path, monkeypatch: pytest.MonkeyPatch, tools: str) -> Configuration:
    (folder / "pet_shop.py").write_text(SHOP)
    monkeypatch.syspath_prepend(str(folder))
    file = folder / "journeyman.yaml"
    file.write_text(f"version: 1\ntools:\n{tools}")
    return Configuration(file)


async def test_a_file_tells_tools_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = configured(
        tmp_path,
        monkeypatch,
        """
  find_pets:
    import: pet_shop:find_pets
    rename: pets
    description: Pets of our shop.
    rate_limit: 7/min
    arguments: {query: {rename: words}, tenant: {value: acme}, debug: {hide: true}}
    result: {select: [id, owner.name], items: 2}
    environments: {production: {arguments: {limit: {value: 1}}}}
""",
    )
    assert found.library.names() == ["pets"]
    specification = found.library["pets"].specification
    assert list(specification.parameters["properties"]) == ["words", "limit"]
    assert specification.description == "Pets of our shop."
    assert list(found.rules.policy.rate_limits) == ["pets"]
    record = await called(found.library, "pets", words="Rex", limit=3)
    rows = [{"id": number, "owner": {"name": "acme"}} for number in range(2)]
    assert record.result == [*rows, "… (1 more)"]


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ("  find_pets: {import: 'pet_shop:find_pets', arguments: {q: {hide: true}}}", "has no parameter 'q'"),
        ("  find_pets: {import: 'pet_shop:find_pets', arguments: {query: {hide: true}}}", "give it a 'value'"),
        ("  find_pets: {import: 'pet_shop:find_pets', result: {pick: [a]}}", "unknown key"),
        (
            "  find_pets: {import: 'pet_shop:find_pets', rename: drop_pets}\n"
            "  drop_pets: {import: 'pet_shop:drop_pets'}",
            "is the name of another tool",
        ),
        ("  find_pets: {import: 'pet_shop:find_pets'}\n  'find_*': {rename: x}", "they need different names"),
    ],
)
def test_what_a_file_cannot_tell_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tools: str, why: str
) -> None:
    with pytest.raises(SettingsError, match=why):
        configured(tmp_path, monkeypatch, tools)


def test_a_pattern_says_what_only_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "  drop_pets: {import: 'pet_shop:drop_pets'}\n  'drop_*': {risk: reversible, read_only: true, cache: 1m}\n"
    found = configured(tmp_path, monkeypatch, lines)
    made = found.library["drop_pets"]
    assert made.specification.read_only
    assert made.cache_seconds == 60
