"""Who is asking: bearer tokens and the principals they stand for, and the rule for a service without tokens.

Of tokens that an authorization server has signed we are the resource server of OAuth 2.1: one must be signed by a key
of the issuer's, for us (its audience), and not have expired; its scopes are permissions as the operator says. No other
secret is needed, and none is shared.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import Depends
from fastapi.security import HTTPBearer
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from journeyman.app.desk import LOCAL
from journeyman.core.data import LOG_FIELDS, Latest, canonical_json, digest
from journeyman.core.errors import ConfigurationError, ToolError
from journeyman.core.lazy import install_command
from journeyman.core.policy import Principal, check_permissions

logger = logging.getLogger("journeyman.http")

HASHED = "sha256:"
SHORTEST = 16
MOST_SESSIONS = 1_000

AUTHENTICATED = [Depends(HTTPBearer(auto_error=False, description="A token of the service's token file."))]
"""For the OpenAPI document alone: the middleware has checked the token before a route is called."""


class Tokens:
    """Principals by token. Holds no token, only fingerprints."""

    def __init__(
        self, principals: Mapping[str, Principal], *, local: bool = False, oauth: AccessTokens | None = None
    ) -> None:
        self._principals = {_fingerprint(token): principal for token, principal in principals.items()}
        self._codes: dict[str, Principal] = {}
        self._sessions: Latest[str, Principal] = Latest(MOST_SESSIONS)
        self.oauth = oauth
        """Who else is known: whoever has a token of an authorization server's."""
        self.local = local
        """Whether they are for this machine alone: then the service answers under the names of the loopback only."""

    @classmethod
    def for_this_machine(cls, token: str) -> Tokens:
        """One token for whoever sits at this machine. Tools run there as well, and do not have it."""
        return cls({token: LOCAL}, local=True)

    def code_for(self, token: str) -> str:
        """A code that signs a browser in once, as whom the token stands for: a link may hold it, and be kept."""
        principal = self.principal(token)
        if principal is None:
            raise ConfigurationError("only a known token can be given a code")
        code = secrets.token_urlsafe(32)
        self._codes[_hash(code)] = principal
        return code

    def exchange(self, code: str) -> str | None:
        """The session that a code opens; None where nobody has made it, or it was used."""
        principal = self._codes.pop(_hash(code), None)
        if principal is None:
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[_hash(session)] = principal
        return session

    def signed_in(self, session: str) -> Principal | None:
        """Whose session it is, where they may still use the service."""
        principal = self._sessions.get(_hash(session))
        return None if principal is None else self.now(principal)

    def __bool__(self) -> bool:
        return bool(self._principals) or self.oauth is not None

    @property
    def account(self) -> dict[str, Any]:
        """Who may do what, for the audit, and a digest that changes with every token; nothing tells a token."""
        known = sorted((mark, who.model_dump_json()) for mark, who in self._principals.items())
        if self.oauth is not None:
            known.append(("oauth", canonical_json(self.oauth.account)))
        permissions: dict[str, set[str]] = {}
        for who in self._principals.values():
            permissions.setdefault(who.id, set()).update(who.permissions)
        return {
            "digest": digest(*(part for pair in known for part in pair)),
            "principals": {name: sorted(held) for name, held in sorted(permissions.items())},
        }

    def principal(self, token: str) -> Principal | None:
        """Whom a token stands for. Compared by fingerprint, so that timing tells nothing about a token."""
        return self._principals.get(_hash(token))

    async def bearer(self, token: str) -> Principal | None:
        """Whom a token stands for, be it one of ours or an authorization server's."""
        known = self.principal(token)
        return known if known is not None or self.oauth is None else await self.oauth.principal(token)

    def now(self, principal: Principal) -> Principal | None:
        """Who a principal is by now: with the permissions of all their tokens; None where they have none any more."""
        theirs = [each for each in self._principals.values() if each.id == principal.id]
        if not theirs:
            return None if self.oauth is None else self.oauth.now(principal)
        return Principal(principal.id, permissions=frozenset().union(*(each.permissions for each in theirs)))


def _hash(secret: str) -> str:
    return HASHED + hashlib.sha256(secret.encode()).hexdigest()


def _fingerprint(token: str) -> str:
    if token.startswith(HASHED):
        digits = token.removeprefix(HASHED).lower()
        if len(digits) != 64 or not set(digits) <= set("0123456789abcdef"):
            raise ConfigurationError("a token that begins with 'sha256:' goes on with the 64 hex digits of its hash")
        return HASHED + digits
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(f"a token has at least {SHORTEST} printable ASCII characters and no spaces")
    return _hash(token)


def read_tokens(path: Path) -> Tokens:
    """Tokens from a JSON file: ``{"TOKEN or sha256:HEX": {"id": "ada", "permissions": ["approvals:decide"]}}``."""
    try:
        listed: Any = from_json(path.read_bytes())
        principals = TypeAdapter(dict[str, Principal]).validate_python(listed)
    except OSError as error:
        raise ConfigurationError(f"the token file {str(path)!r} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        problem = error.errors()[0]
        # The place begins with the token itself, which belongs in no message.
        where = ".".join(map(str, problem["loc"][1:])) or "its content"
        raise ConfigurationError(f"the token file {str(path)!r} is wrong at {where}: {problem['msg']}") from None
    except ValueError:
        raise ConfigurationError(f"the token file {str(path)!r} is not JSON") from None
    if not principals:
        raise ConfigurationError(f"the token file {str(path)!r} holds no tokens")
    return Tokens(principals)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a service that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_binding(host: str, tokens: Tokens | None) -> None:
    """Refuse to serve other machines without tokens."""
    if not tokens and not is_loopback(host):
        raise ConfigurationError(
            f"a service on {host!r} can be reached from other machines and needs tokens: give a token file, "
            "or listen on 127.0.0.1"
        )


# --- tokens that an authorization server has signed

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
        principal = Principal(PREFIX + who, permissions=permissions)
        self._seen[principal.id] = principal
        return principal

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
            metadata = await self._document(address, missing_ok=True)
            if isinstance(metadata, dict) and metadata.get("issuer") == self.issuer and "jwks_uri" in metadata:
                return str(metadata["jwks_uri"])
        raise ValueError("the issuer does not say where its keys are")

    async def _document(self, address: str, *, missing_ok: bool = False) -> Any:
        if "://" not in address:
            return from_json(await asyncio.to_thread(Path(address).read_bytes))
        from journeyman.sensitive.fetching import fetch

        def failed(error: Exception) -> ToolError:
            return ToolError("UNREACHABLE", type(error).__name__)

        page = await fetch(address, {}, private=True, most=MOST_BYTES, failed=failed)
        if page.status != 200 or not page.complete:
            if missing_ok:
                return None
            raise ValueError(f"status {page.status}")
        return page.json()
