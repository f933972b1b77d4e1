"""Every text of the configuration file is one that the trust gate asks about, or is known to need no question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from journeyman.app.trust import names_in
from journeyman.settings.document import Document
from journeyman.settings.reading import Loaded, json_schema
from journeyman.settings.schema import Settings

Key = tuple[str, ...]

_SERVER = '"url": "https://a.example"'
_CLIENT = f'{_SERVER}, "oauth": {{"issuer": "https://a.example"'
_API = '"document": "api.json", "base_url": "https://a.example"'
_MODEL = '"name": "m", "base_url": "https://a.example"'
_TOKENS = '"audience": "https://a.example"'

ASKED = {
    "store": '"store": "?"',
    "model": '"model": "?"',
    "model.name": '"model": {"name": "?"}',
    "model.base_url": '"model": {"name": "m", "base_url": "?"}',
    "model.headers.NAME": f'"model": {{{_MODEL}, "headers": {{"a": "?"}}}}',
    "model.api_key": f'"model": {{{_MODEL}, "api_key": "?"}}',
    "agent": '"agent": "?"',
    "toolkits.NAME": '"toolkits": ["?"]',
    "tools.NAME.import": '"tools": {"a": {"import": "?"}}',
    "categories.NAME.schema": '"categories": {"a": {"schema": "?"}}',
    "mcp.NAME.command.NAME": '"mcp": {"a": {"command": ["run", "?"]}}',
    "mcp.NAME.cwd": '"mcp": {"a": {"command": ["run"], "cwd": "?"}}',
    "mcp.NAME.env.NAME": '"mcp": {"a": {"command": ["run"], "env": {"PATH": "?"}}}',
    "mcp.NAME.url": '"mcp": {"a": {"url": "?"}}',
    "mcp.NAME.headers.NAME": f'"mcp": {{"a": {{{_SERVER}, "headers": {{"a": "?"}}}}}}',
    "mcp.NAME.oauth.issuer": (
        f'"mcp": {{"a": {{{_SERVER}, "oauth": {{"issuer": "?", "client_id": "x", "client_secret": "${{X}}"}}}}}}'
    ),
    "mcp.NAME.oauth.client_id": f'"mcp": {{"a": {{{_CLIENT}, "client_id": "?", "client_secret": "${{X}}"}}}}}}',
    "mcp.NAME.oauth.client_secret": f'"mcp": {{"a": {{{_CLIENT}, "client_id": "x", "client_secret": "?"}}}}}}',
    "openapi.NAME.document": '"openapi": {"a": {"document": "?", "base_url": "https://a.example"}}',
    "openapi.NAME.base_url": '"openapi": {"a": {"document": "api.json", "base_url": "?"}}',
    "openapi.NAME.auth": f'"openapi": {{"a": {{{_API}, "auth": "?"}}}}',
    "openapi.NAME.auth.NAME": f'"openapi": {{"a": {{{_API}, "auth": {{"a": "?"}}}}}}',
    "openapi.NAME.headers.NAME": f'"openapi": {{"a": {{{_API}, "headers": {{"a": "?"}}}}}}',
    "runs.split": '"runs": {"split": "?"}',
    "runs.traces": '"runs": {"traces": "../?"}',
    "learning.folder": '"learning": {"folder": "?"}',
    "doors.http.tokens": '"doors": {"http": {"tokens": "?"}}',
    "doors.http.oauth.issuer": f'"doors": {{"http": {{"oauth": {{{_TOKENS}, "issuer": "https://?"}}}}}}',
    "doors.http.oauth.jwks": (
        f'"doors": {{"http": {{"oauth": {{{_TOKENS}, "issuer": "https://a.example", "jwks": "?"}}}}}}'
    ),
    "doors.http.origins.NAME": '"doors": {"http": {"origins": ["?"]}}',
    "doors.slack.app_token": '"doors": {"slack": {"app_token": "?"}}',
    "doors.slack.signing_secret": '"doors": {"slack": {"signing_secret": "?"}}',
    "doors.slack.people": '"doors": {"slack": {"people": "?"}}',
    "doors.slack.workspaces.NAME.bot_token": '"doors": {"slack": {"workspaces": {"T0A": {"bot_token": "?"}}}}',
}
"""Texts that name code, programs, addresses, secrets that are sent, or who may come in; each in a file of its own."""
WORDS = ("a.py:b", "a.py:c", "https://b.example", "https://c.example", "${B}", "${C}")
DURATIONS = {
    "cache",
    "for",
    "grace",
    "lease",
    "rest",
    "retention",
    "retry_backoff",
    "seconds",
    "start",
    "status",
    "wait",
}
TOLD = {"description", "examples", "rename", "select", "stop", "digest", "scope", "claim", "root_path"}
CHOSEN = {"categories", "category", "channels", "only", "tools", "reads", "sends"}
RULES = {
    *("calls", "calls_per_principal", "principals", "rate_limit", "rate_limits"),
    *("expire_after", "expire_in_process"),
    *("approvers", "permissions", "scopes", "users"),
}
LISTENING = {
    "audience": "ours",
    "forwarded_allow_ips": "says where a request comes from; who may come in is its token's business",
    "host": "other machines are listened for only with tokens or an authorization server, which are asked about",
    "tls_cert": "shown to clients",
    "tls_key": "sent nowhere",
}
HARMLESS = {*DURATIONS, *TOLD, *CHOSEN, *RULES, *LISTENING}
"""Names of fields that need no question, wherever they stand."""


def texts(schema: dict[str, Any], key: Key = ()) -> Iterator[Key]:
    """The keys under which a text of the user's own may stand; ``NAME`` is any."""
    if (reference := schema.get("$ref")) is not None:
        yield from texts(json_schema()["$defs"][reference.rpartition("/")[2]], key)
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from texts(inner, key)
    if schema.get("type") == "string" and "enum" not in schema and "const" not in schema:
        yield key
    for name, inner in schema.get("properties", {}).items():
        yield from texts(inner, (*key, name))
    for below in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(below), dict):
            yield from texts(inner, (*key, "NAME"))


ALL = sorted(set(texts(json_schema())))


@pytest.mark.parametrize("key", ALL, ids=".".join)
def test_every_text_of_the_file_is_asked_about_or_known_to_need_no_question(
    key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("JOURNEYMAN_MODEL", "JOURNEYMAN_STORE", "JOURNEYMAN_TOKENS", "OPENAI_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(variable, raising=False)
    written = ASKED.get(".".join(key))
    if written is None:
        field = [step for step in key if step != "NAME"][-1]
        assert field in HARMLESS, f"does {'.'.join(key)!r} name what runs, what is sent to, or who may come in?"
        return
    told = set()
    for word in WORDS:
        settings = Settings.model_validate(json.loads(f'{{"version": 1, {written.replace("?", word)}}}'))
        loaded = Loaded(path=Path("journeyman.yaml"), settings=settings, document=Document())
        told.add(frozenset(names_in(loaded)))
    assert len(told) > 1  # it is asked about again when another stands there


def test_what_is_asked_about_is_still_in_the_file() -> None:
    assert {".".join(key) for key in ALL} >= ASKED.keys()
