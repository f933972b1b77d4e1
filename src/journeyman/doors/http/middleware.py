"""What every request passes before a route sees it: a request id, its origin, its token, its size, its rate.

Plain ASGI and not a framework's middleware, so that a stream passes untouched.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import re
import time
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from journeyman.app.desk import LOCAL
from journeyman.core.content import REQUEST_MEDIA_BYTES
from journeyman.core.data import LOG_FIELDS, Latest, new_id
from journeyman.core.errors import ConfigurationError
from journeyman.core.policy import Principal, RateLimit, Taken
from journeyman.doors.http.auth import METADATA, Tokens, is_loopback
from journeyman.doors.http.connections import ConnectionLimits
from journeyman.doors.http.errors import METHODS, Problem, error_response, location_of, problem_of
from journeyman.doors.http.health import Metrics

logger = logging.getLogger("journeyman.http")

REQUEST_ID = "X-Request-ID"
QUERY = "journeyman.query"
"""Where in the scope the query of an address is kept until it gets here."""
MOST_CLIENTS = 10_000
MEDIA_BODY = REQUEST_MEDIA_BYTES * 4 // 3
"""What images and files may add to a request, in base64."""
_TAKES_MEDIA = frozenset({"/api/v1/chat", "/v1/chat/completions"})
_GOOD_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_GUARDED = ("/api/", "/v1/", "/metrics", "/mcp")
_READS = ("GET", "HEAD", "OPTIONS")
_NOWHERE = SplitResult("", "", "", "", "")
_ROOT = re.compile(r"(/[A-Za-z0-9_.~-]+)+", re.ASCII)
_OWN_PATHS = ("/api", "/v1", "/mcp", "/metrics", "/healthz", "/readyz", "/assets", "/openapi.json")
_CORS = {
    "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE, PUT",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Accept, Idempotency-Key, Last-Event-ID, Prefer, "
    "X-Request-ID",
    "Access-Control-Max-Age": "600",
}
_EXPOSED = "X-Request-ID, X-Run-ID, X-Session-ID, Location, Content-Location, Retry-After"
_ABSOLUTE = ("location", "content-location")
"""Headers that name our own paths, and so have to name the root path as well."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How the service is served."""

    body_bytes: int = 1_000_000
    requests_per_minute: int = 1_200
    """Of one principal, or of one address that shows no valid token. As many may come at once."""
    grace_seconds: int = 5
    """How long open streams may go on when the server ends."""
    forwarded_allow_ips: tuple[str, ...] = ()
    """Proxies, by address or network, whose X-Forwarded-For and X-Forwarded-Proto are believed. Others could write
    any address there, and be counted as somebody else."""
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    origins: frozenset[str] = frozenset()
    """Pages of other origins that may use the service, as browsers write them: ``https://app.example.com``."""
    root_path: str = ""
    """Where a proxy shows the service: ``/journeyman``. The proxy may pass it on or leave it out."""

    def __post_init__(self) -> None:
        for proxy in self.forwarded_allow_ips:
            try:
                ipaddress.ip_network(proxy)
            except ValueError:
                raise ConfigurationError(
                    f"a trusted proxy is an address such as 10.0.0.7 or a network such as 10.0.0.0/24, got {proxy!r}"
                ) from None
        root = self.root_path
        if root and (not _ROOT.fullmatch(root) or root.startswith(_OWN_PATHS)):
            raise ConfigurationError(
                "a root path looks like '/journeyman', without a slash at its end, and is none of the service's own "
                f"paths; {root!r} is not one"
            )
        for origin in self.origins:
            parts = _split(origin)
            if parts.scheme not in ("http", "https") or f"{parts.scheme}://{parts.netloc}" != origin:
                raise ConfigurationError(f"an origin is written as https://app.example.com, not as {origin!r}")


