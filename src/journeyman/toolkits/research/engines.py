"""Search engines for ``web_search``: anything with one method, or an HTTP endpoint that answers with JSON.

SearXNG needs only its address; the fields of other endpoints are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from journeyman.core.errors import ConfigurationError, ErrorCategory, ToolError
from journeyman.sensitive import FETCH_SECONDS
from journeyman.sensitive.addresses import check_address
from journeyman.sensitive.fetching import fetch

MOST_BYTES = 2_000_000
MOST_RESULTS = 20
LONGEST_SNIPPET = 1_000
TOKEN = "SEARCH_TOKEN"
"""The secret that is sent as a bearer token if there is one."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page that a search engine names."""

    title: str
    url: str
    snippet: str = ""


class SearchEngine(Protocol):
    """Anything that finds pages. One that cannot answer raises ToolError."""

    async def search(self, query: str, *, limit: int, token: str | None = None) -> Sequence[SearchResult]: ...


@dataclass(frozen=True, slots=True)
class HttpSearch:
    """A search over HTTP GET, whose answer is JSON; the fields are those of SearXNG unless named otherwise.

    The address is the operator's own choice and may be inside their network.
    """

    url: str
    parameter: str = "q"
    """That carries the query."""
    parameters: Mapping[str, str] = field(default_factory=lambda: {"format": "json"})
    results: str = "results"
    """Where the list of results is; with dots between the names of nested objects."""
    title: str = "title"
    address: str = "url"
    snippet: str = "content"
    token_header: str = "Authorization"
    """Takes ``Bearer TOKEN``, or under another name the token alone."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigurationError(f"{self.url!r} is no search endpoint; write e.g. 'https://searx.example/search'")
        check_address(self.url, private=True)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc.rpartition("@")[2]

    async def search(self, query: str, *, limit: int, token: str | None = None) -> Sequence[SearchResult]:
        answer = await self._ask(query, token)
        for name in self.results.split("."):
            answer = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(answer, list):
            raise self._failed(f"its answer has no list {self.results!r}")
        results = (self._result(item) for item in answer if isinstance(item, dict))
        return [result for result in results if result is not None][: min(limit, MOST_RESULTS)]

    async def _ask(self, query: str, token: str | None) -> Any:
        mark = "&" if "?" in self.url else "?"
        url = f"{self.url}{mark}{urlencode({self.parameter: query, **self.parameters})}"
        headers = {"Accept": "application/json"}
        if token:
            headers[self.token_header] = f"Bearer {token}" if self.token_header == "Authorization" else token
        answer = await fetch(url, headers, private=True, most=MOST_BYTES, failed=self._unreachable)
        if answer.status != 200:
            raise self._failed(f"it answered {answer.status}")
        if (content := answer.json()) is None:
            raise self._failed("its answer is not JSON")
        return content

    def _unreachable(self, error: Exception) -> ToolError:
        if isinstance(error, TimeoutError):
            return self._failed(f"no answer within {FETCH_SECONDS:g} s", category=ErrorCategory.TIMEOUT)
        return self._failed(type(error).__name__)

    def _result(self, item: dict[str, Any]) -> SearchResult | None:
        url, title, snippet = (item.get(name) for name in (self.address, self.title, self.snippet))
        if not isinstance(url, str) or not url.startswith(("http://", "https://")) or len(url) > 2_000:
            return None
        words = snippet if isinstance(snippet, str) else ""
        return SearchResult(
            title=title[:300] if isinstance(title, str) else url, url=url, snippet=words[:LONGEST_SNIPPET]
        )

    def _failed(self, why: str, *, category: ErrorCategory = ErrorCategory.NETWORK) -> ToolError:
        return ToolError(
            "SEARCH_FAILED",
            f"the search engine at {self.host} gave no results: {why}",
            category=category,
            retryable=True,
            recover_action="Try once more; if it fails again, say that the web could not be searched",
            user_guidance=f"Check that {self.host} is up, and that it answers with JSON (SearXNG: search.formats)",
        )


def searxng(address: str) -> HttpSearch:
    """A SearXNG instance by its address, with or without ``/search``."""
    base = address.rstrip("/")
    return HttpSearch(base if urlsplit(base).path.endswith("/search") else f"{base}/search")
