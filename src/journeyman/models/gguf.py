"""Local GGUF models, in this process, through xllamacpp: the adapter. ``gguf_server`` owns the weights.

Small models choose tools badly when they write freely. So the choice is made by likelihood: of each tool's whole name,
and of giving an answer instead. Arguments are then written under the tool's own schema, so they always parse.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from journeyman.core.messages import Message, Role, ToolCall, Usage
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.core.specification import ToolSpecification
from journeyman.models.gguf_server import GgufServer, gguf_server

ANSWER = "answer"
"""Stands for no tool; never a tool's name here, because it is written with a space before it."""

CHOOSE = """You can use these tools:
{tools}

Reply with the name of the one tool that does what the user asks for, as {{"tool": "NAME"}}.
Reply with {{"tool": " answer"}} when no tool fits, or when the results already answer the user."""
FILL = "Write the arguments for the tool {name}, as JSON. {description}\nTake the values from the user's words."
MOST_TOKENS = 512
ARGUMENT_TOKENS = 256


class GgufModel:
    """A model in a GGUF file. The same file is loaded once in a program, however many models name it."""

    def __init__(self, path: str | Path, *, context: int = 8192) -> None:
        self.path = Path(path).expanduser()
        self.name = f"gguf:{self.path.name}"
        self._context = context

    def __repr__(self) -> str:
        return f"GgufModel({str(self.path)!r})"

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        """One call, or prose."""
        server = await gguf_server(self.path, context=self._context)
        spent = Spent()
        history = _history(request.messages)
        if request.tools:
            chances = await self._chances(server, request.tools, history, spent)
            best = max(chances, key=lambda name: chances[name])
            tool = next((tool for tool in request.tools if tool.name == best), None)
            if tool is not None:
                arguments, malformed = await self._arguments(server, tool, history, spent)
                call = ToolCall(tool_name=tool.name, arguments=arguments, malformed=malformed, confidence=chances[best])
                if not _already_made(call, request.messages):
                    return ModelResponse(calls=(call,), usage=spent.usage(), confidence=chances[best], model=self.name)
        text = await self._prose(server, request.messages, history, spent, deltas)
        return ModelResponse(text=text, usage=spent.usage(), model=self.name)

    async def _chances(
        self, server: GgufServer, tools: Sequence[ToolSpecification], history: list[dict[str, str]], spent: Spent
    ) -> dict[str, float]:
        """How likely each name is as the model's next words, together 1."""
        listed = "\n".join(f"- {tool.name}: {' '.join(tool.description.split())}" for tool in tools)
        asked = [_system(CHOOSE.format(tools=listed)), *history, {"role": "assistant", "content": '{"tool": "'}]
        written = {tool.name: tool.name for tool in tools} | {" " + ANSWER: " " + ANSWER}
        scores = {name: await server.likelihood(asked, text + '"', count=spent.add) for name, text in written.items()}
        top = max(scores.values())
        weights = {name: math.exp(score - top) for name, score in scores.items()}
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    async def _arguments(
        self, server: GgufServer, tool: ToolSpecification, history: list[dict[str, str]], spent: Spent
    ) -> tuple[dict[str, Any], str | None]:
        if not tool.parameters.get("properties"):
            return {}, None
        asked = [_system(FILL.format(name=tool.name, description=" ".join(tool.description.split()))), *history]
        text = await server.write(asked, schema=tool.parameters, most=ARGUMENT_TOKENS, count=spent.add)
        try:
            value = json.loads(text)
        except ValueError:  # cut off at the limit
            return {}, text
        return (value, None) if isinstance(value, dict) else ({}, text)

    async def _prose(
        self,
        server: GgufServer,
        messages: Sequence[Message],
        history: list[dict[str, str]],
        spent: Spent,
        deltas: Deltas | None,
    ) -> str:
        instruction = "\n".join(message.content for message in messages if message.role is Role.SYSTEM)
        asked = [_system(instruction), *history] if instruction else history
        hear: Callable[[str], None] | None = deltas.text if deltas is not None else None
        return await server.write(asked, most=MOST_TOKENS, count=spent.add, hear=hear)


class Spent:
    """Tokens, added up over the questions of one step."""

    def __init__(self) -> None:
        self._input = self._output = self._requests = 0

    def add(self, usage: Mapping[str, Any]) -> None:
        self._input += int(usage.get("prompt_tokens", 0))
        self._output += int(usage.get("completion_tokens", 0))
        self._requests += 1

    def usage(self) -> Usage:
        return Usage(input_tokens=self._input, output_tokens=self._output, requests=self._requests)


def _system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


def _history(messages: Sequence[Message]) -> list[dict[str, str]]:
    """The conversation in the three roles that every chat template knows."""
    told: list[dict[str, str]] = []
    for message in messages:
        if message.role is Role.USER:
            told.append({"role": "user", "content": message.content})
        elif message.role is Role.FUNCTION:
            told.append({"role": "user", "content": f"Result of {message.name}: {message.content}"})
        elif message.role is Role.ASSISTANT:
            calls = [json.dumps({"tool": call.tool_name, "arguments": call.arguments}) for call in message.calls]
            told.append({"role": "assistant", "content": "\n".join(filter(None, [message.content, *calls]))})
    return told


def _already_made(call: ToolCall, messages: Sequence[Message]) -> bool:
    """Small models like to repeat themselves: since the latest request, the same call is not made again."""
    for message in reversed(messages):
        if message.role is Role.USER:
            return False
        if any((made.tool_name, made.arguments) == (call.tool_name, call.arguments) for made in message.calls):
            return True
    return False
