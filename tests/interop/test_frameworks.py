"""Tools of the real LangChain and LlamaIndex, run under our governance; and ours, run by LlamaIndex."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from journeyman import Agent, ToolContext, ToolDefinitionError, ToolLibrary, gram, run, tool
from journeyman.testing import ScriptedModel, call, say

# Their packages warn about themselves and each other.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("frameworks"),
    pytest.mark.filterwarnings("ignore"),
]


def multiply(a: int, b: int = 2) -> int:
    """Multiply two numbers."""
    return a * b


async def multiply_later(a: int, b: int = 2) -> int:
    """Multiply two numbers, later."""
    return a * b


async def outcome(item: Any, **arguments: Any) -> Any:
    """What a governed call of a tool gives: its result, or its error."""
    agent = Agent(name="caller", instruction="Call.", tools=[item])
    model = ScriptedModel([call(item.name, **arguments), say("done")])
    response = await run(agent, "Go", library=ToolLibrary([item]), model=model)
    [record] = response.tool_calls
    return record.result if record.error is None else record.error


def langchain(function: Callable[..., Any]) -> Any:
    from langchain_core.tools import StructuredTool

    from journeyman.interop.langchain import from_langchain

    asynchronous = function is multiply_later
    made = StructuredTool.from_function(**{"coroutine" if asynchronous else "func": function})
    return from_langchain(made, risk="reversible")


def llamaindex(function: Callable[..., Any]) -> Any:
    from llama_index.core.tools import FunctionTool

    from journeyman.interop.llamaindex import from_llamaindex

    return from_llamaindex(FunctionTool.from_defaults(function), risk="reversible")


@pytest.mark.parametrize("bring", [langchain, llamaindex])
@pytest.mark.parametrize("function", [multiply, multiply_later])
async def test_their_tool_runs_under_our_governance(bring: Any, function: Callable[..., Any]) -> None:
    item = bring(function)
    assert item.is_async is (function is multiply_later)
    assert "Multiply two numbers" in item.specification.description
    assert item.specification.parameters["required"] == ["a"]
    assert gram.load_tools(gram.dump_tools([item.specification])) == [item.specification]
    assert await outcome(item, a=3) == 6
    assert await outcome(item, a=3, b=5) == 15
    assert (await outcome(item, a="three")).code == "INVALID_ARGUMENTS"


@pytest.mark.parametrize("bring", [langchain, llamaindex])
async def test_their_tool_that_raises_is_answered_and_not_repeated(bring: Any) -> None:
    calls: list[int] = []

    def explode(a: int) -> int:
        """Fail, always."""
        calls.append(a)
        raise RuntimeError("no")

    error = await outcome(bring(explode), a=1)

    assert error.category == "tool_error"
    assert calls == [1]


async def test_an_error_that_langchain_raises_on_purpose_reaches_the_model() -> None:
    from langchain_core.tools import ToolException

    def refuse(a: int) -> int:
        """Refuse, always."""
        raise ToolException("ask for a smaller number")

    error = await outcome(langchain(refuse), a=1)
    assert error.message == "ask for a smaller number"


async def test_a_tool_of_langchain_with_a_schema_of_its_own_and_a_hidden_argument() -> None:
    from typing import Annotated

    from langchain_core.tools import BaseTool, InjectedToolArg
    from pydantic import BaseModel, Field

    from journeyman.interop.langchain import from_langchain

    class Question(BaseModel):
        words: list[str] = Field(description="What to look for", min_length=1)
        secret: Annotated[str, InjectedToolArg] = "hidden"

    class Search(BaseTool):  # type: ignore[misc]
        name: str = "search"
        description: str = "Search for words."
        args_schema: type[BaseModel] = Question

        def _run(self, words: list[str], secret: str = "") -> str:
            return f"{words} {secret}"

    item = from_langchain(Search(), read_only=True)
    assert list(item.specification.parameters["properties"]) == ["words"]
    assert item.specification.parameters["properties"]["words"]["minItems"] == 1
    assert await outcome(item, words=["a"]) == "['a'] hidden"


@tool
def greet(name: str, context: ToolContext, times: int = 1) -> str:
    """Greet somebody."""
    return f"Hello, {name}! " * times


@tool
async def greet_later(name: str) -> str:
    """Greet somebody, later."""
    return f"Hello, {name}!"


async def test_our_tool_runs_in_llamaindex_with_its_schema_to_the_letter() -> None:
    from llama_index.core.tools.calling import acall_tool, call_tool

    from journeyman.interop.llamaindex import from_llamaindex, to_llamaindex

    theirs = to_llamaindex(greet)
    told = theirs.metadata.to_openai_tool()["function"]
    assert told["name"] == "greet"
    assert told["description"] == "Greet somebody."
    assert told["parameters"]["properties"] == greet.specification.parameters["properties"]
    assert call_tool(theirs, {"name": "Ada", "times": 2}).raw_output == "Hello, Ada! Hello, Ada! "
    assert call_tool(theirs, {"name": 1, "times": 2}).is_error
    later = await acall_tool(to_llamaindex(greet_later), {"name": "Ada"})
    assert later.raw_output == "Hello, Ada!"

    back = from_llamaindex(theirs, risk="reversible")
    assert await outcome(back, name="Ada") == "Hello, Ada! "


def test_a_tool_that_wants_a_workflow_is_refused() -> None:
    from llama_index.core.tools import FunctionTool
    from llama_index.core.workflow import Context

    from journeyman.interop.llamaindex import from_llamaindex

    def remember(ctx: Context, a: int) -> int:
        """Remember a number."""
        return a

    remember.__annotations__["ctx"] = Context
    with pytest.raises(ToolDefinitionError, match="workflow's context"):
        from_llamaindex(FunctionTool.from_defaults(remember))
