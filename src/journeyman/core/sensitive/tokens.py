"""Texts that are credentials by their shape, and addresses that carry one."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

MASK = "•••"

_SHAPES = {  # what follows, and the prefixes it follows; the lengths are the least that their issuers use
    r"[A-Z0-9]{16}(?![A-Za-z0-9])": "AKIA ASIA AGPA AIDA AROA ANPA ANVA ABIA",
    r"[A-Za-z0-9-]{10}": "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe. xoxe- xapp-",
    r"[A-Za-z0-9]{14}": "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ whsec_",
    r"[A-Za-z0-9_-]{16}": (
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- glptt- glsoat- glcbt- glagent- GR1348941 AIza ya29."
        " 1//0 GOCSPX- hf_ gsk_ r8_ xai- pplx- npm_ pypi- rubygems_ oy2 dckr_pat_ dckr_oat_ dop_v1_ doo_v1_ hvs. hvb."
        " s. sl. sk- sq0atp- sq0csp- EAAA shpat_ shpss_ shpca_ SG. key- re_ sbp_ phc_ phx_ PMAK- NRAK- lin_api_ ntn_"
        " secret_ dapi pul- atlasv1. tskey- fo1_ glc_ glsa_ sntrys_ sntryu_ dp.pt. ATATT3 ATBB ATCTT3 CFPAT- nfp_"
        " vercel_ pscale_ LTAI figd_ AGE-SECRET-KEY- EZAK EZTK sgp_ pat-na1- pat-eu1- wsk_ rpa_ ops_ey"
    ),
    r"[0-9a-fA-F]{32}(?![A-Za-z0-9])": "SK AC",
    r"[A-Za-z0-9_-]{8,500}\.[A-Za-z0-9_=-]{8}": "eyJ",
    r"[A-Za-z0-9+/]{40}": "AccountKey= SharedAccessKey=",
}
_PHRASES = {
    "-----BEGIN ": r"[A-Z0-9 ]{0,40}PRIVATE KEY",
    "PuTTY-User-Key-File-": r"\d",
    "SharedAccessSignature=": r"\S{20}",
    "Bearer ": r"[A-Za-z0-9._~+/-]{16}",
    "Basic ": r"[A-Za-z0-9+/]{12,500}={0,2}(?![A-Za-z ])",
}
_AT_PREFIX = {prefix: re.compile(rest) for rest, prefixes in _SHAPES.items() for prefix in prefixes.split()} | {
    prefix: re.compile(rest) for prefix, rest in _PHRASES.items()
}
_COMMON = frozenset(
    ["sk-", "s.", "sl.", "re_", "key-", "hf_", "dapi", "oy2", "SG.", "EAAA", "r8_", "pul-", "secret_", "LTAI", "1//0"]
)
"""Prefixes with which ordinary words begin, too: what follows must look drawn by lot."""
_LETTERS = frozenset(string.ascii_letters + string.digits)
_CONTINUED = _LETTERS | frozenset("_-.=/+")
_LONGEST = 300
_SHORTEST = 10
_SEARCHED = 32_768
"""So much of a text is searched: a longer one is a document, and no argument that gives access."""
_LONGEST_URL = 8_192
_LONG_WORD = re.compile(r"[A-Za-z0-9_-]{15}")
_MOST_PLACES = 1_000
"""A text with more places where a token may begin is taken for one that hides a token."""

_ASSIGNED = re.compile(
    r"(?i:password|passwd|pwd|secret|api[_-]?key|access[_-]?key|secret[_-]?key|auth[_-]?token|access[_-]?token"
    r"|private[_-]?key|refresh[_-]?token|account[_-]?key)"
    r"[\"']?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}[\"']?([^\s\"'&;,<>{}$]{6,200})"
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s'\"<>]+")
_NAME_ENDS = (
    *(
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "authkey",
    ),
    *("sharedkey", "signature", "credential", "credentials", "sessionid", "sessid", "sessionkey", "jwt", "hmac"),
    "subscriptionkey",
)
_NAMES = frozenset(
    [
        *("auth", "authorization", "sig", "sas", "pwd", "pass", "pw", "sid", "session", "otp", "bearer", "creds"),
        *("hapikey", "ticket"),
    ]
)
_MAYBE = frozenset(["key", "code", "k", "t", "tok", "state", "hash", "h", "s", "invite", "appkey", "license"])
"""Names of fields that hold a secret where the value looks like one."""
_PAGING = ("page", "next", "continuation", "cursor", "sync", "csrf", "xsrf", "prev")
_SHARED = frozenset(["docs.google.com", "drive.google.com", "www.figma.com", "figma.com"])
"""Hosts whose documents are known by long random names."""
_HASH_OR_ID = re.compile(r"[0-9a-fA-F]{8,64}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HOOKS = (
    *("hooks.slack.com/services/", "/api/webhooks/", "/webhook/", "/webhookb2/", "/hooks/catch/", "/incomingwebhook/"),
)
_BETWEEN = re.compile(r"[-_.~+]")


def holds_token(text: str) -> bool:
    """Whether a credential stands in a text, by the shape that its issuer gives it."""
    text = text[:_SEARCHED]
    # Nearly all texts end here: no word of theirs is as long as a token.
    if _LONG_WORD.search(text) and next(_tokens(text), None) is not None:
        return True
    return ("=" in text or ":" in text) and any(_is_value(found[1]) for found in _ASSIGNED.finditer(text))


def url_carries_secret(url: str) -> bool:
    """Whether an address gives access by itself: userinfo, a secret field, a token or a random word in its path."""
    try:
        parts = urlsplit(url[:_LONGEST_URL])
        if parts.password or random_word(parts.username or ""):
            return True
        fields = parse_qsl(parts.query) + parse_qsl(parts.fragment)
    except ValueError:
        return False
    if any(value and secret_field(name, value) for name, value in fields):
        return True
    steps = unquote(parts.path).split("/")
    if any(hook in url for hook in _HOOKS) and any(len(step) > 7 and _is_value(step) for step in steps[2:]):
        return True
    host = parts.netloc.rpartition("@")[2].lower()
    return bool(parts.scheme) and host not in _SHARED and any(map(_secret_word, steps))


def secret_field(name: str, value: str) -> bool:
    """Whether a field of a query, or of a form, holds a secret."""
    plain = "".join(character for character in name.lower() if character.isalnum())
    if any(word in plain for word in _PAGING):
        return False
    if plain in _NAMES or plain.endswith(_NAME_ENDS):
        return True
    if plain in _MAYBE and random_word(value, least=16):
        return True
    return _LONG_WORD.search(value) is not None and next(_tokens(value), None) is not None


def random_word(word: str, *, least: int = 24) -> bool:
    """Whether a word looks drawn by lot, and is no number, hash, UUID or name made of words."""
    if not least <= len(word) <= 500 or _HASH_OR_ID.fullmatch(word) or not _mixed(word):
        return False
    longest = max(_BETWEEN.split(word), key=len)
    if len(longest) < least * 2 // 3 or not _mixed(longest):
        return False
    entropy = -sum(n / len(word) * math.log2(n / len(word)) for n in Counter(word).values())
    return entropy >= (3.6 if len(word) < 32 else 4.0)


def _mixed(word: str) -> bool:
    return all(any(map(kind, word)) for kind in (str.isupper, str.islower, str.isdigit))


def _secret_word(step: str) -> bool:
    """Whether a step of an address's path is drawn by lot, such as /bot123456:ABC…/."""
    name, colon, rest = step.partition(":")
    return (bool(colon) and len(rest) >= 20 and name.removeprefix("bot").isdigit()) or random_word(step)


