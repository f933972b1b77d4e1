"""LlamaIndex's function tools as ours, and ours as theirs. Needs the extra ``llamaindex``."""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import Any

from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput
from pydantic import BaseModel, ConfigDict

from journeyman.core.data import canonical_json
from journeyman.core.errors import ToolDefinitionError, ToolError
from journeyman.core.specification import ToolSpecification
from journeyman.tools.schema import model_parameters
from journeyman.tools.tool import Tool


def from_llamaindex(item: FunctionTool, **fields: Any) -> Tool[..., Any]:
    """One of LlamaIndex's function tools as ours; ``fields`` are a specification's, such as ``risk``."""
    name, description = item.metadata.get_name(), item.metadata.description
    if item.requires_context:
        raise ToolDefinitionError(
            f"{name!r} wants a workflow's context, which only LlamaIndex can give; wrap a function that does without"
        )
    parameters = model_parameters(item.metadata.get_parameters_dict())
    described = {"name": name, "description": description, "parameters": parameters}

    def call(**arguments: Any) -> Any:
        return _result(item.call(**arguments))

    async def call_async(**arguments: Any) -> Any:
        return _result(await item.acall(**arguments))

    function = call_async if inspect.iscoroutinefunction(item.real_fn) else call
    return Tool.from_specification(ToolSpecification(**{**described, **fields}), function)


def to_llamaindex(item: Tool[..., Any]) -> FunctionTool:
    """One of our tools as LlamaIndex's. Its arguments are checked; nothing else of our governance comes with it."""

    def call(**arguments: Any) -> Any:
        return item.invoke(item.freeze(canonical_json(arguments)).values, None)

    async def call_async(**arguments: Any) -> Any:
        return await item.invoke(item.freeze(canonical_json(arguments)).values, None)

    facts = ToolMetadata(
        name=item.name, description=item.specification.description, fn_schema=_arguments_model(item.specification)
    )
    if item.is_async:
        return FunctionTool.from_defaults(async_fn=call_async, tool_metadata=facts)
    return FunctionTool.from_defaults(fn=call, tool_metadata=facts)


def _result(output: ToolOutput) -> Any:
    if output.is_error:
        raise ToolError("TOOL_ERROR", output.content or f"{output.tool_name} failed")
    return output.raw_output


def _arguments_model(described: ToolSpecification) -> type[BaseModel]:
    """A model that has our schema to the letter; the checking is done by the tool."""

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow")

        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return deepcopy(described.parameters)

    Arguments.__name__ = Arguments.__qualname__ = described.name
    return Arguments
