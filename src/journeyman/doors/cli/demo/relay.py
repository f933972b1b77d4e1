"""Questions to a model from another process, and its answers: each is a line in a pipe."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from journeyman.core.messages import Message
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.core.specification import ToolSpecification

ASKS = "asks "
"""Begins a line with a question to the model."""


class Relayed:
    """A model that lives in the process which started this one."""

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        print(ASKS + written(request), flush=True)
        return ModelResponse.model_validate_json(await asyncio.to_thread(sys.stdin.readline))


def written(request: ModelRequest) -> str:
    """A question to a model in one line."""
    told: dict[str, Any] = {
        "messages": [message.model_dump(mode="json") for message in request.messages],
        "tools": [tool.model_dump(mode="json") for tool in request.tools],
        "step": request.step,
    }
    return json.dumps(told)


def read(line: str) -> ModelRequest:
    told = json.loads(line)
    messages = [Message.model_validate(message) for message in told["messages"]]
    tools = tuple(ToolSpecification.model_validate(tool) for tool in told["tools"])
    return ModelRequest(messages=messages, tools=tools, step=told["step"])
