"""Tokens that an authorization server has signed: who they are, what they may, and which are refused."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from journeyman import Principal
from journeyman.doors.http import AccessTokens, Tokens
from tests.doors.http.authorization import OTHER_KEY, Authorization, authorizing
from tests.doors.http.serving import served

HERE = "https://desk.example/mcp"
SCOPES = {"decide": ["approvals:decide"], "write": ["runs:write"]}


def known(server: Authorization, **more: Any) -> Tokens:
    tokens = {"token-of-eve-0123456789": Principal("eve", permissions={"runs:write"})}
    return Tokens(tokens, oauth=AccessTokens(issuer=server.issuer, audience=HERE, scopes=SCOPES, **more))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_token_of_the_issuers_says_who_it_is_and_its_scopes_what_they_may(tmp_path: Path) -> None:
    async with (
        authorizing() as server,
        served(tmp_path, tokens=known(server, permissions=["memory:read"])) as desk,
        desk.client() as client,
    ):
        one = await client.get("/api/v1/me", headers=bearer(server.token(HERE, scope="decide unknown")))
        assert (one.status_code, one.json()["id"]) == (200, "oauth:ada")
        assert sorted(one.json()["permissions"]) == ["approvals:decide", "memory:read"]
        several = await client.get(
            "/api/v1/me", headers=bearer(server.token(["https://x.example", HERE], scp=["write"]))
        )
        assert sorted(several.json()["permissions"]) == ["memory:read", "runs:write"]
        static = await client.get("/api/v1/me", headers=bearer("token-of-eve-0123456789"))
        assert static.json()["id"] == "eve"
        assert server.asked.count("/keys") == 1, "keys are kept"


async def test_other_tokens_are_refused_and_say_where_to_get_one(tmp_path: Path) -> None:
    async with authorizing() as server, served(tmp_path, tokens=known(server)) as desk, desk.client() as client:
        assert (await client.get("/api/v1/me", headers=bearer(server.token(HERE)))).status_code == 200
        unsigned = server.token(HERE, key="", algorithm="none")
        shared = server.token(HERE, key="a-shared-secret-that-is-long-enough-0123456789", algorithm="HS256")
        wrong = {
            "another audience": server.token("https://other.example"),
            "another issuer": server.token(HERE, iss="https://evil.example"),
            "expired": server.token(HERE, exp=int(time.time()) - 3_600),
            "without an end": server.token(HERE, exp=None),
            "not yet": server.token(HERE, nbf=int(time.time()) + 3_600),
            "nobody": server.token(HERE, sub=None),
            "another key": server.token(HERE, key=OTHER_KEY),
            "an unknown key": server.token(HERE, kid="k2"),
            "unsigned": unsigned,
            "a shared secret": shared,
            "no token": "a.b.c",
            "cut off": server.token(HERE)[:-5],
            "too long": server.token(HERE, more="x" * 20_000),
        }
        for why, token in wrong.items():
            refused = await client.get("/api/v1/me", headers=bearer(token))
            assert refused.status_code == 401, why
            assert refused.headers["www-authenticate"] == (
                'Bearer error="invalid_token", '
                'resource_metadata="https://desk.example/.well-known/oauth-protected-resource/mcp"'
            )
        bare = await client.get("/api/v1/me")
        assert bare.headers["www-authenticate"].startswith("Bearer resource_metadata=")
        for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
            told = await client.get(path)
            assert told.json() == {
                "resource": HERE,
                "authorization_servers": [server.issuer],
                "scopes_supported": ["decide", "write"],
                "bearer_methods_supported": ["header"],
            }
        assert server.asked.count("/keys") == 1, "wrong tokens do not make us ask again and again"


async def test_without_an_authorization_server_nothing_is_told_of_one(tmp_path: Path) -> None:
    tokens = Tokens({"token-of-eve-0123456789": Principal("eve")})
    async with served(tmp_path, tokens=tokens) as desk, desk.client() as client:
        assert (await client.get("/.well-known/oauth-protected-resource")).status_code == 404
        assert (await client.get("/api/v1/me")).headers["www-authenticate"] == "Bearer"


async def test_an_issuer_that_cannot_be_asked_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    tokens = AccessTokens(issuer="http://127.0.0.1:1", audience=HERE)
    server = Authorization()
    server.issuer = "http://127.0.0.1:1"
    assert await tokens.principal(server.token(HERE)) is None
    assert "cannot be read" in caplog.text


async def test_keys_may_be_a_file_and_runs_keep_what_their_token_said(tmp_path: Path) -> None:
    import jwt

    from tests.doors.http.authorization import KEY

    file = tmp_path / "keys.json"
    file.write_text(f'{{"keys": [{jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key())}]}}')
    oauth = AccessTokens(issuer="https://id.example", audience=HERE, jwks=str(file), scopes=SCOPES, claim="email")
    server = Authorization()
    server.issuer = "https://id.example"
    tokens = Tokens({}, oauth=oauth)
    assert await tokens.bearer(server.token(HERE)) is None, "it does not say who"
    token = jwt.encode(
        {"iss": server.issuer, "aud": HERE, "email": "ada@a.example", "exp": time.time() + 60, "scope": "write"},
        KEY,
        algorithm="RS512",
    )
    found = await tokens.bearer(token)
    assert found == Principal("oauth:ada@a.example", permissions={"runs:write"})
    begun = Principal("oauth:bob", permissions={"runs:write"})
    assert tokens.now(begun) == begun
    assert tokens.now(Principal("oauth:ada@a.example")) == found
    assert tokens.now(Principal("gone")) is None
