"""``OpenApi``: an API as a source of tools. Nothing is read before it is opened, and nothing is called but the API."""

from __future__ import annotations

import asyncio
import os
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urljoin, urlsplit

from pydantic_core import from_json

from journeyman.core.calls import ToolContext
from journeyman.core.data import MCP_MESSAGE_BYTES, MCP_TOOLS, check_containers, digest, read_at_most, visible
from journeyman.core.errors import ConfigurationError, ErrorCategory, JourneymanError, OutcomeUnknownError, ToolError
from journeyman.core.policy import RiskLevel
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import word_lists
from journeyman.sensitive.addresses import check_address
from journeyman.sensitive.references import resolve
from journeyman.sensitive.tokens import bare_url
from journeyman.sources.openapi.document import DOCUMENT_BYTES, Document, Operation, bundled, read, server_of, snake
from journeyman.sources.openapi.request import Request, made_request
from journeyman.tools.sources import CONTEXT, ServedTools, UnusableTool
from journeyman.tools.tool import Tool

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS = 10.0
LONGEST_ERROR = 2_000
MOST_REDIRECTS = 5
_SHORTEST_SECRET = 6
_ADDRESS = re.compile(r"https?://[^/\s?#]+[^\s?#]*$")
_READS = ("GET", "HEAD", "OPTIONS")
_LINK = re.compile(r'<([^<>]{1,2000})>\s*;[^,<]{0,200}?\brel="?next\b', re.IGNORECASE)


