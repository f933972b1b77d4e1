"""LangChain's tools as ours. Needs the extra ``langchain``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.tools import BaseTool, ToolException

from journeyman.core.errors import ToolError
from journeyman.core.specification import ToolSpecification
from journeyman.tools.schema import model_parameters
from journeyman.tools.tool import Tool


def from_langchain(item: BaseTool, **fields: Any) -> Tool[..., Any]:
    """One of LangChain's tools as ours; ``fields`` are a specification's, such as ``risk`` or ``permissions``.

    Its ``ToolException`` reaches the model as an error it may act on.
    """
    schema = item.tool_call_schema
    parameters = schema if isinstance(schema, dict) else schema.model_json_schema()
    described = {"name": item.name, "description": item.description, "parameters": model_parameters(parameters)}

    def call(**arguments: Any) -> Any:
        with _errors_for_the_model(item):
            return item.invoke(arguments)

    async def call_async(**arguments: Any) -> Any:
        with _errors_for_the_model(item):
            return await item.ainvoke(arguments)

    return Tool.from_specification(
        ToolSpecification(**{**described, **fields}), call_async if _is_async(item) else call
    )


def _is_async(item: BaseTool) -> bool:
    """Whether it has an asynchronous body of its own; LangChain's stand-in would only hop to a thread."""
    if hasattr(item, "coroutine"):
        return item.coroutine is not None
    return inspect.getattr_static(type(item), "_arun") is not inspect.getattr_static(BaseTool, "_arun")


@contextmanager
def _errors_for_the_model(item: BaseTool) -> Iterator[None]:
    try:
        yield
    except ToolException as error:
        raise ToolError("TOOL_ERROR", str(error) or f"{item.name} failed") from error
