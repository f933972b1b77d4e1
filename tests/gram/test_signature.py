"""Signatures by example: what each form means, what is written, and what is refused where."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from journeyman.core.errors import SignatureError
from journeyman.gram.signature import Signature, read_signature, same_schema, signature_schema, write_signature

STRING, INTEGER, NUMBER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
OBJECT, ARRAY, NULL = {"type": "object"}, {"type": "array"}, {"type": "null"}
ANY: dict[str, Any] = {}


def takes(*required: str, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | {"required": list(required)} if required else schema


def listof(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}

PATHS: list[tuple[str, dict[str, Any], dict[str, Any] | None]] = [
    ("(::String)", takes(), STRING),
    ("()", takes(), None),
    ("(::Any)", takes(), ANY),
    ("(::Null)", takes(), NULL),
    ("(name::String)==>(::String)", takes("name", name=STRING), STRING),
    (
        "(a::Integer)==>(b::Integer {default: 1})==>(::Integer)",
        takes("a", a=INTEGER, b=INTEGER | {"default": 1}),
        INTEGER,
    ),
    ("(a::Number)==>()", takes("a", a=NUMBER), None),
    ("(a::Boolean {default: false})==>(::Boolean)", takes(a=BOOLEAN | {"default": False}), BOOLEAN),
    ("(a::Number {default: -2.5})==>(::Number)", takes(a=NUMBER | {"default": -2.5}), NUMBER),
    ('(a::String {default: "x"})==>(::Any)', takes(a=STRING | {"default": "x"}), ANY),
    ("(a::String {optional: true})==>(::Object)", takes(a=STRING), OBJECT),
    ('(a::String {default: "x", optional: false})==>()', takes("a", a=STRING | {"default": "x"}), None),
    ("(a::Integer {default: json`null`})==>()", takes(a=INTEGER | {"default": None}), None),
    ("(a::Number {default: json`1e+30`})==>()", takes(a=NUMBER | {"default": 1e30}), None),
    ('(a::Object {default: json`{"b": [1]}`})==>()', takes(a=OBJECT | {"default": {"b": [1]}}), None),
    ("(a::Array)==>(::Array)", takes("a", a=ARRAY), ARRAY),
    ('(a::Array {items: "String"})==>(::Array {items: "Number"})', takes("a", a=listof(STRING)), listof(NUMBER)),
    ('(a::Array {items: "Any"})==>()', takes("a", a=listof(ANY)), None),
    ('(a::Array {items: "Integer", default: [1, 2]})==>()', takes(a=listof(INTEGER) | {"default": [1, 2]}), None),
    ("(a::Array {default: json`[]`})==>()", takes(a=ARRAY | {"default": []}), None),
    (
        '(a::Array {schema: json`{"items": {"type": "array", "items": {"type": "string"}}}`})==>()',
        takes("a", a=listof(listof(STRING))),
        None,
    ),
    ('(a::String {enum: ["on", "off"]})==>()', takes("a", a=STRING | {"enum": ["on", "off"]}), None),
    ('(a::Any {enum: ["on", 1, true, 0.5]})==>()', takes("a", a={"enum": ["on", 1, True, 0.5]}), None),
    ('(a::Any {enum: json`["on", null]`})==>()', takes("a", a={"enum": ["on", None]}), None),
    ('(a::String {description: "The \\"name\\"."})==>()', takes("a", a=STRING | {"description": 'The "name".'}), None),
    (
        '(a::String {title: "A"})==>(::Any {description: "It."})',
        takes("a", a=STRING | {"title": "A"}),
        {"description": "It."},
    ),
    (
        '(a::Integer {schema: json`{"minimum": 0, "maximum": 9}`})==>()',
        takes("a", a=INTEGER | {"minimum": 0, "maximum": 9}),
        None,
    ),
    (
        '(a::String {schema: json`{"pattern": "^\\\\\\\\d\\`$"}`})==>()',
        takes("a", a=STRING | {"pattern": "^\\d`$"}),
        None,
    ),
    (
        '(a::Any {schema: json`{"anyOf": [{"type": "string"}, {"type": "null"}]}`})==>()',
        takes("a", a={"anyOf": [STRING, NULL]}),
        None,
    ),
    ('(a::Any {schema: json`{"type": ["string", "null"]}`})==>()', takes("a", a={"type": ["string", "null"]}), None),
    (
        '(a::Object {schema: json`{"properties": {"b": {"type": "string"}}, "required": ["b"]}`})==>()',
        takes("a", a=takes("b", b=STRING)),
        None,
    ),
    ("(a::Any {schema: json`true`})==>()", takes("a", a=True), None),
    ("(`first name`::String)==>()", takes("first name", **{"first name": STRING}), None),
    ("(``::String)==>()", takes("", **{"": STRING}), None),
    ("(`/\\/ a`::String)==>()", takes("// a", **{"// a": STRING}), None),
    ("(`größe`::String)==>()", takes("größe", größe=STRING), None),
    (
        '(a::String {description: "/\\/ no comment"})==>()',
        takes("a", a=STRING | {"description": "// no comment"}),
        None,
    ),
    ('(a::String {description: json`"\\\\u0000"`})==>()', takes("a", a=STRING | {"description": "\0"}), None),
    (
        '({parameters: json`{"type": "object", "properties": {"\\\\u0000": {"type": "string"}}}`})',
        takes(**{"\0": STRING}),
        None,
    ),
    (
        '(a::Any {schema: json`{"$ref": "#/$defs/Node"}`})==>(::Null {parameters: json`{"type": "object", "$defs": '
        '{"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}}`})',
        takes("a", a={"$ref": "#/$defs/Node"}) | {"$defs": {"Node": NODE}},
        NULL,
    ),
]

TEXTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("() --> Text", takes(), STRING),
    ("() --> ()", takes(), NULL),
    ("() --> IO ()", takes(), NULL),
    ("(name: Text) --> IO Text", takes("name", name=STRING), STRING),
    ("(name: Text, age: Maybe Int) --> IO Text", takes("name", name=STRING, age=INTEGER), STRING),
    ("(a: String, b: Integer) -> Bool", takes("a", "b", a=STRING, b=INTEGER), BOOLEAN),
    ("(a: Double, b: Number, c: Float) -> Number", takes("a", "b", "c", a=NUMBER, b=NUMBER, c=NUMBER), NUMBER),
    ("(a: Boolean, b: Maybe Bool) -> Any", takes("a", a=BOOLEAN, b=BOOLEAN), ANY),
    ("(a: Value) --> Object", takes("a", a=ANY), OBJECT),
    ("(a: [Text]) --> [Int]", takes("a", a=listof(STRING)), listof(INTEGER)),
    ("(a: [[Text]]) --> IO [Value]", takes("a", a=listof(listof(STRING))), listof(ANY)),
    ("(a: Maybe [Text]) --> Text", takes(a=listof(STRING)), STRING),
    ("(a: [Maybe Text]) --> IO (Maybe Text)", takes("a", a=listof(STRING)), STRING),
    ("(a: {b: Text}) --> {c: Int}", takes("a", a=takes("b", b=STRING)), takes("c", c=INTEGER)),
    (
        "(a: {b: Maybe Text, c: [{d: Int}]}) --> ()",
        takes("a", a=takes("c", b=STRING, c=listof(takes("d", d=INTEGER)))),
        NULL,
    ),
    ("(a: Maybe {b: {c: Bool}}) --> Text", takes(a=takes("b", b=takes("c", c=BOOLEAN))), STRING),
    ("(a: {}) --> Text", takes("a", a=takes()), STRING),
    (" ( a\n:\tText ,\n  b : Maybe\nInt )\n-->\nIO\nText\n", takes("a", a=STRING, b=INTEGER), STRING),
]


@pytest.mark.parametrize(("text", "parameters", "returns"), PATHS)
def test_a_path_and_its_schema_are_two_forms_of_one_thing(
    text: str, parameters: dict[str, Any], returns: dict[str, Any] | None
) -> None:
    assert read_signature(text) == Signature(parameters, returns)
    assert write_signature(parameters, returns) == text
    assert jsonschema_rs.meta.is_valid({"$schema": "https://json-schema.org/draft/2020-12/schema", **parameters})


@pytest.mark.parametrize(("text", "parameters", "returns"), TEXTS)
def test_the_text_form_means_its_schema_and_survives_as_a_path(
    text: str, parameters: dict[str, Any], returns: dict[str, Any]
) -> None:
    assert read_signature(text) == Signature(parameters, returns)
    assert read_signature(write_signature(parameters, returns)) == Signature(parameters, returns)


def test_aliases_and_free_spelling_mean_the_same_path() -> None:
    free = "( a :: Text )\n==>\n( b::Int { default : 1 , title:'it\\'s' } ) ==> (c::Array{items:Bool})==>(::Float)"
    expected = takes("a", "c", a=STRING, b=INTEGER | {"default": 1, "title": "it's"}, c=listof(BOOLEAN))
    assert read_signature(free) == Signature(expected, NUMBER)


def test_the_schema_of_a_signature_is_that_of_its_parameters() -> None:
    assert (
        signature_schema("(a: Text) --> Int") == takes("a", a=STRING) == signature_schema("(a::String)==>(::Integer)")
    )


def test_a_closed_root_is_written_like_an_open_one() -> None:
    closed = takes("a", a=STRING) | {"additionalProperties": False}
    assert write_signature(closed, None) == "(a::String)==>()"
    assert same_schema(signature_schema("(a::String)==>()"), closed)


def test_an_unusual_root_survives() -> None:
    root = {"$ref": "#/$defs/Arguments", "$defs": {"Arguments": takes("a", a=STRING)}}
    assert read_signature(write_signature(root, None)).parameters == root


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ("", 1, 1, "'('"),
        ("(a::String", 1, 11, "')'"),
        ("(a::String)==>(::String", 1, 24, "')'"),
        ("(a::Strng)==>(::String)", 1, 5, "a type: String"),
        ("(a::String)==>\n(a::Integer)==>()", 2, 2, "another name"),
        ("(a::String)(::String)", 1, 12, "'==>'"),
        ("(a::String)-->(::String)", 1, 12, "'==>'"),
        ("(a::String)", 1, 12, "the return type"),
        ("(::String)==>(::String)", 1, 2, "a name before '::'"),
        ("(::String) tail", 1, 12, "the end"),
        ("(a::String {})==>(`b` {})==>()", 1, 23, "'::' and the type of 'b'"),
        ("(a::Integer {default: 1,})==>()", 1, 25, "a property"),
        ("(a::Integer {default: 1 optional: true})==>()", 1, 25, "',' or '}'"),
        ("(a::Integer {minimum: 1})==>()", 1, 14, "a property: items"),
        ("(a::Integer {default: 1, default: 2})==>()", 1, 26, "each property once"),
        ("(a::Integer {default: 0x1F})==>()", 1, 23, "a string, a number"),
        ("(a::Integer {default: null})==>()", 1, 23, "json`…`"),
        ("(a::Integer {enum: []})==>()", 1, 21, "a string, a number"),
        ("(a::Integer {enum: 1})==>()", 1, 20, "an array"),
        ("(a::Integer {optional: 1})==>()", 1, 24, "true or false"),
        ("(a::Integer {default: json`{`})==>()", 1, 23, "JSON"),
        ("(a::Number {default: json`NaN`})==>()", 1, 22, "JSON"),
        ("(a::Number {default: json`1e999`})==>()", 1, 22, "JSON"),
        ("(a::Number {default: " + "9" * 5000 + "})==>()", 1, 22, "a number that fits"),
        ('(a::String {default: "x\ny"})==>()', 1, 22, 'a closing "'),
        ('(a::String {default: "\\q"})==>()', 1, 22, "escapes are"),
        ('(a::String {default: " // x"})==>()', 1, 22, "'/\\/'"),
        ('(a::String {default: "\0"})==>()', 1, 22, 'a closing "'),
        ('(a::String {default: "\ud800"})==>()', 1, 22, 'a closing "'),
        ('(a::String {items: "String"})==>()', 1, 20, "the type Array"),
        ('(a::String {schema: json`{"type": "null"}`})==>()', 1, 21, "each keyword once"),
        ("(a::String {schema: json`true`})==>()", 1, 21, "Any alone"),
        ("(a::String)==>({schema: json`{}`})", 1, 17, "a property: parameters"),
        ('(a::String)==>({parameters: json`{"properties": {"a": {}}}`})', 1, 29, "each parameter once"),
        ('(a::String)==>({parameters: json`{"properties": 1}`})', 1, 29, "an object's JSON Schema"),
        ("(a: Text", 1, 9, "',' or ')'"),
        ("(a: Text,) --> Text", 1, 10, "a name"),
        ("(a Text) --> Text", 1, 4, "':' and the type of 'a'"),
        ("(a: Txt) --> Text", 1, 5, "a type: String"),
        ("(a: Text,\n a: Int) --> Text", 2, 2, "another name"),
        ("(a: Text) Text", 1, 11, "'-->'"),
        ("(a: Text)", 1, 10, "'-->'"),
        ("(a: Text) -->", 1, 14, "a type: String"),
        ("(a: [Text) --> Text", 1, 10, "']'"),
        ("(a: {b: Text) --> Text", 1, 13, "',' or '}'"),
        ("(a: Text) --> Text Int", 1, 20, "the end"),
        ("(a:String)==>(::String)", 1, 11, "'::' before each type"),
    ],
)
def test_a_mistake_is_placed_and_says_what_was_expected(text: str, line: int, column: int, expected: str) -> None:
    with pytest.raises(SignatureError) as caught:
        read_signature(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert expected in caught.value.expected


@pytest.mark.parametrize(
    "text",
    [
        "(a: " + "[" * 100_000,
        "(a: " + "{b: " * 100_000,
        "(a: " + "(" * 100_000,
        "(a: " + "Maybe " * 100_000,
        "(a::Any {default: json`" + "[" * 100_000 + "]" * 100_000 + "`})==>()",
        "(a::Any {default: json`" + "[" * 101 + "]" * 101 + "`})==>()",
    ],
)
def test_nesting_without_end_is_refused(text: str) -> None:
    with pytest.raises(SignatureError, match="too deeply"):
        read_signature(text)


def test_the_deepest_type_that_can_be_read_can_be_written() -> None:
    text = "(a: " + "{b: " * 49 + "Text" + "}" * 49 + ") --> Text"
    read = read_signature(text)
    assert read_signature(write_signature(read.parameters, read.returns)) == read


def test_what_is_not_json_cannot_be_written() -> None:
    endless: dict[str, Any] = {"type": "object"}
    endless["properties"] = {"a": endless, "b": endless}
    deep: Any = STRING
    for _ in range(10_000):
        deep = listof(deep)
    for schema in (endless, deep, {"default": {1, 2}}, {"default": float("nan")}, "string", {"minimum": 10**5000}):
        with pytest.raises(SignatureError, match="parameter 'a' cannot be written"):
            write_signature(takes(a=schema), None)
    with pytest.raises(SignatureError, match="last node"):
        write_signature(takes(), {"maximum": float("inf")})
    with pytest.raises(SignatureError, match="wrong kind"):
        write_signature({"type": "object", "properties": []}, None)
