"""The tools the loop itself offers.

``finish`` ends a run, ``read_result`` reads what was cut, ``find_tools`` finds tools that the model was not told of.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from journeyman.core.calls import Artifact
from journeyman.core.context import ToolContext
from journeyman.core.errors import ErrorCategory, ToolError
from journeyman.core.risk import RiskLevel
from journeyman.core.specification import FIND_TOOLS, ToolSpecification
from journeyman.tools.schema import FunctionSchema, function_schema
from journeyman.tools.tool import Tool

if TYPE_CHECKING:
    from journeyman.tools.output import Output

FINISH = "finish"
READ_RESULT = "read_result"
MOST_FOUND = 10
LONGEST_LINE = 160


_described: dict[str, tuple[ToolSpecification, FunctionSchema]] = {}


def _builtin(name: str, function: Callable[..., Any], *, always_alike: bool = True) -> Tool[..., Any]:
    """The function as a tool. What is described alike in every run is worked out once."""
    if (described := _described.get(name)) is None:
        schema = function_schema(function, context_type=ToolContext)
        specification = ToolSpecification(
            name=name,
            description=schema.documentation.description,
            parameters=schema.parameters,
            returns=schema.returns,
            risk=RiskLevel.REVERSIBLE,
            read_only=True,
            category="journeyman",
        )
        described = specification, schema
        if always_alike:
            _described[name] = described
    specification, schema = described
    return Tool(specification=specification, function=function, schema=schema, repeatable=True, is_async=True)


def finish_tool() -> Tool[..., Any]:
    """How an agent with ``finish=True`` ends its run."""

    async def finish(
        answer: Annotated[str, Field(pattern=r"\S")],
        reasoning: str = "",
        confidence: Annotated[float, Field(ge=0, le=1)] | None = None,
    ) -> dict[str, Any]:
        """Give the final answer. Use when the task is done, or when it cannot be done: then say why.

        Args:
            answer: The answer for the user.
            reasoning: How the answer was found, in a sentence or two.
            confidence: How sure you are, from 0 to 1.
        """
        return {"answer": answer, "reasoning": reasoning, "confidence": confidence}

    return _builtin(FINISH, finish)


def output_tool(expected: Output) -> Tool[..., Any]:
    """How an agent with an ``output`` ends its run: the arguments are the answer."""

    async def finish() -> dict[str, Any]:
        return {"accepted": True}

    about = expected.schema.get("description")
    specification = ToolSpecification(
        name=FINISH,
        description=f"{f'{about} ' if isinstance(about, str) else ''}Give the final answer, as these arguments. "
        "Use when the task is done.",
        parameters=expected.parameters,
        risk=RiskLevel.REVERSIBLE,
        read_only=True,
        category="journeyman",
    )
    return Tool(specification=specification, function=finish, schema=expected, repeatable=True, is_async=True)


Read = Callable[[Artifact, int, int], Awaitable[str | None]]
"""Reads so many characters of an artifact from an offset on."""


def read_result_tool(texts: dict[str, str | Artifact], *, limit: int, read: Read) -> Tool[..., Any]:
    """Reads on in results that were too long for one message; ``texts`` maps handles to whole results."""
    most = limit - 100  # room for the line that says how to go on

    async def read_result(handle: str, offset: Annotated[int, Field(ge=0)] = 0, length: int = most) -> str:
        """Read more of a long result. Use when a result was cut and the part that was left out matters.

        Args:
            handle: The handle named where the result was cut.
            offset: The first character to read.
            length: How many characters to read.
        """
        found = texts.get(handle)
        if found is None:
            known = ", ".join(sorted(texts)) or "none"
            raise ToolError(
                "UNKNOWN_HANDLE",
                f"no cut result has the handle {handle!r} (known: {known})",
                category=ErrorCategory.INVALID_INPUT,
                recover_action="Use a handle named in this conversation, or call the tool again",
            )
        length = max(1, min(length, most))
        if isinstance(found, str):
            part, whole = found[offset : offset + length], len(found)
        else:
            kept, whole = await read(found, offset, length), found.chars
            if kept is None:
                raise ToolError(
                    "RESULT_GONE",
                    f"the rest of the result {handle!r} is not kept any more",
                    recover_action="Call the tool again if the rest matters",
                )
            part = kept
        end = offset + len(part)
        go_on = f"go on with offset={end}" if end < whole else "this is the end"
        # Text and not JSON: escaping would make it longer than the limit, and it would be cut again.
        return f"{part}\n[characters {offset:,} to {end:,} of {whole:,}; {go_on}]"

    return _builtin(READ_RESULT, read_result, always_alike=False)


def without_more(read: str) -> str:
    """What ``read_result`` once gave, when there is nothing left to go on with."""
    return re.sub(r"go on with offset=\d+\]\Z", "the rest is not available any more]", read)


Find = Callable[[str, int], Awaitable[Sequence[ToolSpecification]]]
"""The tools that fit a text best, at most so many."""


def find_tools_tool(find: Find) -> Tool[..., Any]:
    """Finds tools that the model was not told of; it is told of them from the next step on."""

    async def find_tools(
        query: Annotated[str, Field(pattern=r"\S")], k: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 5
    ) -> dict[str, Any]:
        """Find tools by what they do. There are more tools than you are told of.

        Use when no tool that you have fits what is to be done next. The tools it finds can be called afterwards.

        Args:
            query: What a tool is needed for, in a few words, e.g. "send an invoice by mail".
            k: How many tools to find at most.
        """
        found = {item.name_for_models: _line(item.description) for item in await find(query, k)}
        if not found:
            return {"found": {}, "hint": "nothing fits; try other words, or go on without such a tool"}
        return {"found": found}

    return _builtin(FIND_TOOLS, find_tools)


def _line(description: str) -> str:
    line = description.strip().partition("\n")[0].strip()
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"
