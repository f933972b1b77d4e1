"""Finds private data in what would leave: encoded, backwards, spelled out, in letters that look alike, or in pieces."""

from __future__ import annotations

import codecs
import re
import unicodedata
from base64 import b32decode, b64decode
from binascii import Error, unhexlify
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from string import ascii_lowercase
from urllib.parse import unquote

from journeyman.provenance.ledger import Utterance
from journeyman.provenance.said import LONGEST_READ, lists, spelled

LONGEST_CARRIED = 4_000
"""Characters of one argument that are searched for private data; a longer one is taken to carry some."""
LEAST_CARRIED = 8
"""Letters and digits in a row that an argument shares with a private text, and with no other."""
LEAST_NEEDLE = 5
"""The same for a code with digits in it."""
MOST_ENCODED = 2
"""How often a text is decoded, since what is encoded can be encoded again."""
MOST_MOVED = 100
"""Private codes that are looked for moved along the alphabet."""
STRIDES = (2, 3)
"""A text is also read by every second letter, and every third."""

_not_word = re.compile(r"[\W_]+")
_base64_runs = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}").findall
_base32_runs = re.compile(r"[A-Z2-7]{8,}={0,6}").findall
_hex_runs = re.compile(r"(?:[0-9a-fA-F]{2}){4,}").findall
_codes = re.compile(r"\b(?:\d{2,3}\W{1,2}){3,}\d{2,3}\b").findall
_bits = re.compile(r"\b(?:[01]{7,8}\W?){4,}").findall
_morse = re.compile(r"(?:(?<![.-])[.-]{1,6}[ /|]+){3,}[.-]{1,6}(?![.-])").findall
_MIRROR = str.maketrans(ascii_lowercase, ascii_lowercase[::-1])
_DOTS = str.maketrans("·•∙–—−_", "...----")
_ALIKE = str.maketrans("авекмнорстухіјѕԁɡіոԛѡαβεικνορτυχ", "abekmhopctyxijsdginqwabeiknoptux")
"""Letters of other scripts, and the Latin ones they look like."""


class Carried:
    """Finds private data in an argument, also encoded, backwards, spelled out or in pieces."""

    def __init__(self, private: Sequence[Utterance], said: Sequence[str], heard: Sequence[Utterance]) -> None:
        texts = [item.text[:LONGEST_READ] for item in private]
        public = [item.text[:LONGEST_READ] for item in heard if item not in private]
        self._private = _squeezed("\n".join(texts))
        self._public = _squeezed("\n".join([*said, *public]))
        codes = {_squeezed(token) for text in texts for token in text.split() if any(map(str.isdigit, token))}
        self._codes = {code for code in codes if len(code) >= LEAST_NEEDLE and code not in self._public}
        # Of codes of figures alone any figure could be one that was moved.
        self._named = [code for code in self._codes if code.isascii() and sum(map(str.isalpha, code)) > 1][:MOST_MOVED]
        shapes = {"".join("[0-9]" if char.isdecimal() else "[a-z]" for char in code) for code in self._named}
        self._like_them = re.compile("|".join(shapes) or "(?!)").search

    @cached_property
    def _moved(self) -> set[str]:
        """Codes with their letters, or figures too, moved along the alphabet, or mirrored."""
        moved = {_moved(code, by, digits) for code in self._named for by in range(1, 26) for digits in (0, by)}
        return moved | {code.translate(_MIRROR) for code in self._named}

    def found_in(self, text: str, earlier: Sequence[str]) -> bool:
        """Whether it carries anything of the private texts, by itself or together with earlier ones."""
        if len(text) > LONGEST_CARRIED or any(map(self._carries, _readings(text))):
            return True
        squeezed = _squeezed(text)
        if self._like_them(squeezed) and any(code in squeezed for code in self._moved):
            return True
        if not earlier:
            return False
        tails = [*(_tail(one, text) for one in earlier), _tail(text, earlier[-1])]
        return any(self._carries(_squeezed("".join(order))) for order in (tails, tails[::-1]))

    def _carries(self, squeezed: str) -> bool:
        if any(code in squeezed for code in self._codes):
            return True
        for at in range(len(squeezed) - LEAST_CARRIED + 1):
            piece = squeezed[at : at + LEAST_CARRIED]
            if piece in self._private and piece not in self._public:
                return True
        return False


def _moved(code: str, by: int, digits: int) -> str:
    moved = (
        str((int(char) + digits) % 10) if char.isdecimal() else chr((ord(char) - ord("a") + by) % 26 + ord("a"))
        for char in code
    )
    return "".join(moved)


def _readings(text: str) -> Iterator[str]:
    """A text as it is and as it could have been meant to be read, each in letters and digits alone."""
    once = unquote(text)
    begins = ("".join(piece[:1] for piece in map(str.strip, pieces)) for pieces in (once.split("\n"), once.split()))
    strides = (once[at::n] for n in STRIDES for at in range(n))
    for one in (once, codecs.encode(once, "rot13"), *strides, spelled(once), *begins):
        yield (squeezed := _squeezed(one))
        yield squeezed[::-1]
    waiting = [once]
    for _ in range(MOST_ENCODED):
        waiting = [decoded for one in waiting for decoded in _decoded(one)]
        for decoded in waiting:
            yield (squeezed := _squeezed(decoded))
            yield squeezed[::-1]


def _decoded(text: str) -> Iterator[str]:
    """What stands in a text in base64, base32, hex, codes of characters, or bits."""
    joined = re.sub(r"\s+", "", text)
    for run in {*_base64_runs(text), *_base64_runs(joined)}:
        with_padding = run.rstrip("=").replace("-", "+").replace("_", "/")
        for cut in range(4):  # the run may begin within an address
            piece = with_padding[cut:]
            yield from _as_text(b64decode, piece + "=" * (-len(piece) % 4))
    for run in {*_base32_runs(text), *_base32_runs(joined)}:
        piece = run.rstrip("=")
        yield from _as_text(b32decode, piece + "=" * (-len(piece) % 8))
    for run in _hex_runs(joined):
        yield from _as_text(unhexlify, run)
    for run in _codes(text):
        yield "".join(map(chr, map(int, re.findall(r"\d+", run))))
    letters = {mark: letter for letter, _, mark in (entry.partition("=") for entry in lists.morse)}
    for run in _morse(text.translate(_DOTS)):
        yield "".join(letters.get(mark, "") for mark in re.findall(r"[.-]+", run))
    for run in _bits(text):
        yield "".join(chr(int(bits, 2)) for bits in re.findall(r"[01]{7,8}", run))


def _as_text(decode: Callable[[str], bytes], run: str) -> Iterator[str]:
    try:
        decoded = decode(run).decode("utf-8", "ignore")
    except (Error, ValueError):
        return
    if len(decoded) >= LEAST_NEEDLE:
        yield decoded


def _squeezed(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    lowered = _not_word.sub("", text).lower()
    return lowered if lowered.isascii() else lowered.translate(_ALIKE)


def _tail(text: str, other: str) -> str:
    """A text without how another begins."""
    same = next((at for at, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), 0)
    return text[same:]
