"""The text of a web page that a person would read, and its links. One pass; time grows with the page and no faster.

What is not shown, or stands around the text on every page (scripts, navigation, forms), is left out. Nothing of the
page is run or followed.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from urllib.parse import urljoin

MOST_LINKS = 200
_SKIPPED = frozenset(("script", "style", "noscript", "template", "svg", "iframe", "object", "nav", "footer", "form"))
_RAW = frozenset(("script", "style", "textarea", "title"))
"""What holds text in which a tag is no tag."""
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "dd",
        "div",
        "dl",
        "dt",
        "figure",
        "figcaption",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
)
_CLOSED_BY_NEXT = frozenset(["p", "li", "td", "th", "tr", "dt", "dd", "option"])
"""Whose end may be left out: the next of the name ends them."""
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

    title: str = ""
    text: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    """Text and address of each."""


class _Reader:
    def __init__(self, address: str) -> None:
        self.page = Page()
        self._address = address
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
        found = _NAME.match(inner)
        if found is None:
            return None
        name, closing = found[1].lower(), inner.startswith("/")
        if self._skipping and name == self._skipping[0] and name in _CLOSED_BY_NEXT:
            self._skipping.clear()
        if self._skipping:
            self._skipped(name, closing=closing)
        elif not closing and (name in _SKIPPED or _HIDDEN.search(inner, found.end(), _LONGEST_TAG)):
            if name not in _VOID and not inner.endswith("/"):
                self._skipping.append(name)
        elif name == "a":
            self._anchor(inner, closing=closing)
        elif name in _BLOCKS:
            self._parts.append("\n" if name in ("br", "tr", "td", "th", "li", "dt", "dd") else "\n\n")
        return name if name in _RAW and not closing else None

    def _skipped(self, name: str, *, closing: bool) -> None:
        # Only elements of the same name count: a page that closes what it never opened must not hide the rest.
        if name == self._skipping[0]:
            if closing:
                self._skipping.pop()
            else:
                self._skipping.append(name)

    def _anchor(self, inner: str, *, closing: bool) -> None:
        if self._link is not None:
            address, words = self._link
            shown = " ".join("".join(words).split())[:200]
            if shown and len(self.page.links) < MOST_LINKS:
                self.page.links.append((shown, address))
            self._link = None
        if not closing and (found := _HREF.search(inner, 0, _LONGEST_TAG)) is not None:
            try:
                address = urljoin(self._address, html.unescape(next(filter(None, found.groups()))).strip())
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
    reader, at, lowered = _Reader(address), 0, markup.lower()
    while at < len(markup):
        start = markup.find("<", at)
        if start < 0:
            reader.text(markup[at:])
            break
        reader.text(markup[at:start])
        if markup.startswith("<!--", start):
            at = _after(markup, "-->", start + 4)
            continue
        stop = markup.find(">", start)
        if stop < 0:  # whatever follows is no tag
            break
        if not (markup[start + 1 : start + 2].isalpha() or markup[start + 1 : start + 2] in ("/", "!", "?")):
            reader.text("<")
            at = start + 1
            continue
        raw = reader.tag(markup[start + 1 : stop])
        at = stop + 1
        if raw is not None:
            end = lowered.find(f"</{raw}", at)
            end = len(markup) if end < 0 else end
            if raw == "title" and not reader.page.title:
                reader.page.title = " ".join(html.unescape(markup[at:end]).split())[:300]
            elif raw == "textarea":
                reader.text(markup[at:end])
            at = end
    return reader.end()


def _after(text: str, mark: str, start: int) -> int:
    found = text.find(mark, start)
    return len(text) if found < 0 else found + len(mark)
