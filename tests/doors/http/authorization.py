"""An authorization server of the tests, on the loopback: metadata, keys, registration, PKCE, signed tokens."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.sources.openapi_apis import serving

KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


class Authorization:
    """Signs what it is asked to sign."""

    issuer = ""

    def __init__(self) -> None:
        self.lifetime = 3_600
        self.asked: list[str] = []
        """What it was asked for, in order."""
        self._codes: dict[str, dict[str, str]] = {}

    def token(
        self, audience: str | list[str], *, key: Any = KEY, algorithm: str = "RS256", kid: str = "k1", **claims: Any
    ) -> str:
        given = {"iss": self.issuer, "aud": audience, "sub": "ada", "exp": int(time.time()) + self.lifetime, **claims}
        body = {name: value for name, value in given.items() if value is not None}
        return jwt.encode(body, key, algorithm=algorithm, headers={"kid": kid})

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        match request.path:
            case "/.well-known/oauth-authorization-server":
                ends = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in PATHS.items()}
                about = {"response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
                about |= {"grant_types_supported": ["authorization_code", "refresh_token"]}
                return web.json_response({"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys", **ends, **about})
            case "/keys":
                key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
                return web.json_response({"keys": [{**key, "kid": "k1", "use": "sig"}]})
            case "/register":
                return web.json_response({**(await request.json()), "client_id": "we"}, status=201)
            case "/authorize":
                given = dict(request.query)
                self._codes["c0de"] = given
                to = f"{given['redirect_uri']}?code=c0de&state={given['state']}&iss={self.issuer}"
                return web.Response(status=302, headers={"Location": to})
            case "/token":
                return self._given(dict(await request.post()))
        return web.Response(status=404)

    def _given(self, form: dict[str, Any]) -> web.Response:
        self.asked.append(form["grant_type"])
        if form["grant_type"] == "authorization_code":
            asked = self._codes.pop(form["code"])
            proof = hashlib.sha256(form["code_verifier"].encode()).digest()
            if base64.urlsafe_b64encode(proof).decode().rstrip("=") != asked["code_challenge"]:
                return web.json_response({"error": "invalid_grant"}, status=400)
        elif form.get("refresh_token") != "again":
            return web.json_response({"error": "invalid_grant"}, status=400)
        token = self.token(form["resource"], scope="tools")
        more = {"expires_in": self.lifetime, "refresh_token": "again", "scope": "tools"}
        return web.json_response({"access_token": token, "token_type": "Bearer", **more})


PATHS = {"authorization": "authorize", "token": "token", "registration": "register"}


@asynccontextmanager
async def authorizing() -> AsyncIterator[Authorization]:
    made = Authorization()
    async with serving(made.answer) as address:
        made.issuer = address
        yield made