def _secret_step(step: str) -> bool:
    return _secret_word(step) or next(_tokens(step), None) is not None


def _is_value(word: str) -> bool:
    """Whether this is a value, and no placeholder or word of prose."""
    return word.strip("*.-_•") != "" and any(not character.isalpha() or character.isupper() for character in word[1:])


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    """Where tokens stand. What follows a letter or a digit is part of another word."""
    places = 0
    for prefix, rest in _AT_PREFIX.items():
        at = text.find(prefix)
        while at >= 0:
            begin = at + len(prefix)
            if at == 0 or text[at - 1] not in _LETTERS:
                places += 1
                if places > _MOST_PLACES:
                    yield at, len(text)
                    return
                if found := rest.match(text, begin):
                    # The shape says from where on it surely is one; it goes on as long as its letters do.
                    end = found.end()
                    while end < len(text) and end - at < _LONGEST and text[end] in _CONTINUED:
                        end += 1
                    if prefix not in _COMMON or _drawn(text[begin:end]):
                        yield at, end
            at = text.find(prefix, begin)


def _drawn(word: str) -> bool:
    """Whether one piece of a word mixes letters and digits as no name does."""
    piece = max(_BETWEEN.split(word), key=len)
    return len(piece) >= 16 and sum(map(str.isdigit, piece)) >= 3 and any(map(str.isalpha, piece))


# --- leaving out


def bare_url(url: str) -> str:
    """An address without userinfo, query and fragment: what of it may be logged."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    steps = [MASK if step and _secret_step(unquote(step)) else step for step in parts.path.split("/")]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], "/".join(steps), "", ""))


def redacted(text: str) -> str:
    """The text with the tokens in it masked, and its addresses without what may be secret in them."""
    if len(text) < _SHORTEST:
        return text
    if "://" in text:
        text = _URL.sub(lambda found: bare_url(found[0]), text)
    if spans := sorted(_tokens(text)):
        pieces, done = [], 0
        for begin, end in spans:
            if begin >= done:
                pieces += [text[done:begin], MASK]
                done = end
        text = "".join([*pieces, text[done:]])
    return _ASSIGNED.sub(lambda found: found[0].replace(found[1], MASK) if _is_value(found[1]) else found[0], text)


def redacted_value(value: Any) -> Any:
    """A JSON value with every text in it redacted, whatever stands under a secret's name masked."""
    match value:
        case str():
            return redacted(value)
        case list() | tuple():
            return [redacted_value(item) for item in value]
        case dict():
            return {
                key: MASK if isinstance(item, str) and secret_field(str(key), item) else redacted_value(item)
                for key, item in value.items()
            }
        case _:
            return value
