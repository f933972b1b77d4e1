"""Local GGUF models, in this process, through xllamacpp.

Small models choose tools badly when they write freely. So the choice is made by likelihood: of each tool's whole name,
and of giving an answer instead. Arguments are then written under the tool's own schema, so they always parse; so is
an answer that must be data.

xllamacpp also listens on a port of the loopback interface, open to whoever finds it; a random key, which is kept
nowhere, closes that.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from journeyman.core.errors import ErrorCategory, ModelError
from journeyman.core.lazy import install_command
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.core.runs import Message, Role, ToolCall, Usage
from journeyman.core.specification import ToolSpecification
from journeyman.models.answer import read_arguments
from journeyman.models.structured import without_finish

Count = Callable[[Mapping[str, Any]], None]
Spent = list[Mapping[str, Any]]

QUIET = -1
UNLIKELY = -30.0
"""The logarithm of the chance given to what the model did not write at all."""

ANSWER = " answer"
"""Stands for no tool; the space before it makes sure that no tool has this name."""

CHOOSE = """You can use these tools:
{tools}

Reply with the name of the one tool that does what the user asks for, as {{"tool": "NAME"}}.
Reply with {{"tool": "{answer}"}} when no tool fits, or when the results already answer the user."""
FILL = "Write the arguments for the tool {name}, as JSON. {description}\nTake the values from the user's words."
ANSWER_AS = "Answer the user with one JSON object that fits this schema, and nothing else: {schema}"
MOST_TOKENS = 512
OUTPUT_TOKENS = 2048
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
        spent, conversation = Spent(), ChatTurns(request.messages)
        # Data is an answer written under its schema, which is surer than a choice of ``finish`` and then its arguments.
        tools = request.tools if request.output is None else without_finish(request)
        if tools:
            chances = await self._chances(server, tools, conversation, spent)
            best = max(chances, key=lambda name: chances[name])
            tool = next((tool for tool in tools if tool.name == best), None)
            if tool is not None:
                arguments, malformed = await self._arguments(server, tool, conversation, spent)
                call = ToolCall(tool_name=tool.name, arguments=arguments, malformed=malformed, confidence=chances[best])
                if not conversation.has(call):
                    return ModelResponse(calls=(call,), usage=_total(spent), confidence=chances[best], model=self.name)
        write = partial(server.write, count=spent.append, on_text=deltas.text if deltas is not None else None)
        if request.output is None:
            text = await write(conversation.prompt(), most=MOST_TOKENS)
        else:
            text = await self._data(write, request.output, conversation)
        return ModelResponse(text=text, usage=_total(spent), model=self.name)

    async def _chances(
        self, server: GgufServer, tools: Sequence[ToolSpecification], conversation: ChatTurns, spent: Spent
    ) -> dict[str, float]:
        """How likely each name is as the model's next words, together 1."""
        listed = "\n".join(f"- {tool.name}: {' '.join(tool.description_for_models.split())}" for tool in tools)
        prompt = conversation.prompt(CHOOSE.format(tools=listed, answer=ANSWER))
        asked = [*prompt, {"role": "assistant", "content": '{"tool": "'}]
        names = dict.fromkeys([*(tool.name for tool in tools), ANSWER])
        scores = {name: await server.likelihood(asked, name + '"', count=spent.append) for name in names}
        top = max(scores.values())
        weights = {name: math.exp(score - top) for name, score in scores.items()}
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    async def _data(self, write: Callable[..., Awaitable[str]], schema: dict[str, Any], conversation: ChatTurns) -> str:
        asked = conversation.prompt(ANSWER_AS.format(schema=json.dumps(schema, ensure_ascii=False)))
        try:
            return await write(asked, most=OUTPUT_TOKENS, schema=schema)
        except ModelError as error:
            if error.info.code != "MODEL_REFUSED_REQUEST":
                raise
        # The engine makes a grammar of the schema and cannot make one of every schema; the model has read it anyway.
        return await write(asked, most=OUTPUT_TOKENS)

    async def _arguments(
        self, server: GgufServer, tool: ToolSpecification, conversation: ChatTurns, spent: Spent
    ) -> tuple[dict[str, Any], str | None]:
        if not tool.parameters.get("properties"):
            return {}, None
        asked = conversation.prompt(FILL.format(name=tool.name, description=" ".join(tool.description.split())))
        text = await server.write(asked, schema=tool.parameters, most=ARGUMENT_TOKENS, count=spent.append)
        return read_arguments(text)


class ChatTurns:
    """The conversation in the three roles that every chat template knows."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._instruction = "\n\n".join(message.content for message in messages if message.role is Role.SYSTEM)
        self._turns = [_turn(message) for message in messages if message.role is not Role.SYSTEM]

    def prompt(self, order: str = "") -> list[dict[str, str]]:
        """The agent's instruction, then what we want of the model, then the turns."""
        system = "\n\n".join(filter(None, [self._instruction, order]))
        return [{"role": "system", "content": system}, *self._turns] if system else self._turns

    def has(self, call: ToolCall) -> bool:
        """Whether this call was made since the latest request: small models like to repeat themselves."""
        for message in reversed(self._messages):
            if message.role is Role.USER:
                return False
            if any((made.tool_name, made.arguments) == (call.tool_name, call.arguments) for made in message.calls):
                return True
        return False


