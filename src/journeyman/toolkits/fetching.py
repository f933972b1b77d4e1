"""Connections of tools that fetch: never to a cloud's metadata service and, unless meant, to no private address.

What a name resolves to is checked where the connection is made, so that no answer can change in between.
"""

from __future__ import annotations

import socket
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver

from journeyman.core.sensitive.addresses import is_metadata, is_public


class AddressRefusedError(aiohttp.ClientError):
    """A host leads where a tool must not go."""


def guarded_connector(*, private: bool = False, resolver: AbstractResolver | None = None) -> aiohttp.TCPConnector:
    """Connections to public addresses only; with ``private``, to all but metadata services."""
    return aiohttp.TCPConnector(resolver=_Guarded(resolver or DefaultResolver(), private=private))


class _Guarded(AbstractResolver):
    def __init__(self, inner: AbstractResolver, *, private: bool) -> None:
        self._inner = inner
        self._private = private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        if is_metadata(host):
            raise AddressRefusedError(f"{host!r} must not be fetched from")
        found: Any = await self._inner.resolve(host, port, family)
        for answer in found:
            address = answer["host"]
            if is_metadata(address) or (not self._private and not is_public(address)):
                raise AddressRefusedError(f"{host!r} leads to an address that must not be fetched from")
        return list(found)

    async def close(self) -> None:
        await self._inner.close()
