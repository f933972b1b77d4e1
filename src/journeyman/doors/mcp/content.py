"""What the servers behind the gateway have besides tools: resources, templates and prompts, under their own addresses.

Lists are passed on as they are, to whoever may read. What is read is a call of the server's ``read_resource`` or
``get_prompt``, governed and recorded as any other.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mcp_types as types

from journeyman.app.desk import Desk
from journeyman.core.data import LOG_FIELDS
from journeyman.core.specification import ToolSpecification

logger = logging.getLogger("journeyman.mcp")

LIST_SECONDS = 10.0
"""How long a list waits for one server; the others' entries are told without it."""
MOST_LINKS = 10_000
_EXPRESSION = re.compile(r"\{([+#./;?&]?)[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Behind:
    """A server behind the gateway, and the tool by which its content is read."""

    server: str
    tool: ToolSpecification
    content: Any


class Contents:
    """Knows which server has what."""

    def __init__(self) -> None:
        self._links: dict[str, str] = {}
        """Addresses that servers have named in results, and which server it was."""

    def servers(self, desk: Desk, reads: str) -> Iterator[Behind]:
        """Those whose ``read_resource`` or ``get_prompt`` the caller may use."""
        for item in desk.app.library:
            told = item.specification.metadata.get("mcp")
            if isinstance(told, dict) and told.get("content") == reads and desk.may_use(item.specification):
                yield Behind(item.origin, item.specification, getattr(item.function, "content", None))

    async def listed(
        self, desk: Desk, reads: str, ask: Callable[[Any], Awaitable[list[Any]]]
    ) -> list[tuple[Behind, Any]]:
        """The entries of all servers, in their order; a server that is gone has none."""
        servers = list(self.servers(desk, reads))
        found = await asyncio.gather(*(_answer(each, ask) for each in servers))
        return [(each, entry) for each, entries in zip(servers, found, strict=True) for entry in entries]

    async def resources(self, desk: Desk) -> list[types.Resource]:
        found = await self.listed(desk, "read_resource", lambda content: content.resources())
        first: dict[str, types.Resource] = {}
        for _, entry in found:  # of two servers with one address the first is read, and so the first is told
            first.setdefault(str(entry.uri), entry)
        return list(first.values())

    async def templates(self, desk: Desk) -> list[types.ResourceTemplate]:
        return [each for _, each in await self.listed(desk, "read_resource", lambda content: content.templates())]

    async def prompts(self, desk: Desk, *, bare: bool) -> dict[str, tuple[Behind, types.Prompt]]:
        """By the names they are told under: ``SERVER.name``, or their own where only one has it and that is wanted."""
        found = await self.listed(desk, "get_prompt", lambda content: content.prompts())
        names = [entry.name for _, entry in found]
        return {
            entry.name if bare and names.count(entry.name) == 1 else f"{each.server}.{entry.name}": (each, entry)
            for each, entry in found
        }

    async def holding(self, desk: Desk, uri: str) -> Behind | None:
        """The server that has a resource: it lists it, has a template for it or has linked to it, or is alone."""
        servers = list(self.servers(desk, "read_resource"))
        named = [each for each in servers if each.server == self._links.get(uri)]
        if named or len(servers) < 2:
            return next(iter(named or servers), None)
        for each, entry in await self.listed(desk, "read_resource", lambda content: content.resources()):
            if str(entry.uri) == uri:
                return each
        for each, entry in await self.listed(desk, "read_resource", lambda content: content.templates()):
            if fits(entry.uri_template, uri):
                return each
        return None

    def note_links(self, server: str, value: Any) -> None:
        """Remember whom to ask for what a result links to."""
        links = value.get("links") if isinstance(value, dict) else None
        for link in links if isinstance(links, list) else ():
            if isinstance(link, dict) and isinstance(uri := link.get("uri"), str):
                self._links.pop(uri, None)
                self._links[uri] = server
        while len(self._links) > MOST_LINKS:
            del self._links[next(iter(self._links))]


async def _answer(each: Behind, ask: Callable[[Any], Awaitable[list[Any]]]) -> list[Any]:
    try:
        async with asyncio.timeout(LIST_SECONDS):
            return await ask(each.content)
    except Exception as error:  # one broken server breaks no other
        fields = {"source": each.server, "error": type(error).__name__}
        logger.warning("an MCP server cannot be asked for its lists", extra={LOG_FIELDS: fields})
        return []


def fits(template: str, uri: str) -> bool:
    """Whether an address may be made of a template (RFC 6570). Simple expressions hold no slash."""
    pattern, rest = "", 0
    for found in _EXPRESSION.finditer(template):
        pattern += re.escape(template[rest : found.start()]) + ("[^/]*" if not found[1] else ".*")
        rest = found.end()
    return re.fullmatch(pattern + re.escape(template[rest:]), uri) is not None
