"""What there is besides tools: resources, templates and prompts, of this library and of the servers behind the gateway.

Lists are passed on as they are, to whoever may read. What is read is a call of the published function, or of the
server's ``read_resource`` or ``get_prompt``, governed and recorded as any other.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import mcp_types as types
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate
from pydantic_core import from_json

from journeyman.app.desk import Desk
from journeyman.core.data import LOG_FIELDS, Latest
from journeyman.core.specification import PROMPT, RESOURCE, ToolSpecification

logger = logging.getLogger("journeyman.mcp")

LIST_SECONDS = 10.0
"""How long a list waits for one server; the others' entries are told without it."""
MOST_LINKS = 10_000
MOST_SUGGESTED = 100
"""Values of one completion, as the protocol has it."""
BYTES = {"type": "string", "format": "binary"}
"""The schema of what a function returns that returns bytes."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A server behind the gateway, and the tool by which its content is read."""

    server: str
    tool: ToolSpecification
    content: Any

    def reading(self, uri: str) -> dict[str, Any] | None:
        """The arguments that read an address; None where it is another's."""
        return {"uri": uri}

    def filling(self, name: str, arguments: dict[str, str] | None) -> dict[str, Any]:
        """The arguments that fill in a prompt."""
        return {"name": name, **({"arguments": arguments} if arguments else {})}


