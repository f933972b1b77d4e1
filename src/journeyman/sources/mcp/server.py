"""``McpServer``: an MCP server as a source of tools. Nothing of the package ``mcp`` is imported before it is opened."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman.core.data import MCP_MESSAGE_BYTES, MCP_PAGES, MCP_TOOLS, canonical_json, digest, visible
from journeyman.core.errors import ConfigurationError, OutcomeUnknownError, ToolError
from journeyman.sensitive.tokens import bare_url, redacted
from journeyman.tools.sources import ServedTools, UnusableTool
from journeyman.tools.tool import Tool

if TYPE_CHECKING:
    from journeyman.sources.mcp.connection import Connection, Link

PROTOCOLS = ("2025-11-25", "2026-07-28")
_SHORTEST_SECRET = 6
_LIST_PAUSE = 1.0
"""At least so many seconds lie between two lists, however often a server says that its tools have changed."""
_MANY = 20


@dataclass(kw_only=True, eq=False, repr=False)
class McpServer(ServedTools):
    """The tools of an MCP server, under its name: ``time.get_current_time``.

    Give either ``command`` (started as a child process) or ``url`` (streamable HTTP). A child gets a clean environment
    and ``env``. ``auth`` is an ``httpx2.Auth``, such as the OAuth providers of the package ``mcp``; ``oauth`` takes
    ``client_id``, ``client_secret``, ``scope`` and ``issuer`` for the client-credentials grant, or ``file``, where the
    tokens of somebody who has signed in with a browser are kept.

    ``trust_annotations`` lets the server's hints lower a tool's risk; without it they can only raise it.
    """

    command: Sequence[str] | None = None
    url: str | None = None
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    headers: Mapping[str, str] | None = None
    auth: Any = None
    oauth: Mapping[str, Any] | None = None
    trust_annotations: bool = False
    start_seconds: float = 10.0
    category: str | None = "mcp"
    resources: bool = True
    prompts: bool = True
    allow: Iterable[str] = ()
    protocol: str | None = None
    message_bytes: int | None = None
    kind, elsewhere, example = "MCP server", "the MCP server", "files"

    def __post_init__(self) -> None:
        super().__post_init__()
        command, url = self.command, self.url
        if (command is None) == (url is None):
            raise self._wrong("give either a command or a url")
        if command is not None and (isinstance(command, str) or not command or not all(command)):
            raise self._wrong("the command is a list, e.g. ['uvx', 'mcp-server-time']")
        if url is not None and not re.match(r"https?://[^/\s]", url):
            raise self._wrong(f"the url must begin with http:// or https://, got {bare_url(url)!r}")
        if url is None and (self.headers or self.auth or self.oauth):
            raise self._wrong("headers, auth and oauth are for servers with a url")
        if command is None and (self.env or self.cwd):
            raise self._wrong("env and cwd are for servers with a command")
        self.allow = frozenset(self.allow)
        if wrong := self.allow - {"sampling", "roots"}:
            raise self._wrong(f"allow takes 'sampling' and 'roots', not {', '.join(sorted(wrong))}")
        if self.protocol is not None and self.protocol not in PROTOCOLS:
            raise self._wrong(f"protocol is {' or '.join(PROTOCOLS)}, got {self.protocol!r}")
        self.command = None if command is None else tuple(map(str, command))
        self.cwd = None if self.cwd is None else str(self.cwd)
        self.fingerprint = digest(canonical_json([self.command, url, self.cwd]))
        """Of what is started or connected to: another server under the same name asks again."""
        self._connection: Connection | None = None
        self._known: dict[str, tuple[str, Tool[..., Any] | UnusableTool]] = {}
        """What was made of each listed tool, and of which text: what has not changed stays the same object."""

    def __repr__(self) -> str:
        return f"<McpServer {self.name!r} {self.where}>"

    @property
    def where(self) -> str:
        """What is started or connected to, without what may be secret in it."""
        return bare_url(self.url) if self.url is not None else visible(redacted(shlex.join(self.command or ())))

    @property
    def protocol_version(self) -> str | None:
        """The version of the protocol that was agreed on; None while there is no connection."""
        return None if self._connection is None else self._connection.protocol_version

    # --- as a source

    async def open(self) -> None:
        """Start or reach the server. Raises ConfigurationError, which names it and says why that failed."""
        await self.close()
        self._connection = await asyncio.to_thread(self._made_connection)  # importing the package takes a second
        await self._connection.open()

    async def list(self) -> Sequence[Tool[..., Any] | UnusableTool]:
        """The server's tools; with those for its resources and prompts."""
        connection = self._opened()
        if connection.trouble is not None:
            raise ConfigurationError(connection.trouble)
        try:
            async with asyncio.timeout(max(self.start_seconds, self.timeout_seconds)):
                listed = await self._pages(connection)
        except TimeoutError:
            raise ConfigurationError(f"the MCP server {self.name!r} took too long to list its tools") from None
        except (ToolError, OutcomeUnknownError) as error:
            raise ConfigurationError(getattr(error, "message", str(error))) from None
        if len(listed) > _MANY:
            return await asyncio.to_thread(self._made, listed, connection)
        return self._made(listed, connection)

    async def watch(self) -> AsyncIterator[None]:
        """Yields when the server says that its tools have changed, and when it is gone or back."""
        connection = self._opened()
        while True:
            await connection.changed.wait()
            connection.changed.clear()
            yield
            await asyncio.sleep(_LIST_PAUSE)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        self._known = {}
        if connection is not None:
            await connection.close()

    def _opened(self) -> Connection:
        if self._connection is None:
            raise ConfigurationError(f"the MCP server {self.name!r} is not open")
        return self._connection

    # --- connecting

    def _made_connection(self) -> Connection:
        try:
            import mcp_types as types

            from journeyman.sources.mcp.connection import Connection
        except ImportError as error:
            raise ConfigurationError("MCP servers need the package 'mcp': pip install 'journeyman[mcp]'") from error
        from importlib.metadata import version

        given = [value for held in (self.env, self.headers, self.oauth) for value in (held or {}).values()]
        secrets = tuple(value for value in given if isinstance(value, str) and len(value) >= _SHORTEST_SECRET)
        return Connection(
            self.name,
            self.where,
            self._link,
            start_seconds=float(self.start_seconds),
            client=types.Implementation(name="journeyman", version=version("journeyman")),
            allowed=frozenset(self.allow),
            protocol=self.protocol,
            secrets=(*secrets, *(value.removeprefix("Bearer ") for value in secrets)),
        )

    def _link(self, on_list_changed: Callable[[], None]) -> Link:
        from journeyman.sources.mcp.guard import Guard

        guard = Guard(on_list_changed)
        most = MCP_MESSAGE_BYTES if self.message_bytes is None else self.message_bytes
        if self.command is not None:
            from journeyman.sources.mcp.stdio import StdioLink

            return StdioLink(self.command, env=self.env or {}, cwd=self.cwd, guard=guard, most=most)
        from journeyman.sources.mcp.http import HttpLink, client_credentials

        assert self.url is not None
        auth = self.auth
        if self.oauth is not None and "file" in self.oauth:
            from journeyman.sources.mcp.signing import BrowserAuth

            hint = f": journeyman mcp login {self.name}"
            auth = BrowserAuth(self.url, Path(self.oauth["file"]), hint=hint)
        elif self.oauth is not None:
            auth = client_credentials(self.url, self.oauth)
        return HttpLink(self.url, headers=self.headers or {}, auth=auth, guard=guard, most=most)

    # --- listing

    async def _pages(self, connection: Connection) -> Sequence[Any]:
        tools, more = await connection.listed("tools", connection.list_tools, most=MCP_TOOLS)
        if not more:
            return tools
        why = (
            "its tools in a circle"
            if more == "circle"
            else f"more than {MCP_TOOLS:,} tools or {MCP_PAGES} pages of them"
        )
        raise ConfigurationError(f"the MCP server {self.name!r} lists {why}")

    def _wanted(self, name: str) -> bool:
        return self.only is None or any(fnmatchcase(name, only) for only in self.only)

    def _made(self, listed: Sequence[Any], connection: Connection) -> Sequence[Tool[..., Any] | UnusableTool]:
        from journeyman.sources.mcp.extras import extra_tools
        from journeyman.sources.mcp.tools import look_alike, made_tool

        before, names = self._known, dict[str, str]()
        made: list[Tool[..., Any] | UnusableTool] = []
        self._known = {}

        def keep(key: str, text: str, make: Callable[[], Tool[..., Any] | UnusableTool]) -> None:
            known, tool = before.get(key, ("", None))
            tool = tool if tool is not None and known == text else make()
            self._known.setdefault(key, (text, tool))
            made.append(tool)

        for item in listed:
            if isinstance(item, UnusableTool):
                made.append(item)
                continue
            if not self._wanted(item.name):
                continue
            if (other := names.setdefault(look_alike(item.name), item.name)) != item.name:
                why = f"lists {item.name!r}, which looks like its {other!r}"
                made.append(UnusableTool(f"{self.name}.{item.name}", visible(why)))
                continue
            keep(item.name, item.model_dump_json(), partial(made_tool, item, connection, self))
        for extra in extra_tools(connection, self, resources=self.resources, prompts=self.prompts):
            bare = extra.name.removeprefix(f"{self.name}.")
            if bare not in names and self._wanted(bare):
                keep(f"\n{bare}", extra.specification.model_dump_json(), partial(lambda tool: tool, extra))
        return made
