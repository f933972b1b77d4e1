"""Finds addresses in a text and normalises them. Fetches nothing.

Two addresses of the same thing get the same reference, so that it is attached once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from journeyman.core.tasks import AttachmentType

LONGEST = 2000
"""Bytes of a reference; what is longer fits into no database's index."""
LONGEST_WRITTEN = 4 * LONGEST
"""Characters of an address as it is written; without its tracking fields it may be short enough."""
MOST_FOUND = 50
"""Addresses taken from one text."""
MOST_TRIED = 1_000
"""What looks like an address in one text, and is looked at."""

_ADDRESS = re.compile(r"(?i)\b(?:https?://|www\.)[^\s<>\"`{}|\\^\x00-\x1f]+")
_TRACKING = re.compile(
    r"(?i)(utm_.*|hsa_.*|_hs.*|oly_.*|vero_.*|mc_[ce]id|[gdy]clid|gclsrc|gbraid|wbraid|fbclid|msclkid|twclid|ttclid"
    r"|li_fat_id|igshid|igsh|mkt_tok|_ga|_gl|s_cid|ref_src|ref_url|wickedid|rb_clickid|cmpid|trk)"
)
_CLOSING = {")": "(", "]": "["}
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(?=.{1,253}$)(?:[\w-]{1,63}\.)*[\w-]{1,63}|\[[0-9a-f:.]+\]")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_GITHUB_KINDS = {"pull": "pull", "issues": "issue", "discussions": "discussion"}
_NUMBER = re.compile(r"[0-9]{1,15}")
_MESSAGE_ID = re.compile(r"[A-Za-z0-9_-]{15,}")
_MAILBOXES = frozenset({"all", "inbox", "sent", "starred", "important", "imp", "drafts", "snoozed", "spam", "trash"})
"""Views of Gmail whose next part is a message or a page of the list (p2); elsewhere it may be a label."""


class InvalidReferenceError(ValueError):
    """Not an address that can be attached."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A normalised address, and what can be derived from it alone."""

    type: AttachmentType
    url: str
    title: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def find_references(*texts: str | None) -> list[Reference]:
    """The addresses in some texts (plain or Markdown), each once, in the order in which they appear."""
    references: dict[str, Reference] = {}
    for text in texts:
        for match in islice(_ADDRESS.finditer(text or ""), MOST_TRIED):
            try:
                reference = read_reference(_without_ending(match.group()))
            except InvalidReferenceError:
                continue
            references.setdefault(reference.url, reference)
            if len(references) == MOST_FOUND:
                return list(references.values())
    return list(references.values())


def _without_ending(address: str) -> str:
    """Without the punctuation of the sentence around it; a parenthesis that was opened inside stays."""
    # In Markdown the text of a link may be its address: [https://a.example](https://a.example).
    address = address.partition("](")[0]
    # How many of each closing parenthesis are not opened inside; they belong to the sentence.
    extra = {closing: address.count(closing) - address.count(opening) for closing, opening in _CLOSING.items()}
    end = len(address)
    while end:
        last = address[end - 1]
        if last in extra:
            if extra[last] <= 0:
                break
            extra[last] -= 1
        elif last not in ".,;:!?'*_~…»”’":
            break
        end -= 1
    return address[:end]


def read_reference(address: str) -> Reference:
    """The reference an address stands for. Raises InvalidReferenceError with the reason."""
    address = address.strip()
    if len(address) > LONGEST_WRITTEN:
        raise InvalidReferenceError(f"it has more than {LONGEST_WRITTEN:,} characters")
    parts = _split(address)
    host = _host(parts)
    if host in ("github.com", "www.github.com", "gist.github.com"):
        reference = _github(host.removeprefix("www."), parts)
    elif host in ("mail.google.com", "gmail.com", "www.gmail.com"):
        reference = _gmail(parts)
    else:
        reference = Reference(AttachmentType.URL, _generic(host, parts))
    if len(reference.url.encode()) > LONGEST:
        raise InvalidReferenceError(f"it has more than {LONGEST} bytes")
    return reference


