"""Agents and tools as gram documents: what they look like, what survives, and what is refused with the reason."""

from __future__ import annotations

import json
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from journeyman import Agent, ConfigurationError, RiskLevel, Tool, ToolSpecification, gram, tool
from journeyman.agent.documents import dump_agents, load_agents
from journeyman.gram import GramDocumentError, dump_tools, dumps, load_tools, parse, signature_schema

HELLO = """\
[hello_world_agent:Agent {
  description: "A friendly agent",
  model: "openai:gpt-5-mini",
  instruction: "Greet people."
} |
  [sayHello:Tool {description: "Returns a friendly greeting message for the given name"} |
    (name::String)==>(::String)
  ]
]
"""


def test_an_agent_is_read_from_text_and_printed_back() -> None:
    agent = Agent.from_gram(HELLO)
    assert agent.name == "hello_world_agent"
    assert agent.description == "A friendly agent"
    assert agent.model == "openai:gpt-5-mini"
    assert agent.instruction == "Greet people."
    [item] = agent.tools
    assert item.name == "sayHello"
    assert item.signature == "(name::String)==>(::String)"
    assert item.parameters == signature_schema("(name: Text) --> IO Text")
    assert item.returns == {"type": "string"}
    assert agent.to_gram() == HELLO
    assert Agent.from_gram(agent.to_gram()) == agent


def test_the_older_text_signature_is_accepted_and_kept() -> None:
    text = '[greet:Tool {description: "Greet", typeSignature: "(name: Text, age: Maybe Int) --> IO Text"}]'
    [item] = load_tools(text)
    assert item.signature == "(name: Text, age: Maybe Int) --> IO Text"
    assert item.parameters["required"] == ["name"]
    assert dump_tools([item]) == f"{text}\n"
    assert load_tools(text.replace("typeSignature", "signature")) == [item]


def test_signatures_may_be_written_in_any_spelling_of_gram() -> None:
    [item] = load_tools(
        "[t:Tool {description: 'd'} | ( a :: Text { default: 'x' // why\n } ) ==>\n (b::Array {items: Int})==>()]"
    )
    assert item.signature == '(a::String {default: "x"})==>(b::Array {items: "Integer"})==>()'


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str = Field(min_length=1, description="With its number")
    lines: list[str] = []
    next: Address | None = None


@tool(
    risk=RiskLevel.IRREVERSIBLE,
    idempotent=True,
    category="post",
    permissions={"post:write", "post:read"},
    timeout_seconds=12.5,
    tags=["post", "// odd"],
    examples=[{"to": {"street": "A 1"}}, "send it"],
    metadata={"owner": "ada", "deep": {"a": [1, None]}},
    version="2.0",
    deprecated="Use send_letter",
)
def send_post(
    to: Address,
    colour: Colour = Colour.RED,
    weight: float = Field(default=1.5, gt=0, le=20),
    kind: Literal["letter", "parcel"] | None = None,
    extra: dict[str, int] | None = None,
) -> list[Address]:
    """Send something by post.

    Use when the user wants something `sent`.

    Args:
        to: Where "it" goes.
    """
    return [to]


@tool
def ping() -> None:
    """Ping."""


@tool(read_only=True)
async def search(query: str, *, limit: int = 10) -> Any:
    """Search for words."""


PYTHON_TOOLS: list[Tool[..., Any]] = [send_post, ping, search]


def test_every_field_of_a_python_tool_survives() -> None:
    agent = Agent(name="all of it", instruction="Do\nit `now`.\n", tools=PYTHON_TOOLS, finish=True, max_iterations=3)
    text = agent.to_gram()
    assert Agent.from_gram(text) == agent
    assert Agent.from_gram(text).to_gram() == text


def test_exported_tools_are_readable() -> None:
    assert dump_tools([search.specification]) == (
        '[search:Tool {description: "Search for words.", read_only: true, closed: true} |\n'
        "  (query::String)==>(limit::Integer {default: 10})==>(::Any)\n"
        "]\n"
    )


