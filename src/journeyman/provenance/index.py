"""By part of a text: which text said it first. Texts are read once, when somebody looks for something.

The one way to take what was said apart: as tokens, in which addresses, paths and numbers stay whole, and as words.
Also which values identify something, and which tools find it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeAlias

from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.core.words import stem, words

SHORT_TEXT = 256
"""Characters of a text that is taken apart at once; searching a longer one is cheaper than that, a few times."""
CHARS_A_SEARCH = 32
"""A text is searched once for so many of its characters, then it is taken apart after all: that is when both cost the
same. So however often it is asked, a text costs a constant for each of its characters."""
MOST_IN_VAIN = 16
"""Places in a text that look like a value and are only part of one, before the text is taken apart."""
PIECE = 32_000
"""Characters that are taken apart at once: between two pieces other threads get their turn."""

_APART = "\"'`(){}[]<>,;=|“”‘’«»\n\r\t "
_BEGINS, _ENDS = ("", "#", "$", "@", "€", "£"), ("", ".", ":", "?", "!")
_AROUND = "".join((*_BEGINS, *_ENDS))
_TOKENS = frozenset(_APART)
"""What stands between tokens. Not what stands within addresses, paths and numbers."""
_WORDS = frozenset(_APART + "_-./\\@:#$€£%&*+!?~^–—…")
"""What stands between words."""
_SPLIT_TOKENS, _SPLIT_WORDS = (str.maketrans(dict.fromkeys(apart, " ")) for apart in (_TOKENS, _WORDS))

Text: TypeAlias = tuple[str, set[str] | None]
"""A text in lower case, and what in it does not count."""

letters_and_digits = re.compile(r"[^\W\d_]+|\d+").findall


def tokens(lowered: str) -> list[str]:
    return lowered.translate(_SPLIT_TOKENS).split()


def parts_of(lowered: str) -> list[str]:
    return lowered.translate(_SPLIT_WORDS).split()


def forms(values: Iterable[object]) -> set[str]:
    """How identifiers would be read out of a text that only repeats them."""
    read: set[str] = set()
    for value in values:
        lowered = str(value).strip().lower()
        for token in tokens(lowered):
            bare = token.strip(_AROUND)
            read.update((token, *(f"{begin}{bare}{end}" for begin in _BEGINS for end in _ENDS)))
        read.update(part for part in parts_of(lowered) if any(map(str.isdigit, part)))
    return read


class Index:
    """By token, or by word: which of a growing list of texts said it first."""

    def __init__(self, texts: list[Text], *, by_word: bool = False) -> None:
        self._texts = texts
        self._apart, self._split = (_WORDS, _SPLIT_WORDS) if by_word else (_TOKENS, _SPLIT_TOKENS)
        self._read = 0
        self.first: dict[str, int] = {}
        self._long: dict[int, int] = {}
        """Texts that are only searched so far, and how often they may be."""

    def find(self, parts: list[str]) -> int | None:
        """The text that said the last of these parts; None where one of them was not said, or there are none."""
        self.read_on()
        latest = -1
        for part in parts:
            first_at = self.first.get(part)
            if first_at is None and self._long:
                first_at = self._search(part)
            if first_at is None and (first_at := self._written_otherwise(part)) is None:
                return None
            latest = max(latest, first_at)
        return None if latest < 0 else latest

    def read_on(self) -> None:
        """Take in what was said since the last time."""
        for at in range(self._read, len(self._texts)):
            length = len(self._texts[at][0])
            if length <= SHORT_TEXT:
                self._take_apart(at)
            else:
                self._long[at] = length // CHARS_A_SEARCH
        self._read = len(self._texts)

    def _written_otherwise(self, part: str) -> int | None:
        """The same with punctuation around it, here or there."""
        bare = part.strip(_AROUND)
        if not bare:
            return None
        if bare != part and self._long and (at := self._search(bare)) is not None:
            return at
        for begin in _BEGINS:
            for end in _ENDS:
                if (at := self.first.get(f"{begin}{bare}{end}")) is not None:
                    return at
        return None

    def _search(self, part: str) -> int | None:
        """The first of the long texts in which it stands."""
        for at, left in tuple(self._long.items()):
            text, but = self._texts[at]
            if left and part not in text:  # mostly, and at once
                self._long[at] = left - 1
                continue
            if but is not None and part in but:
                continue
            stands = self._stands(text, part) if left else None
            if stands is None:
                del self._long[at]
                self._take_apart(at)
                stands = self.first.get(part) == at
            else:
                self._long[at] = left - 1
            if stands:
                return at
        return None

    def _stands(self, text: str, part: str) -> bool | None:
        """Whether a text has it with nothing but space and punctuation around; None where that takes too long."""
        at, apart = text.find(part), self._apart
        for _ in range(MOST_IN_VAIN):
            if at < 0:
                return False
            begin, end = at, at + len(part)
            if begin and text[begin - 1] in _BEGINS:
                begin -= 1
            if end < len(text) and text[end] in _ENDS:
                end += 1
            if (not begin or text[begin - 1] in apart) and (end == len(text) or text[end] in apart):
                return True
            at = text.find(part, at + 1)
        return None

    def _take_apart(self, at: int) -> None:
        text, but = self._texts[at]
        if but is None and text.isalnum():  # a number or a word: there is nothing to take apart
            self.first.setdefault(text, at)
            return
        for piece in (text,) if len(text) <= PIECE else _pieces(text):
            parts = piece.translate(self._split).split()
            if but:
                parts = [part for part in parts if part not in but]
            deque(map(self.first.setdefault, parts, repeat(at)), maxlen=0)  # a loop, four times as fast


def _pieces(text: str) -> Iterator[str]:
    """A long text in pieces that end where a word ends."""
    begin = 0
    while begin < len(text):
        end = begin + PIECE
        if end < len(text):
            gap = text.find(" ", end, end + PIECE)
            end = gap if gap >= 0 else end
        yield text[begin:end]
        begin = end


LEAST_DIGITS = 4
"""A text without spaces and with so many digits is no word and no quantity: an order number, an account, a version."""
LEAST_NUMBER = 7
"""Digits of a number that is an identifier whatever its parameter is called; shorter ones are quantities."""
LEAST_PHONE = 7
LEAST_NAMED_NUMBER = 100
"""A number in a parameter that is named as an identifier; smaller ones are positions and counters."""

_REFERENCES = frozenset({"id", "ids", "key", "uuid", "ref", "reference", "slug", "code", "number"})
_IDENTITIES = _REFERENCES | {"login", "user", "username", "account", "name", "email"}
_SAYS_NOTHING = {*map(stem, _REFERENCES), *map(stem, ("the", "a", "of", "by", "to", "get", "new", "with", "for"))}
_NAMED = frozenset({"id", "ids", "uuid", "guid", "email", "emails", "iban", "isbn", "sku", "url", "uri"})
_NOTHING = frozenset({"", "none", "null", "nil", "n/a", "na", "unknown", "any", "all", "-", "me", "self", "default"})
_email = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+").fullmatch
_address = re.compile(r"[a-z][a-z0-9+.-]{0,20}://\S+", re.IGNORECASE).fullmatch
is_when = re.compile(
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
        return digits >= LEAST_PHONE and sum(map(str.isalpha, text)) <= 3 and is_when(text) is None
    if _email(text) or _address(text) or is_path(text):
        return True
    if _named(name):
        return not text.isdigit() or int(text[:20]) >= LEAST_NAMED_NUMBER or text.startswith("0")
    if is_when(text):
        return False
    if _number(text):
        return digits >= LEAST_NUMBER and not text.endswith("000") and not {".", ",", "%"} & set(text)
    return sum(map(str.isdigit, _years.sub("", text))) >= LEAST_DIGITS


def _named(name: str) -> bool:
    """Whether a parameter is named as an identifier, e.g. ``order_id``, ``userId`` or ``contact_email``."""
    return last_word(name) in _NAMED


@lru_cache(maxsize=4_096)
def refers(name: str) -> bool:
    """Whether a parameter or field is named as a reference to something that is kept elsewhere."""
    return last_word(name) in _REFERENCES


def identifies(name: str) -> bool:
    """Whether a field is named as what tells somebody or something from others."""
    return last_word(name) in _IDENTITIES


@lru_cache(maxsize=4_096)
def last_word(name: str) -> str:
    parts = _name_words(name)
    return parts[-1].lower() if parts else ""


def is_address(text: str) -> bool:
    """Whether a value is an e-mail address or a URL: such a one is not made of parts that stand in several places."""
    return bool(_email(text) or _address(text))


def is_path(text: str) -> bool:
    """Whether a value is the path of a file. Its parts may have been said in several places."""
    return "/" in text[:3] and text.count("/") >= 2 and _path(text) is not None


def finders(
    parameters: Collection[str], offered: Iterable[ToolSpecification], *, of: str, sure: bool = False
) -> list[str]:
    """Tools that read and can be called without these parameters of the tool ``of``, the likeliest finders first.

    They speak of the things that the parameters name. Where they must do so for ``sure``, each says a parameter's name,
    or is called like the thing; else a tool that speaks of what ``of`` is about will do.
    """
    wanted = _things(" ".join(parameters)) or (set() if sure else _things(of))
    ranked: list[tuple[int, str]] = []
    for tool in offered:
        needs = tool.parameters.get("properties" if sure else "required", ())
        if not tool.read_only or tool.name == of or tool.name in RESERVED_NAMES or set(parameters) & set(needs):
            continue
        named = _things(tool.name)
        said = wanted and any(parameter in tool.description for parameter in parameters)
        if sure and not said and not (wanted and wanted <= named):
            continue
        shared = 4 * bool(said) + 2 * len(wanted & named) + len(wanted & _things(tool.description))
        if shared:
            ranked.append((-shared, tool.name))
    return [name for _, name in sorted(ranked)]


def _things(text: str) -> set[str]:
    return {stem(word) for word in words(text)} - _SAYS_NOTHING
