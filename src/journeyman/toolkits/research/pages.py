"""Web pages as readable text, within budgets, and never from a private address unless that was allowed."""

from __future__ import annotations

import asyncio
import html
import re
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urljoin, urlsplit

from journeyman.core.errors import ConfigurationError, ErrorCategory, ToolError
from journeyman.core.words import WordLists
from journeyman.sensitive import FETCH_SECONDS
from journeyman.sensitive.addresses import check_address
from journeyman.sensitive.fetching import AddressRefusedError, Fetched, fetch
from journeyman.toolkits import invalid

MOST_BYTES = 2_000_000
"""Of one page, after decompression."""
MOST_REDIRECTS = 5
LONGEST_ADDRESS = 2_000
_HTML = ("text/html", "application/xhtml+xml")
_TEXTS = ("text/plain", "text/markdown", "text/csv", "application/json", "application/xml", "text/xml")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset=["']?([A-Za-z0-9_-]{1,40})""", re.IGNORECASE)


async def fetch_page(url: str, *, private: bool = False) -> Page:
    """Read a page. Raises ToolError."""
    current = url
    for _ in range(MOST_REDIRECTS + 1):
        _check(current, private=private)
        headers = {"Accept": "text/html, text/plain;q=0.9, */*;q=0.5"}
        failed = partial(_unreachable, current)
        answer = await fetch(current, headers, private=private, most=MOST_BYTES, failed=failed)
        # Redirects are followed here, so that each address is checked.
        target = answer.headers.get("location")
        if answer.status in (301, 302, 303, 307, 308) and target:
            current = urljoin(current, target)
            continue
        if answer.status != 200:
            raise _failed(current, f"it answered {answer.status}", again=answer.status >= 500)
        return await asyncio.to_thread(_readable, answer, current)
    raise _failed(current, f"more than {MOST_REDIRECTS} redirects", again=False)


def _unreachable(url: str, error: Exception) -> ToolError:
    if isinstance(error, TimeoutError):
        return _failed(url, f"no answer within {FETCH_SECONDS:g} s", category=ErrorCategory.TIMEOUT)
    return _refused(url) if isinstance(error, AddressRefusedError) else _failed(url, type(error).__name__)


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


def _readable(answer: Fetched, url: str) -> Page:
    body, kind, charset = answer.body, answer.content_type, answer.charset
    if kind not in _HTML and kind not in _TEXTS:
        raise invalid("NOT_TEXT", f"{url[:300]} is {kind!r}, not a page or a text", "Use another page")
    if charset is None and (match := _CHARSET.search(body, 0, 4_000)) is not None:
        charset = match[1].decode()
    try:
        text = body.decode(charset or "utf-8", "replace")
    except LookupError:
        text = body.decode("utf-8", "replace")
    text = text.replace("\0", "")
    page = read_page(text, address=url) if kind in _HTML else Page(url, text=text.strip())
    page.complete = answer.complete
    return page


# --- the text that a person would read, in one pass: time grows with the page and no faster
#
# What is not shown, or stands around the text on every page (scripts, navigation, forms), is left out. Nothing of the
# page is run or followed.