def test_specifications_survive_to_the_letter() -> None:
    odd: list[dict[str, Any]] = [
        {"parameters": {"type": "object"}},
        {"parameters": {"type": "object", "properties": {}, "required": []}},
        {"parameters": {"type": "object", "properties": {"a": {}, "b": True}, "required": ["b", "a"]}},
        {"parameters": {"type": "object", "properties": {"a": {}}, "additionalProperties": True}},
        {"parameters": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}}},
        {"signature": "(a::Text)==>(::Int)", "parameters": signature_schema("(a::Text)==>(::Int)")},
        {"signature": "(a: Text) --> Int", "returns": {"type": "number"}},
        {"examples": (None, {"a": "\x00\ud800"}), "metadata": {"\n": {}}},
        {"name": "\x7f\u200b`", "description": "\x00 and \u2028"},
        {},
    ]
    for fields in odd:
        item = ToolSpecification(**{"name": "t", "description": "d", **fields})
        assert load_tools(dump_tools([item])) == [item]


def test_tools_that_agents_share_are_described_once() -> None:
    first = Agent(name="one", instruction="i", tools=[ping, search])
    second = Agent(name="two", instruction="i", tools=[search, ping])
    other = Agent(name="three", instruction="i", tools=[search.with_changes(description="Otherwise")])
    text = dump_agents([first, second])
    assert text.count(":Tool") == 2
    assert "| ping, search]" in text
    assert load_agents(text) == [first, second]
    assert load_agents(dump_agents([first, second, other])) == [first, second, other]


def test_a_tool_inside_one_agent_can_be_referred_to_by_another() -> None:
    first, second = load_agents(HELLO + '[second:Agent {instruction: "i"} | sayHello]')
    assert first.tools == second.tools


def test_one_of_several_agents_is_chosen_by_name(tmp_path: Path) -> None:
    file = tmp_path / "agents.gram"
    file.write_text(HELLO + '[second:Agent {instruction: "i"}]')
    assert Agent.from_gram(file, name="second") == Agent(name="second", instruction="i")
    with pytest.raises(ConfigurationError, match=r"agents\.gram' describes the agents 'hello_world_agent', 'second'"):
        Agent.from_gram(file)
    with pytest.raises(ConfigurationError, match="0 of them are called 'third'"):
        Agent.from_gram(file, "third")


