"""Kinds of values that are told by how they are written: addresses, files, dates, amounts. In requests and in tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from journeyman.core.specification import ToolSpecification
from journeyman.core.words import stem, words

SAID = {
    "email": re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+"),
    "url": re.compile(r"https?://\S+|\bwww\.\S+|(?<![\w-])[\w-]+\.(?:com|org|net|io|dev|ai)\b", re.IGNORECASE),
    "channel": re.compile(r"(?<![\w/&])#[a-z][\w-]+"),
    "mention": re.compile(r"(?<![\w.])@[a-z][\w.-]*", re.IGNORECASE),
    "file": re.compile(
        r"(?<![\w@~./\\-])[\w~./\\-]*\.(?!com\b|org\b|net\b|io\b)[a-z]{2,5}\b(?<![.\d])|(?:^|\s)[~.]?/[\w./-]+"
    ),
    "repository": re.compile(r"(?<![\w/:.-])[A-Za-z][\w.-]+/[A-Za-z][\w.-]+(?![\w/])"),
    "time": re.compile(r"\b\d{1,2}(?::\d\d)\b|\b\d{1,2}\s?[ap]\.?m\b|\bnoon\b|\bmidnight\b", re.IGNORECASE),
    "date": re.compile(
        r"\b\d{4}-\d\d(?:-\d\d)?\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b(?:to(?:day|morrow|night)|yesterday)\b"
        r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:this|next|last)\s+(?:week|month|year|quarter|weekend)\b"
        r"|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b"
        r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)\.?\s+\d|\b\d+\s+(?:days?|weeks?|months?)\s+ago\b",
        re.IGNORECASE,
    ),
    "money": re.compile(r"[$€£¥]\s?\d|\b\d[\d,.]*\s?(?:dollars|euros|pounds|usd|eur|gbp)\b", re.IGNORECASE),
    "key": re.compile(r"\b[A-Za-z]{1,10}-\d+\b|\b(?=\w*\d)(?=\w*[A-Za-z])[A-Z0-9_]{5,}\b|(?<!\w)#\d+|\b\d+-\d+\b(?!-)"),
    "duration": re.compile(r"\b(?:\d+|an?|half an|two|three)\s?(?:min(?:ute)?s?|h(?:ou)?rs?|nights?)\b", re.IGNORECASE),
    "distance": re.compile(r"\b\d[\d.,]*\s?(?:km|kilomet(?:er|re)s?|miles?|met(?:er|re)s?)\b", re.IGNORECASE),
    "weight": re.compile(r"\b\d[\d.,]*\s?(?:kg|kilos?|grams?|g|lbs?|pounds|tons?|tonnes?)\b", re.IGNORECASE),
    "people": re.compile(
        r"\b(?:\d+|two|three|four|five|six|seven|eight|ten)\s(?:people|persons|guests|adults|of us|passengers)\b"
        r"|\b(?:group|party|table)\s(?:of|for)\s\w+",
        re.IGNORECASE,
    ),
    "coordinates": re.compile(r"-?\d{1,3}\.\d+\s*,\s*-?\d{1,3}\.\d+"),
}
"""How such values are written in a request."""
_TAKEN_WORDS = {
    "email": "email mail recipient recipients to cc attendees invitee invitees participants",
    "url": "permalink url uri link website webpage page site address domain",
    "channel": "channel channels room",
    "mention": "person user username assignee member handle mention reviewer",
    "file": "file filename path document folder directory attachment",
    "repository": "repo repository",
    "time": "time hour at start end when",
    "date": "date day when due deadline since until start end before after from to week month period",
    "money": "amount price cost budget total balance fee salary value",
    "key": "id key number code issue ticket order identifier reference sku tracking",
    "duration": "minutes hours duration length nights min minute hour",
    "distance": "distance km kilometres kilometers miles mileage length radius",
    "weight": "weight kg mass grams",
    "people": "guests people party headcount passengers persons servings seats size",
    "coordinates": "latitude longitude lat lon lng coordinates location",
}
TAKEN = {kind: frozenset(said.split()) for kind, said in _TAKEN_WORDS.items()}
"""Words in the name of a parameter that takes such a value."""
MOST_OPTIONS = 50
FORMATS = {"email": "email", "uri": "url", "date": "date", "date-time": "date", "time": "time"}


def kinds_said(text: str) -> frozenset[str]:
    """The kinds of which a value stands in a request."""
    found = {kind for kind, pattern in SAID.items() if pattern.search(text)}
    if "email" in found or "url" in found:
        found -= {"file", "mention"} - {kind for kind in ("mention",) if SAID["mention"].search(text)}
    return frozenset(found)


def kinds_of(name: str, schema: Mapping[str, Any]) -> frozenset[str]:
    """The kinds of value that a parameter takes, by its format or its name."""
    if (kind := FORMATS.get(str(schema.get("format")))) is not None:
        return frozenset((kind,))
    if schema.get("type") == "boolean" or schema.get("enum"):
        return frozenset()
    spelled = frozenset(words(name)) | frozenset(words(str(schema.get("description", "")))[:8])
    return frozenset(kind for kind, those in TAKEN.items() if spelled & those)


def _parameters(tool: ToolSpecification) -> Iterator[tuple[str, Mapping[str, Any]]]:
    properties = tool.parameters.get("properties", {})
    if isinstance(properties, Mapping):
        yield from ((str(name), schema) for name, schema in properties.items() if isinstance(schema, Mapping))


def kinds_taken(tool: ToolSpecification) -> frozenset[str]:
    """The kinds that any parameter of a tool takes."""
    return frozenset().union(*(kinds_of(name, schema) for name, schema in _parameters(tool)))


def kinds_required(tool: ToolSpecification) -> frozenset[str]:
    """The kinds that a tool cannot do without, each told by one parameter alone."""
    required = set(tool.parameters.get("required", ()))
    found = (kinds_of(name, schema) for name, schema in _parameters(tool) if name in required)
    return frozenset().union(*(each for each in found if len(each) == 1))


_EXAMPLES = re.compile(r"(?:e\.?g\.?|for example|such as|like|example:?)[,:]?\s+(.{1,80})", re.IGNORECASE)
_CODED = re.compile(r"(?<![\w-])#?(?=[\w-]{0,30}\d)(?=[\w#-]{0,30}[A-Za-z#])[\w-]{3,30}")
"""An identifier: letters and digits, such as ABC-123, v2.1 or T017."""


def shapes_of(text: str) -> frozenset[str]:
    """How the identifiers of a text are written: a run of letters as A or a, of digits as 9."""
    found = (
        re.sub(r"\d+", "9", re.sub(r"[A-Z]+", "A", re.sub(r"[a-z]+", "a", one[0]))) for one in _CODED.finditer(text)
    )
    return frozenset(found)


def example_shapes(tool: ToolSpecification) -> frozenset[str]:
    """The shapes of the identifiers that a tool's parameters give as examples."""
    found: set[str] = set()
    for _, schema in _parameters(tool):
        for example in _EXAMPLES.finditer(str(schema.get("description", ""))):
            found |= shapes_of(example[1])
        for example in schema.get("examples") or ():
            found |= shapes_of(str(example))
    return frozenset(found)


