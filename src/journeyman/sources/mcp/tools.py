"""A tool that an MCP server lists, as one of ours. What the server says of it is material, never an instruction.

Annotations are hints of a server that nobody here has checked: they may raise the risk, and lower it only where the
operator trusts the server. What nobody declares is for ``Policy.default_risk``.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types
from pydantic import TypeAdapter
from pydantic_core import from_json

from journeyman.core.calls import ToolContext
from journeyman.core.data import (
    MCP_DESCRIPTION_CHARS,
    MCP_SCHEMA_BYTES,
    TOOL_NAME_CHARS,
    canonical_json,
    nested_too_deeply,
    one_line,
    visible,
)
from journeyman.core.errors import JourneymanError, ToolDefinitionError, ToolError
from journeyman.core.policy import RiskLevel
from journeyman.core.specification import ToolSpecification
from journeyman.tools.sources import CONTEXT, UnusableTool
from journeyman.tools.tool import ForeignSchema, Tool

if TYPE_CHECKING:
    from journeyman.sources.mcp.connection import Connection
    from journeyman.sources.mcp.server import McpServer

_NAME = re.compile(r"[A-Za-z0-9_./-]+")
_RESULT: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
_MANY_VALUES = 2_000


@dataclass(slots=True, eq=False)
class RemoteTool:
    """Calls a tool of a server."""

    connection: Connection
    name: str
    output: ForeignSchema | None
    once: bool

    async def __call__(self, **values: Any) -> Any:
        context: ToolContext = values.pop(CONTEXT)
        params = types.CallToolRequestParams(name=self.name, arguments=values)
        progress = None if context is None else _reporting(context)
        result = await self.connection.exchange(
            types.CallToolRequest(params=params), _RESULT, context, progress=progress, once=self.once
        )
        value = value_of(result)
        if self.output is not None:
            await self._check(result.structured_content)
        return value

    async def _check(self, structured: Any) -> None:
        assert self.output is not None
        fits = self.output.fits
        large = _more_values(structured, _MANY_VALUES)
        if not (await asyncio.to_thread(fits, structured) if large else fits(structured)):
            raise ToolError(
                "MCP_BAD_ANSWER",
                f"the result of {self.name!r} does not fit the schema that its server declares",
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


def made_tool(listed: types.Tool, connection: Connection, source: McpServer) -> Tool[..., Any] | UnusableTool:
    """Our tool of a listed one, or why there is none."""
    if (why := _name_problem(listed.name, source.name)) is not None:
        return UnusableTool(one_line(listed.name, most=80), why)
    name = f"{source.name}.{listed.name}"
    try:
        return _made(name, listed, connection, source)
    except JourneymanError as error:
        return UnusableTool(name, visible(str(error)[:500]))


def _made(name: str, listed: types.Tool, connection: Connection, source: McpServer) -> Tool[..., Any]:
    parameters, returns = listed.input_schema, listed.output_schema
    for schema in (parameters, returns):
        if schema is not None and nested_too_deeply(schema):
            raise ToolDefinitionError(f"tool {name!r}: its schema is nested too deeply")
    if len(canonical_json([parameters, returns])) > MCP_SCHEMA_BYTES:
        raise ToolDefinitionError(f"tool {name!r}: its schemas are larger than {MCP_SCHEMA_BYTES:,} bytes")
    hints = listed.annotations or types.ToolAnnotations()
    risk, read_only, idempotent = graded(hints, trusted=source.trust_annotations)
    specification = ToolSpecification(
        name=name,
        description=_description(listed, source.name),
        parameters=_with_visible_texts(parameters),
        returns=None if returns is None else _with_visible_texts(returns),
        risk=risk,
        read_only=read_only,
        idempotent=idempotent,
        **source.declared,
        metadata={"mcp": {"server": source.fingerprint, "annotations": _told(hints)}},
    )
    where = f"tool {name!r}"
    output = None if returns is None else ForeignSchema(returns, where=where)
    checked, safe = ForeignSchema(parameters, where=where), specification.repeat_safe
    function = RemoteTool(connection, listed.name, output, once=not safe)
    # A server that went away is back within seconds.
    return source.made_tool(specification, function, checked, cached=read_only, retries=int(safe))


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


def _with_visible_texts(part: Any, name: str = "") -> Any:
    """The schema with nothing hidden in what models and people read of it; what arguments must be stays exact."""
    if isinstance(part, dict):
        return {key: _with_visible_texts(inner, key) for key, inner in part.items()}
    if isinstance(part, list):
        return [_with_visible_texts(inner) for inner in part]
    read = isinstance(part, str) and name in ("description", "title", "$comment")
    return visible(part[:MCP_DESCRIPTION_CHARS]) if read else part


def _told(hints: types.ToolAnnotations) -> dict[str, Any]:
    given = hints.model_dump(by_alias=True, exclude_none=True)
    return {key: visible(value[:200]) if isinstance(value, str) else value for key, value in given.items()}


# --- results as plain JSON: text as text, structure as it is, images and other media apart
#
# A result with media is an object with a list ``media``; each entry says its ``mime_type``, its size in ``bytes`` and
# its ``data`` in base64. Models are told of kind and size only, and stores keep large data apart. Where the blocks of a
# result came in another order, in several texts, or annotated, ``order`` says so: who passes the result on restores it.


_LONGEST_ERROR = 4_000


def value_of(result: types.CallToolResult) -> Any:
    """The result of a tool. Raises ToolError where the tool says that it failed."""
    if result.is_error:
        text = visible(_texts(result.content)[:_LONGEST_ERROR]).strip()
        raise ToolError("MCP_TOOL_FAILED", text or "the tool failed and did not say why")
    parts = _Parts()
    for block in result.content:
        parts.add(block)
    return parts.value(result.structured_content)


def resource_value(result: types.ReadResourceResult, uri: str) -> Any:
    """The contents of a resource: its text, where it is one plain text."""
    parts = _Parts()
    for item in result.contents:
        plain = str(item.uri) == uri and item.mime_type in (None, "text/plain") and item.meta is None
        parts.add_contents(item, named=len(result.contents) > 1 or not plain)
    return parts.value(None)


def prompt_value(result: types.GetPromptResult) -> Any:
    """A prompt as the messages it consists of."""
    messages = []
    for message in result.messages:
        parts = _Parts()
        parts.add(message.content)
        messages.append({"role": message.role, "content": parts.value(None)})
    return {"description": result.description, "messages": messages} if result.description else {"messages": messages}


def _texts(content: Iterable[Any]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, types.TextContent))


class _Parts:
    """Collects blocks by their kinds."""

    def __init__(self) -> None:
        self._held: dict[str, list[Any]] = {"text": [], "media": [], "resources": [], "links": []}
        self._order: list[dict[str, Any]] = []

    def add(self, block: Any) -> None:
        match block:
            case types.TextContent(text=text):
                self._put("text", text, chars=len(text))
            case types.ImageContent(data=data, mime_type=kind) | types.AudioContent(data=data, mime_type=kind):
                self._put("media", _medium(kind, data))
            case types.EmbeddedResource(resource=contents):
                self.add_contents(contents, named=True)
            case types.ResourceLink():
                self._put("links", block.model_dump(mode="json", exclude_none=True, exclude={"type"}))
                return  # which says itself how it is annotated
            case _:
                return
        said = {"annotations": block.annotations, "meta": block.meta}
        self._order[-1] |= {key: _plain(value) for key, value in said.items() if value is not None}

    def add_contents(self, contents: Any, *, named: bool) -> None:
        uri = str(contents.uri)
        if not isinstance(contents, types.TextResourceContents):
            kind = contents.mime_type or "application/octet-stream"
            self._put("media", {"uri": uri, **_medium(kind, contents.blob)})
        elif named:
            said = {"uri": uri, "mime_type": contents.mime_type, "text": contents.text}
            self._put("resources", {key: value for key, value in said.items() if value is not None})
        else:
            self._put("text", contents.text, chars=len(contents.text))

    def _put(self, kind: str, item: Any, **said: Any) -> None:
        self._held[kind].append(item)
        self._order.append({"kind": kind, **said})

    def value(self, structured: Any) -> Any:
        texts, *others = self._held.values()
        text, annotated = "\n".join(texts), any(not block.keys() <= {"kind", "chars"} for block in self._order)
        ordered = annotated or not self._usual()
        if not (any(others) or (ordered and structured is None)):
            # Servers repeat what is structured as text, for clients that know no structure.
            if structured is None:
                return text
            if _repeats(texts, structured):
                return structured
        parts = {
            "structured": structured,
            **self._held,
            "text": text or None,
            "order": self._order if ordered else None,
        }
        return {key: value for key, value in parts.items() if value not in (None, [])}

    def _usual(self) -> bool:
        """Whether the blocks come as they would be put together without being told of their order."""
        kinds = [block["kind"] for block in self._order]
        return kinds.count("text") < 2 and kinds == sorted(kinds, key=list(self._held).index)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_none=True) if isinstance(value, types.Annotations) else value


def _repeats(texts: Sequence[str], structured: Any) -> bool:
    """Whether texts say no more than the structure beside them: all of it in one, or each item of a list in one."""
    value = structured.get("result", structured) if isinstance(structured, dict) else structured
    if not texts or (len(texts) == 1 and _says(texts[0], (structured, value))):
        return True
    items = value if isinstance(value, list) else []
    return len(items) == len(texts) and all(_says(text, (item,)) for text, item in zip(texts, items, strict=True))


def _says(text: str, values: Sequence[Any]) -> bool:
    try:
        return not text or text in values or from_json(text) in values
    except ValueError:
        return False


def _medium(kind: str, data: str) -> dict[str, Any]:
    # Three bytes are four characters; the last of them may be padding.
    return {"mime_type": kind, "bytes": len(data) * 3 // 4 - data[-2:].count("="), "data": data}
