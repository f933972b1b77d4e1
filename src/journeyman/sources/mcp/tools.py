"""A tool that an MCP server lists, as one of ours. What the server says of it is material, never an instruction.

Annotations are hints of a server that nobody here has checked: they may raise the risk, and lower it only where the
operator trusts the server. What nobody declares is for ``Policy.default_risk``.
"""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types
from pydantic import TypeAdapter

from journeyman.core.budgets import MCP_DESCRIPTION_CHARS, MCP_SCHEMA_BYTES, TOOL_NAME_CHARS
from journeyman.core.context import ToolContext
from journeyman.core.data import canonical_json, nested_too_deeply
from journeyman.core.errors import JourneymanError, ToolDefinitionError, ToolError
from journeyman.core.risk import RiskLevel
from journeyman.core.specification import ToolSpecification
from journeyman.core.visible import one_line, visible
from journeyman.sources.mcp.results import value_of
from journeyman.tools.sources import UnusableTool
from journeyman.tools.tool import ForeignSchema, Tool

if TYPE_CHECKING:
    from journeyman.sources.mcp.connection import Connection

CONTEXT = "journeyman:context"
"""Under which a call's context is handed over, beside its arguments."""
_NAME = re.compile(r"[A-Za-z0-9_./-]+")
_RESULT: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
_MANY_VALUES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the operator says of all tools of a server."""

    namespace: str
    fingerprint: str
    """Of what is started or connected to: another server under the same name asks again."""
    trust_annotations: bool
    timeout_seconds: float
    cache_seconds: float | None
    category: str
    permissions: frozenset[str]


class RemoteTool:
    """Calls a tool of a server."""

    __slots__ = ("_connection", "_name", "_output")

    def __init__(self, connection: Connection, name: str, output: ForeignSchema | None) -> None:
        self._connection = connection
        self._name = name
        self._output = output

    async def __call__(self, **values: Any) -> Any:
        context: ToolContext = values.pop(CONTEXT)
        params = types.CallToolRequestParams(name=self._name, arguments=values)
        progress = None if context is None else _reporting(context)
        result = await self._connection.request(types.CallToolRequest(params=params), _RESULT, progress=progress)
        if isinstance(result, types.InputRequiredResult):
            raise ToolError("MCP_INPUT_REQUIRED", "the server asks the client for input, which is not supported")
        value = value_of(result)
        if self._output is not None:
            await self._check(result.structured_content)
        return value

    async def _check(self, structured: Any) -> None:
        assert self._output is not None
        fits = self._output.fits
        large = _more_values(structured, _MANY_VALUES)
        if not (await asyncio.to_thread(fits, structured) if large else fits(structured)):
            raise ToolError(
                "MCP_BAD_ANSWER",
                f"the result of {self._name!r} does not fit the schema that its server declares",
                recover_action="Do not repeat the call: it has run. Go on without its result",
            )


def _reporting(context: ToolContext) -> Any:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        fraction = progress / total if total and math.isfinite(progress / total) else None
        if fraction is not None:
            fraction = min(1.0, max(0.0, fraction))
        context.progress(visible((message or "")[:4_000]), fraction)

    return report


def _more_values(value: Any, most: int) -> bool:
    stack, seen = [value], 0
    while stack:
        item = stack.pop()
        seen += 1 + len(item) // 1_000 if isinstance(item, str) else 1
        if seen > most:
            return True
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False


def made_tool(listed: types.Tool, connection: Connection, options: Options) -> Tool[..., Any] | UnusableTool:
    """Our tool of a listed one, or why there is none."""
    if (why := _name_problem(listed.name, options.namespace)) is not None:
        return UnusableTool(one_line(listed.name, most=80), why)
    name = f"{options.namespace}.{listed.name}"
    try:
        return _made(name, listed, connection, options)
    except JourneymanError as error:
        return UnusableTool(name, visible(str(error)[:500]))


def _made(name: str, listed: types.Tool, connection: Connection, options: Options) -> Tool[..., Any]:
    parameters, returns = listed.input_schema, listed.output_schema
    for schema in (parameters, returns):
        if schema is not None and nested_too_deeply(schema):
            raise ToolDefinitionError(f"tool {name!r}: its schema is nested too deeply")
    if len(canonical_json([parameters, returns])) > MCP_SCHEMA_BYTES:
        raise ToolDefinitionError(f"tool {name!r}: its schemas are larger than {MCP_SCHEMA_BYTES:,} bytes")
    hints = listed.annotations or types.ToolAnnotations()
    risk, read_only, idempotent = graded(hints, trusted=options.trust_annotations)
    specification = ToolSpecification(
        name=name,
        description=_description(listed, options.namespace),
        parameters=_with_visible_texts(parameters),
        returns=None if returns is None else _with_visible_texts(returns),
        category=options.category,
        permissions=options.permissions,
        risk=risk,
        read_only=read_only,
        idempotent=idempotent,
        timeout_seconds=options.timeout_seconds,
        metadata={"mcp": {"server": options.fingerprint, "annotations": _told(hints)}},
    )
    where = f"tool {name!r}"
    checked = ForeignSchema(parameters, where=where)
    checked.context_parameter = CONTEXT
    return Tool(
        specification=specification,
        function=RemoteTool(connection, listed.name, None if returns is None else ForeignSchema(returns, where=where)),
        schema=checked,
        cache_seconds=options.cache_seconds if read_only else None,
        retries=1 if specification.repeat_safe else 0,  # a server that went away is back within seconds
        is_async=True,
    )


def graded(hints: types.ToolAnnotations, *, trusted: bool) -> tuple[RiskLevel | None, bool, bool]:
    """The declared risk, and whether it only reads and may be repeated, by a server's hints."""
    if hints.destructive_hint and not (trusted and hints.read_only_hint):
        return RiskLevel.IRREVERSIBLE, False, bool(trusted and hints.idempotent_hint)
    if not trusted:
        return None, False, False
    if hints.read_only_hint:
        return RiskLevel.REVERSIBLE, True, True
    risk = None
    if hints.destructive_hint is False:
        # It only adds. What it adds in a world of its own can be taken away again; a message that was sent cannot.
        outside = hints.open_world_hint is not False
        risk = RiskLevel.REVERSIBLE_WITH_DELAY if outside else RiskLevel.REVERSIBLE
    return risk, False, bool(hints.idempotent_hint)


