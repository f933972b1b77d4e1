"""What every request passes before a route sees it: a request id, its origin, its token, its size, its rate.

Plain ASGI and not a framework's middleware, so that a stream passes untouched.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections import OrderedDict
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from journeyman.app.desk import LOCAL
from journeyman.core.data import LOG_FIELDS, new_id
from journeyman.core.policy import RateLimit
from journeyman.core.principals import Principal
from journeyman.doors.http.auth import Tokens, is_loopback
from journeyman.doors.http.errors import METHODS, Problem, error_response, location_of, problem_of
from journeyman.doors.http.health import Metrics

logger = logging.getLogger("journeyman.http")

REQUEST_ID = "X-Request-ID"
MOST_CLIENTS = 10_000
_GOOD_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_GUARDED = ("/api/", "/v1/", "/metrics")
_NOWHERE = SplitResult("", "", "", "", "")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How the service is served."""

    body_bytes: int = 1_000_000
    requests_per_minute: int = 1_200
    """Of one principal, or of one address that shows no valid token. As many may come at once."""
    grace_seconds: int = 5
    """How long open streams may go on when the server ends."""


class RequestRates:
    """Token buckets by client; of too many clients those that were silent longest are forgotten."""

    def __init__(self, requests_per_minute: int) -> None:
        self._limit = RateLimit(calls=requests_per_minute, seconds=60)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, *, now: float) -> float:
        """Count one request: 0, or the seconds until another is allowed."""
        left, counted_at, wait = self._limit.take(*self._buckets.pop(client, (float(self._limit.calls), now)), now)
        self._buckets[client] = (left, counted_at)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return wait


class RequestMiddleware:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens | None, options: ServeOptions, metrics: Metrics) -> None:
        self._app = app
        self._tokens = tokens or None
        self._options = options
        self._metrics = metrics
        self._rate = RequestRates(options.requests_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID, "")
        request_id = given if _GOOD_ID.fullmatch(given) else new_id("req")
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        state["principal"] = LOCAL
        begun, status, answering = time.monotonic(), 500, False

        async def answer(message: Message) -> None:
            nonlocal status, answering
            if message["type"] == "http.response.start":
                status, answering = message["status"], True
                changed = MutableHeaders(scope=message)
                changed[REQUEST_ID] = request_id
                changed["X-Content-Type-Options"] = "nosniff"
                if (run_id := state.get("run_id")) is not None:
                    changed["X-Run-ID"] = run_id
                    if status >= 400:
                        # OpenAI's clients send a request that failed again by themselves, and its effects with it.
                        changed["X-Should-Retry"] = "false"
            await send(message)

        path: str = scope["path"]
        try:
            try:
                if path.startswith(_GUARDED):
                    self._check_origin(headers)
                    state["principal"] = self._admit(scope, headers)
                body = self._limited_body(receive, declared=headers.get("content-length", ""))
            except Problem as problem:
                await error_response(path, request_id, problem)(scope, receive, answer)
                return
            await self._app(scope, body, answer)
        except Exception as error:
            # Only what no handler knows gets here. Its text may quote what somebody wrote, and is not logged.
            logger.error("request failed: %s", location_of(error), extra={LOG_FIELDS: {"request_id": request_id}})
            if not answering:
                await error_response(path, request_id, problem_of(error))(scope, receive, answer)
        finally:
            self._note(scope, request_id, status, time.monotonic() - begun)

    def _check_origin(self, headers: Headers) -> None:
        """A page of another origin must neither read nor write, also where there is no token to steal."""
        host = headers.get("host", "")
        if self._tokens is None and not is_loopback(_split(f"//{host}").hostname or ""):
            # A name of the attacker's that resolves to this machine.
            raise Problem(403, "HOST_NOT_ALLOWED", f"this service answers on localhost only, not as {host!r}")
        origin = headers.get("origin")
        if origin is not None and _split(origin).netloc != host:
            raise Problem(403, "ORIGIN_NOT_ALLOWED", f"pages of {origin!r} may not use this service")

    def _admit(self, scope: Scope, headers: Headers) -> Principal:
        client = scope.get("client")
        address = f"address {client[0]}" if client else "address unknown"
        principal = self._principal(headers)
        wait = self._rate.take(address if principal is None else f"principal {principal.id}", now=time.monotonic())
        if wait > 0:
            raise Problem(
                429,
                "TOO_MANY_REQUESTS",
                f"more than {self._options.requests_per_minute} requests a minute",
                recover_action=f"Wait {math.ceil(wait)} s",
                headers={"Retry-After": str(math.ceil(wait))},
            )
        if principal is None:
            raise Problem(
                401,
                "UNAUTHENTICATED",
                "this service needs a token it knows",
                recover_action="Send the header 'Authorization: Bearer TOKEN'",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return principal

    def _principal(self, headers: Headers) -> Principal | None:
        if self._tokens is None:
            return LOCAL
        kind, _, token = headers.get("authorization", "").partition(" ")
        return self._tokens.principal(token.strip()) if kind.lower() == "bearer" else None

    def _limited_body(self, receive: Receive, *, declared: str) -> Receive:
        """The same body, refused by its declared size or at the first byte too many."""
        size, limit = 0, self._options.body_bytes
        too_large = Problem(
            413, "BODY_TOO_LARGE", f"the body has more than {limit:,} bytes", recover_action="Send less at a time"
        )
        if declared.isdigit() and int(declared) > limit:
            raise too_large

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                if size > limit:
                    raise too_large
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


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # of a bracket that is not closed, for example
        return _NOWHERE
