"""Asking a scripted server through the adapter: what the tests of the adapter share."""

from __future__ import annotations

import json
from typing import Any

import pytest

from journeyman.core.errors import ModelError
from journeyman.core.protocols import ModelRequest, ModelResponse
from journeyman.core.runs import Message
from journeyman.core.specification import ToolSpecification
from journeyman.models.openai import OpenAIModel
from journeyman.testing import FakeClock, ScriptedServer, raw

KEY = "sk-very-secret"


class Heard:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.restarts = 0

    def text(self, delta: str) -> None:
        self.pieces.append(delta)

    def restart(self) -> None:
        self.restarts += 1
        self.pieces.clear()


def spec(name: str, **properties: Any) -> ToolSpecification:
    parameters = {"type": "object", "properties": properties, "additionalProperties": False}
    return ToolSpecification(name=name, description=f"Does {name}.", parameters=parameters)


def asked(*messages: Message, tools: tuple[ToolSpecification, ...] = (), **more: Any) -> ModelRequest:
    return ModelRequest(messages=messages or (Message.user("hello"),), tools=tools, step=1, **more)


def model_at(server: ScriptedServer, **options: Any) -> OpenAIModel:
    options.setdefault("clock", FakeClock())
    return OpenAIModel("m", base_url=server.url, **options)


async def ask(
    *turns: Any, request: ModelRequest | None = None, deltas: Heard | None = None, **options: Any
) -> ModelResponse:
    async with ScriptedServer(turns) as server, model_at(server, **options) as model:
        return await model.respond(request or asked(), deltas)


async def failure(*turns: Any, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(*turns, **options)
    return caught.value


def completion(message: dict[str, Any], **more: Any) -> Any:
    return raw(json.dumps({"choices": [{"message": message}], **more}).encode())


def stream(*deltas: dict[str, Any], end: bytes = b"data: [DONE]\n\n") -> Any:
    events = [b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n" for delta in deltas]
    return raw(*events, end, content_type="text/event-stream")


def tool(name: str, description: str, **parameters: Any) -> ToolSpecification:
    """A tool that requires all its parameters."""
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    return ToolSpecification(name=name, description=description, parameters=schema)
