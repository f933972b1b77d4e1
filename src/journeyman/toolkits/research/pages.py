"""Web pages as readable text, within budgets, and never from a private address unless that was allowed."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import aiohttp

from journeyman.core.budgets import read_at_most
from journeyman.core.errors import ConfigurationError, ErrorCategory, ToolError
from journeyman.toolkits import invalid
from journeyman.toolkits.addresses import check_address
from journeyman.toolkits.fetching import AddressRefusedError, guarded_connector
from journeyman.toolkits.research.readable import Page, read_page

SECONDS = 15.0
MOST_BYTES = 2_000_000
"""Of one page, after decompression."""
MOST_REDIRECTS = 5
LONGEST_ADDRESS = 2_000
_HTML = ("text/html", "application/xhtml+xml")
_TEXTS = ("text/plain", "text/markdown", "text/csv", "application/json", "application/xml", "text/xml")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset=["']?([A-Za-z0-9_-]{1,40})""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page as it was read."""

    url: str
    """Where redirects led."""
    page: Page
    complete: bool
    """Whether it ended within the budget."""


async def fetch_page(url: str, *, private: bool = False) -> FetchedPage:
    """Read a page. Raises ToolError."""
    current = url
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    try:
        async with aiohttp.ClientSession(connector=guarded_connector(private=private), timeout=timeout) as session:
            for _ in range(MOST_REDIRECTS + 1):
                _check(current, private=private)
                headers = {"User-Agent": "journeyman", "Accept": "text/html, text/plain;q=0.9, */*;q=0.5"}
                # Redirects are followed here, so that each address is checked.
                async with session.get(current, headers=headers, allow_redirects=False) as response:
                    target = response.headers.get("Location")
                    if response.status in (301, 302, 303, 307, 308) and target:
                        current = urljoin(current, target)
                        continue
                    if response.status != 200:
                        raise _failed(current, f"it answered {response.status}", again=response.status >= 500)
                    body, complete = await read_at_most(response.content.iter_any(), MOST_BYTES)
                    kind, charset = response.content_type, response.charset
                page = await asyncio.to_thread(_readable, body, kind, charset, current)
                return FetchedPage(current, page, complete)
    except TimeoutError:
        raise _failed(current, f"no answer within {SECONDS:g} s", category=ErrorCategory.TIMEOUT) from None
    except AddressRefusedError:
        raise _refused(current) from None
    except aiohttp.ClientError as error:
        raise _failed(current, type(error).__name__) from None
    raise _failed(current, f"more than {MOST_REDIRECTS} redirects", again=False)


def _check(url: str, *, private: bool) -> None:
    recover = "Use an address that web_search has found, or that the user gave"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and len(url) <= LONGEST_ADDRESS
    except ValueError:
        usable = False
    if not usable:
        raise invalid("INVALID_ADDRESS", f"{url[:200]!r} is no web address (http or https)", recover)
    if parts.username or parts.password:
        raise invalid("INVALID_ADDRESS", "an address with a name or a password in it is not fetched", recover)
    try:
        check_address(url, private=private)
    except ConfigurationError:
        raise _refused(url) from None


def _refused(url: str) -> ToolError:
    return ToolError(
        "ADDRESS_REFUSED",
        f"{urlsplit(url).hostname or url!r} is inside a private network or a metadata service",
        category=ErrorCategory.PERMISSION,
        recover_action="Do without it; use pages of the public web",
    )


def _failed(url: str, why: str, *, again: bool = True, category: ErrorCategory = ErrorCategory.NETWORK) -> ToolError:
    return ToolError(
        "FETCH_FAILED",
        f"{url[:300]} cannot be read: {why}",
        category=category,
        retryable=again,
        recover_action="Use another page, and do not claim to have read this one",
    )


def _readable(body: bytes, kind: str, charset: str | None, url: str) -> Page:
    if kind not in _HTML and kind not in _TEXTS:
        raise invalid("NOT_TEXT", f"{url[:300]} is {kind!r}, not a page or a text", "Use another page")
    if charset is None and (found := _CHARSET.search(body, 0, 4_000)) is not None:
        charset = found[1].decode()
    try:
        text = body.decode(charset or "utf-8", "replace")
    except LookupError:
        text = body.decode("utf-8", "replace")
    text = text.replace("\0", "")
    return read_page(text, address=url) if kind in _HTML else Page(text=text.strip())
