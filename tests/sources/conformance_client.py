"""The client that the MCP conformance suite runs: it opens the server it is given, lists its tools and calls them.

``python -m scripts.mcp_conformance`` has the suite run it. Arguments are made up from the tools' schemas, unless the
suite says which to use.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider, PrivateKeyJWTOAuthProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata

from journeyman import Agent, Approve, Policy, ToolLibrary, ToolSpecification, run
from journeyman.sources import McpServer
from journeyman.testing import ScriptedModel, call, say

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
REDIRECT = "http://localhost:3030/callback"
CIMD = "https://conformance-test.local/client-metadata.json"


class Memory:
    """Tokens as long as the program runs."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


class Browser:
    """Follows the authorization's address as a person's browser would, and reads the code off the way back."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    async def open(self, url: str) -> None:
        async with httpx2.AsyncClient() as client:
            answer = await client.get(url, follow_redirects=False)
        self._found = parse_qs(urlsplit(answer.headers["location"]).query)

    async def code(self) -> AuthorizationCodeResult:
        found = {key: values[0] for key, values in self._found.items()}
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))


def auth(url: str) -> Any:
    if not SCENARIO.startswith("auth/"):
        return None
    if SCENARIO == "auth/client-credentials-basic":
        given = {"client_id": CONTEXT["client_id"], "client_secret": CONTEXT["client_secret"]}
        return ClientCredentialsOAuthProvider(server_url=url, storage=Memory(), **given)
    if SCENARIO == "auth/client-credentials-jwt":
        from mcp.client.auth.extensions.client_credentials import SignedJWTParameters

        signed = SignedJWTParameters(
            issuer=CONTEXT["client_id"],
            subject=CONTEXT["client_id"],
            signing_algorithm=CONTEXT.get("signing_algorithm", "ES256"),
            signing_key=CONTEXT["private_key_pem"],
        )
        return PrivateKeyJWTOAuthProvider(
            server_url=url,
            storage=Memory(),
            client_id=CONTEXT["client_id"],
            assertion_provider=signed.create_assertion_provider(),
        )
    memory, browser = Memory(), Browser()
    if SCENARIO == "auth/pre-registration":
        memory.client = OAuthClientInformationFull(
            client_id=CONTEXT["client_id"],
            client_secret=CONTEXT["client_secret"],
            redirect_uris=[REDIRECT],
            token_endpoint_auth_method="client_secret_basic",
        )
    metadata = OAuthClientMetadata(
        client_name="journeyman",
        redirect_uris=[REDIRECT],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return OAuthClientProvider(
        server_url=url,
        client_metadata=metadata,
        storage=memory,
        redirect_handler=browser.open,
        callback_handler=browser.code,
        client_metadata_url=CIMD,
    )


def made_up(item: ToolSpecification, library: ToolLibrary) -> dict[str, Any]:
    """Arguments that fit the commonest schemas."""
    schema = item.parameters
    if (focal := library.lookup("suite.json_schema_2020_12_tool")) is not None and "schema" in schema.get(
        "properties", {}
    ):
        return {"schema": focal.specification.parameters}
    values = {"string": "test", "integer": 5, "number": 5, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties", {})
    return {name: values.get(properties.get(name, {}).get("type"), "test") for name in schema.get("required", ())}


class Person:
    """Agrees to everything, and enters what a form suggests."""

    def __call__(self, approval: Any) -> Approve:
        return Approve()

    async def ask(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        fields = {key: each["params"]["requestedSchema"]["properties"] for key, each in requests.items()}
        return {
            key: {"action": "accept", "content": {name: _entered(field) for name, field in each.items()}}
            for key, each in fields.items()
        }

    def log(self, level: str, data: Any, logger: str | None) -> None: ...


def _entered(field: Mapping[str, Any]) -> Any:
    return field.get("default", {"string": "test", "boolean": True}.get(field.get("type", ""), 5))


async def main() -> None:
    url = sys.argv[-1]
    source = McpServer(url=url, name="suite", auth=auth(url), start_seconds=25)
    async with ToolLibrary(sources=[source]) as library:
        asked = [(item["name"], item.get("arguments", {})) for item in CONTEXT.get("toolCalls", ())]
        if not asked:
            own = (".list_resources", ".read_resource", ".list_prompts", ".get_prompt")
            tools = [item.specification for item in library if not item.name.endswith(own)]
            asked = [(item.name.removeprefix("suite."), made_up(item, library)) for item in tools]
        agent = Agent(name="conformance", instruction="Call the tools.", all_tools=True)
        model = ScriptedModel([*(call(f"suite.{name}", **arguments) for name, arguments in asked), say("done")])
        response = await run(
            agent,
            "Call the tools.",
            library=library,
            model=model,
            approver=Person(),
            policy=Policy(breaker=None),
        )
        for record in response.tool_calls:
            print(record.tool_name, record.status, record.error_message or "", file=sys.stderr)


asyncio.run(main())
