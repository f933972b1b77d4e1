"""An agent is data: a name, a model, an instruction, tool specifications. It can be printed, stored and sent.

One that was given tools or functions, or a Python type as its output, also carries them, for runs in its own program;
they are not part of the data.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from pydantic import Field, ValidationInfo, field_validator, model_validator

from journeyman.core.data import FORMAT, Entity, reads_stored
from journeyman.core.errors import InvalidDataError, ModelError, ToolDefinitionError
from journeyman.core.model_settings import ModelSettings
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.tools.tool import Tool

if TYPE_CHECKING:
    from journeyman.core.calls import ToolContext
    from journeyman.core.runs import AgentResponse
    from journeyman.tools.library import ToolLibrary
    from journeyman.tools.output import Output


Verify: TypeAlias = Callable[["AgentResponse[Any]"], "bool | Awaitable[bool | None] | None"]
"""Given to an agent or a run: takes the response of a run that has ended, says whether it is right; None: no idea."""
Instruct: TypeAlias = Callable[["ToolContext[Any]"], "str | Awaitable[str]"]
"""An instruction that is made when a run begins, from who asks and what the program has given the run."""
MADE = "made by "
"""Begins what stands in the place of such an instruction: the function that makes it."""


class Agent(Entity):
    """Who answers, how, and with which tools. Implementations come from a library when it runs, or from the agent."""

    name: str = Field(min_length=1)
    description: str = ""
    model: str = Field(default="auto", min_length=1)
    """A name, or settings as text. Given ``ModelSettings``, the agent keeps them as ``model_settings``."""
    instruction: str = Field(min_length=1)
    tools: tuple[ToolSpecification, ...] = ()
    """Specifications. Given tools or plain functions, the agent keeps them as ``own_tools``."""
    all_tools: bool = False
    """Offer every tool of the library as well, as they come and go."""
    max_iterations: int | None = Field(default=None, gt=0)
    finish: bool = False
    """End by calling ``finish(answer, reasoning, confidence)`` instead of by plain text."""
    output: dict[str, Any] | None = None
    """The JSON Schema of the answer; None means text. Given a Python type, the agent keeps it as ``output_type``."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            name: str,
            instruction: str | Instruct,
            description: str = "",
            model: str | ModelSettings = "auto",
            tools: Iterable[ToolSpecification | Tool[..., Any] | Callable[..., Any]] = (),
            all_tools: bool = False,
            max_iterations: int | None = None,
            finish: bool = False,
            output: Any = None,
            verify: Verify | None = None,
        ) -> None: ...

    else:

        def __init__(self, /, **values: Any) -> None:
            own: list[Tool[..., Any]] = []
            values = _renamed(values)
            if isinstance(given := values.get("tools"), list | tuple):
                values = {**values, "tools": tuple(_specification(item, own) for item in given)}
            carried: dict[str, Any] = {"_own_tools": tuple(own)} if own else {}
            if values.get("output") is not None:
                from journeyman.tools.output import output_schema  # only agents that answer with data pay for it

                schema, kind = output_schema(values["output"])
                values = {**values, "output": schema}
                carried |= {} if kind is None else {"_output_type": kind}
            if callable(instruct := values.get("instruction")):
                carried["_instruct"] = instruct
                name = getattr(instruct, "__qualname__", type(instruct).__qualname__)
                values = {**values, "instruction": f"{MADE}{instruct.__module__}:{name}"}
            if isinstance(settings := values.get("model"), ModelSettings):
                carried["_model_settings"] = settings
                values = {**values, "model": str(settings)}
            verify = values.pop("verify", None)
            if verify is not None and not callable(verify):
                raise InvalidDataError("Agent", [("verify", f"must be a function, got {verify!r}")])
            super().__init__(**values)
            self.__dict__.update(carried if verify is None else {**carried, "_verify": verify})

        __init__.__pydantic_base_init__ = True  # see Entity

    @property
    def own_tools(self) -> tuple[Tool[..., Any], ...]:
        """The tools that this agent was given as tools or functions. Not stored, not printed, not compared."""
        own: tuple[Tool[..., Any], ...] = self.__dict__.get("_own_tools", ())
        return own

    @property
    def model_settings(self) -> ModelSettings:
        """Which model answers, and how it is asked. A key that was given is in this process alone."""
        return self.__dict__.get("_model_settings") or ModelSettings.of(self.model)

    @property
    def carries(self) -> bool:
        """Whether it was given what no store has: functions, a type, a key."""
        given = ("_own_tools", "_output_type", "_verify", "_model_settings", "_instruct")
        return any(name in self.__dict__ for name in given)

    async def instruction_for(self, context: ToolContext[Any]) -> str:
        """The instruction of one run. Raises ModelError where it cannot be made."""
        instruct: Instruct | None = self.__dict__.get("_instruct")
        if instruct is None and not self.instruction.startswith(MADE):
            return self.instruction
        problem = "which this program has not got; run it with the agent of the program that began it"
        if instruct is not None:
            try:
                made = instruct(context)
                said: object = await made if inspect.isawaitable(made) else made
                if isinstance(said, str) and said.strip():
                    return said
                problem = f"which gave {said!r} and not a text"
            except Exception as error:
                problem = f"which raised {type(error).__name__}: {error}"
        raise ModelError("INSTRUCTION_MISSING", f"the instruction of {self.name!r} is {self.instruction}, {problem}")

    @property
    def verify(self) -> Verify | None:
        """The function that says of an ended run whether it is right. Not stored, not printed, not compared."""
        return self.__dict__.get("_verify")

    @property
    def output_type(self) -> Any:
        """The Python type that was given as ``output``. Not stored, not printed, not compared."""
        return self.__dict__.get("_output_type")

    @cached_property
    def expected(self) -> Output:
        """What checks this agent's answers, where it has an ``output``."""
        from journeyman.tools.output import Output

        return Output(self.output or {}, self.output_type)

    def with_output(self, output: Any) -> Agent:
        """The same agent, with the same tools, whose answers are data of this type or JSON Schema."""
        from journeyman.tools.output import output_schema

        schema, kind = output_schema(output)
        copied = self.model_copy(update={"output": schema})
        copied.__dict__["_output_type"] = kind
        if self.own_tools:
            # The same library: limits and cached results are bound to it.
            copied.__dict__["own_library"] = self.own_library
        return copied

    def with_tools(self, *tools: ToolSpecification | Tool[..., Any] | Callable[..., Any]) -> Agent:
        """The same agent with further tools. Raises InvalidDataError where it has one of that name."""
        own: dict[str, Any] = {item.name: item for item in self.own_tools}
        given = {name: getattr(self, name) for name in type(self).model_fields if name not in ("tools", "output")}
        output = self.output if self.output_type is None else self.output_type
        held = [own.get(item.name, item) for item in self.tools]
        given["model"] = self.__dict__.get("_model_settings", self.model)
        given["instruction"] = self.__dict__.get("_instruct", self.instruction)
        return Agent(**given, output=output, verify=self.verify, tools=[*held, *tools])

    @cached_property
    def own_library(self) -> ToolLibrary:
        """A library of this agent's own tools, for runs that are given none."""
        from journeyman.tools.library import ToolLibrary

        return ToolLibrary(self.own_tools)

    @model_validator(mode="before")
    @classmethod
    def _under_our_names(cls, data: Any) -> Any:
        return _renamed(data) if isinstance(data, dict) else data

    @field_validator("name", "model", "instruction")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    @field_validator("tools", mode="after")
    @classmethod
    def _unique_names(cls, value: tuple[ToolSpecification, ...]) -> tuple[ToolSpecification, ...]:
        counted = Counter(item.name for item in value)
        if twice := [name for name, count in counted.items() if count > 1]:
            raise ValueError(f"tool names must be unique within an agent; more than once: {', '.join(twice)}")
        if taken := [name for name in counted if name in RESERVED_NAMES]:
            raise ValueError(f"reserved tool names: {', '.join(taken)}")
        return value

    @field_validator("output", mode="after")
    @classmethod
    def _usable(cls, value: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        if value is None or reads_stored(info):
            return value
        from journeyman.tools.output import check_schema

        return check_schema(value)

    @cached_property
    def snapshot(self) -> dict[str, Any]:
        """This agent as plain JSON, made once: every run journals it."""
        return {"format": FORMAT, **self.model_dump(mode="json")}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        given = {"output": "_output_type", "model": "_model_settings", "instruction": "_instruct"}
        others = [carried for name, carried in given.items() if name in (update or ())]
        for name in ("snapshot", "own_library", "expected", *others):  # the original's
            copied.__dict__.pop(name, None)
        return copied

    @classmethod
    def from_gram(cls, source: str | Path, name: str | None = None) -> Agent:
        """The agent that a gram text or file describes; where there are several, the one of this name."""
        from journeyman.agent.documents import load_agent

        return load_agent(source, name)

    def to_gram(self) -> str:
        """This agent as canonical gram text, from which ``from_gram`` makes an equal one."""
        from journeyman.agent.documents import dump_agents

        return dump_agents([self])


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    if values.keys() <= {*Agent.model_fields, "verify"}:
        return values
    from journeyman.core.aliases import renamed

    return renamed("Agent", values)


def _specification(item: Any, own: list[Tool[..., Any]]) -> Any:
    """What stands in ``tools`` for an item. Tools, and functions as tools, are added to ``own``."""
    if isinstance(item, ToolSpecification | Mapping):
        return item
    if not isinstance(item, Tool):
        if isinstance(item, type) or not callable(item):
            raise ToolDefinitionError(f"{item!r} is not a tool; pass a tool, a function or a specification")
        from journeyman.tools.decorator import tool

        item = tool(item)
    own.append(item)
    return item.specification
