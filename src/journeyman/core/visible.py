"""Text as a person must see it before they agree to it: nothing hidden, nothing rearranged, numbers exact."""

from __future__ import annotations

import json
import re
from typing import Any

from journeyman.core.data import canonical_json

# Characters that count as printable and show nothing: fillers, blanks, joiners and variation selectors.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_LINES = frozenset("\n\t")


def visible(text: str) -> str:
    """The text with control, bidirectional, zero-width and blank characters written as JSON writes them: ``\\u202e``.

    Lines and tabs stay, and so does everything that can be seen.
    """
    if text.isprintable() and not _BLANK.search(text):
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character in _LINES or (character.isprintable() and not _BLANK.match(character)):
        return character
    return json.dumps(character)[1:-1] if character > "\x7f" else f"\\u{ord(character):04x}"


def exact_json(value: Any) -> str:
    """The JSON text of a value in which every character can be seen, and which reads back as exactly this value.

    A program whose numbers are floats, such as a page in a browser, shows and sends the text, and loses no digit.
    """
    return visible(canonical_json(value))


def one_line(text: str, *, most: int) -> str:
    """Foreign text as one short line."""
    line = visible(" ".join(text[: most * 4].split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"
