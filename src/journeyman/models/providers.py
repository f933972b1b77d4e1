"""Models of other providers (Anthropic, Google, Amazon Bedrock, …), through pydantic-ai's model classes.

Needs the extra ``providers``. pydantic-ai and the provider's SDK take seconds to import, so that is done at the first
request, in a thread. Each provider reads its key, and where it has one its address, from its own environment variables.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from journeyman.core.errors import ConfigurationError, ModelError
from journeyman.core.lazy import install_command
from journeyman.core.protocols import Clock, Deltas, ModelRequest, ModelResponse, SystemClock
from journeyman.core.runs import Message, Role, ToolCall, Usage
from journeyman.core.specification import name_for_models
from journeyman.core.words import packaged_json
from journeyman.models.answer import read_arguments
from journeyman.models.bounded import bound, over_budget
from journeyman.models.faults import Faults
from journeyman.models.remote import AttemptDeltas, AttemptError, PerEventLoop, RemoteModel, with_retries
from journeyman.models.structured import OutputMode, OutputModes, without_finish
from journeyman.models.wire import MALFORMED_SHOWN, alias_names

if TYPE_CHECKING:
    from pydantic_ai import messages as ai
    from pydantic_ai.models import Model as AiModel
    from pydantic_ai.models import ModelRequestParameters


def key_variable(provider: str) -> str:
    """What a provider reads its key from."""
    known: dict[str, str] = packaged_json("journeyman.models", "variables.json")
    return known.get(provider, f"{provider.upper().replace('-', '_')}_API_KEY")


class ProviderModel(RemoteModel):
    """A model by pydantic-ai's name for it, e.g. ``anthropic:claude-sonnet-5``.

    ``options`` are pydantic-ai's model settings, e.g. ``{"temperature": 0}``; ``output`` is as for ``OpenAIModel``. It
    may be used from several event loops.
    """

    several_strategies = True

    def __init__(
        self,
        name: str,
        *,
        timeout: float = 60.0,
        retries: int = 2,
        options: Mapping[str, Any] | None = None,
        output: OutputMode = "auto",
        clock: Clock | None = None,
    ) -> None:
        provider, _, model = name.partition(":")
        if not model:
            raise ConfigurationError(f"model {name!r} names no model; write '{provider}:NAME'")
        if find_spec("pydantic_ai") is None:
            raise ConfigurationError(
                f"model {name!r} needs the extra 'providers', which is not installed; "
                f"run: {install_command('providers')}"
            )
        self.name = name
        self._timeout = timeout
        self._retries = retries
        self._options = dict(options or {})
        self._clock = clock or SystemClock()
        self._modes = OutputModes(output)
        key = key_variable(provider)
        self._faults = Faults(model=model, server=provider, secret=os.environ.get(key, ""), key=key)
        self._clients: PerEventLoop[AiModel] = PerEventLoop(self._open)

    def __repr__(self) -> str:
        return f"ProviderModel({self.name!r})"

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        """Ask, and ask again where that may help."""
        model = await self._clients.get()
        schemas = request.output is not None and model.profile.get("supports_json_schema_output", False)
        if schemas and self._modes.native(request):
            return await self._modes.ask(
                lambda: self._ask(model, ProviderRequest(request, native=True), request, deltas),
                lambda: self._ask(model, ProviderRequest(request), request, deltas),
            )
        return await self._ask(model, ProviderRequest(request), request, deltas)

    async def _ask(
        self, model: AiModel, conversation: ProviderRequest, request: ModelRequest, deltas: Deltas | None
    ) -> ModelResponse:
        attempt = partial(self._attempt, model, conversation)
        # An SDK that cannot be told to leave retries to us makes its own.
        retries = 0 if "max_retries" in model.unsupported_settings else self._retries
        return await with_retries(attempt, request, deltas, retries=retries, clock=self._clock)

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[AiModel]:
        async with await asyncio.to_thread(self._load) as model:
            await bound(model)
            yield model

    def _load(self) -> AiModel:
        try:
            from pydantic_ai.models import infer_model

            return infer_model(self.name)
        except ImportError as error:
            command = re.search(r'pip install "([^"]+)"', str(error))
            raise ModelError(
                "MODEL_NOT_INSTALLED",
                f"model {self.name!r} needs a package that is missing: {error}",
                user_guidance=f"pip install '{command[1]}'" if command else install_command("providers"),
            ) from None
        except Exception as error:  # each SDK has its own class for credentials that are not there
            raise self._faults.no_key(str(error).partition(" To try ")[0]) from None

    async def _attempt(
        self, model: AiModel, conversation: ProviderRequest, stream: AttemptDeltas | None, left: float | None
    ) -> ModelResponse:
        from pydantic_ai import direct, exceptions

        seconds = self._timeout if left is None else min(left, self._timeout)
        if seconds <= 0:
            raise AttemptError(self._faults.timed_out(0))
        settings = {**self._options, "request_timeout": seconds, "max_retries": 0}
        wanted: dict[str, Any] = {
            "model_settings": {key: value for key, value in settings.items() if key not in model.unsupported_settings},
            "model_request_parameters": conversation.parameters,
        }
        messages = conversation.messages
        if model.profile.get("tool_call_id_length"):  # Mistral refuses ids of another length: they are replaced
            messages = model.prepare_messages(messages, conversation.parameters)
        try:
            if stream is None:
                return self._read(await direct.model_request(model, messages, **wanted), conversation)
            async with direct.model_request_stream(model, messages, **wanted) as events:
                async for event in events:
                    if text := _streamed_text(event):
                        stream.text(text)
                return self._read(events.get(), conversation)
        except exceptions.ModelAPIError as error:
            if (passed := over_budget(error)) is not None:
                raise AttemptError(self._faults.too_large(str(passed))) from None
            raise AttemptError(self._error(error, seconds), wait=error.retry_after) from None
        except exceptions.UserError as error:
            # pydantic-ai knows what some models refuse, and does not send it.
            raise AttemptError(self._faults.refused(400, error.message.encode())) from None
        except exceptions.UnexpectedModelBehavior as error:
            raise AttemptError(self._faults.bad_answer(error.message, (error.body or "").encode())) from None
        except Exception as error:
            if (passed := over_budget(error)) is not None:
                raise AttemptError(self._faults.too_large(str(passed))) from None
            # The SDKs of Amazon and Google look for credentials at the first request, and raise errors of their own.
            if "credential" not in str(error).lower():
                raise
            raise AttemptError(self._faults.no_key(str(error))) from None

    def _read(self, response: ai.ModelResponse, conversation: ProviderRequest) -> ModelResponse:
        calls = conversation.remember(response)
        return ModelResponse.unchecked(
            text="".join(part.content for part in response.parts if part.part_kind == "text"),
            calls=calls,
            usage=Usage(
                input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens, requests=1
            ),
            model=response.model_name or self.name,
        )

    def _error(self, error: Any, seconds: float) -> ModelError:
        from pydantic_ai import exceptions

        said = error.body or error.message
        body = said.encode() if isinstance(said, str) else to_json(said, fallback=str)
        if isinstance(error, exceptions.ModelQuotaExceededError):
            return self._faults.refused(getattr(error, "status_code", 429), body, out_of_quota=True)
        if isinstance(error, exceptions.ModelRequestTimeout | exceptions.ModelTimeoutError):
            return self._faults.timed_out(seconds)
        if isinstance(error, exceptions.ModelConnectionError):
            return self._faults.cut() if error.in_stream or error.phase == "read" else self._faults.unreachable(error)
        if isinstance(error, exceptions.ModelHTTPError):
            return self._faults.refused(error.status_code, body)
        return self._faults.bad_answer("an error", body)


class ProviderRequest:
    """A request in pydantic-ai's terms, and its answer in ours.

    A ``native`` one asks for data by the provider's own JSON Schema mode, instead of by the tool ``finish``.
    """

    def __init__(self, request: ModelRequest, *, native: bool = False) -> None:
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.tools import ToolDefinition

        self._aliases = alias_names(tool.name for tool in request.tools)
        self._names = {alias: name for name, alias in self._aliases.items()}
        self._answers: dict[tuple[str, ...], ai.ModelResponse] = request.memo.setdefault("provider_answers", {})
        self._call_ids = request.call_ids
        self.messages = self._convert(request.messages)
        self.parameters: ModelRequestParameters = ModelRequestParameters(
            function_tools=[
                ToolDefinition(
                    name=self._alias(tool.name),
                    description=tool.description_for_models,
                    parameters_json_schema=tool.parameters,
                )
                for tool in (without_finish(request) if native else request.tools)
            ],
            output_mode="native" if native else "text",
            output_object=OutputObjectDefinition(json_schema=request.output or {}, name="answer") if native else None,
        )

    def remember(self, response: ai.ModelResponse) -> tuple[ToolCall, ...]:
        """The calls of an answer.

        The answer is kept for the next request: some providers want back what came with their calls (Gemini's thought
        signatures), which our messages do not hold.
        """
        calls = tuple(
            ToolCall.unchecked(
                id=part.tool_call_id,
                tool_name=self._names.get(part.tool_name, part.tool_name),
                arguments=arguments,
                malformed=malformed,
            )
            for part in response.parts
            if part.part_kind == "tool-call"
            for arguments, malformed in [read_arguments(part.args)]
        )
        if calls and not any(call.malformed for call in calls):
            self._answers[tuple(call.id for call in calls)] = response
        return calls

    def _alias(self, name: str) -> str:
        return self._aliases.get(name) or name_for_models(name)

    def _id(self, call_id: str) -> str:
        return self._call_ids.get(call_id, call_id)

    def _convert(self, messages: Sequence[Message]) -> list[ai.ModelMessage]:
        from pydantic_ai import messages as ai

        converted: list[ai.ModelMessage] = []
        parts: list[ai.ModelRequestPart] = []
        for message in messages:
            if message.role is Role.SYSTEM:
                parts.append(ai.SystemPromptPart(message.content))
            elif message.role is Role.USER:
                parts.append(ai.UserPromptPart(message.content))
            elif message.role is Role.FUNCTION:
                name = self._alias(message.name or "")
                parts.append(ai.ToolReturnPart(name, message.content, tool_call_id=self._id(message.call_id or "")))
            elif message.content or message.calls:
                converted += [ai.ModelRequest(parts)] if parts else []
                converted.append(self._answer(message))
                parts = []
        return [*converted, ai.ModelRequest(parts)] if parts else converted

    def _answer(self, message: Message) -> ai.ModelResponse:
        from pydantic_ai import messages as ai

        known = self._answers.get(tuple(self._id(call.id) for call in message.calls)) if message.calls else None
        if known is not None:
            return known
        parts: list[ai.ModelResponsePart] = [ai.TextPart(message.content)] if message.content else []
        for call in message.calls:
            # Providers refuse a history whose arguments are not JSON, so a malformed call is quoted.
            quoted = None if call.malformed is None else {"malformed_arguments": call.malformed[:MALFORMED_SHOWN]}
            name, given = self._alias(call.tool_name), quoted or call.arguments
            parts.append(ai.ToolCallPart(name, given, tool_call_id=self._id(call.id)))
        return ai.ModelResponse(parts)


def _streamed_text(event: Any) -> str:
    """The text that an event of a stream adds."""
    from pydantic_ai import messages as ai

    match event:
        case ai.PartStartEvent(part=ai.TextPart(content=text)):
            return str(text)
        case ai.PartDeltaEvent(delta=ai.TextPartDelta(content_delta=text)):
            return str(text)
    return ""