@dataclass(kw_only=True, eq=False, repr=False)
class OpenApi(ServedTools):
    """The operations of an API, under its name: ``petstore.get_pet_by_id``.

    ``document`` is a file or an address, of OpenAPI 3.0 or 3.1. Calls go to ``base_url`` alone, unless given to the
    server that the document names first. ``auth`` is what the API's scheme wants (a key, a token, ``user:password``),
    or such a text for each scheme by its name; ``look_up`` says what a text stands for, unless given ``${NAME}`` in the
    environment. ``only`` names operations, as the document does or as tools.
    """

    document: str | Path = field(kw_only=False)
    name: str = None  # type: ignore[assignment]  # unless given, that of the file
    base_url: str | None = None
    """Where calls go; known at the latest when it is open."""
    auth: str | Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = None
    look_up: Callable[[str], str] | None = None
    kind, elsewhere, example = "OpenAPI document", "the API", "petstore"

    def __post_init__(self) -> None:
        self._document = str(self.document)
        if self.name is None:
            self.name = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(self._document).stem)[:32]
        self.category = self.category or self.name
        super().__post_init__()
        if self.base_url is not None and not _ADDRESS.match(self.base_url):
            why = "the base_url must begin with http:// or https:// and have no query"
            raise self._wrong(f"{why}, got {bare_url(self.base_url)!r}")
        self._given = self.base_url
        self._tools: tuple[Tool[..., Any] | UnusableTool, ...] = ()
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"<OpenApi {self.name!r} {bare_url(self._document)}>"

    async def open(self) -> None:
        """Read the document. Raises ConfigurationError, which says what is wrong with it."""
        await self.close()
        data = await self._read()
        root = await asyncio.to_thread(read, data, f"the OpenAPI document {bare_url(self._document)!r}")
        if not re.match(r"https?://", self._document):
            root = await asyncio.to_thread(bundled, root, Path(self._document))
        base, private = self._base(root)
        check_address(base, private=private)
        import aiohttp

        from journeyman.sensitive.fetching import guarded_connector

        look_up = self.look_up or partial(resolve, environ=os.environ, folder=Path())
        auth = {"": self.auth} if isinstance(self.auth, str) else self.auth
        secrets, headers = (
            {name: look_up(text) for name, text in (texts or {}).items()} for texts in (auth, self.headers)
        )
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(private=private),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        )
        api = _Api(self.name, base.rstrip("/"), Document(root), secrets, headers, self._session)
        self.base_url = base
        try:
            api.check_schemes()
            self._tools = await asyncio.to_thread(self._made, api)
        except BaseException:
            await self.close()
            raise

    async def list(self) -> Sequence[Tool[..., Any] | UnusableTool]:
        return self._tools

    async def watch(self) -> AsyncIterator[None]:
        """Ends at once: the document is read when the source is opened."""
        return
        yield

    async def close(self) -> None:
        session, self._session, self._tools = self._session, None, ()
        if session is not None:
            await session.close()

    # --- opening

    async def _read(self) -> bytes:
        if not re.match(r"https?://", self._document):
            try:
                return await asyncio.to_thread(Path(self._document).read_bytes)
            except OSError as error:
                why = f"the OpenAPI document {self._document!r} cannot be read: {error.strerror}"
                raise ConfigurationError(why) from None
        from journeyman.sensitive.fetching import fetch

        address = bare_url(self._document)
        check_address(self._document, private=True)

        def unreachable(error: Exception) -> ToolError:
            return ToolError("API_UNREACHABLE", f"it cannot be reached ({type(error).__name__})")

        try:
            answer = await fetch(self._document, {}, private=True, most=DOCUMENT_BYTES, failed=unreachable)
        except ToolError as error:
            raise ConfigurationError(f"the OpenAPI document {address!r} cannot be fetched: {error.message}") from None
        if answer.status != 200 or not answer.complete:
            why = f"status {answer.status}" if answer.complete else f"more than {DOCUMENT_BYTES:,} bytes"
            raise ConfigurationError(f"the OpenAPI document {address!r} cannot be fetched: {why}")
        return answer.body

    def _base(self, root: Mapping[str, Any]) -> tuple[str, bool]:
        """Where calls go, and whether somebody has named that host: a document alone leads to no private address."""
        if self._given is not None:
            return self._given, True
        base = urljoin(self._document if "://" in self._document else "", server_of(root))
        if not _ADDRESS.match(base):
            why = f"the OpenAPI document {self._document!r} names no server that can be called"
            raise ConfigurationError(f"{why} ({bare_url(base)!r}): give a base_url")
        return base, urlsplit(base).netloc == urlsplit(self._document).netloc

    # --- listing

    def _made(self, api: _Api) -> tuple[Tool[..., Any] | UnusableTool, ...]:
        made: list[Tool[..., Any] | UnusableTool] = []
        unmet, known = set(self.only or ()), []
        for item in api.document.operations(self.name):
            names = (item[0].partition(".")[2],) if isinstance(item, tuple) else (item.id, item.name)
            known.append(names[0])
            fitting = {only for only in self.only or () if any(fnmatchcase(name, only) for name in names)}
            unmet -= fitting
            if self.only is not None and not fitting:
                continue
            if len(made) >= MCP_TOOLS:
                raise ConfigurationError(f"the API {self.name!r} has more than {MCP_TOOLS:,} operations; use 'only'")
            made.append(UnusableTool(*item) if isinstance(item, tuple) else self._tool(api, item))
        for only in sorted(unmet):
            near = get_close_matches(only, known[:MCP_TOOLS], n=1) or known[:1]
            why = f"'only' names {only!r}, and no operation is called so; there is {', '.join(near) or 'none'}"
            made.append(UnusableTool(f"{self.name}.{only}", why))
        return tuple(made)

    def _tool(self, api: _Api, operation: Operation) -> Tool[..., Any] | UnusableTool:
        name = f"{self.name}.{operation.name}"
        if operation.servers and self._given is None:
            return UnusableTool(name, "is served elsewhere than the rest of the API: give a base_url")
        reads = _is_read(operation)
        about = {"server": digest(api.base), "operation": operation.id, "method": operation.method}
        try:
            specification = ToolSpecification(
                name=name,
                description=operation.description,
                parameters=operation.schema,
                risk=RiskLevel.IRREVERSIBLE if operation.method == "DELETE" else None,
                read_only=reads,
                idempotent=reads or operation.idempotency is not None,
                **self.declared,
                deprecated=operation.deprecated,
                metadata={"openapi": {**about, "path": operation.path}},
            )
        except JourneymanError as error:
            return UnusableTool(name, visible(str(error)[:500]))
        retries, call = int(specification.repeat_safe), _Call(api, operation)
        return self.made_tool(specification, call, operation.checked, cached=reads, retries=retries)


def _is_read(operation: Operation) -> bool:
    """By its method, unless its name begins with a change: some APIs do everything with GET."""
    first = snake(operation.id).partition("_")[0]
    changes = first in word_lists("journeyman.sources", "reads.txt")["changing"]
    return operation.method in _READS and (
        not changes or bool(re.search(r"[_.](get|list)", operation.id, re.IGNORECASE))
    )


# --- calling


