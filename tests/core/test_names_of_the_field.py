"""Other names that people use for our fields, examples in the schemas, and values that must be known ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

import journeyman.choosing
import journeyman.core
import journeyman.tasks
from journeyman import ToolCall, ToolCallRecord, ToolError
from journeyman.choosing import UserIntent
from journeyman.core.errors import InvalidDataError
from journeyman.core.gaps import add_intent_type
from journeyman.core.specification import ToolConfiguration
from journeyman.core.words import packaged_json

NOW = datetime(2027, 1, 1, tzinfo=UTC)
RECORD: dict[str, Any] = {"execution_id": "e", "call_id": "c", "status": "success", "start_time": NOW, "end_time": NOW}


def entity(name: str) -> type[BaseModel]:
    homes = (journeyman, journeyman.choosing, journeyman.core, journeyman.tasks)
    found = next(getattr(home, name) for home in homes if name in home.__all__)
    assert isinstance(found, type)
    assert issubclass(found, BaseModel)
    return found


def test_arguments_may_be_called_parameters() -> None:
    assert ToolCall.model_validate({"tool_name": "t", "parameters": {"a": 1}}).arguments == {"a": 1}
    assert ToolCallRecord.model_validate({**RECORD, "tool_name": "t", "parameters": {"a": 1}}).parameters == {"a": 1}
    assert ToolCall.model_validate_json('{"tool_name": "t", "parameters": {"a": 1}}').arguments == {"a": 1}
    assert "parameters" not in ToolCall(tool_name="t").model_dump()


def test_a_tool_error_takes_its_parts_in_order() -> None:
    error = ToolError("INVALID_TITLE", "Title too long", True, "Shorten it")
    assert error.to_dict() == {
        "error": "Title too long",
        "code": "INVALID_TITLE",
        "retryable": True,
        "recover_action": "Shorten it",
    }
    assert ToolError("X", "y").to_dict()["recover_action"] is None


def test_a_record_names_its_tool_and_older_ones_still_load() -> None:
    with pytest.raises(InvalidDataError, match="tool_name: a record names the tool that was called"):
        ToolCallRecord(**RECORD, tool_name="")
    assert ToolCallRecord.stored({**RECORD, "tool_name": ""}).tool_name == "unnamed"


SAMPLES = packaged_json("journeyman.core", "samples.json")


@pytest.mark.parametrize("name", SAMPLES)
def test_every_example_in_a_schema_is_valid(name: str) -> None:
    kind = entity(name)
    schema = TypeAdapter(kind).json_schema()
    shown = schema.get("examples") or schema["$defs"][name]["examples"]
    assert shown == [SAMPLES[name]]
    kind.model_validate(shown[0])


def test_an_example_is_shown_where_an_entity_is_part_of_another() -> None:
    parts = journeyman.AgentResponse.model_json_schema(mode="serialization")["$defs"]
    assert parts["ReasoningStep"]["examples"][0]["action"] == "call_tool"
    assert parts["ToolCallRecord"]["examples"][0]["tool_name"] == "lookup_order"


def test_intents_are_of_known_types() -> None:
    with pytest.raises(InvalidDataError, match="summarize, analyze, fetch, explain"):
        UserIntent(intent_type="translate_it", confidence=0.5)
    assert UserIntent.stored({"intent_type": "translate_it", "confidence": 0.5}).intent_type == "translate_it"
    add_intent_type("translate")
    assert UserIntent(intent_type="translate", confidence=0.5).intent_type == "translate"
    for wrong in ("", "Two words", "x" * 65, "1st"):
        with pytest.raises(journeyman.ConfigurationError, match="intent type"):
            add_intent_type(wrong)


def test_environments_are_known_ones() -> None:
    assert ToolConfiguration(tool_name="t", environment_overrides={"staging": {}}).environment_overrides
    with pytest.raises(InvalidDataError, match=r"environment_overrides\.prod"):
        ToolConfiguration(tool_name="t", environment_overrides={"prod": {}})