def _split(address: str) -> SplitResult:
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d+(/|$))", address):
        address = f"https://{address}"
    if any(character.isspace() or not character.isprintable() for character in address):
        raise InvalidReferenceError("it has spaces or unprintable characters in it")
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise InvalidReferenceError(f"it is no URL ({error})") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise InvalidReferenceError(f"its scheme is {parts.scheme!r}, not http or https")
    return parts


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    if ":" in host:
        host = f"[{host}]"
    # A word without a dot is hardly ever a host name, except localhost.
    if not _HOST.fullmatch(host) or not ("." in host or host == "localhost" or host.startswith("[")):
        raise InvalidReferenceError(f"{host!r} is no name of a host")
    return host


# --- providers


def _generic(host: str, parts: SplitResult) -> str:
    # User name and password before an @ are dropped: they must not be stored.
    port = f":{parts.port}" if parts.port not in (None, _DEFAULT_PORTS[parts.scheme]) else ""
    path = _escapes(parts.path).rstrip("/")
    query = _without_tracking(parts.query)
    # In many applications such a fragment is a page of its own; any other is a position on the page.
    fragment = f"#{parts.fragment}" if parts.fragment.startswith(("/", "!")) else ""
    return f"{parts.scheme}://{host}{port}{path}{query}{fragment}"


def _github(host: str, parts: SplitResult) -> Reference:
    names = [name for name in _escapes(parts.path).split("/") if name]
    query = _without_tracking(parts.query)
    metadata: dict[str, Any] = {}
    title = None
    if host == "github.com" and len(names) >= 2:
        # GitHub does not tell upper from lower case in these two, but does in what follows.
        names[0], names[1] = names[0].lower(), names[1].lower().removesuffix(".git")
        metadata = {"owner": names[0], "repository": names[1]}
        title = f"{names[0]}/{names[1]}"
        if len(names) >= 4 and names[2] in _GITHUB_KINDS and _NUMBER.fullmatch(names[3]):
            # Tabs of the same page: /files, /commits, ?diff=split.
            names, query = names[:4], ""
            metadata |= {"kind": _GITHUB_KINDS[names[2]], "number": int(names[3])}
            title += f"#{metadata['number']}"
    return Reference(AttachmentType.GITHUB, "/".join([f"https://{host}", *names]) + query, title, metadata)


def _gmail(parts: SplitResult) -> Reference:
    account = re.match(r"/mail/u/([^/]+)", parts.path)
    base = f"https://mail.google.com/mail/u/{account.group(1) if account else 0}/"
    # Other windows that are open (?compose=…) are not part of the address.
    place = parts.fragment.partition("?")[0].strip("/")
    view, _, name = place.rpartition("/")
    is_message = view and (_MESSAGE_ID.fullmatch(name) or (view in _MAILBOXES and not re.fullmatch(r"p\d+", name)))
    identifier = name if is_message else dict(parse_qsl(parts.query)).get("th")
    if identifier:
        # Messages move between labels; under "all" each has one address.
        return Reference(AttachmentType.GMAIL, f"{base}#all/{identifier}", "E-mail", {"message_id": identifier})
    kept = _without_tracking(parts.query) if not place else ""
    return Reference(AttachmentType.GMAIL, f"{base}{kept}#{place}".removesuffix("#"))


# --- pieces of an address


def _without_tracking(query: str) -> str:
    kept = [pair for pair in query.split("&") if pair and not _TRACKING.fullmatch(pair.partition("=")[0])]
    return f"?{_escapes('&'.join(kept))}" if kept else ""


def _escapes(text: str) -> str:
    """Percent-escapes normalised: decoded where unreserved, upper case elsewhere."""

    def one(match: re.Match[str]) -> str:
        character = chr(int(match.group(1), 16))
        return character if _UNRESERVED.fullmatch(character) else match.group().upper()

    return re.sub("%([0-9A-Fa-f]{2})", one, text)