@dataclass(frozen=True, slots=True, eq=False)
class _Api:
    """What all operations of an API share."""

    name: str
    base: str
    document: Document
    secrets: Mapping[str, str]
    """By scheme; under no name the one that stands for any of them."""
    headers: Mapping[str, str]
    session: aiohttp.ClientSession

    def check_schemes(self) -> None:
        """Whoever names a scheme that is not there would call without a secret. Raises ConfigurationError."""
        known = self.document.security_schemes()
        for name in self.secrets:
            if name and name not in known:
                there = f"it has {', '.join(known)}" if known else "it has none"
                raise ConfigurationError(f"the API {self.name!r}: its document has no scheme {name!r}; {there}")

    def authenticate(self, operation: Operation, request: Request) -> None:
        """Add what the first scheme wants for which there is a secret."""
        if not self.secrets:
            return
        single, schemes = self.secrets.get(""), self.document.security_schemes()
        for wanted in operation.security:
            if all(name in self.secrets for name in wanted) or (single is not None and len(wanted) == 1):
                for name in wanted:
                    self._add(self.document.solved(schemes.get(name)), self.secrets.get(name, single or ""), request)
                if wanted:
                    return
        if single is not None and not operation.security and "security" not in self.document.root:
            self._add({"type": "http", "scheme": "bearer"}, single, request)  # the document knows of no scheme

    def _add(self, scheme: Mapping[str, Any], secret: str, request: Request) -> None:
        kind, name = scheme.get("type"), str(scheme.get("name", ""))
        if kind == "apiKey" and scheme.get("in") == "query":
            request.query.append(f"{quote(name, safe='')}={quote(secret, safe='')}")
        elif kind == "apiKey" and scheme.get("in") == "cookie":
            request.cookies.append(f"{name}={secret}")
        elif kind == "apiKey":
            request.headers[name] = secret
        elif str(scheme.get("scheme", "")).lower() == "basic":
            pair = secret.removeprefix("Basic ")
            request.headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode() if ':' in pair else pair}"
        else:
            request.headers["Authorization"] = f"Bearer {secret.removeprefix('Bearer ')}"

    def masked(self, data: bytes) -> bytes:
        """What was answered without our secrets: some APIs repeat what they were sent."""
        for secret in (*self.secrets.values(), *self.headers.values()):
            bare = secret.removeprefix("Bearer ")
            for said in (secret, bare, quote(bare, safe=""), b64encode(secret.encode()).decode()):
                if len(said) >= _SHORTEST_SECRET:
                    data = data.replace(said.encode(), b"***")
        return data