def identifier_prefixes(text: str) -> frozenset[str]:
    """The letters that identifiers begin with: ``inc`` of INC-17."""
    return frozenset(one[1].lower() for one in re.finditer(r"\b([A-Za-z]{2,8})[-_ ]?\d{2,}\b", text))


_IDENTIFIERS = frozenset(
    (
        "id",
        "key",
        "number",
        "code",
        "reference",
        "ref",
        "plate",
        "sku",
        "barcode",
        "isbn",
        "iban",
        "tracking",
        "serial",
        "no",
    )
)


def takes_identifier(tool: ToolSpecification) -> bool:
    """Whether one of a tool's parameters is the identifier of one thing."""
    return any(_IDENTIFIERS.intersection(words(name)[-1:]) for name, _ in _parameters(tool))


def needs_identifier(tool: ToolSpecification) -> bool:
    """Whether a tool cannot be called without naming one thing by its identifier."""
    required = set(tool.parameters.get("required", ()))
    return any(words(name)[-1:] in (["id"], ["key"], ["number"]) for name, _ in _parameters(tool) if name in required)


def optional_values(tool: ToolSpecification) -> tuple[frozenset[str], ...]:
    """The words of each value that an optional choice of a tool can have, and of each of its flags."""
    required = set(tool.parameters.get("required", ()))
    found = []
    for name, schema in _parameters(tool):
        if name not in required:
            values = [name] if schema.get("type") == "boolean" else (schema.get("enum") or ())[:MOST_OPTIONS]
            found += [frozenset(stem(word) for word in words(str(value))) for value in values]
    return tuple(one for one in found if one)
