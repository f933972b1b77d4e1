"""What a client hears of changes, in both versions of the protocol, as words: "tools", "resource note://one"."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.subscriptions import Subscription
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

KINDS: dict[type[Any], str] = {
    ToolsListChanged: "tools",
    PromptsListChanged: "prompts",
    ResourcesListChanged: "resources",
    types.ToolListChangedNotification: "tools",
    types.PromptListChangedNotification: "prompts",
    types.ResourceListChangedNotification: "resources",
}


class Heard:
    """Also the message handler of a client of the older protocol."""

    def __init__(self) -> None:
        self.words: list[str] = []

    async def __call__(self, message: Any) -> None:
        match message:
            case ResourceUpdated(uri=uri):
                self.words.append(f"resource {uri}")
            case types.ResourceUpdatedNotification():
                self.words.append(f"resource {message.params.uri}")
            case _ if type(message) in KINDS:
                self.words.append(KINDS[type(message)])
            case _:
                pass

    @asynccontextmanager
    async def of(self, client: Client, mode: str, uris: Sequence[str]) -> AsyncIterator[None]:
        """Hear of all lists and of these resources meanwhile."""
        if mode == "legacy":
            for look in (client.list_tools, client.list_prompts, client.list_resources):
                await look()
            with warnings.catch_warnings(action="ignore", category=MCPDeprecationWarning):
                for uri in uris:
                    await client.subscribe_resource(uri)
                yield
                for uri in uris:
                    await client.unsubscribe_resource(uri)
            return
        everything: Any = {f"{kind}_list_changed": True for kind in ("tools", "prompts", "resources")}
        async with client.listen(**everything, resource_subscriptions=uris) as subscription:
            following = asyncio.ensure_future(self._follow(subscription))
            yield
            following.cancel()
            await asyncio.wait((following,))

    async def _follow(self, subscription: Subscription) -> None:
        async for event in subscription:
            await self(event)