@dataclass(slots=True, eq=False)
class _Call:
    """Calls one operation."""

    api: _Api
    operation: Operation

    async def __call__(self, **values: Any) -> Any:
        context: ToolContext | None = values.pop(CONTEXT)
        operation, api = self.operation, self.api
        request = made_request(operation, values)
        api.authenticate(operation, request)
        headers = {"User-Agent": "journeyman", "Accept": "application/json, */*;q=0.5", **api.headers}
        headers |= request.headers
        if operation.idempotency is not None and context is not None and context.idempotency_key:
            headers[operation.idempotency] = context.idempotency_key
        if request.cookies:
            headers["Cookie"] = "; ".join(request.cookies)
        url = f"{api.base}{request.path}{'?' if request.query else ''}{'&'.join(request.query)}"
        return await self._sent(url, headers, request.data)

    async def _sent(self, url: str, headers: Mapping[str, str], data: Any) -> Any:
        import aiohttp
        from yarl import URL

        from journeyman.sensitive.fetching import AddressRefusedError

        operation, api_name = self.operation, f"the API {self.api.name!r}"
        for _ in range(MOST_REDIRECTS):
            try:
                async with self.api.session.request(
                    operation.method, URL(url, encoded=True), headers=headers, data=data, allow_redirects=False
                ) as response:
                    body, whole = await read_at_most(response.content.iter_any(), MCP_MESSAGE_BYTES)
            except AddressRefusedError as error:
                raise ToolError("ADDRESS_REFUSED", str(error), category=ErrorCategory.PERMISSION) from None
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
                raise ToolError(
                    "API_UNREACHABLE",
                    f"{api_name} cannot be reached ({type(error).__name__})",
                    operation.method in _READS,
                    "Try again later, or go on without it",
                    category=ErrorCategory.NETWORK,
                ) from None
            except (aiohttp.ClientError, TimeoutError) as error:
                raise OutcomeUnknownError(f"{api_name} went away during the call ({type(error).__name__})") from None
            if response.status not in (301, 302, 303, 307, 308):
                return self._answer(response, self.api.masked(body), whole)
            to = urljoin(url, response.headers.get("location", ""))
            if operation.method not in _READS or _origin(to) != _origin(self.api.base):
                why = f"{api_name} redirects to {bare_url(to)[:200]!r}, which is not followed"
                raise ToolError("REDIRECTED", why, category=ErrorCategory.PERMISSION)
            url = to
        raise ToolError("REDIRECTED", f"{api_name} redirects more than {MOST_REDIRECTS} times")

    def _answer(self, response: aiohttp.ClientResponse, body: bytes, whole: bool) -> Any:
        if response.status >= 400:
            raise self._error(response, body)
        if not whole:
            done = "" if self.operation.method in _READS else ", and was carried out"
            raise ToolError(
                "RESULT_TOO_LARGE",
                f"the answer is larger than {MCP_MESSAGE_BYTES:,} bytes{done}",
                recover_action="Ask for less, e.g. a smaller page",
            )
        if not body:
            kept = ("location", "content-length", "content-type", "last-modified", "etag")
            headers = {name: response.headers[name] for name in kept if name in response.headers}
            value: Any = {"status": response.status, **({"headers": headers} if headers else {})}
        else:
            value = _value(response, body)
        if (link := _LINK.search(response.headers.get("link", "")[:8_000])) is not None:
            return {"result": value, "next_page": self._next(urljoin(str(response.url), link[1]))}
        return value

    def _next(self, link: str) -> Any:
        """What to ask for next: the arguments that another call takes, where the link leads to the same operation."""
        names = {item.name: item.argument for item in self.operation.placed if item.place == "query"}
        given = dict(parse_qsl(urlsplit(link).query))
        if given and given.keys() <= names.keys():
            return {names[name]: value for name, value in given.items()}
        return bare_url(link)

    def _error(self, response: aiohttp.ClientResponse, body: bytes) -> ToolError:
        status, reads = response.status, self.operation.method in _READS
        text = visible(body[: LONGEST_ERROR + 1].decode(response.charset or "utf-8", "replace")).strip()
        said = f": {text[:LONGEST_ERROR]}{'…' if len(text) > LONGEST_ERROR else ''}" if text else ""
        category, recover = _CATEGORIES.get(status, (ErrorCategory.TOOL_ERROR, None))
        if status >= 500 and not reads:
            recover = "It may have taken effect: check before repeating it"
        wait = response.headers.get("retry-after", "")
        return ToolError(
            f"HTTP_{status}",
            f"{self.operation.method} {self.operation.path} answered {status} {(response.reason or '')[:60]}{said}",
            status == 429 or (reads and status in (502, 503, 504)),
            recover,
            category=category if status < 500 else ErrorCategory.SYSTEM_ERROR,
            user_guidance="Check the API's 'auth'" if status in (401, 403) else None,
            retry_after=float(wait) if wait.isdecimal() and len(wait) < 6 else None,
        )


_CATEGORIES: dict[int, tuple[ErrorCategory, str | None]] = {
    400: (ErrorCategory.INVALID_INPUT, "Call it again with other arguments"),
    401: (ErrorCategory.AUTHENTICATION, "Do not repeat it; tell the user that the API asks for other credentials"),
    403: (ErrorCategory.PERMISSION, "Do not repeat it; tell the user that the API does not allow it"),
    404: (ErrorCategory.INVALID_INPUT, "Check the identifiers in the arguments, e.g. by listing what there is"),
    409: (ErrorCategory.INVALID_INPUT, "Look at what is there now before you change it"),
    422: (ErrorCategory.INVALID_INPUT, "Call it again with other arguments"),
    429: (ErrorCategory.RATE_LIMIT, "Wait before you call it again"),
}


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _value(response: aiohttp.ClientResponse, body: bytes) -> Any:
    """The answer: JSON as it is, text as text, anything else as a medium of its kind and size."""
    kind = response.content_type
    if kind == "application/json" or kind.endswith("+json"):
        try:
            check_containers(body)
            return from_json(body)
        except ValueError:
            pass
    if kind.startswith("text/") or kind.endswith(("json", "xml", "yaml", "javascript", "x-www-form-urlencoded")):
        return body.decode(response.charset or "utf-8", "replace")
    medium = {"mime_type": kind, "bytes": len(body), "data": b64encode(body).decode()}
    return {"media": [medium]}