def test_other_elements_and_annotations_do_no_harm() -> None:
    text = "{title: 'x'}\n(a)-->(b)\n@by('Ada')\n" + HELLO + "[team:Team | a, b]"
    assert Agent.from_gram(text) == Agent.from_gram(HELLO)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("(a)", 1, 1, "no agent is described here"),
        ("[a:Agnet]", 1, 1, "did you mean 'Agent'"),
        ("[a:Agent]", 1, 1, "agent 'a': instruction: missing (required)"),
        ("[:Agent {instruction: 'i'}]", 1, 1, "this Agent has no name"),
        ("[a:Agent {instruction: 'i',\n modle: 'x'}]", 2, 2, "unknown property 'modle'; did you mean 'model'"),
        ("[a:Agent {instruction: 'i', instruction: 'j'}]", 1, 29, "property 'instruction' appears twice"),
        ("[a:Agent {instruction: 'i', max_iterations: 0}]", 1, 29, "greater than 0"),
        ("[a:Agent {instruction: 3cm}]", 1, 11, "a measurement has no meaning here"),
        ("[a:Agent {instruction: 'i'} | b]", 1, 31, "no tool 'b' is described here"),
        ("[a:Agent {instruction: 'i'} | (b)]", 1, 31, "this is no tool"),
        ("[a:Agent {instruction: 'i'} | b, b]\n[b:Tool {description: 'd'}]", 1, 1, "more than once: b"),
        ("[a:Agent {instruction: 'i'} | finish]\n[finish:Tool {description: 'd'}]", 1, 1, "reserved"),
    ],
)
def test_what_describes_no_agent_is_refused_with_its_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(GramDocumentError) as caught:
        Agent.from_gram(text)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("[t:Tool]", 1, "description: missing (required)"),
        ("[t:Tool {description: 'd', risk: never}]", 28, "tool 't': risk: must be 'reversible'"),
        ("[t:Tool {description: 'd', risk: 'irreversible', read_only: true}]", 1, "a read-only tool is reversible"),
        ("[t:Tool {description: 'd', metadata: json`{`}]", 28, "cannot be read"),
        ("[t:Tool {description: 'd', closed: 'yes'}]", 28, "'closed' has a value of the wrong kind"),
        ("[t:Tool {description: 'd', typeSignature: 1}]", 28, "'typeSignature' has a value of the wrong kind"),
        ("[t:Tool {description: 'd', typeSignature: '(a: Txt) --> Int'}]", 28, "unknown type 'Txt'"),
        ("[t:Tool {description: 'd', typeSignature: '() --> Int'} | (::Int)]", 59, "the signature is said twice"),
        ("[t:Tool {description: 'd'} | (a::Text)]", 30, "the signature of 't' is wrong"),
        ("[t:Tool {description: 'd'} | (a::Text)-->(::Text)]", 30, "the signature of 't' is wrong before '-->"),
        ("[t:Tool {description: 'd'} | (::Int), (::Int)]", 39, "this is no signature"),
        ("[t:Tool {description: 'd'} | [a]]", 30, "this is no signature"),
        ('[t:Tool {description: \'d\', parameters: json`{"type": "object"}`} | (a::Int)==>()]', 1, "do not agree"),
        ("[t:Tool {description: 'd'}] [t:Tool {description: 'e'}]", 29, "tool 't' is described twice"),
    ],
)
def test_what_describes_no_tool_is_refused_with_its_place(text: str, column: int, message: str) -> None:
    with pytest.raises(GramDocumentError) as caught:
        load_tools(text)
    assert message in str(caught.value)
    assert caught.value.errors[0].column == column


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(GramDocumentError) as caught:
        Agent.from_gram("[a:Agent {instruction: 1, modle: 'x'} | b, (c)]\n[d:Tool {description: '', risk: no}]")
    assert [(fault.line, fault.column) for fault in caught.value.errors] == [
        (1, 11), (1, 27), (1, 41), (1, 44), (2, 10), (2, 27),
    ]  # fmt: skip


def test_a_reference_that_could_mean_two_tools_is_refused() -> None:
    own = "[a:Agent {instruction: 'i'} | [t:Tool {description: '%s'}]]\n"
    with pytest.raises(GramDocumentError, match="agents have different tools called 't'"):
        load_agents(own % "d" + own % "e" + "[b:Agent {instruction: 'i'} | t]")
    assert len(load_agents(own % "d" + own % "d" + "[b:Agent {instruction: 'i'} | t]")) == 3
    with pytest.raises(GramDocumentError, match="several agents have different tools of one name: 't'"):
        load_tools(own % "d" + own % "e")


def test_what_would_not_come_back_is_not_written() -> None:
    item = ToolSpecification(name="t", description="d", examples=((1, 2),))
    with pytest.raises(ValueError, match="tool 't': 'examples' cannot be written as gram"):
        dump_tools([item])
    with pytest.raises(ValueError, match="'metadata' cannot be written as gram: it is not plain JSON"):
        dump_tools([ToolSpecification(name="t", description="d", metadata={"a": object()})])


def test_comments_on_agents_survive_when_the_document_is_kept() -> None:
    text = f"// who greets\n{HELLO}"
    assert dumps(parse(text)) == text


def test_the_public_names_of_gram() -> None:
    names = import_module("journeyman.gram").__all__
    assert {"Document", "GramError", "dump_tools", "load", "load_tools", "parse"} <= set(names)
    for name in names:
        assert getattr(gram, name) is not None
    assert json.loads(json.dumps(gram.signature_schema("(a::Integer)==>(::Null)")))["required"] == ["a"]
