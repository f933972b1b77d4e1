"""Who is asking: bearer tokens and the principals they stand for, and the rule for a service without tokens."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import Depends
from fastapi.security import HTTPBearer
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from journeyman.app.desk import LOCAL
from journeyman.core.data import Latest, canonical_json, digest
from journeyman.core.errors import ConfigurationError
from journeyman.core.policy import Principal
from journeyman.doors.http.oauth import AccessTokens

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
        found = self.principal(token)
        return found if found is not None or self.oauth is None else await self.oauth.principal(token)

    def now(self, principal: Principal) -> Principal | None:
        """Who a principal is by now: with the permissions of all their tokens; None where they have none any more."""
        theirs = [found for found in self._principals.values() if found.id == principal.id]
        if not theirs:
            return None if self.oauth is None else self.oauth.now(principal)
        return Principal(principal.id, permissions=frozenset().union(*(found.permissions for found in theirs)))


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
        found: Any = from_json(path.read_bytes())
        principals = TypeAdapter(dict[str, Principal]).validate_python(found)
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
