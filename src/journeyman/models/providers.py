"""Models of other providers (Anthropic, Google, Amazon Bedrock, …), through pydantic-ai's model classes.

Needs the extra ``providers``. pydantic-ai and the provider's SDK take seconds to import, so that is done at the first
request, in a thread. Each provider reads its key, and where it has one its address, from its own environment variables,
unless settings name them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from journeyman.core.data import unchecked
from journeyman.core.errors import ConfigurationError, ModelError
from journeyman.core.lazy import install_command
from journeyman.core.model_settings import ModelSettings, Timeouts
from journeyman.core.protocols import Clock, Deltas, ModelRequest, ModelResponse, SystemClock
from journeyman.core.runs import FinishReason, Message, Role, ToolCall, Usage
from journeyman.core.specification import name_for_models
from journeyman.core.words import packaged_json
from journeyman.models.answer import read_arguments
from journeyman.models.bounded import bound, over_budget
from journeyman.models.faults import Faults
from journeyman.models.http import SilenceError
from journeyman.models.remote import AttemptDeltas, AttemptError, PerEventLoop, RemoteModel, with_retries
from journeyman.models.structured import OutputMode, OutputModes, without_finish
from journeyman.models.wire import MALFORMED_SHOWN, alias_names, media_of

if TYPE_CHECKING:
    from pydantic_ai import messages as ai
    from pydantic_ai.models import Model as AiModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.providers import Provider

ADAPTER = "pydantic_ai"
"""Under which an answer is kept for the next step."""

logger = logging.getLogger(__name__)


def key_variable(provider: str) -> str:
    """What a provider reads its key from."""
    known: dict[str, str] = packaged_json("journeyman.models", "variables.json")
    return known.get(provider, f"{provider.upper().replace('-', '_')}_API_KEY")


class ProviderModel(RemoteModel):
    """A model by pydantic-ai's name for it, e.g. ``anthropic:claude-sonnet-5``.

    ``options`` are pydantic-ai's model settings, e.g. ``{"top_k": 5}``, and win over ``settings``; ``output`` is as for
    ``OpenAIModel``. An address that is given gets the key that is given with it, and none of the environment's. It may
    be used from several event loops.
    """

    several_strategies = True

    def __init__(
        self,
        name: str,
        settings: ModelSettings | None = None,
        *,
        timeout: Timeouts | float | None = None,
        retries: int | None = None,
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
        self._settings = settings = settings or ModelSettings(name=name)
        self.media = media_of(name) if settings.media is None else settings.media
        limits = Timeouts(total=timeout) if isinstance(timeout, int | float) else timeout
        self._timeouts = settings.timeout if limits is None else limits
        self._retries = settings.retries if retries is None else retries
        self._options = _options(settings, provider) | dict(options or {})
        self._clock = clock or SystemClock()
        self._modes = OutputModes(output)
        key, secret = key_variable(provider), settings.api_key
        known = os.environ.get(key, "") if secret is None else secret.get_secret_value()
        given = secret is not None or settings.base_url is not None
        self._faults = Faults(model=model, server=provider, secret=known, key="the api_key" if given else key)
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
            try:
                yield model
            finally:
                await _close_given(model)

    def _load(self) -> AiModel:
        try:
            from pydantic_ai.models import infer_model

            settings = self._settings
            if settings.base_url is None and settings.api_key is None:
                model = infer_model(self.name)
            else:
                model = infer_model(self.name, self._provider)
            client = getattr(model, "client", None)
            if model.system.startswith("google") and client is not None and "extra_body" in self._options:
                # pydantic-ai does not hand it on; Google's SDK has it for all requests of a client.
                client._api_client._http_options.extra_body = self._options.pop("extra_body")
            ignored: list[str] = [name for name in self._options if name in model.unsupported_settings]
            if "thinking" in self._options and not model.profile.get("supports_thinking"):
                ignored.append("reasoning")
            if ignored:
                logger.warning("model %s takes no %s; it is left out", self.name, ", ".join(ignored))
            return model
        except ImportError as error:
            command = re.search(r'pip install "([^"]+)"', str(error))
            raise ModelError(
                "MODEL_NOT_INSTALLED",
                f"model {self.name!r} needs a package that is missing: {error}",
                user_guidance=f"pip install '{command[1]}'" if command else install_command("providers"),
            ) from None
        except Exception as error:  # each SDK has its own class for credentials that are not there
            raise self._faults.no_key(str(error).partition(" To try ")[0]) from None

    def _provider(self, name: str) -> Provider[Any]:
        """The provider with the address and the key that were given."""
        from pydantic_ai.providers import infer_provider_class

        kind: Any = infer_provider_class(name)
        secret, base_url = self._settings.api_key, self._settings.base_url
        takes = signature(kind).parameters
        key = "none" if secret is None else secret.get_secret_value()
        address = next((known for known in ("base_url", "azure_endpoint") if known in takes), None)
        if base_url is not None and address is None and "openai_client" in takes:
            from openai import AsyncOpenAI

            made: Provider[Any] = kind(openai_client=AsyncOpenAI(base_url=base_url, api_key=key))
            return made
        given: dict[str, Any] = {"token" if "api_key" not in takes else "api_key": key}
        if secret is None and "aws_access_key_id" in takes:
            given.clear()  # requests are signed with the environment's, which does not show it
        if base_url is not None and address is not None:
            given[address] = base_url
        provider: Provider[Any] = kind(**given)
        return provider

    async def _attempt(
        self, model: AiModel, conversation: ProviderRequest, stream: AttemptDeltas | None, left: float | None
    ) -> ModelResponse:
        from pydantic_ai import direct, exceptions

        limits = self._timeouts
        # An answer that comes in one piece begins when it ends.
        whole = [left, limits.total, limits.first_byte if stream is None else None]
        seconds = min((limit for limit in whole if limit is not None), default=None)
        if seconds is not None and seconds <= 0:
            raise AttemptError(self._faults.timed_out(0))
        settings = {**self._options, "request_timeout": seconds, "max_retries": 0}
        if stream is not None:
            settings["first_event_timeout"] = limits.first_byte
        wanted: dict[str, Any] = {
            "model_settings": {
                key: value
                for key, value in settings.items()
                if value is not None and key not in model.unsupported_settings
            },
            "model_request_parameters": conversation.parameters,
        }
        messages = conversation.messages
        if model.profile.get("tool_call_id_length"):  # Mistral refuses ids of another length: they are replaced
            messages = model.prepare_messages(messages, conversation.parameters)
        try:
            if stream is None:
                return self._read(await direct.model_request(model, messages, **wanted), conversation)
            async with direct.model_request_stream(model, messages, **wanted) as events:
                async for event in _within(events, limits.idle):
                    if text := _streamed_text(event):
                        stream.text(text)
                return self._read(events.get(), conversation)
        except exceptions.ModelAPIError as error:
            if (passed := over_budget(error)) is not None:
                raise AttemptError(self._faults.too_large(str(passed))) from None
            raise AttemptError(self._error(error, seconds or 0), wait=error.retry_after) from None
        except SilenceError as error:
            raise AttemptError(self._faults.timed_out(error.seconds)) from None
        except exceptions.UserError as error:
            # pydantic-ai knows what some models refuse, and does not send it.
            raise AttemptError(self._faults.refused(400, error.message.encode())) from None
        except exceptions.ContentFilterError:
            return ModelResponse(usage=Usage(requests=1), model=self.name, finish="filter")
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
        fields = {
            "text": "".join(part.content for part in response.parts if part.part_kind == "text"),
            "calls": calls,
            "usage": Usage(
                input_tokens=response.usage.input_tokens,
                output_tokens=response.usage.output_tokens,
                requests=1,
                cached_tokens=response.usage.cache_read_tokens,
                reasoning_tokens=response.usage.output_reasoning_tokens,
            ),
            "model": response.model_name or self.name,
            "finish": _finish(response),
            "returned": _returned(response) if calls else None,
        }
        return unchecked(ModelResponse, fields)

    def _error(self, error: Any, seconds: float) -> ModelError:
        from pydantic_ai import exceptions

        said = error.body or error.message
        body = said.encode() if isinstance(said, str) else to_json(said, fallback=str)
        if isinstance(error, exceptions.ModelQuotaExceededError):
            return self._faults.refused(getattr(error, "status_code", 429), body, out_of_quota=True)
        if isinstance(error, exceptions.ModelRequestTimeout | exceptions.ModelTimeoutError):
            first = getattr(error, "setting", "") == "first_event_timeout"
            return self._faults.timed_out(self._timeouts.first_byte or 0 if first else seconds)
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
        self._call_ids = dict(request.call_ids)
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
            unchecked(
                ToolCall,
                {
                    "id": part.tool_call_id,
                    "tool_name": self._names.get(part.tool_name, part.tool_name),
                    "arguments": arguments,
                    "malformed": malformed,
                },
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
                parts.append(
                    ai.UserPromptPart([message.content, *_binaries(message)] if message.media else message.content)
                )
            elif message.role is Role.FUNCTION:
                name, call_id = self._alias(message.name or ""), self._id(message.call_id or "")
                said = [message.content, *_binaries(message)] if message.media else message.content
                parts.append(ai.ToolReturnPart(name, said, tool_call_id=call_id))
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
        if message.returned is not None and ADAPTER in message.returned:
            [kept] = ai.ModelMessagesTypeAdapter.validate_python([message.returned[ADAPTER]])
            theirs = [part.tool_call_id for part in kept.parts if part.part_kind == "tool-call"]
            if isinstance(kept, ai.ModelResponse) and len(theirs) == len(message.calls):
                # In another process; the results that follow must name the provider's own ids, too.
                self._call_ids |= {call.id: their for call, their in zip(message.calls, theirs, strict=True)}
                return kept
        parts: list[ai.ModelResponsePart] = [ai.TextPart(message.content)] if message.content else []
        for call in message.calls:
            # Providers refuse a history whose arguments are not JSON, so a malformed call is quoted.
            quoted = None if call.malformed is None else {"malformed_arguments": call.malformed[:MALFORMED_SHOWN]}
            name, given = self._alias(call.tool_name), quoted or call.arguments
            parts.append(ai.ToolCallPart(name, given, tool_call_id=self._id(call.id)))
        return ai.ModelResponse(parts)


def _binaries(message: Message) -> list[ai.BinaryContent]:
    from pydantic_ai import messages as ai

    return [ai.BinaryContent(b64decode(item.data or ""), media_type=item.mime_type) for item in message.media]


def _finish(response: ai.ModelResponse) -> FinishReason | None:
    details = response.provider_details or {}
    if details.get("finish_reason") == "refusal" or "refusal" in details:
        return "refusal"
    known: dict[str, FinishReason] = {"stop": "stop", "length": "length", "content_filter": "filter"}
    return known.get(response.finish_reason or "")


def _returned(response: ai.ModelResponse) -> dict[str, Any] | None:
    """The whole answer, as plain data, where it has what our messages do not hold: thinking, and signatures."""
    from pydantic_ai import messages as ai

    if not any(part.part_kind == "thinking" or getattr(part, "provider_details", None) for part in response.parts):
        return None
    kept: dict[str, Any] = ai.ModelMessagesTypeAdapter.dump_python([response], mode="json")[0]
    return {ADAPTER: kept}


async def _close_given(model: AiModel) -> None:
    """Close a client that was made here for an address: pydantic-ai closes its own."""
    provider = getattr(model, "_provider", None)
    close = getattr(getattr(provider, "client", None), "close", None)
    if getattr(provider, "_own_http_client", None) is None and asyncio.iscoroutinefunction(close):
        await close()


def _options(settings: ModelSettings, provider: str) -> dict[str, Any]:
    """Settings under pydantic-ai's names. What it has no name for goes into the body, or is one of its own for it."""
    own = {name: value for name, value in settings.extra.items() if name.startswith(f"{provider.partition('-')[0]}_")}
    extra = {name: value for name, value in settings.extra.items() if name not in own}
    said = {
        "temperature": settings.temperature,
        "max_tokens": settings.max_output_tokens,
        "thinking": {None: None, "none": False}.get(settings.reasoning, settings.reasoning),
        "seed": settings.seed,
        "stop_sequences": list(settings.stop) or None,
        "extra_headers": settings.headers or None,
        "bedrock_additional_model_requests_fields" if provider == "bedrock" else "extra_body": extra or None,
        "cache": settings.cache_prompt,
    }
    return {name: value for name, value in said.items() if value is not None} | own


async def _within(events: AsyncIterable[Any], idle: float | None) -> AsyncGenerator[Any]:
    """The events of a stream. Raises SilenceError when nothing comes for so long."""
    following = aiter(events)
    while True:
        try:
            async with asyncio.timeout(idle) as limit:
                event = await anext(following)
        except StopAsyncIteration:
            return
        except TimeoutError:
            if not limit.expired():
                raise
            raise SilenceError(idle or 0) from None
        yield event


def _streamed_text(event: Any) -> str:
    """The text that an event of a stream adds."""
    from pydantic_ai import messages as ai

    match event:
        case ai.PartStartEvent(part=ai.TextPart(content=text)):
            return str(text)
        case ai.PartDeltaEvent(delta=ai.TextPartDelta(content_delta=text)):
            return str(text)
    return ""
