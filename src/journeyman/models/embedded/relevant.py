"""Which optional parameters a request can speak of: the engine is asked for these, and makes up fewer values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from journeyman.core.arguments import DATES
from journeyman.core.days import LONGEST, as_iso
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import WORD, stem, words

# fmt: off
EVERYWHERE = frozenset((
    "a", "an", "and", "any", "all", "are", "as", "at", "be", "by", "can", "could", "do", "does", "for", "from", "give",
    "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "more", "my", "no", "not", "of", "on",
    "one", "only", "or", "our", "please", "s", "say", "so", "some", "t", "tell", "that", "the", "their", "them",
    "these", "they", "this", "to", "up", "us", "use", "used", "user", "want", "was", "we", "what", "when", "where",
    "which", "who", "will", "with", "would", "you", "your",
))
# fmt: on
"""Words that any request and any description has."""
NUMBERS = frozenset(("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"))


def stems(text: str) -> set[str]:
    """The stems of a text without those that any text has."""
    return {stem(word) for word in words(text) if word not in EVERYWHERE}


def relevant(tool: ToolSpecification, schema: Mapping[str, Any], text: str, today: date) -> dict[str, Any]:
    """The tool's schema with its required parameters and those optional ones that the request can speak of."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    said, of_tool = stems(text), stems(tool.name.replace("_", " "))
    told = {
        name: stems(f"{name.replace('_', ' ')} {part.get('description', '')}") - of_tool
        for name, part in properties.items()
    }
    # What is required is asked for anyway: its words may belong to another parameter as well.
    shared = Counter(one for name, each in told.items() for one in each if name not in required)
    kept = {
        name: part
        for name, part in properties.items()
        if name in required or any(shared[one] == 1 for one in told[name] & said) or _sayable(part, text, said, today)
    }
    return {**schema, "properties": kept}


def _sayable(schema: Mapping[str, Any], text: str, said: set[str], today: date) -> bool:
    """Whether a value of this kind stands in the request."""
    if schema.get("format") in DATES:
        return any(as_iso(piece, today) != piece or _is_date(piece) for piece in _pieces(text))
    if "enum" in schema:
        return any({stem(word) for word in words(str(value))} <= said for value in schema["enum"])
    if schema.get("type") in ("integer", "number"):
        return any(word.isdigit() or word in NUMBERS for word in words(text))
    return False


def _pieces(text: str) -> Iterator[str]:
    spans = [match.span() for match in WORD.finditer(text)]
    for start, (begin, _) in enumerate(spans):
        for _, end in spans[start : start + LONGEST]:
            yield text[begin:end]


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