@dataclass(frozen=True, slots=True)
class Ours(Behind):
    """A resource or a prompt of this library."""

    def reading(self, uri: str) -> dict[str, Any] | None:
        values = variables(self.content.uri, uri)
        return None if values is None else self.filling("", values)

    def filling(self, name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """Addresses and prompts hold nothing but texts: what is to be a number or a list is read as one."""
        typed = dict(arguments or {})
        for name, schema in self.tool.parameters["properties"].items():
            kinds = [each.get("type") for each in schema.get("anyOf", [schema])]
            if isinstance(typed.get(name), str) and "string" not in kinds:
                with suppress(ValueError):
                    typed[name] = from_json(typed[name])
        return typed


@dataclass(frozen=True, slots=True)
class Published:
    """Tells of one of ours as a server behind tells of all that it has."""

    item: Any
    """The tool."""

    @property
    def uri(self) -> str:
        return str(self.item.specification.metadata[RESOURCE]["uri"])

    @property
    def mime_type(self) -> str | None:
        specification = self.item.specification
        declared: str | None = specification.metadata[RESOURCE].get("mime_type")
        returns = specification.returns
        if declared or returns is None or "mime_type" in returns.get("properties", ()):  # pictures say it themselves
            return declared
        text = "application/octet-stream" if returns == BYTES else "text/plain"
        return text if returns.get("type") == "string" else "application/json"

    def _described(self, **more: Any) -> dict[str, Any]:
        return {"name": self.item.name, "description": self.item.specification.description, **more}

    async def resources(self) -> list[types.Resource]:
        described = self._described(mime_type=self.mime_type, uri=self.uri)
        return [] if UriTemplate.is_template(self.uri) else [types.Resource(**described)]

    async def templates(self) -> list[types.ResourceTemplate]:
        described = self._described(mime_type=self.mime_type, uri_template=self.uri)
        return [types.ResourceTemplate(**described)] if UriTemplate.is_template(self.uri) else []

    async def prompts(self) -> list[types.Prompt]:
        parameters = self.item.specification.parameters
        arguments = [
            types.PromptArgument(
                name=name, description=schema.get("description"), required=name in parameters.get("required", ())
            )
            for name, schema in parameters["properties"].items()
        ]
        return [types.Prompt(arguments=arguments, **self._described())]

    async def complete(self, params: types.CompleteRequestParams) -> types.CompleteResult:
        """What the program suggests for an argument, or the choices of its type that begin so."""
        name, value = params.argument.name, params.argument.value
        if (suggest := self.item.complete.get(name)) is not None:
            given = dict((params.context.arguments if params.context else None) or {})
            takes = len(inspect.signature(suggest).parameters)
            async with asyncio.timeout(LIST_SECONDS):
                suggested: Any = await asyncio.to_thread(suggest, *(value, given)[:takes])
                suggested = await suggested if inspect.isawaitable(suggested) else suggested
        else:
            schema = self.item.specification.parameters["properties"].get(name, {})
            suggested = (each for each in schema.get("enum", ()) if str(each).startswith(value))
        values = [str(each) for each in islice(suggested, MOST_SUGGESTED + 1)]
        return types.CompleteResult(
            completion=types.Completion(values=values[:MOST_SUGGESTED], has_more=len(values) > MOST_SUGGESTED)
        )

    async def subscribe(self, uri: str, *, wanted: bool = True) -> None:
        """Nothing to do: the library says when it has changed."""


class Contents:
    """Knows which server has what."""

    def __init__(self) -> None:
        self._links: Latest[str, str] = Latest(MOST_LINKS)
        """Addresses that servers have named in results, and which server it was."""

    def servers(self, desk: Desk, reads: str) -> Iterator[Behind]:
        """Those whose ``read_resource`` or ``get_prompt`` the caller may use, and what of ours they may."""
        ours = RESOURCE if reads == "read_resource" else PROMPT
        for item in desk.app.library:
            origin = item.specification.metadata.get("mcp")
            if not desk.may_use(item.specification):
                continue
            if ours in item.specification.metadata:
                yield Ours("", item.specification, Published(item))
            elif isinstance(origin, dict) and origin.get("content") == reads:
                yield Behind(item.origin, item.specification, getattr(item.function, "content", None))

    async def listed(
        self, desk: Desk, reads: str, ask: Callable[[Any], Awaitable[list[Any]]]
    ) -> list[tuple[Behind, Any]]:
        """The entries of all servers, in their order; a server that is gone has none."""
        servers = list(self.servers(desk, reads))
        lists = await asyncio.gather(*(_answer(each, ask) for each in servers))
        return [(each, entry) for each, entries in zip(servers, lists, strict=True) for entry in entries]

    async def resources(self, desk: Desk) -> list[types.Resource]:
        listed = await self.listed(desk, "read_resource", lambda content: content.resources())
        first: dict[str, types.Resource] = {}
        for _, entry in listed:  # of two servers with one address the first is read, and so the first is told
            first.setdefault(str(entry.uri), entry)
        return list(first.values())

    async def templates(self, desk: Desk) -> list[types.ResourceTemplate]:
        return [each for _, each in await self.listed(desk, "read_resource", lambda content: content.templates())]

    async def prompts(self, desk: Desk, *, bare: bool) -> dict[str, tuple[Behind, types.Prompt]]:
        """By the names they are told under: ``SERVER.name``, or their own where only one has it and that is wanted."""
        listed = await self.listed(desk, "get_prompt", lambda content: content.prompts())
        names = [entry.name for _, entry in listed]
        return {
            entry.name
            if not each.server or (bare and names.count(entry.name) == 1)
            else f"{each.server}.{entry.name}": (each, entry)
            for each, entry in listed
        }

    async def holding(self, desk: Desk, uri: str) -> Behind | None:
        """One of ours; or the server that lists it, has a template for it or has linked to it, or is alone."""
        readable = list(self.servers(desk, "read_resource"))
        ours = [each for each in readable if isinstance(each, Ours) and each.reading(uri) is not None]
        if ours:
            return min(ours, key=lambda each: UriTemplate.is_template(each.content.uri))
        servers = [each for each in readable if not isinstance(each, Ours)]
        named = [each for each in servers if each.server == self._links.get(uri)]
        if named or len(servers) < 2:
            return next(iter(named or servers), None)
        for each, entry in await self.listed(desk, "read_resource", lambda content: content.resources()):
            if str(entry.uri) == uri:
                return each
        for each, entry in await self.listed(desk, "read_resource", lambda content: content.templates()):
            if variables(entry.uri_template, uri) is not None:
                return each
        return None

    def note_links(self, server: str, value: Any) -> None:
        """Remember whom to ask for what a result links to."""
        links = value.get("links") if isinstance(value, dict) else None
        for link in links if isinstance(links, list) else ():
            if isinstance(link, dict) and isinstance(uri := link.get("uri"), str):
                self._links[uri] = server


async def _answer(each: Behind, ask: Callable[[Any], Awaitable[list[Any]]]) -> list[Any]:
    try:
        async with asyncio.timeout(LIST_SECONDS):
            return await ask(each.content)
    except Exception as error:  # one broken server breaks no other
        fields = {"source": each.server, "error": type(error).__name__}
        logger.warning("an MCP server cannot be asked for its lists", extra={LOG_FIELDS: fields})
        return []


def variables(template: str, uri: str) -> dict[str, Any] | None:
    """What stands in an address in the places of a template's variables; None where it is not made of it."""
    try:
        return UriTemplate.parse(template).match(uri)
    except InvalidUriTemplate:
        return None
