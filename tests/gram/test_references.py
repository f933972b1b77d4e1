"""Schemas that refer to files or addresses are refused wherever a specification comes from; nothing is fetched."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from journeyman import ToolDefinitionError, ToolSpecification
from journeyman.gram.references import outside_reference
from journeyman.interop.openai import from_openai
from journeyman.tools.tool import ForeignSchema

OUTSIDE = [
    "http://127.0.0.1:9/schema.json",
    "https://example.org/s.json#/$defs/a",
    "file:///etc/passwd",
    "/etc/passwd",
    "other.json",
    "../other.json#/a",
    "urn:example:a",
    "//example.org/a",
    "",
]


def placed(reference: str) -> list[dict[str, Any]]:
    """The reference in every kind of place where a schema may hold one."""
    inner = {"$ref": reference}
    return [
        {"properties": {"a": inner}},
        {"properties": {"default": inner}},
        {"properties": {"a": {"items": inner}}},
        {"properties": {"a": {"anyOf": [{"type": "null"}, inner]}}},
        {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": inner}},
        {"additionalProperties": inner},
        {"allOf": [{"$dynamicRef": reference}]},
        {"if": {"not": inner}, "then": {}},
    ]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("somebody connects")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("reference", OUTSIDE)
def test_a_reference_out_of_the_schema_is_refused(reference: str) -> None:
    for schema in placed(reference):
        with pytest.raises(ToolDefinitionError, match=r"leads out of the schema, and nothing is fetched"):
            ToolSpecification(name="t", description="d", parameters={"type": "object", **schema})
    with pytest.raises(ToolDefinitionError, match="leads out of the schema"):
        ToolSpecification(name="t", description="d", returns={"$ref": reference})
    function = {
        "name": "t",
        "description": "d",
        "parameters": {"type": "object", "properties": {"a": {"$ref": reference}}},
    }
    with pytest.raises(ToolDefinitionError, match="leads out of the schema"):
        from_openai({"type": "function", "function": function})


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/s.json", "file:///etc/hostname"])
def test_the_validator_itself_fetches_nothing(reference: str) -> None:
    with pytest.raises(ToolDefinitionError):
        ForeignSchema({"type": "object", "properties": {"a": {"$ref": reference}}}, where="here")


def test_references_inside_and_data_that_looks_like_one_are_fine() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/b"},
            "$ref": {"type": "string"},
            "c": {"default": {"$ref": "http://example.org"}, "enum": [{"$ref": "x"}, None]},
        },
        "$defs": {"b": {"type": "string"}},
    }
    assert outside_reference(schema) is None
    deep: Any = {"$ref": "x"}
    for _ in range(100_000):
        deep = {"items": deep}
    assert outside_reference(deep) == "x"
