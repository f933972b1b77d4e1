"""Who is asking: bearer tokens and the principals they stand for, and the rule for a service without tokens."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from journeyman.core.errors import ConfigurationError
from journeyman.core.principals import Principal
from journeyman.doors.http.errors import Problem

HASHED = "sha256:"
SHORTEST = 16
SEE_ALL = "runs:read"
"""Who has it sees the runs, sessions and approvals of others."""
CHANGE_ALL = "runs:write"
"""Who has it sees them too, says things in the sessions of others, and cancels, resumes or deletes what is theirs."""
DECIDE = "approvals:decide"
"""Who has it decides about approvals and unknown outcomes."""
LOCAL = Principal("local", permissions={"*"})
"""Whoever uses a service that only this machine can reach."""

_bearer = HTTPBearer(auto_error=False, description="A token of the service's token file.")


class Tokens:
    """Principals by token. Holds no token, only fingerprints."""

    def __init__(self, principals: Mapping[str, Principal]) -> None:
        self._principals = {_fingerprint(token): principal for token, principal in principals.items()}

    def __bool__(self) -> bool:
        return bool(self._principals)

    def principal(self, token: str) -> Principal | None:
        """Whom a token stands for. Compared by fingerprint, so that timing tells nothing about a token."""
        return self._principals.get(HASHED + hashlib.sha256(token.encode()).hexdigest())


def _fingerprint(token: str) -> str:
    if token.startswith(HASHED):
        digits = token.removeprefix(HASHED).lower()
        if len(digits) != 64 or not set(digits) <= set("0123456789abcdef"):
            raise ConfigurationError("a token that begins with 'sha256:' goes on with the 64 hex digits of its hash")
        return HASHED + digits
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(f"a token has at least {SHORTEST} printable ASCII characters and no spaces")
    return HASHED + hashlib.sha256(token.encode()).hexdigest()


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
    """Refuse to serve others without asking who they are."""
    if not tokens and not is_loopback(host):
        raise ConfigurationError(
            f"a service on {host!r} can be reached from other machines and needs tokens: give a token file, "
            "or listen on 127.0.0.1"
        )


async def caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Principal:
    """Whoever asks, as the gate found out. The credentials are here for the OpenAPI document alone."""
    principal: Principal = request.state.principal
    return principal


Caller = Annotated[Principal, Depends(caller)]


def sees(principal: Principal, owner_id: str | None) -> bool:
    """Whether something of this owner may be seen."""
    return principal.id == owner_id or principal.may(SEE_ALL) or principal.may(CHANGE_ALL)


def must_own(principal: Principal, owner_id: str | None) -> None:
    """Refuse to change what belongs to somebody else."""
    if principal.id != owner_id:
        must_hold(principal, CHANGE_ALL)


def must_hold(principal: Principal, permission: str) -> None:
    if not principal.may(permission):
        raise Problem(
            403,
            "PERMISSION_MISSING",
            f"{principal.id!r} lacks the permission {permission!r}",
            recover_action="Ask whoever runs the service to give your token this permission",
        )
