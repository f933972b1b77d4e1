"""Comparing schemas: what counts, what does not, and how differences are told."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman.gram.signature import same_schema, schema_differences

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


LIST = {"$defs": {"List": of(value=INTEGER, rest={"$ref": "#/$defs/List"})}, "$ref": "#/$defs/List"}
UNROLLED = {
    "$defs": {"L": of(value=INTEGER, rest=of(value=INTEGER, rest={"$ref": "#/$defs/L"}))},
    "$ref": "#/$defs/L",
}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (of(a=STRING), of(a=STRING | {"title": "A", "description": "a", "examples": ["x"]})),
        (of(a=STRING, b=INTEGER), of(b=INTEGER, a=STRING)),
        (of(a=STRING, b=STRING) | {"required": ["a", "b"]}, of(a=STRING, b=STRING) | {"required": ["b", "a"]}),
        (of(a=STRING) | {"required": []}, of(a=STRING)),
        (of(), {"type": "object"}),
        (of() | {"additionalProperties": False}, of()),
        ({"enum": ["a", 1, None]}, {"enum": [None, "a", 1.0]}),
        ({"const": "a"}, {"enum": ["a"]}),
        ({"type": ["string", "null"]}, {"type": ["null", "string"]}),
        ({"type": ["string"]}, STRING),
        ({"anyOf": [STRING, INTEGER]}, {"anyOf": [INTEGER, STRING]}),
        ({"default": 1}, {"default": 1.0}),
        (of(a=True), of(a={})),
        (of(a={"$ref": "#/$defs/S"}) | {"$defs": {"S": STRING}}, of(a=STRING)),
        (of(a={"$ref": "#/$defs/S", "default": "x"}) | {"$defs": {"S": STRING}}, of(a=STRING | {"default": "x"})),
        (of(a={"$ref": "#/$defs/a~1b"}) | {"$defs": {"a/b": STRING}}, of(a=STRING)),
        (of(a=STRING, b={"$ref": "#/properties/a"}), of(a=STRING, b=STRING)),
        (LIST, UNROLLED),
        ({"$ref": "#"}, {"$ref": "#"}),
    ],
)
def test_schemas_that_ask_for_the_same_thing_are_the_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert schema_differences(a, b) == schema_differences(b, a) == []
    assert same_schema(a, b)


@pytest.mark.parametrize(
    ("a", "b", "differences"),
    [
        (of(order_id=STRING), of(order_id=INTEGER), ["order_id.type: string != integer"]),
        (of(verbose=STRING), of(), ["verbose: only in the specification"]),
        (of(), of(verbose=STRING) | {"required": ["verbose"]}, ["verbose: only in the tool"]),
        (of(a=STRING) | {"required": ["a"]}, of(a=STRING), ["a: required only in the specification"]),
        (of(a=STRING), of(a=STRING) | {"required": ["a"]}, ["a: required only in the tool"]),
        (of(a={"default": True}), of(a={"default": 1}), ["a.default: true != 1"]),
        (of(a={"default": None}), of(a={}), ["a.default: null only in the specification"]),
        (of(a={"minimum": 1}), of(a={"minimum": 2}), ["a.minimum: 1 != 2"]),
        (of(a={"enum": ["x"]}), of(a={"enum": ["y"]}), ['a.enum: ["x"] != ["y"]']),
        (of(a=of(b=STRING)), of(a=of(b=INTEGER)), ["a.b.type: string != integer"]),
        (of(a={"items": STRING}), of(a={"items": INTEGER}), ["a.items.type: string != integer"]),
        (
            of(a={"anyOf": [STRING, {"type": "null"}]}),
            of(a={"anyOf": [{"type": "null"}, INTEGER]}),
            ['a.anyOf: {"type": "string"} only in the specification', 'a.anyOf: {"type": "integer"} only in the tool'],
        ),
        (
            of(a={"additionalProperties": STRING}),
            of(a={}),
            ['a.additionalProperties: {"type": "string"} only in the specification'],
        ),
        (of(a=True), of(a=False), ["a.not: {} only in the tool"]),
        (of(a={"$ref": "#/$defs/missing"}), of(a={}), ['a.$ref: "#/$defs/missing" only in the specification']),
        (of(a={"required": True}), of(a={}), ["a.required: true only in the specification"]),
        (
            of(a={"prefixItems": [STRING]}),
            of(a={"prefixItems": [INTEGER]}),
            ["a.prefixItems.0.type: string != integer"],
        ),
        (of(b=STRING, a=INTEGER), of(b=INTEGER, a=STRING), ["b.type: string != integer", "a.type: integer != string"]),
    ],
)
def test_every_difference_is_told_with_its_path(a: dict[str, Any], b: dict[str, Any], differences: list[str]) -> None:
    assert schema_differences(a, b) == differences
    assert not same_schema(b, a)


def test_a_difference_inside_a_recursive_schema_is_found() -> None:
    other = {"$defs": {"List": of(value=STRING, rest={"$ref": "#/$defs/List"})}, "$ref": "#/$defs/List"}
    assert schema_differences(LIST, other) == ["value.type: integer != string", "rest: differs as above"]


def ladder(last: dict[str, Any]) -> dict[str, Any]:
    """Definitions that each use the next one twice: 2^60 paths, were they all walked."""
    rungs: dict[str, Any] = {
        f"D{n}": of(a={"$ref": f"#/$defs/D{n + 1}"}, b={"$ref": f"#/$defs/D{n + 1}"}) for n in range(60)
    }
    unions: dict[str, Any] = {
        f"U{n}": {"anyOf": [{"$ref": f"#/$defs/U{n + 1}"}, {"$ref": f"#/$defs/D{n}"}]} for n in range(60)
    }
    return of(a={"$ref": "#/$defs/D0"}, u={"$ref": "#/$defs/U0"}) | {
        "$defs": rungs | unions | {"D60": last, "U60": last}
    }


def test_shared_definitions_are_compared_once() -> None:
    assert same_schema(ladder(STRING), ladder(STRING))
    assert not same_schema(ladder(STRING), ladder(INTEGER))


def test_schemas_of_any_depth_are_compared_or_told_to_be_too_deep() -> None:
    deep: dict[str, Any] = STRING
    for _ in range(5_000):
        deep = {"items": deep}
    assert schema_differences(deep, {"items": deep}) == ["the schemas nest too deeply to be compared"]


def test_annotations_of_further_properties_make_no_difference() -> None:
    told = {"type": "object", "additionalProperties": {"examples": []}}
    assert schema_differences(told, {"type": "object", "additionalProperties": {}}) == []
    assert schema_differences(told, {"type": "object", "additionalProperties": {"type": "string"}}) != []