def _name_problem(name: str, namespace: str) -> str | None:
    shown = one_line(name, most=80)
    if len(namespace) + 1 + len(name) > TOOL_NAME_CHARS:
        return f"lists a tool whose name has {len(name)} characters ({shown!r})"
    if not _NAME.fullmatch(name):
        return f"lists a tool under the name {shown!r}; names are ASCII letters, digits and _ - . /"
    return None


def look_alike(name: str) -> str:
    """What names have in common that a reader would take for one another."""
    return re.sub(r"[./-]", "_", name).casefold()


def _description(listed: types.Tool, namespace: str) -> str:
    text = (listed.description or listed.title or "").strip()
    if not text:
        return f"A tool of the MCP server {namespace!r}, which does not say what it does."
    shown = visible(text[:MCP_DESCRIPTION_CHARS])
    return shown if len(text) <= MCP_DESCRIPTION_CHARS else f"{shown}…"


def _with_visible_texts(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with nothing hidden in what models and people read of it; what arguments must be stays exact."""
    made = dict(schema)
    stack: list[Any] = [made]
    while stack:
        node = stack.pop()
        items: Any = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
        for key, value in items:
            if isinstance(value, dict):
                node[key] = dict(value)
                stack.append(node[key])
            elif isinstance(value, list):
                node[key] = list(value)
                stack.append(node[key])
            elif key in ("description", "title", "$comment") and isinstance(value, str):
                node[key] = visible(value[:MCP_DESCRIPTION_CHARS])
    return made


def _told(hints: types.ToolAnnotations) -> dict[str, Any]:
    told = hints.model_dump(by_alias=True, exclude_none=True)
    return {key: visible(value[:200]) if isinstance(value, str) else value for key, value in told.items()}
