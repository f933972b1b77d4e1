"""Which values are identifiers: what names one thing among many, and cannot be made up or worked out.

Judged by the value's own form and by its parameter's name, never by what the identifiers of some system look like.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

LEAST_DIGITS = 4
"""A text without spaces and with so many digits is no word and no quantity: an order number, an account, a version."""
LEAST_NUMBER = 7
"""Digits of a number that is an identifier whatever its parameter is called; shorter ones are quantities."""
LEAST_PHONE = 7
LEAST_NAMED_NUMBER = 100
"""A number in a parameter that is named as an identifier; smaller ones are positions and counters."""

_NAMED = frozenset({"id", "ids", "uuid", "guid", "email", "emails", "iban", "isbn", "sku", "url", "uri"})
_NOTHING = frozenset({"", "none", "null", "nil", "n/a", "na", "unknown", "any", "all", "-", "me", "self", "default"})
_email = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+").fullmatch
_address = re.compile(r"[a-z][a-z0-9+.-]{0,20}://\S+", re.IGNORECASE).fullmatch
_when = re.compile(
    r"(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})|(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01]))?"
    r"[t ]?(\d{1,2}:\d{2}(:\d{2}([.,]\d{1,9})?)?)? ?(z|utc|[ap]m|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
).fullmatch
_years = re.compile(r"(?<!\d)(19|20)\d\d(?!\d)")
_path = re.compile(r"(~|\.{1,2}|[a-z]:)?/[^\s]+", re.IGNORECASE).fullmatch
_number = re.compile(r"[-+$€£]?\d{1,3}([,.' ]?\d{3})*([.,]\d{1,4})?%?").fullmatch
_name_words = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+").findall


def is_identifier(name: str, value: Any) -> bool:
    """Whether this value of a parameter of this name must have been said by somebody."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        if abs(value) < LEAST_NAMED_NUMBER:
            return False
        digits = str(abs(value))
        return _named(name) or (len(digits) >= LEAST_NUMBER and not digits.endswith("000"))
    return isinstance(value, str) and _is_identifier_text(name, value.strip())


def _is_identifier_text(name: str, text: str) -> bool:
    if text.lower() in _NOTHING:
        return False
    digits = sum(map(str.isdigit, text))
    if len(text.split(None, 1)) > 1:
        # Several words are a title or a sentence, unless they are hardly anything but digits.
        return digits >= LEAST_PHONE and sum(map(str.isalpha, text)) <= 3 and _when(text) is None
    if _email(text) or _address(text) or is_path(text):
        return True
    if _named(name):
        return not text.isdigit() or int(text[:20]) >= LEAST_NAMED_NUMBER or text.startswith("0")
    if _when(text):
        return False
    if _number(text):
        return digits >= LEAST_NUMBER and not text.endswith("000") and not {".", ",", "%"} & set(text)
    return sum(map(str.isdigit, _years.sub("", text))) >= LEAST_DIGITS


@lru_cache(maxsize=4_096)
def _named(name: str) -> bool:
    """Whether a parameter is named as an identifier, e.g. ``order_id``, ``userId`` or ``contact_email``."""
    words = _name_words(name)
    return bool(words) and words[-1].lower() in _NAMED


def is_address(text: str) -> bool:
    """Whether a value is an e-mail address or a URL: such a one is not made of parts that stand in several places."""
    return bool(_email(text) or _address(text))


def is_path(text: str) -> bool:
    """Whether a value is the path of a file. Its parts may have been said in several places."""
    return "/" in text[:3] and text.count("/") >= 2 and _path(text) is not None
