"""The weights of a GGUF file, loaded once, and the two questions asked of them. No tools and no messages of ours here.

xllamacpp answers in this process but also listens on a port of the loopback interface, open to whoever finds it; a
random key, known to nobody, closes that.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from journeyman.core.errors import ErrorCategory, ModelError

Count = Callable[[Mapping[str, Any]], None]

QUIET = -1
UNLIKELY = -30.0
"""The logarithm of the chance given to what the model did not write at all."""

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
        hear: Callable[[str], None] | None = None,
    ) -> str:
        """What the model writes; under a schema it is JSON that fits it. ``hear`` is told the text as it grows."""
        body: dict[str, Any] = {"messages": list(messages), "temperature": 0, "max_tokens": most}
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"schema": dict(schema)}}
        if hear is None:
            answer = await self._ask(body)
            count(answer.get("usage") or {})
            return answer["choices"][0]["message"].get("content") or ""
        return await self._stream({**body, "stream": True, "stream_options": {"include_usage": True}}, hear, count)

    async def _stream(self, body: dict[str, Any], hear: Callable[[str], None], count: Count) -> str:
        loop = asyncio.get_running_loop()
        text: list[str] = []
        abandoned = threading.Event()

        def take(chunk: Mapping[str, Any]) -> None:
            if chunk.get("usage"):
                count(chunk["usage"])
            for choice in chunk.get("choices") or ():
                if piece := (choice.get("delta") or {}).get("content"):
                    text.append(piece)
                    hear(piece)

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

    async def _ask(self, body: dict[str, Any], hear: Callable[[Any], bool] | None = None) -> dict[str, Any]:
        arguments = (body,) if hear is None else (body, hear)
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
            user_guidance="pip install 'journeyman[local]', or name another model",
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
