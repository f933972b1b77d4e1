"""Answers that are data, as adapters of servers ask for them: by the server's own JSON Schema mode, or by ``finish``.

The choice and its reasons are in docs/decisions/0019-structured-output.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from journeyman.core.errors import ConfigurationError, ModelError
from journeyman.core.protocols import ModelRequest, ModelResponse
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import WordLists

_strict_mode = WordLists("journeyman.models", "strict.txt")

OutputMode: TypeAlias = Literal["auto", "native", "finish"]
"""How a server is asked for data: ``auto`` is ``native`` where the model has no tool to call, else ``finish``."""

REFUSED = "MODEL_REFUSED_REQUEST"
_FINISH = "finish"


class OutputModes:
    """In which way one server is asked. One that refuses its own mode is not asked in that way again."""

    def __init__(self, mode: OutputMode) -> None:
        if mode not in ("auto", "native", "finish"):
            raise ConfigurationError(f"output is 'auto', 'native' or 'finish', not {mode!r}")
        self._mode = mode
        self._refused = False

    def native(self, request: ModelRequest) -> bool:
        """Whether to ask for JSON as text. Beside tools that keeps many models from ever calling them."""
        if self._mode != "auto":
            return self._mode == "native" and not self._refused
        return not self._refused and all(tool.name == _FINISH for tool in request.tools)

    async def ask(
        self, native: Callable[[], Awaitable[ModelResponse]], finish: Callable[[], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Ask natively; a server that refuses the request is asked again with ``finish``."""
        try:
            return await native()
        except ModelError as error:
            if error.info.code != REFUSED:
                raise
        answered = await finish()
        # Only now it is known that the schema was the reason, and not, say, the length of the conversation.
        self._refused = True
        return answered


def without_finish(request: ModelRequest) -> tuple[ToolSpecification, ...]:
    """The tools without ``finish``; the same tuple for the same tools."""
    kept = request.memo.get(_FINISH)
    if kept is None or kept[0] is not request.tools:
        others = tuple(tool for tool in request.tools if tool.name != _FINISH)
        kept = request.memo[_FINISH] = (request.tools, others)
    tools: tuple[ToolSpecification, ...] = kept[1]
    return tools


def response_format(schema: dict[str, Any]) -> dict[str, Any]:
    """The field of a chat-completions request that asks for JSON of this schema; strict where the schema allows it."""
    strict = strict_form(schema)
    said = {"name": "answer", "schema": schema if strict is None else strict, "strict": strict is not None}
    return {"type": "json_schema", "json_schema": said}


def strict_form(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema as strict mode takes it, with no answer that the schema itself would refuse; None where there is none.

    An object that says nothing of further properties is closed. Optional properties have no strict form: made required,
    a model would have to invent them.
    """
    try:
        return _strict(schema) if schema.get("type") == "object" else None
    except _NotStrictError:
        return None


class _NotStrictError(Exception):
    pass


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict) or not schema.keys() <= _strict_mode.keywords or not schema:
        raise _NotStrictError
    strict = dict(schema)
    for keyword in ("properties", "$defs"):
        if keyword in schema:
            strict[keyword] = {name: _strict(inner) for name, inner in schema[keyword].items()}
    if "items" in schema:
        strict["items"] = _strict(schema["items"])
    if "anyOf" in schema:
        strict["anyOf"] = [_strict(inner) for inner in schema["anyOf"]]
    if schema.get("format", "uuid") not in _strict_mode.formats:
        raise _NotStrictError
    if "object" in (kinds := schema.get("type", "")) and not isinstance(kinds, str):
        raise _NotStrictError
    if kinds == "object":
        properties = schema.get("properties")
        closed = schema.get("additionalProperties", False) is False
        if not properties or not closed or set(schema.get("required", ())) != set(properties):
            raise _NotStrictError
        strict["additionalProperties"] = False
    elif not schema.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
        raise _NotStrictError
    return strict
