"""LangChain's tools as ours. Needs the extra ``langchain``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool, ToolException

from journeyman.core.errors import ToolError
from journeyman.interop.making import plain_parameters, specification
from journeyman.tools.tool import Tool


def from_langchain(item: BaseTool, **fields: Any) -> Tool[..., Any]:
    """One of LangChain's tools as ours; ``fields`` are a specification's, such as ``risk`` or ``permissions``.

    Its ``ToolException`` reaches the model as an error it may act on.
    """
    schema = item.tool_call_schema
    parameters = schema if isinstance(schema, dict) else schema.model_json_schema()
    described = specification(item.name, item.description, plain_parameters(parameters), fields)
    return Tool.from_specification(described, _asynchronous(item) if _is_async(item) else _synchronous(item))


def _is_async(item: BaseTool) -> bool:
    """Whether it has an asynchronous body of its own; LangChain's stand-in would only hop to a thread."""
    if hasattr(item, "coroutine"):
        return item.coroutine is not None
    return inspect.getattr_static(type(item), "_arun") is not inspect.getattr_static(BaseTool, "_arun")


def _synchronous(item: BaseTool) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        try:
            return item.invoke(arguments)
        except ToolException as error:
            raise ToolError("TOOL_ERROR", str(error) or f"{item.name} failed") from error

    return call


def _asynchronous(item: BaseTool) -> Callable[..., Any]:
    async def call(**arguments: Any) -> Any:
        try:
            return await item.ainvoke(arguments)
        except ToolException as error:
            raise ToolError("TOOL_ERROR", str(error) or f"{item.name} failed") from error

    return call