def _total(spent: Sequence[Mapping[str, Any]]) -> Usage:
    """What the questions of one step cost together."""
    return Usage(
        input_tokens=sum(int(usage.get("prompt_tokens", 0)) for usage in spent),
        output_tokens=sum(int(usage.get("completion_tokens", 0)) for usage in spent),
        requests=len(spent),
    )


def _turn(message: Message) -> dict[str, str]:
    if message.role is Role.ASSISTANT:
        calls = [json.dumps({"tool": call.tool_name, "arguments": call.arguments}) for call in message.calls]
        return {"role": "assistant", "content": "\n".join(filter(None, [message.content, *calls]))}
    result = f"Result of {message.name}: " if message.role is Role.FUNCTION else ""
    return {"role": "user", "content": result + message.content}


# --- the weights

_loading = threading.Lock()
_loaded: dict[tuple[str, int, int, int], GgufServer] = {}


async def gguf_server(path: Path, *, context: int) -> GgufServer:
    """The loaded file; loading it takes seconds, once."""
    return await asyncio.to_thread(_load, path, context)


class GgufServer:
    """One file's weights. Questions are answered one after another, in a thread."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journeyman-gguf")

    async def likelihood(self, messages: Sequence[Mapping[str, str]], text: str, *, count: Count) -> float:
        """The logarithm of the chance that the model goes on with exactly this text."""
        body = {
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": len(text.encode()) + 1,
            "grammar": f"root ::= {json.dumps(text, ensure_ascii=False)}",
            "logprobs": True,
            "top_logprobs": 1,
        }
        answer = await self._ask(body)
        count(answer.get("usage") or {})
        choice = answer["choices"][0]
        tokens = (choice.get("logprobs") or {}).get("content") or []
        scores = [token["logprob"] for token in tokens if token.get("token")]
        return sum(scores) if scores else UNLIKELY

    async def write(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        most: int,
        count: Count,
        schema: Mapping[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> str:
        """What the model writes; under a schema it is JSON that fits it. ``on_text`` is given the text as it grows."""
        body: dict[str, Any] = {"messages": list(messages), "temperature": 0, "max_tokens": most}
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"schema": dict(schema)}}
        if on_text is None:
            answer = await self._ask(body)
            count(answer.get("usage") or {})
            return answer["choices"][0]["message"].get("content") or ""
        return await self._stream({**body, "stream": True, "stream_options": {"include_usage": True}}, on_text, count)

    async def _stream(self, body: dict[str, Any], on_text: Callable[[str], None], count: Count) -> str:
        loop = asyncio.get_running_loop()
        text: list[str] = []
        abandoned = threading.Event()

        def take(chunk: Mapping[str, Any]) -> None:
            if chunk.get("usage"):
                count(chunk["usage"])
            for choice in chunk.get("choices") or ():
                if piece := (choice.get("delta") or {}).get("content"):
                    text.append(piece)
                    on_text(piece)

        def pass_on(chunk: Mapping[str, Any]) -> bool:
            """Called in the server's thread; True stops the writing."""
            if not abandoned.is_set():
                loop.call_soon_threadsafe(take, chunk)
            return abandoned.is_set()

        try:
            await self._ask(body, pass_on)
        except asyncio.CancelledError:
            abandoned.set()
            raise
        return "".join(text)

    async def _ask(self, body: dict[str, Any], on_chunk: Callable[[Any], bool] | None = None) -> dict[str, Any]:
        arguments = (body,) if on_chunk is None else (body, on_chunk)
        try:
            answer = await asyncio.wrap_future(self._thread.submit(self._server.handle_chat_completions, *arguments))
        except (ValueError, RuntimeError) as error:
            raise _refused(str(error)) from None
        if isinstance(answer, dict) and answer.get("error"):
            raise _refused(str(answer["error"]))
        return answer if isinstance(answer, dict) else {}


def _load(path: Path, context: int) -> GgufServer:
    try:
        state = path.stat()
    except OSError as error:
        raise ModelError(
            "MODEL_NOT_FOUND",
            f"there is no model in {str(path)!r}: {error.strerror}",
            category=ErrorCategory.INVALID_INPUT,
            user_guidance="write 'gguf:PATH' with the path of a .gguf file on this machine",
        ) from None
    key = (str(path), state.st_mtime_ns, state.st_size, context)
    with _loading:
        if key not in _loaded:
            _loaded[key] = GgufServer(_open(path, context))
        return _loaded[key]


def _open(path: Path, context: int) -> Any:
    try:
        import xllamacpp
    except ImportError:
        raise ModelError(
            "MODEL_NOT_INSTALLED",
            "local GGUF models need the package 'xllamacpp', which is missing",
            user_guidance=f"{install_command('local')}, or name another model",
        ) from None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = context
    parameters.n_parallel = 1
    parameters.warmup = False
    parameters.verbosity = QUIET
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.api_keys = [secrets.token_hex(32)]
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise ModelError(
            "MODEL_BAD_FILE",
            f"{str(path)!r} cannot be loaded: {error}",
            category=ErrorCategory.INVALID_INPUT,
            user_guidance="check that it is a whole .gguf file of a chat model, and that it fits into memory",
        ) from None


def _refused(reason: str) -> ModelError:
    return ModelError(
        "MODEL_REFUSED_REQUEST",
        f"the local model refused the request: {reason}",
        category=ErrorCategory.INVALID_INPUT,
        user_guidance="offer fewer tools or a shorter conversation, or name a model with more context",
    )
