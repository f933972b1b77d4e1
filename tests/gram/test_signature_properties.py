"""Signatures by property: any schema survives, whatever is written is gram, and no text crashes the reader."""

from __future__ import annotations

import random
from typing import Any

import pytest
import tree_sitter
import tree_sitter_gram
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.errors import SignatureError
from journeyman.gram.signature import Signature, read_signature, same_schema, schema_differences, write_signature

GRAM = tree_sitter.Parser(tree_sitter.Language(tree_sitter_gram.language()))


def is_gram(text: str) -> bool:
    return not GRAM.parse(text.encode()).root_node.has_error


AWKWARD = [
    "",
    "//",
    " // x",
    "`",
    "\\",
    '"',
    "'",
    "\n",
    "\r\n",
    "\t//",
    "\0",
    "\x0b//",
    "\x85",
    "\u2028",
    "\ufeff",
    "é",
    "\ud800",
    "json`",
    "true",
    "a-b",
    "1",
]
texts = st.one_of(
    st.text(max_size=8), st.sampled_from(AWKWARD), st.lists(st.sampled_from(AWKWARD), max_size=3).map("".join)
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
KINDS = ["string", "integer", "number", "boolean", "array", "object", "null"]
names = st.one_of(st.sampled_from(["a", "b", "order_id", "next-page", "x.y", "a@b"]), texts)


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(KINDS) | st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True),
            "title": texts,
            "description": texts,
            "default": values,
            "enum": st.lists(values, max_size=3),
            "const": values,
            "minimum": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
            "maxLength": st.integers(0, 99),
            "pattern": texts,
            "format": st.sampled_from(["date", "uuid"]),
            "items": inner,
            "properties": st.dictionaries(names, inner, max_size=3),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": inner | st.booleans(),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "examples": st.lists(values, max_size=2),
            "$ref": st.sampled_from(["#/$defs/Node", "#/$defs/missing", "#"]),
        },
    )


plain = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS)},
    optional={
        "default": scalars,
        "description": texts,
        "enum": st.lists(scalars, max_size=3),
        "items": st.just({"type": "string"}),
    },
)
schemas = st.recursive(plain, keywords, max_leaves=5)


@st.composite
def roots(draw: st.DrawFn) -> dict[str, Any]:
    properties = draw(st.dictionaries(names, schemas | st.booleans(), max_size=4))
    root: dict[str, Any] = {"type": "object", "properties": properties}
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    if required:
        root["required"] = required
    extra = {"$defs": st.just({"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}})}
    more = {"description": texts, "additionalProperties": st.booleans(), "minProperties": st.integers(0, 3)}
    return root | draw(st.fixed_dictionaries({}, optional=extra | more))


def read_or_refused(text: str) -> Signature | SignatureError:
    try:
        return read_signature(text)
    except SignatureError as error:
        return error


def in_any_order(schema: dict[str, Any]) -> dict[str, Any]:
    """A root, with what may be said in two ways said in one: the order of ``required``, no properties, closedness."""
    bare = {key: value for key, value in schema.items() if key != "additionalProperties" or value is not False}
    return bare | {"properties": schema.get("properties", {}), "required": sorted(schema.get("required", []))}


@given(roots(), st.none() | schemas)
def test_every_schema_survives_the_way_to_gram_and_back(
    parameters: dict[str, Any], returns: dict[str, Any] | None
) -> None:
    text = write_signature(parameters, returns)
    assert is_gram(text)
    read = read_signature(text)
    assert in_any_order(read.parameters) == in_any_order(parameters)
    assert read.returns == returns
    assert schema_differences(read.parameters, parameters) == []
    assert write_signature(read.parameters, read.returns) == text


def shuffled(value: Any, draw: random.Random) -> Any:
    if isinstance(value, list):
        return [shuffled(each, draw) for each in value]
    if not isinstance(value, dict):
        return value
    entries = [(key, shuffled(each, draw)) for key, each in value.items() if key != "examples"]
    draw.shuffle(entries)
    for key, each in entries:
        if key in ("required", "enum", "anyOf") and isinstance(each, list):
            draw.shuffle(each)
    return dict(entries)


@given(roots(), st.randoms(use_true_random=False))
def test_order_makes_no_difference(schema: dict[str, Any], draw: random.Random) -> None:
    assert schema_differences(schema, shuffled(schema, draw)) == []


@given(roots(), roots())
def test_comparing_is_symmetric(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert same_schema(a, b) == same_schema(b, a)


PIECES = [
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ":",
    "::",
    ",",
    "==>",
    "-->",
    "->",
    "a",
    "b",
    " ",
    "\n",
    "String",
    "Text",
    "Maybe",
    "IO",
    "Array",
    "Any",
]
PIECES += [
    "default",
    "optional",
    "items",
    "enum",
    "schema",
    "parameters",
    "description",
    "json`",
    "`",
    '"',
    "'",
    "\\",
    "//",
    "1",
    "-0.5",
    "true",
    "{}",
    "é",
    "\0",
]
pieces = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@given(st.one_of(st.text(max_size=40), pieces, pieces.map("(a".__add__)))
def test_any_text_is_read_or_refused(text: str) -> None:
    read = read_or_refused(text)
    if isinstance(read, SignatureError):
        lines = text.split("\n")
        assert 1 <= read.line <= len(lines)
        assert 1 <= read.column <= len(lines[read.line - 1]) + 1
    else:
        assert same_schema(read_signature(write_signature(read.parameters, read.returns)).parameters, read.parameters)


SEEDS = [
    '(a::String {default: "x y", description: \'it\\\'s\'})==>(`b`::Array {items: "String", optional: true})==>(::Any)',
    '(a::Any {enum: [1, "b", true], schema: json`{"minimum": 1}`})==>(::Null {parameters: json`{"type": "object"}`})',
    "( a :: Integer { default : -1.5 } )\n==> (c::Array {items: Bool}) ==> ()",
]


@pytest.mark.parametrize("seed", SEEDS)
@given(data=st.data())
def test_a_path_that_is_accepted_is_gram(seed: str, data: st.DataObject) -> None:
    text = seed
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 3)))
        text = text[:start] + data.draw(st.sampled_from(["", *PIECES])) + text[end:]
    if not isinstance(read_or_refused(text), SignatureError):
        assert is_gram(text)
