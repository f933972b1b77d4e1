"""Local GGUF models with real weights: a small model that shows the adapter, not what larger ones can do."""

from __future__ import annotations

import asyncio
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from benchmarks.embedded import weights
from journeyman.core.errors import ModelError
from journeyman.core.runs import Message, Role, ToolCall
from journeyman.core.specification import ToolSpecification
from journeyman.models.gguf import GgufModel, gguf_server
from tests.models.asking import Heard, asked
from tests.waiting import WAIT_SECONDS

CONTEXT = 2048


def tool(name: str, description: str, **parameters: Any) -> ToolSpecification:
    schema = {"type": "object", "properties": parameters, "required": list(parameters), "additionalProperties": False}
    return ToolSpecification(name=name, description=description, parameters=schema)


TOOLS = (
    tool("get_weather", "Get the current weather for a city.", city={"type": "string"}),
    tool("delete_task", "Delete a task.", number={"type": "integer"}, force={"type": "boolean"}),
)


@pytest.fixture(scope="session")
def model() -> GgufModel:
    pytest.importorskip("xllamacpp", reason="the extra 'local' is not installed")
    return GgufModel(weights.install(), context=CONTEXT)


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"MODEL_NOT_FOUND.*nowhere\.gguf"):
        await GgufModel(tmp_path / "nowhere.gguf").respond(asked())


async def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    (tmp_path / "any.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"MODEL_NOT_INSTALLED.*\[local\]"):
        await GgufModel(tmp_path / "any.gguf").respond(asked())


@pytest.mark.slow
@pytest.mark.timeout(900)
class TestWithWeights:
    async def test_a_file_that_is_no_model_is_refused(self, model: GgufModel, tmp_path: Path) -> None:
        (tmp_path / "bad.gguf").write_bytes(b"not a model")
        with pytest.raises(ModelError, match="MODEL_BAD_FILE"):
            await GgufModel(tmp_path / "bad.gguf").respond(asked())

    async def test_arguments_fit_the_schema_and_the_choice_has_a_likelihood(self, model: GgufModel) -> None:
        response = await model.respond(asked(Message.user("Delete task 12 by force"), tools=TOOLS[1:]))
        assert response.usage.input_tokens > 0
        [call] = response.calls
        assert call.tool_name == "delete_task"
        assert call.arguments.keys() == {"number", "force"}
        assert type(call.arguments["number"]) is int
        assert type(call.arguments["force"]) is bool
        assert call.confidence is not None
        assert 0 < call.confidence < 1

    async def test_the_likelier_text_has_the_higher_likelihood(self, model: GgufModel) -> None:
        server = await gguf_server(model.path, context=CONTEXT)
        question = [
            {"role": "user", "content": "What is the capital of France?"},
            {"role": "assistant", "content": "The capital of France is"},
        ]
        paris = await server.likelihood(question, " Paris", count=lambda _: None)
        spoon = await server.likelihood(question, " spoon", count=lambda _: None)
        assert spoon < paris < 0

    async def test_prose_is_streamed(self, model: GgufModel) -> None:
        heard = Heard()
        response = await model.respond(asked(Message.user("Say hello.")), heard)
        assert len(heard.pieces) > 1
        assert "".join(heard.pieces) == response.text
        assert response.usage.output_tokens > 0

    async def test_a_call_that_was_made_is_not_made_again(self, model: GgufModel) -> None:
        only = (tool("get_time", "Get the current time."),)
        made = ToolCall(id="1", tool_name="get_time")
        conversation = (
            Message.user("What time is it?"),
            Message(role=Role.ASSISTANT, calls=(made,)),
            Message(role=Role.FUNCTION, name="get_time", call_id="1", content="12:00"),
        )
        response = await model.respond(asked(*conversation, tools=only))
        assert response.calls == ()
        assert response.text

    async def test_nobody_else_can_use_the_port_it_opens(self, model: GgufModel) -> None:
        server = await gguf_server(model.path, context=CONTEXT)
        address = server._server.listening_address
        assert address.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError) as refused:
            await asyncio.to_thread(urllib.request.urlopen, f"{address}/v1/models", timeout=WAIT_SECONDS)
        refused.value.close()
        assert refused.value.code == 401