class RequestMiddleware:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens | None, options: ServeOptions, metrics: Metrics) -> None:
        self._app = app
        self._tokens = tokens or None
        self._options = options
        self._metrics = metrics
        self._rate = RateLimit(calls=options.requests_per_minute, seconds=60)
        self._taken: Latest[str, Taken] = Latest(MOST_CLIENTS)
        """Requests by client; of too many clients those that were silent longest are forgotten."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["query_string"] = scope.pop(QUERY, scope["query_string"])
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID, "")
        request_id = given if _GOOD_ID.fullmatch(given) else new_id("req")
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        state["principal"] = LOCAL
        root = self._options.root_path
        path = state["path"] = self._within(scope, root)
        origin = headers.get("origin")
        shared = origin if origin in self._options.origins else None
        begun, status, answering = time.monotonic(), 500, False

        async def answer(message: Message) -> None:
            nonlocal status, answering
            if message["type"] == "http.response.start":
                status, answering = message["status"], True
                changed = MutableHeaders(scope=message)
                changed[REQUEST_ID] = request_id
                changed["X-Content-Type-Options"] = "nosniff"
                if shared is not None:
                    changed["Access-Control-Allow-Origin"] = shared
                    changed["Access-Control-Expose-Headers"] = _EXPOSED
                    changed.add_vary_header("Origin")
                for name in _ABSOLUTE if root else ():
                    if changed.get(name, "").startswith("/"):
                        changed[name] = root + changed[name]
                if (run_id := state.get("run_id")) is not None:
                    changed["X-Run-ID"] = run_id
                    if status >= 400:
                        # OpenAI's clients send a request that failed again by themselves, and its effects with it.
                        changed["X-Should-Retry"] = "false"
            await send(message)

        try:
            try:
                if not path:  # a page at this address would look for its parts one level too high
                    await Response(status_code=307, headers={"Location": "/"})(scope, receive, answer)
                    return
                if shared is not None and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                    await Response(status_code=204, headers=_CORS)(scope, receive, answer)
                    return
                if path == "/" and self._tokens is not None and b"code=" in scope["query_string"]:
                    await self._signed_in(scope, headers)(scope, receive, answer)
                    return
                if path.startswith(METADATA) and self._tokens is not None and self._tokens.oauth is not None:
                    metadata = JSONResponse(self._tokens.oauth.metadata, headers={"Access-Control-Allow-Origin": "*"})
                    await metadata(scope, receive, answer)
                    return
                if path.startswith(_GUARDED):
                    self._check_origin(headers)
                    state["principal"] = await self._admit(scope, headers)
                limit = self._options.body_bytes + (MEDIA_BODY if path in _TAKES_MEDIA else 0)
                body = self._limited_body(receive, limit, declared=headers.get("content-length", ""))
            except Problem as problem:
                accept = headers.get("accept", "")
                await error_response(path, request_id, problem, accept=accept)(scope, receive, answer)
                return
            await self._app(scope, body, answer)
        except Exception as error:
            # Only what no handler knows gets here. Its text may quote what somebody wrote, and is not logged.
            logger.error("request failed: %s", location_of(error), extra={LOG_FIELDS: {"request_id": request_id}})
            if not answering:
                accept = headers.get("accept", "")
                await error_response(path, request_id, problem_of(error), accept=accept)(scope, receive, answer)
        finally:
            self._note(scope, request_id, status, time.monotonic() - begun)

    @staticmethod
    def _within(scope: Scope, root: str) -> str:
        """The path behind the root path, which a proxy may have left in place or not; the scope has both."""
        path: str = scope["path"]
        if not root:
            return path
        if path != root and not path.startswith(f"{root}/"):
            path = root + path
        scope["path"], scope["root_path"] = path, root
        return path.removeprefix(root)

    def _check_origin(self, headers: Headers) -> None:
        """A page of another origin must neither read nor write, also where there is no token to steal."""
        host = headers.get("host", "")
        if (self._tokens is None or self._tokens.local) and not is_loopback(_split(f"//{host}").hostname or ""):
            # A name of the attacker's that resolves to this machine.
            raise Problem(403, "HOST_NOT_ALLOWED", f"this service answers on localhost only, not as {host!r}")
        origin = headers.get("origin")
        if origin is not None and origin not in self._options.origins and _split(origin).netloc != host:
            raise Problem(403, "ORIGIN_NOT_ALLOWED", f"pages of {origin!r} may not use this service")

    async def _admit(self, scope: Scope, headers: Headers) -> Principal:
        principal = await self._principal(scope, headers)
        self._count(_address(scope) if principal is None else f"principal {principal.id}")
        if principal is None:
            raise Problem(
                401,
                "UNAUTHENTICATED",
                "this service needs a token it knows",
                recover_action="Send the header 'Authorization: Bearer TOKEN', or open the link that was printed",
                headers={"WWW-Authenticate": self._challenge(headers)},
            )
        return principal

    def _challenge(self, headers: Headers) -> str:
        """What a client without a token that counts is told: where it can get one."""
        if self._tokens is None or self._tokens.oauth is None:
            return "Bearer"
        wrong = 'error="invalid_token", ' if "authorization" in headers else ""
        return f'Bearer {wrong}resource_metadata="{self._tokens.oauth.metadata_url}"'

    def _count(self, client: str) -> None:
        self._taken[client], wait = self._rate.take(self._taken.get(client, ()), time.monotonic())
        if wait > 0:
            raise Problem(
                429,
                "TOO_MANY_REQUESTS",
                f"more than {self._options.requests_per_minute} requests a minute",
                recover_action=f"Wait {math.ceil(wait)} s",
                headers={"Retry-After": str(math.ceil(wait))},
            )

    async def _principal(self, scope: Scope, headers: Headers) -> Principal | None:
        if self._tokens is None:
            return LOCAL
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and (principal := await self._tokens.bearer(token.strip())) is not None:
            return principal
        # A browser sends a cookie by itself, also where another page of this machine asks it to; that page's name is
        # then the origin, which has been compared. A write that does not say where it comes from is not taken.
        if scope["method"] not in _READS and headers.get("origin") is None:
            return None
        sent = cookie_parser(headers.get("cookie", "")).get(_cookie_name(scope), "")
        return self._tokens.signed_in(sent) if sent else None

    def _signed_in(self, scope: Scope, headers: Headers) -> Response:
        """To the page, with a session in a cookie for the code in its address, which works once."""
        assert self._tokens is not None
        code = parse_qs(scope["query_string"].decode("latin-1")).get("code", [""])[0]
        answer = Response(status_code=303, headers={"Location": "/", "Cache-Control": "no-store"})
        answer.headers["Referrer-Policy"] = "no-referrer"
        # A link on somebody else's page must not change who is signed in here.
        own = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        if own and (session := self._tokens.exchange(code)) is not None:
            secure = scope.get("scheme") == "https"
            answer.set_cookie(_cookie_name(scope), session, httponly=True, samesite="strict", secure=secure)
        else:
            self._count(_address(scope))
        return answer

    def _limited_body(self, receive: Receive, limit: int, *, declared: str) -> Receive:
        """The same body, refused by its declared size, at the first byte too many, or when it takes too long."""
        size, whole = 0, False
        seconds = self._options.limits.body_seconds
        deadline = asyncio.get_running_loop().time() + seconds

        def too_large() -> Problem:
            message = f"the body has more than {limit:,} bytes"
            return Problem(413, "BODY_TOO_LARGE", message, recover_action="Send less at a time")

        if declared.isdigit() and int(declared) > limit:
            raise too_large()

        async def counted() -> Message:
            nonlocal size, whole
            if whole:  # from here on it is only asked whether the client is still there
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise Problem(
                    408,
                    "BODY_TOO_SLOW",
                    f"the body did not come within {seconds:g} s",
                    recover_action="Send it again, whole",
                    headers={"Connection": "close"},
                ) from None
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if size > limit:
                    raise too_large()
            return message

        return counted

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        # The route's pattern and not the address: ids and searched words are content.
        route = getattr(scope.get("route"), "path", None) or "none"
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        self._metrics.request(method, route, status, seconds)
        fields = {
            "request_id": request_id,
            "method": scope["method"],
            "route": route,
            "status": status,
            "duration_ms": round(seconds * 1000, 1),
            "principal": scope["state"]["principal"].id,
        }
        logger.info("request", extra={LOG_FIELDS: fields})


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return f"address {client[0]}" if client else "address unknown"


def _cookie_name(scope: Scope) -> str:
    # Browsers keep one jar for all ports of a machine, on each of which another service may answer.
    server = scope.get("server")
    return f"journeyman_{server[1]}" if server else "journeyman"


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # of a bracket that is not closed, for example
        return _NOWHERE
