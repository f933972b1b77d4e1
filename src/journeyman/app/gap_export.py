"""A gap as something to begin with: a tool in gram notation, or a Python module with a test that runs.

The texts come from requests of anybody, so they are quoted, shortened and rid of tokens before they are code.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from journeyman.core.gaps import Gap
from journeyman.core.sensitive.tokens import redacted
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.core.visible import one_line

NAME_CHARS = 60
EXAMPLE_CHARS = 200
UNNAMED = "new_tool"

_STUB = '''"""{description}"""

from journeyman import ToolError, tool


@tool(risk="irreversible")  # until somebody knows what it does: see RiskLevel
def {name}(request: str) -> str:
    """{description}

    Use when the user asks for this, for example: {example}

    Args:
        request: What is asked for, in words. Replace it by the parameters that the tool needs.
    """
    raise ToolError("NOT_IMPLEMENTED", "{name} is not implemented yet", recover_action="Say that this is not done yet")
'''

_TEST = '''"""The tool {name}: what it is for, and that it says so while it does nothing."""

from {name} import {name}

from journeyman import Agent, Approve, ToolLibrary, run_sync
from journeyman.testing import ScriptedModel, call, say

REQUEST = {request!r}


async def yes(approval: object) -> Approve:
    return Approve()


def test_a_library_with_it_has_no_fault_of_naming_or_types() -> None:
    [specification] = ToolLibrary([{name}]).specifications()
    assert specification.name == {name!r}


def test_it_says_that_it_is_not_implemented_yet() -> None:
    """Replace this by what the tool does."""
    model = ScriptedModel([call({name!r}, request=REQUEST), say("Not yet.")])
    agent = Agent(name="tester", instruction="Use the tool.", tools=[{name}])
    [made] = run_sync(agent, REQUEST, model=model, approver=yes).tool_calls
    assert made.error is not None
    assert made.error.code == "NOT_IMPLEMENTED"
'''


@dataclass(frozen=True, slots=True)
class PythonStub:
    """Two files that lie side by side."""

    module_name: str
    module: str
    test_name: str
    test: str


def tool_name(missing: str) -> str:
    """A name for the tool, from what is missing.

    >>> tool_name("retrieve stock portfolio performance")
    'retrieve_stock_portfolio_performance'
    """
    words = re.findall(r"[a-z0-9]+", missing.lower()[: 4 * NAME_CHARS])
    name = "_".join(words)[:NAME_CHARS].strip("_")
    if not name or not name[0].isalpha():
        name = f"{UNNAMED}_{name}".strip("_")
    return f"{name}_tool" if keyword.iskeyword(name) or name in RESERVED_NAMES else name


def as_specification(gap: Gap) -> ToolSpecification:
    """What the tool could look like to a model."""
    return ToolSpecification(
        name=tool_name(gap.missing),
        description=f"{_described(gap)} Use when the user asks for this, for example: {_example(gap)}",
        parameters={
            "type": "object",
            "properties": {"request": {"type": "string", "description": "What is asked for, in words."}},
            "required": ["request"],
        },
        returns={"type": "string"},
    )


def as_gram(gap: Gap) -> str:
    """A document with the tool, for agents to be written with and somebody to bind it."""
    from journeyman.gram import dump_tools

    return dump_tools([as_specification(gap)])


def as_python(gap: Gap) -> PythonStub:
    """A module with the tool, which says that it is not implemented, and a test of it that passes."""
    name = tool_name(gap.missing)
    texts = {"name": name, "description": _docstring(_described(gap)), "example": _docstring(_example(gap))}
    return PythonStub(
        module_name=f"{name}.py",
        module=_STUB.format(**texts),
        test_name=f"test_{name}.py",
        test=_TEST.format(name=name, request=_example(gap)),
    )


def _described(gap: Gap) -> str:
    said = _plain(gap.missing)
    return f"{said[:1].upper()}{said[1:]}."


def _example(gap: Gap) -> str:
    return _plain(gap.report.attempted_task)


def _plain(text: str) -> str:
    """One line without tokens, and without characters that nobody sees."""
    return one_line(redacted(text[: 4 * EXAMPLE_CHARS]), most=EXAMPLE_CHARS)


def _docstring(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "'")