MOST_LINKS = 200
_elements = WordLists("journeyman.toolkits.research", "elements.txt")
_TOKEN = re.compile(r"<!--.*?(?:-->|\Z)|<(?P<tag>(?:[^\W\d_]|[/!?])[^>]*)(?P<end>>|\Z)|(?P<text>[^<]+|<)", re.DOTALL)
"""What is not closed goes on to the end, so that nothing is looked at twice."""
_NAME = re.compile(r"/?([a-zA-Z][a-zA-Z0-9]{0,20})")
_HREF = re.compile(r"""href\s{0,5}=\s{0,5}(?:"([^"]{1,2000})"|'([^']{1,2000})'|([^\s"'>]{1,2000}))""", re.IGNORECASE)
_HIDDEN = re.compile(
    r"""\shidden(?=[\s=/]|$)|aria-hidden\s{0,5}=\s{0,5}["']?true|display\s{0,5}:\s{0,5}none|visibility\s{0,5}:\s{0,5}hidden""",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[ \t\r\f\v\u00a0]+")
_LONGEST_TAG = 10_000


@dataclass(slots=True)
class Page:
    """What was found on a page."""

    url: str
    """Where redirects led."""
    complete: bool = True
    """Whether it ended within the budget."""
    title: str = ""
    text: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    """Text and address of each."""


class _Reader:
    def __init__(self, address: str) -> None:
        self.page = Page(address)
        self._parts: list[str] = []
        self._skipping: list[str] = []
        """Elements inside the outermost one that is left out."""
        self._link: tuple[str, list[str]] | None = None

    def text(self, raw: str) -> None:
        if raw and not self._skipping:
            shown = _BLANKS.sub(" ", html.unescape(raw).replace("\n", " "))
            self._parts.append(shown)
            if self._link is not None:
                self._link[1].append(shown)

    def tag(self, inner: str) -> str | None:
        """Takes what stands between < and >; returns the element whose content is no markup, if it begins one."""
        match = _NAME.match(inner)
        if match is None:
            return None
        name, closing = match[1].lower(), inner.startswith("/")
        if self._skipping and name == self._skipping[0] and name in _elements.closed_by_next:
            self._skipping.clear()
        if self._skipping:
            # Only elements of the same name count: a page that closes what it never opened must not hide the rest.
            if name == self._skipping[0] and closing:
                self._skipping.pop()
            elif name == self._skipping[0]:
                self._skipping.append(name)
        elif not closing and (name in _elements.skipped or _HIDDEN.search(inner, match.end(), _LONGEST_TAG)):
            if name not in _elements.void and not inner.endswith("/"):
                self._skipping.append(name)
        elif name == "a":
            self._anchor(inner, closing=closing)
        elif name in _elements.blocks:
            self._parts.append("\n" if name in ("br", "tr", "td", "th", "li", "dt", "dd") else "\n\n")
        return name if name in _elements.raw and not closing else None

    def _anchor(self, inner: str, *, closing: bool) -> None:
        if self._link is not None:
            address, words = self._link
            shown = " ".join("".join(words).split())[:200]
            if shown and len(self.page.links) < MOST_LINKS:
                self.page.links.append((shown, address))
            self._link = None
        if not closing and (match := _HREF.search(inner, 0, _LONGEST_TAG)) is not None:
            try:
                address = urljoin(self.page.url, html.unescape(next(filter(None, match.groups()))).strip())
            except ValueError:
                return
            if address.startswith(("http://", "https://")):
                self._link = (address, [])

    def end(self) -> Page:
        lines = ["".join(line.strip()) for line in "".join(self._parts).split("\n")]
        kept: list[str] = []
        for line in lines:
            if line or (kept and kept[-1]):
                kept.append(line)
        self.page.text = "\n".join(kept).strip()
        return self.page


def read_page(markup: str, *, address: str = "") -> Page:
    """The readable part of HTML.

    >>> read_page("<title>T</title><nav>Home</nav><p>One <b>two</b>.</p><script>x()</script>").text
    'One two.'
    """
    reader, at, lowered, last = _Reader(address), 0, markup.lower(), markup.rfind(">")
    while at < len(markup):
        token = _TOKEN.match(markup, at)
        assert token is not None  # a token is what it is, or the text up to the next one
        at = token.end()
        if (token["text"] == "<" and at > last) or (token["tag"] and not token["end"]):  # whatever follows is no tag
            break
        if token["text"]:
            reader.text(token["text"])
        elif token["tag"] and (raw := reader.tag(token["tag"])) is not None:
            end = lowered.find(f"</{raw}", at)
            end = len(markup) if end < 0 else end
            if raw == "title" and not reader.page.title:
                reader.page.title = " ".join(html.unescape(markup[at:end]).split())[:300]
            elif raw == "textarea":
                reader.text(markup[at:end])
            at = end
    return reader.end()
