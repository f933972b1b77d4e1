"""An MCP server over HTTP that wants an access token, and the authorization server that gives it, on one port."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

sys.path.insert(0, str(Path(__file__).parent / "hostile"))
from web import Handler, serve, text  # type: ignore[attr-defined]  # lies beside the hostile ones

CLIENT, SECRET, TOKEN = "we", "s3cret-of-ours", "token-for-us"


class Signing(Handler):  # type: ignore[misc]
    """Gives a token for the right secret, and answers whoever has it."""

    def base(self) -> str:
        return f"http://{self.headers['host']}"

    def do_GET(self) -> None:  # noqa: N802
        base = self.base()
        if self.path.startswith("/.well-known/oauth-protected-resource"):
            self.json({"resource": f"{base}/mcp", "authorization_servers": [base], "scopes_supported": ["tools"]})
        elif self.path.startswith("/.well-known/oauth-authorization-server"):
            self.json(
                {
                    "issuer": base,
                    "authorization_endpoint": f"{base}/authorize",
                    "token_endpoint": f"{base}/token",
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["client_credentials"],
                    "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
                }
            )
        else:
            self.reply(b"", status=405)

    def do_POST(self) -> None:  # noqa: N802
        if self.path == "/token":
            asked = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
            given = (asked.get("client_id", [""])[0], asked.get("client_secret", [""])[0])
            if basic := self.headers.get("authorization"):
                name, _, word = base64.b64decode(basic.removeprefix("Basic ")).decode().partition(":")
                given = (name, word)
            if given == (CLIENT, SECRET) and asked["grant_type"] == ["client_credentials"]:
                self.json({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})
            else:
                self.json({"error": "invalid_client"}, status=401)
        elif self.headers.get("authorization") != f"Bearer {TOKEN}":
            self.rfile.read(int(self.headers["content-length"]))
            self.unknown()
        else:
            super().do_POST()

    def unknown(self) -> None:
        where = f"{self.base()}/.well-known/oauth-protected-resource/mcp"
        self.reply(b"{}", {"www-authenticate": f'Bearer resource_metadata="{where}"'}, status=401)

    def json(self, value: Any, status: int = 200) -> None:
        self.reply(json.dumps(value).encode(), status=status)


calls = 0


def called(handler: Signing, message: dict[str, Any]) -> None:
    global calls
    calls += 1
    if calls == 1 and "forgetful" in sys.argv:
        handler.unknown()  # after it has done what was asked
    else:
        handler.result(message, text(f"signed in, call {calls}"))


if __name__ == "__main__":
    serve(called, handler=Signing)
