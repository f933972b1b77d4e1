"""Text → token ids, the way BERT's uncased models were trained. The words are in ``wordpiece.txt``.

The list is that of BERT (base, uncased; Google, Apache-2.0). A library that does this would bring a model hub's client
along; here nothing can reach a network.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

_LONGEST_WORD = 100
_PIECES = re.compile(r"[!-/:-@\[-`{-~]|[^\s!-/:-@\[-`{-~]+")
_IDEOGRAPHS = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f])"
)


@cache
def _vocabulary() -> dict[str, int]:
    lines = Path(__file__).with_name("wordpiece.txt").read_text(encoding="utf-8").splitlines()
    return {piece: number for number, piece in enumerate(lines)}


def token_ids(text: str, *, limit: int) -> list[int]:
    """At most ``limit`` ids, the opening and the closing one included."""
    vocabulary = _vocabulary()
    ids = [vocabulary["[CLS]"]]
    for word in _PIECES.findall(_normalised(text)):
        ids += _pieces(word, vocabulary)
        if len(ids) >= limit:
            break
    return [*ids[: limit - 1], vocabulary["[SEP]"]]


def _normalised(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text.lower()
    text = "".join(map(_clean, text))
    text = unicodedata.normalize("NFD", _IDEOGRAPHS.sub(r" \1 ", text))
    kept = (char for char in text if unicodedata.category(char) != "Mn")
    # Punctuation beyond ASCII stands alone too; the regular expression below knows only ASCII's.
    return "".join(f" {char} " if unicodedata.category(char).startswith("P") else char for char in kept).lower()


def _clean(char: str) -> str:
    if char.isspace():
        return " "
    return "" if char == "\ufffd" or unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs"} else char


def _pieces(word: str, vocabulary: dict[str, int]) -> list[int]:
    """The longest known beginning, then the longest known continuation, and so on; unknown as a whole if stuck."""
    if len(word) > _LONGEST_WORD:
        return [vocabulary["[UNK]"]]
    found: list[int] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            number = vocabulary.get(prefix + word[start:end])
            if number is not None:
                found.append(number)
                start = end
                break
        else:
            return [vocabulary["[UNK]"]]
    return found
