"""What tools fetch: never from a cloud's metadata service and, unless meant, from no private address.

What a name resolves to is checked where the connection is made, so that no answer can change in between.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver
from pydantic_core import from_json

from journeyman.core.data import check_containers, read_at_most
from journeyman.core.errors import ToolError
from journeyman.sensitive import FETCH_SECONDS
from journeyman.sensitive.addresses import is_metadata, is_public


class AddressRefusedError(aiohttp.ClientError):
    """A host leads where a tool must not go."""


def guarded_connector(*, private: bool = False, resolver: AbstractResolver | None = None) -> aiohttp.TCPConnector:
    """Connections to public addresses only; with ``private``, to all but metadata services."""
    return aiohttp.TCPConnector(resolver=_Guarded(resolver or DefaultResolver(), private=private))


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes
    complete: bool
    """Whether it ended within the budget."""
    content_type: str
    charset: str | None

    def json(self) -> Any:
        """The body's value; None where it is no JSON."""
        try:
            check_containers(self.body)
            return from_json(self.body)
        except ValueError:
            return None


async def fetch(
    url: str, headers: Mapping[str, str], *, private: bool, most: int, failed: Callable[[Exception], ToolError]
) -> Fetched:
    """Ask once, for at most so many bytes. No redirect is followed: it could send a token to another host.

    ``failed`` makes an error of TimeoutError, AddressRefusedError or another ClientError.
    """
    try:
        async with (
            aiohttp.ClientSession(
                connector=guarded_connector(private=private), timeout=aiohttp.ClientTimeout(total=FETCH_SECONDS)
            ) as session,
            session.get(url, headers={"User-Agent": "journeyman", **headers}, allow_redirects=False) as response,
        ):
            body, complete = await read_at_most(response.content.iter_any(), most)
            named = {name.lower(): value for name, value in response.headers.items()}
            return Fetched(response.status, named, body, complete, response.content_type, response.charset)
    except (TimeoutError, aiohttp.ClientError) as error:
        raise failed(error) from None


class _Guarded(AbstractResolver):
    def __init__(self, inner: AbstractResolver, *, private: bool) -> None:
        self._inner = inner
        self._private = private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        if is_metadata(host):
            raise AddressRefusedError(f"{host!r} must not be fetched from")
        answers: Any = await self._inner.resolve(host, port, family)
        for answer in answers:
            address = answer["host"]
            if is_metadata(address) or (not self._private and not is_public(address)):
                raise AddressRefusedError(f"{host!r} leads to an address that must not be fetched from")
        return list(answers)

    async def close(self) -> None:
        await self._inner.close()
