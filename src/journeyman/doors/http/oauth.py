"""Access tokens that an authorization server has signed: whom one stands for, and what a client is told of us.

We are the resource server of OAuth 2.1. A token must be signed by a key of the issuer's, for us (its audience), and
not have expired; its scopes are permissions as the operator says. No other secret is needed, and none is shared.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import from_json

from journeyman.core.data import LOG_FIELDS, Latest
from journeyman.core.errors import ConfigurationError, ToolError
from journeyman.core.lazy import install_command
from journeyman.core.policy import Principal, check_permissions

logger = logging.getLogger("journeyman.http")

PREFIX = "oauth:"
"""Of the principals: nobody gets another's runs by a name that a token file has given away."""
METADATA = "/.well-known/oauth-protected-resource"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Those with a public key: with a shared secret whoever can check a token could make one."""
LEEWAY_SECONDS = 30
KEYS_SECONDS, AGAIN_SECONDS = 3_600.0, 30.0
"""How long keys are kept, and how soon they are asked for again because a token names another one."""
MOST_BYTES, MOST_TOKEN, MOST_SEEN = 500_000, 16_000, 10_000
_DISCOVERY = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


@dataclass(kw_only=True, eq=False)
class AccessTokens:
    """Checks tokens of one issuer."""

    issuer: str
    audience: str
    jwks: str | None = None
    scopes: Mapping[str, Collection[str]] = field(default_factory=dict)
    permissions: Collection[str] = ()
    claim: str = "sub"

    def __post_init__(self) -> None:
        try:
            import jwt
        except ImportError as error:
            raise ConfigurationError(f"OAuth needs more packages: {install_command('serve')}") from error
        self._jwt = jwt
        self._scopes = {scope: check_permissions(held) for scope, held in self.scopes.items()}
        self._always = check_permissions(self.permissions)
        self._keys: dict[str | None, Any] = {}
        self._asked = float("-inf")
        self._asking = asyncio.Lock()
        self._seen: Latest[str, Principal] = Latest(MOST_SEEN)

    @property
    def metadata(self) -> dict[str, Any]:
        """What a client is told that has no token (RFC 9728)."""
        return {
            "resource": self.audience,
            "authorization_servers": [self.issuer],
            "scopes_supported": sorted(self._scopes),
            "bearer_methods_supported": ["header"],
        }

    @property
    def metadata_url(self) -> str:
        parts = urlsplit(self.audience)
        return f"{parts.scheme}://{parts.netloc}{METADATA}{parts.path.rstrip('/')}"

    @property
    def account(self) -> list[Any]:
        """What decides who may do what, for the audit."""
        scopes = {scope: sorted(held) for scope, held in sorted(self._scopes.items())}
        return [self.issuer, self.audience, self.jwks, self.claim, scopes, sorted(self._always)]

    async def principal(self, token: str) -> Principal | None:
        """Whom a token stands for; None where it is not one of the issuer's for us, or no longer."""
        if token.count(".") != 2 or len(token) > MOST_TOKEN:
            return None
        try:
            header = self._jwt.get_unverified_header(token)
            key = await self._key(header.get("kid"))
            if key is None:
                return None
            claims = self._jwt.decode(
                token,
                key.key,
                algorithms=list(ALGORITHMS),
                audience=self.audience,
                issuer=self.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", self.claim]},
            )
        except (self._jwt.PyJWTError, ValueError, TypeError):
            return None
        who = claims.get(self.claim)
        if not isinstance(who, str) or not who or len(who) > 200:
            return None
        held = claims.get("scope", claims.get("scp", ()))
        given = held.split() if isinstance(held, str) else [scope for scope in held if isinstance(scope, str)]
        permissions = self._always.union(*(self._scopes.get(scope, frozenset()) for scope in given))
        found = Principal(PREFIX + who, permissions=permissions)
        self._seen[found.id] = found
        return found

    def now(self, principal: Principal) -> Principal | None:
        """Who a principal is by now: what their last token said; what a run was begun with, where none came since."""
        return self._seen.get(principal.id, principal) if principal.id.startswith(PREFIX) else None

    # --- keys

    async def _key(self, kid: Any) -> Any:
        """The key of this name; asked for again where it is not known, but not at every wrong token."""
        async with self._asking:
            age = time.monotonic() - self._asked
            if age > KEYS_SECONDS or (kid not in self._keys and age > AGAIN_SECONDS):
                self._asked = time.monotonic()
                try:
                    self._keys = self._read(await self._document(await self._address()))
                except (ToolError, ValueError, OSError, self._jwt.PyJWTError) as error:
                    # Those that are known still hold; without any nobody comes in.
                    fields = {"issuer": self.issuer, "error": type(error).__name__}
                    logger.warning("the keys of an authorization server cannot be read", extra={LOG_FIELDS: fields})
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    def _read(self, document: Any) -> dict[str | None, Any]:
        keys = self._jwt.PyJWKSet.from_dict(document).keys
        return {key.key_id: key for key in keys if key.public_key_use in (None, "sig")}

    async def _address(self) -> str:
        if self.jwks is not None:
            return self.jwks
        parts = urlsplit(self.issuer)
        base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        for address in (f"{base}{_DISCOVERY[0]}{path}", f"{base}{path}{_DISCOVERY[1]}"):
            found = await self._document(address, missing_ok=True)
            if isinstance(found, dict) and found.get("issuer") == self.issuer and "jwks_uri" in found:
                return str(found["jwks_uri"])
        raise ValueError("the issuer does not say where its keys are")

    async def _document(self, address: str, *, missing_ok: bool = False) -> Any:
        if "://" not in address:
            return from_json(await asyncio.to_thread(Path(address).read_bytes))
        from journeyman.sensitive.fetching import fetch

        def failed(error: Exception) -> ToolError:
            return ToolError("UNREACHABLE", type(error).__name__)

        found = await fetch(address, {}, private=True, most=MOST_BYTES, failed=failed)
        if found.status != 200 or not found.complete:
            if missing_ok:
                return None
            raise ValueError(f"status {found.status}")
        return found.json()
