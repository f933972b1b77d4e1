"""The design of the greeting agent: specifications in its own names, gram labels, late binding, association."""

# mypy: disable-error-code="call-arg"
# The designs' names are read when a program runs; type checkers know ours.
from __future__ import annotations

import json

import pytest

from journeyman import (
    Agent,
    AgentResponse,
    ToolCallRecord,
    ToolDefinitionError,
    ToolLibrary,
    ToolSpecification,
    gram,
    run,
)
from journeyman.core import InvalidDataError
from journeyman.gram.data import GramDocumentError
from journeyman.testing import ScriptedModel, call, say
from journeyman.toolkits.hello import say_hello
from journeyman.tools.tool import Tool

DESCRIPTION = "Returns a friendly greeting message for the given name"
SIGNATURE = "(name: Text) --> IO Text"
NAMES = {"toolSpecName": "sayHello", "toolSpecDescription": DESCRIPTION, "toolSpecTypeSignature": SIGNATURE}


@pytest.mark.parametrize("name", ["signature", "typeSignature", "type_signature", "function_signature"])
def test_a_signature_is_given_under_every_name(name: str) -> None:
    made = ToolSpecification(**{"name": "sayHello", "description": DESCRIPTION, name: SIGNATURE})
    assert made.parameters["required"] == ["name"]
    assert made.function_signature == made.signature == SIGNATURE
    assert ToolSpecification.model_validate_json(made.model_dump_json()) == made


def test_the_designs_own_fields_make_a_specification() -> None:
    made = ToolSpecification(**NAMES)
    schema = gram.signature_schema(SIGNATURE)
    assert made == ToolSpecification(**NAMES, toolSpecSchema=schema)
    assert ToolSpecification.model_validate_json(json.dumps(NAMES)) == made
    for wrong in ({"toolSpecName": ""}, {"toolSpecDescription": ""}, {"toolSpecTypeSignature": "(name"}):
        with pytest.raises(ToolDefinitionError):
            ToolSpecification(**NAMES | wrong)
    with pytest.raises(ToolDefinitionError, match="another name of 'name'"):
        ToolSpecification(**NAMES, name="x")
    with pytest.raises(ToolDefinitionError, match="toolSpecNmae: unknown field"):
        ToolSpecification(**NAMES, toolSpecNmae="x")


def test_the_label_may_be_the_entitys_name_and_a_typo_is_told() -> None:
    said = f'name: "sayHello", description: "{DESCRIPTION}", typeSignature: "{SIGNATURE}"'
    text = f"[sayHello:ToolSpecification {{{said}}}]"
    assert gram.load_tools(text) == [ToolSpecification(**NAMES)]
    for label, meant in (("ToolSpecificaton", "ToolSpecification"), ("Tol", "Tool"), ("Agnet", "Agent")):
        with pytest.raises(GramDocumentError, match=f"unknown label '{label}'; did you mean '{meant}'"):
            gram.load_tools(text.replace("ToolSpecification", label))
    assert gram.load_tools("[ada:Person {age: 3}]") == []


def test_an_agent_gets_further_tools_and_no_name_twice() -> None:
    specification = ToolSpecification(**NAMES)
    fields = {"agentName": "hello_world_agent", "agentDescription": "Greets", "agentModel": "openai:gpt-3.5-turbo"}
    agent = Agent(**fields, agentInstruction="Be friendly.")  # type: ignore[arg-type]
    greeting = agent.with_tools(specification)
    assert (greeting.tools, agent.tools, greeting.model) == ((specification,), (), "openai:gpt-3.5-turbo")
    assert Agent.from_gram(greeting.to_gram()) == greeting
    with pytest.raises(InvalidDataError, match="more than once: sayHello"):
        greeting.with_tools(specification)
    assert agent.with_tools(say_hello).own_tools == (say_hello,)


async def test_one_agent_runs_with_either_implementation() -> None:
    specification = ToolSpecification(**NAMES)
    agent = Agent(name="hello_world_agent", instruction="Greet.", tools=[specification])
    for words in ("Hello, {}! Nice to meet you.", "Hi {}"):
        library = ToolLibrary()
        library.register(Tool.from_specification(specification, lambda name, words=words: words.format(name)))
        assert library.lookup("sayHello") is not None
        assert library.bind(agent).by_name.keys() == {"sayHello"}
        model = ScriptedModel([call("sayHello", name="Ada"), say("Greeted.")])
        response = await run(agent, "Hello", library=library, model=model)
        assert [record.arguments for record in response.tool_calls] == [{"name": "Ada"}]


def test_an_invocation_and_a_response_are_read_under_their_names() -> None:
    good = {"invocationToolName": "sayHello", "invocationArgs": {"name": "Ada"}, "invocationResult": {"Right": "Hello"}}
    bad = {**good, "invocationResult": {"Left": "no such tool"}}
    response = AgentResponse.model_validate({"responseContent": "Hello", "responseToolsUsed": [good, bad]})
    assert [(record.status, record.result, record.error_message) for record in response.tool_calls] == [
        ("success", "Hello", None),
        ("error", None, "no such tool"),
    ]
    assert (response.answer, response.tools_used) == ("Hello", ["sayHello"])
    with pytest.raises(InvalidDataError, match="invocationNmae: unknown field"):
        ToolCallRecord(**good, invocationNmae="x")
