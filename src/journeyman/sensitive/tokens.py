"""Texts that are credentials by their shape, and addresses that carry one."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from journeyman.core.words import Patterns, WordLists, packaged_json, words

MASK = "•••"
known = WordLists("journeyman.sensitive", "tokens.txt")

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

_labels = Patterns("journeyman.sensitive", "labels.txt")
_PREFIXED = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2,8}_(?:[a-z0-9]{2,10}_)?([A-Za-z0-9]{32,200})(?![A-Za-z0-9])")
"""How issuers whose prefix is not known make their tokens."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s'\"<>]+")
_HASH_OR_ID = re.compile(r"[0-9a-fA-F]{8,64}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EXPRESSION = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+")
_TURNS = re.compile(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_TELLING = re.compile(r"(?i:(?:key|token|secret|access|api|private)[-_]){1,3}")
_BETWEEN = re.compile(r"[-_.~+]")


@cache
def _at_prefix() -> dict[str, re.Pattern[str]]:
    """What follows each prefix of a token; the lengths are the least that their issuers use."""
    shapes: dict[str, list[str]] = packaged_json("journeyman.sensitive", "shapes.json")
    return {prefix: re.compile(rest) for rest, prefixes in shapes.items() for prefix in prefixes}


@cache
def _line_shapes() -> dict[str, re.Pattern[str]]:
    """What gives access by more than one word: lines of files, headers, messages to people.

    By what must stand in them, in lower case: most texts are told by that.
    """
    kinds: dict[str, dict[str, str]] = packaged_json("journeyman.sensitive", "lines.json")
    return {needle: re.compile(shape, re.IGNORECASE) for kind in kinds.values() for needle, shape in kind.items()}


def holds_token(text: str) -> bool:
    """Whether a credential stands in a text, by the shape that its issuer gives it."""
    text = text[:_SEARCHED].replace('\\"', '"')
    # Nearly all texts end here: no word of theirs is as long as a token.
    if _LONG_WORD.search(text) and next(_tokens(text), None) is not None:
        return True
    if text.replace(" ", "").isalpha():
        return False  # every other shape has digits or signs
    if any(random_word(match[1]) for match in _PREFIXED.finditer(text)):
        return True
    lower = text.lower()
    if any(name in lower for name in known.telling) and any(map(_is_secret, _labels.labelled.finditer(text))):
        return True
    if any(needle in lower and shape.search(text) for needle, shape in _line_shapes().items()):
        return True
    return any(map(_is_given, _labels.assigned.finditer(text)))


def url_carries_secret(url: str) -> bool:
    """Whether an address gives access by itself: userinfo, a secret field, a token or a random word in its path."""
    try:
        parts = urlsplit(url[:_LONGEST_URL])
        if parts.password or _unguessable(parts.username or ""):
            return True
        fields = parse_qsl(parts.query) + parse_qsl(parts.fragment)
    except ValueError:
        return False
    if any(value and secret_field(name, value) for name, value in fields):
        return True
    steps = [step for step in unquote(parts.path).split("/") if step]
    host = parts.netloc.rpartition("@")[2].rpartition(":")[0].lower() or parts.netloc.rpartition("@")[2].lower()
    if any(host == known_host or host.endswith(f".{known_host}") for known_host in known.link_hosts):
        # Whoever knows the address may use it: to post there, to join, to read.
        values = [*steps, *(value for _, value in fields), *host.split(".")[:-2]]
        return any(len(value) > 7 and any(map(str.isdigit, value)) and _is_value(value) for value in values)
    opening = next((at for at, step in enumerate(steps) if step.lower() in known.opening_steps), len(steps))
    if any(_unguessable(step, least=12) for step in steps[opening + 1 :]):
        return True
    return bool(parts.scheme) and host not in known.shared_hosts and any(map(_secret_word, steps))


def secret_field(name: str, value: str) -> bool:
    """Whether a field of a query, or of a form, holds a secret."""
    plain = "".join(character for character in name.lower() if character.isalnum())
    if any(word in plain for word in known.paging):
        return False
    if plain in known.fields or any(map(plain.endswith, known.field_ends)):
        return True
    if plain in known.fields_in_doubt and random_word(value, least=16):
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


def _unguessable(word: str, *, least: int = 20) -> bool:
    """Whether nobody could guess a word: letters and digits as no name has them, hashes and UUIDs among them."""
    digits, letters = sum(map(str.isdigit, word)), sum(map(str.isalpha, word))
    if not least <= len(word) <= 500 or digits < 2 or letters < 2:
        return False
    pieces = _BETWEEN.split(word)
    return _HASH_OR_ID.fullmatch(word) is not None or len(max(pieces, key=len)) >= min(least, 10)


def _mixed(word: str) -> bool:
    return all(any(map(kind, word)) for kind in (str.isupper, str.islower, str.isdigit))


def _secret_word(step: str) -> bool:
    """Whether a step of an address's path is drawn by lot, such as /bot123456:ABC…/."""
    name, colon, rest = step.partition(":")
    return (bool(colon) and len(rest) >= 20 and name.removeprefix("bot").isdigit()) or random_word(step)


def _drawn_by_lot(word: str) -> bool:
    """Whether no person would have made up a word that stands under a telling name: few of its letters follow one
    another as they do in words."""
    word = word.rstrip(".:")
    if len(set(word)) < 6 or len(word) < 8:
        return False
    if _HASH_OR_ID.fullmatch(word) and not word.isdigit():
        return True
    pairs = [pair for pair in map(str.__add__, word.lower(), word[1:].lower()) if pair.isalpha()]
    digits, common = sum(map(str.isdigit, word)), sum(pair in known.pairs for pair in pairs)
    if len(_TURNS.findall(word)) > 3 or (digits > 23 and word.isdigit()):
        return True
    if digits > 1 and sum(map(str.isalpha, word)) > 2:
        long = len(word) > 23 or max(map(len, _BETWEEN.split(word))) > 7
        return long and (len(pairs) < 4 or common < len(pairs) * 0.6)
    return len(pairs) > 12 and common < len(pairs) * 0.45


def _is_secret(match: re.Match[str]) -> bool:
    """Whether what stands under a telling name gives access: no key of a row, and no name that goes on."""
    word = match[3]
    if match.string[match.start(3) - 1] in "-_":
        word = _TELLING.sub("", word)
        if not _HASH_OR_ID.fullmatch(word) and len(_BETWEEN.split(word)[0]) < 20:
            return False
    return _drawn_by_lot(word) and known.open_names.isdisjoint(words(match[1] + match[2]))


def _is_given(match: re.Match[str]) -> bool:
    """Whether a password stands behind its name, and no placeholder, label, or expression of a program."""
    word = match["value"]
    if word.lower() in known.no_values or word[0] in "#/." or len(set(word)) < 3:
        return False
    if not match["quote"] and _EXPRESSION.fullmatch(word):
        return False
    if word[1:].isalpha() and word[1:].islower():
        before = match.string[match.start("value") - 1]
        return (match["quote"] != "" and match["end"] != "" and word[0].islower()) or (
            before == "=" and match.string[match.end() : match.end() + 1] in ("", "\n", ";", " ", '"')
        )
    return _is_value(word)


def _is_value(word: str) -> bool:
    """Whether this is a value, and no placeholder or word of prose."""
    return word.strip("*.-_•") != "" and any(not character.isalpha() or character.isupper() for character in word[1:])


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    """Where tokens stand. What follows a letter or a digit is part of another word."""
    if "\x1b" in text:
        text = _labels.coloured.sub(lambda match: " " * len(match[0]), text)
    places = 0
    for prefix, rest in _at_prefix().items():
        at = text.find(prefix)
        while at >= 0:
            begin = at + len(prefix)
            if at == 0 or text[at - 1] not in _LETTERS:
                places += 1
                if places > _MOST_PLACES:
                    yield at, len(text)
                    return
                if match := rest.match(text, begin):
                    # The shape says from where on it surely is one; it goes on as long as its letters do.
                    end = match.end()
                    while end < len(text) and end - at < _LONGEST and text[end] in _CONTINUED:
                        end += 1
                    if prefix not in known.common or _drawn(text[begin:end]):
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
    plain = ((step, unquote(step)) for step in parts.path.split("/"))
    steps = [MASK if word and (_secret_word(word) or any(_tokens(word))) else step for step, word in plain]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], "/".join(steps), "", ""))


def _masked(secret: str) -> str:
    return MASK


def redacted(text: str, mask: Callable[[str], str] = _masked) -> str:
    """The text with the tokens in it masked, and its addresses without what may be secret in them."""
    if len(text) < _SHORTEST:
        return text
    if "://" in text:
        text = _URL.sub(lambda found: bare_url(found[0]), text)
    if spans := sorted(_tokens(text)):
        pieces, done = [], 0
        for begin, end in spans:
            if begin >= done:
                pieces += [text[done:begin], mask(text[begin:end])]
                done = end
        text = "".join([*pieces, text[done:]])
    return _labels.assigned.sub(
        lambda found: found[0].replace(found["value"], mask(found["value"])) if _is_given(found) else found[0], text
    )


def redacted_value(value: Any, mask: Callable[[str], str] = _masked) -> Any:
    """A JSON value with every text in it redacted, whatever stands under a secret's name masked."""
    match value:
        case str():
            return redacted(value, mask)
        case list() | tuple():
            return [redacted_value(item, mask) for item in value]
        case dict():
            return {
                key: mask(item)
                if isinstance(item, str) and secret_field(str(key), item)
                else redacted_value(item, mask)
                for key, item in value.items()
            }
        case _:
            return value
