"""Signing in to an MCP server with a browser: OAuth with discovery, registration and PKCE, by the package ``mcp``.

What was agreed to is kept in a file that only its owner reads, so that a program without a person at hand can go on: it
renews its token there, and says how to sign in where that is refused.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)

from journeyman.core.errors import ConfigurationError

SIGN_IN_SECONDS = 300.0
_EARLY_SECONDS = 30.0
_PAGE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nThat is all: this page can be closed.\n"
)


class BrowserAuth(OAuthClientProvider):
    """Tokens of one server, in a file. Without ``callback`` nobody can be asked, and a needed sign-in is an error."""

    def __init__(self, url: str, file: Path, *, hint: str = "", callback: _Callback | None = None) -> None:
        self._file, self._hint, self._callback = file, hint, callback
        self._anew = callback is not None
        address = "http://127.0.0.1/callback" if callback is None else callback.address
        about: dict[str, Any] = {"client_name": "Journeyman", "redirect_uris": [address]}
        about |= {"grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"]}
        super().__init__(
            server_url=url,
            client_metadata=OAuthClientMetadata(**about, token_endpoint_auth_method="none"),
            storage=self,
            redirect_handler=self._redirect,
            callback_handler=self._answer,
        )

    async def _redirect(self, url: str) -> None:
        if self._callback is None:
            raise ConfigurationError(f"it wants somebody to sign in{self._hint}")
        self._callback.show(url)

    async def _answer(self) -> AuthorizationCodeResult:
        assert self._callback is not None
        return await asyncio.wait_for(self._callback.answer, SIGN_IN_SECONDS)

    async def _initialize(self) -> None:
        """What is kept, with where a token is renewed and when it must be."""
        await super()._initialize()
        kept = self._kept()
        if "metadata" in kept:
            self.context.oauth_metadata = OAuthMetadata.model_validate(kept["metadata"])
        self.context.token_expiry_time = kept.get("expires_at")

    # --- the file

    def _kept(self) -> dict[str, Any]:
        if self._anew:
            return {}
        try:
            content = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _keep(self, **values: Any) -> None:
        whole = json.dumps({**self._kept(), **values}).encode()
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(whole)
        new.replace(self._file)
        self._anew = False

    async def get_tokens(self) -> OAuthToken | None:
        return OAuthToken.model_validate(kept) if (kept := self._kept().get("tokens")) else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        about = self.context.oauth_metadata
        until = None if tokens.expires_in is None else time.time() + tokens.expires_in - _EARLY_SECONDS
        more = {} if about is None else {"metadata": about.model_dump(mode="json", exclude_none=True)}
        self._keep(tokens=tokens.model_dump(mode="json", exclude_none=True), expires_at=until, **more)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return OAuthClientInformationFull.model_validate(kept) if (kept := self._kept().get("client")) else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._keep(client=client_info.model_dump(mode="json", exclude_none=True))


class _Callback:
    """Where the browser comes back to."""

    def __init__(self, address: str, show: Callable[[str], None]) -> None:
        self.address, self.show = address, show
        self.answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    def take(self, target: str) -> None:
        given = {key: values[0] for key, values in parse_qs(urlsplit(target).query).items()}
        if self.answer.done():
            return
        if "code" in given:
            result = AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))
            self.answer.set_result(result)
        elif "error" in given:
            self.answer.set_exception(ConfigurationError(f"the sign-in was refused: {given['error'][:100]}"))


@asynccontextmanager
async def signing_in(url: str, file: Path, show: Callable[[str], None]) -> AsyncIterator[BrowserAuth]:
    """Sign in anew: ``show`` gets the address that a person opens, and the browser comes back to the loopback."""
    callback: _Callback | None = None

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await asyncio.wait_for(reader.readline(), 10)).decode("latin-1").split(" ")
            if callback is not None and len(line) > 1 and line[1].startswith("/callback"):
                callback.take(line[1])
            writer.write(_PAGE)
            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=16_384)
    async with server:
        callback = _Callback(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback", show)
        yield BrowserAuth(url, file, callback=callback)
