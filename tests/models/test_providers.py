"""Models of other providers, against servers that speak their APIs on the loopback interface."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from journeyman import Agent, Image, ModelSettings, run
from journeyman.core.data import ANSWER_BYTES, EVENT_BYTES
from journeyman.core.errors import ConfigurationError, ErrorCategory, ModelError
from journeyman.core.lazy import install_command
from journeyman.core.playbook import NEXT_STEP
from journeyman.core.protocols import ModelResponse
from journeyman.core.runs import Message, Role, ToolCall
from journeyman.models.providers import ProviderModel, key_variable
from journeyman.models.resolve import PROVIDERS, model_from_name
from journeyman.testing import FakeClock, ScriptedServer, call, cut, raw, say, together
from journeyman.testing.server import Reply
from tests.models.asking import Heard, asked, tool
from tests.models.provider_servers import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    AnthropicServer,
    BedrockServer,
    GoogleServer,
    ProviderServer,
    Silence,
)
from tests.pictures import png

SERVERS = [AnthropicServer, GoogleServer, BedrockServer]
TOOLS = (
    tool("orders.lookup", "Look up an order.", order_id={"type": "string"}),
    tool("get_time", "Get the time.", zone={"type": "string"}),
)
ASKED = (Message.system("Help with orders."), Message.user("Where is W-17?"))

Reach = Callable[..., ProviderModel]

pytestmark = pytest.mark.timeout(120)  # the SDKs take seconds to import


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> Reach:
    """The model of a server, found by nothing but environment variables."""

    def model(server: ProviderServer, **options: Any) -> ProviderModel:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value.replace("URL", server.url))
        return ProviderModel(server.prefix, **{"clock": FakeClock(), **options})

    return model


def after(answer: ModelResponse, *results: str) -> tuple[Message, ...]:
    """The conversation, once an answer's calls have been made."""
    functions = [
        Message(role=Role.FUNCTION, name=made.tool_name, call_id=made.id, content=result)
        for made, result in zip(answer.calls, results, strict=True)
    ]
    return (*ASKED, Message(role=Role.ASSISTANT, content=answer.text, calls=answer.calls), *functions)


@pytest.mark.parametrize("server", SERVERS)
async def test_a_conversation_with_parallel_calls(server: type[ProviderServer], reach: Reach) -> None:
    calls = together(call("orders_lookup", order_id="W-17").with_id("a"), call("get_time", zone="CET").with_id("b"))
    with server(calls, say("It is shipped.")) as serving:
        async with reach(serving) as model:
            memo: dict[Any, Any] = {}
            first = await model.respond(asked(*ASKED, tools=TOOLS, memo=memo))
            assert serving.system() == "Help with orders."
            assert serving.roles() == ["user"]
            offered = serving.tools()
            assert list(offered) == ["orders_lookup", "get_time"]
            assert offered["orders_lookup"] == TOOLS[0].parameters
            assert [(made.id, made.tool_name, made.arguments) for made in first.calls] == [
                ("a", "orders.lookup", {"order_id": "W-17"}),
                ("b", "get_time", {"zone": "CET"}),
            ]
            assert first.usage.model_dump() == {
                "input_tokens": INPUT_TOKENS,
                "output_tokens": OUTPUT_TOKENS,
                "requests": 1,
            }
            answer = await model.respond(asked(*after(first, "shipped", "noon"), tools=TOOLS, memo=memo))
        assert answer.text == "It is shipped."
        assert answer.model
        assert serving.roles() == ["user", "assistant", "user"]
        assert serving.results() == [("a", "shipped"), ("b", "noon")]
        assert "orders_lookup" in str(serving.bodies[-1])
        assert "orders.lookup" not in str(serving.bodies[-1])


@pytest.mark.parametrize("server", SERVERS)
async def test_instruction_advice_and_example_turns_reach_the_provider(
    server: type[ProviderServer], reach: Reach
) -> None:
    example = ToolCall(id="x", tool_name="orders.lookup", arguments={"order_id": "W-1"})
    with server(say("ok")) as serving:
        async with reach(serving) as model:
            messages = (
                Message.system("Help with orders.\n\nWhat worked before:\n- look the order up first"),
                Message.user("Where is W-1?"),
                Message(role=Role.ASSISTANT, content="I look it up.", calls=(example,)),
                Message(role=Role.FUNCTION, name="orders.lookup", call_id="x", content="lost"),
                Message(role=Role.ASSISTANT, content="It is lost."),
                Message(role=Role.ASSISTANT),
                Message.user("Where is W-17?"),
                Message(role=Role.USER, name=NEXT_STEP, content="Call orders.lookup now."),
            )
            await model.respond(asked(*messages, tools=TOOLS))
        assert serving.system() == messages[0].content
        assert serving.roles() == ["user", "assistant", "user", "assistant", "user"]
        sent = str(serving.bodies[-1])
        assert all(text in sent for text in ("Where is W-1?", "I look it up.", "W-1", "lost", "Where is W-17?"))
        assert sent.index("Call orders.lookup now.") > sent.index("Where is W-17?")


@pytest.mark.parametrize("server", SERVERS)
async def test_streams_give_deltas_and_the_same_answer(server: type[ProviderServer], reach: Reach) -> None:
    said = ModelResponse(text="I look that up.", calls=together(call("get_time", zone="CET").with_id("a")).calls)
    with server(said) as serving:
        async with reach(serving) as model:
            heard = Heard()
            answer = await model.respond(asked(*ASKED, tools=TOOLS), heard)
    assert len(heard.pieces) > 1
    assert "".join(heard.pieces) == answer.text == "I look that up."
    assert [(made.id, made.tool_name, made.arguments) for made in answer.calls] == [("a", "get_time", {"zone": "CET"})]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)


async def test_what_came_with_a_call_goes_back_with_it(reach: Reach) -> None:
    with GoogleServer(call("get_time", zone="CET"), *[say("noon")] * 3) as serving:
        async with reach(serving) as model:
            memo: dict[Any, Any] = {}
            first = await model.respond(asked(*ASKED, tools=TOOLS, memo=memo))
            await model.respond(asked(*after(first, "12:00"), tools=TOOLS, memo=memo))
            assert "'thoughtSignature': 'c2lnbmF0dXJl'" in str(serving.bodies[-1])
            # After a restart the memo is empty; the facts still have it.
            *asked_before, result = after(first, "12:00")
            said = asked_before.pop()
            ours = tuple(made.model_copy(update={"id": "call_1_1"}) for made in said.calls)
            stored = said.model_copy(update={"returned": first.returned, "calls": ours}).model_dump_json()
            told = result.model_copy(update={"call_id": "call_1_1"})
            await model.respond(asked(*asked_before, Message.model_validate_json(stored), told, tools=TOOLS))
            assert "'thoughtSignature': 'c2lnbmF0dXJl'" in str(serving.bodies[-1])
            assert "call_1_1" not in str(serving.bodies[-1])
            # Without it the call itself still goes out.
            await model.respond(asked(*after(first, "12:00"), tools=TOOLS))
            assert "'name': 'get_time'" in str(serving.bodies[-1]["contents"][1])


async def test_arguments_that_are_no_json_are_kept_as_written(reach: Reach) -> None:
    class Broken(AnthropicServer):
        def stream(self, answer: ModelResponse) -> Any:
            for chunk in super().stream(answer):
                yield chunk.replace(b'"partial_json": "{', b'"partial_json": "oops')

    with Broken(call("get_time", zone="CET"), say("sorry")) as serving:
        async with reach(serving) as model:
            answer = await model.respond(asked(*ASKED, tools=TOOLS), Heard())
            [made] = answer.calls
            assert made.arguments == {}
            assert made.malformed is not None
            assert "oops" in made.malformed
            await model.respond(asked(*after(answer, "not an object"), tools=TOOLS))
        assert "malformed_arguments" in str(serving.bodies[-1])


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    ("status", "code", "category", "retryable"),
    [
        (400, "MODEL_REFUSED_REQUEST", ErrorCategory.INVALID_INPUT, False),
        (401, "MODEL_AUTHENTICATION", ErrorCategory.AUTHENTICATION, False),
        (404, "MODEL_NOT_FOUND", ErrorCategory.INVALID_INPUT, False),
        (429, "MODEL_RATE_LIMITED", ErrorCategory.RATE_LIMIT, True),
        (503, "MODEL_UNAVAILABLE", ErrorCategory.NETWORK, True),
    ],
)
async def test_an_error_says_what_to_do(
    server: type[ProviderServer], status: int, code: str, category: ErrorCategory, retryable: bool, reach: Reach
) -> None:
    with server(server.error(status)) as serving:
        async with reach(serving, retries=0) as model:
            with pytest.raises(ModelError) as caught:
                await model.respond(asked(*ASKED))
    info = caught.value.info
    assert (info.code, info.category, info.retryable) == (code, category, retryable)
    assert f"{serving.prefix.partition(':')[0]} answered {status}: scripted fault" in info.message
    if status == 401:
        assert next(name for name in serving.environment if "KEY" in name) in (info.user_guidance or "")


async def test_an_exhausted_account_is_not_asked_again(reach: Reach) -> None:
    told = AnthropicServer.error(402)
    with AnthropicServer(told, say("never")) as serving:
        async with reach(serving) as model:
            with pytest.raises(ModelError, match=r"MODEL_RATE_LIMITED.*billing") as caught:
                await model.respond(asked(*ASKED))
    assert not caught.value.info.retryable


@pytest.mark.parametrize("server", [AnthropicServer, GoogleServer])
async def test_what_may_pass_is_asked_again_and_what_was_streamed_is_void(
    server: type[ProviderServer], reach: Reach
) -> None:
    with server(cut("An answer that breaks off."), server.error(503), say("whole")) as serving:
        clock, heard = FakeClock(), Heard()
        async with reach(serving, clock=clock) as model:
            answer = await model.respond(asked(*ASKED), heard)
    assert answer.text == "whole"
    assert ("".join(heard.pieces), heard.restarts) == ("whole", 1)
    assert len(clock.slept) == 2


async def test_the_server_says_how_long_to_wait(reach: Reach) -> None:
    with AnthropicServer(AnthropicServer.error(429, **{"Retry-After": "7"}), say("ok")) as serving:
        clock = FakeClock()
        async with reach(serving, clock=clock) as model:
            assert (await model.respond(asked(*ASKED))).text == "ok"
    assert clock.slept == [7]


@pytest.mark.parametrize("server", SERVERS)
async def test_a_provider_has_as_long_as_the_run(server: type[ProviderServer], reach: Reach) -> None:
    silence = Silence()
    with server(silence) as serving:
        async with reach(serving) as model:
            with pytest.raises(ModelError) as caught:
                await model.respond(asked(*ASKED, timeout=0.2))
        silence.over.set()
    assert (caught.value.info.code, caught.value.info.category) == ("MODEL_TIMEOUT", ErrorCategory.TIMEOUT)


async def test_no_time_left_means_no_request(reach: Reach) -> None:
    with AnthropicServer() as serving:
        async with reach(serving) as model:
            with pytest.raises(ModelError, match="MODEL_TIMEOUT"):
                await model.respond(asked(*ASKED, timeout=0))
        assert serving.bodies == []


async def test_a_server_that_is_not_there(reach: Reach) -> None:
    with AnthropicServer() as serving:
        model = reach(serving, retries=0)
    async with model:
        with pytest.raises(ModelError, match="MODEL_UNAVAILABLE: cannot reach anthropic"):
            await model.respond(asked(*ASKED))


def test_one_model_works_in_one_event_loop_after_another(reach: Reach) -> None:
    with AnthropicServer(say("one"), say("two")) as serving:
        model = reach(serving)
        answers = [asyncio.run(model.respond(asked(*ASKED))).text for _ in range(2)]
    assert answers == ["one", "two"]


async def test_the_rest_are_pydantic_ais_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer([call("get_time", zone="CET"), say("noon")]) as server:
        monkeypatch.setenv("GROQ_API_KEY", "gsk-secret")
        monkeypatch.setenv("GROQ_BASE_URL", server.url.removesuffix("/v1"))
        async with ProviderModel("groq:llama-4") as model:
            answer = await model.respond(asked(*ASKED, tools=TOOLS))
        assert [(made.tool_name, made.arguments) for made in answer.calls] == [("get_time", {"zone": "CET"})]
        assert server.requests[0]["messages"][0] == {"role": "system", "content": "Help with orders."}


async def test_ids_are_made_to_fit_a_provider_that_wants_a_certain_length(monkeypatch: pytest.MonkeyPatch) -> None:
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    async with ScriptedServer([raw(b'{"choices": []}')]) as server:
        provider = MistralProvider(api_key="secret", base_url=server.url.removesuffix("/v1"))
        model = ProviderModel("mistral:mistral-large")
        monkeypatch.setattr(model, "_load", lambda: MistralModel("mistral-large", provider=provider))
        said = ModelResponse(calls=(ToolCall(id="call_of_another_model", tool_name="get_time"),))
        async with model:
            with pytest.raises(ModelError, match="MODEL_BAD_ANSWER"):
                await model.respond(asked(*after(said, "12:00"), tools=TOOLS))
    [called, result] = server.requests[0]["messages"][-2:]
    assert called["tool_calls"][0]["id"] == result["tool_call_id"]
    assert len(result["tool_call_id"]) == 9


# --- what is missing


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_missing_key_is_named(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError) as caught:
        await ProviderModel(f"{provider}:some/model").respond(asked())
    info = caught.value.info
    if info.code == "MODEL_NOT_INSTALLED":
        assert info.user_guidance == f"pip install 'pydantic-ai-slim[{provider}]'"
        return
    assert (info.code, info.category) == ("MODEL_AUTHENTICATION", ErrorCategory.AUTHENTICATION)
    variable = key_variable(provider)
    assert variable in (info.user_guidance or "")
    # pydantic-ai names the variable itself, except where several belong together.
    assert variable in info.message or " and " in variable


async def test_missing_credentials_are_named_even_at_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with pytest.raises(ModelError, match=r"MODEL_AUTHENTICATION: .*credentials.*AWS_ACCESS_KEY_ID"):
        await ProviderModel(BedrockServer.prefix).respond(asked())


async def test_a_key_is_never_shown(reach: Reach) -> None:
    with AnthropicServer(AnthropicServer.error(401, "bad key sk-ant-secret")) as serving:
        async with reach(serving) as model:
            with pytest.raises(ModelError) as caught:
                await model.respond(asked(*ASKED))
    assert "bad key ***" in str(caught.value)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(ConfigurationError, match=rf"'anthropic:x' needs .*{re.escape(install_command('providers'))}"):
        model_from_name("anthropic:x")


def test_naming_a_provider_imports_none_of_its_packages() -> None:
    program = (
        "import sys; from journeyman.models.resolve import model_from_name; model_from_name('anthropic:x');"
        "print([name for name in ('pydantic_ai', 'anthropic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


GROWN = zlib.compressobj(9, zlib.DEFLATED, 31)
BOMB = b"".join([*(GROWN.compress(b" " * 1_000_000) for _ in range(200)), GROWN.flush()])
"""Two hundred megabytes of blanks."""


@pytest.mark.parametrize("server", [AnthropicServer, GoogleServer])
@pytest.mark.parametrize(("status", "streamed"), [(200, False), (200, True), (500, False)])
async def test_a_small_answer_that_unpacks_to_a_large_one_is_not_read(
    server: type[ProviderServer], status: int, streamed: bool, reach: Reach
) -> None:
    kind = "text/event-stream" if streamed else "application/json"
    reply = Reply((BOMB,), status, (("Content-Type", kind), ("Content-Encoding", "gzip")))
    with server(reply) as serving:
        async with reach(serving, retries=0) as model:
            await model._clients.get()  # the SDK's import is not measured
            tracemalloc.start()
            try:
                with pytest.raises(ModelError) as caught:
                    await model.respond(asked(*ASKED), Heard() if streamed else None)
                assert tracemalloc.get_traced_memory()[1] < 150_000_000
            finally:
                tracemalloc.stop()
    assert caught.value.info.code == "MODEL_ANSWER_TOO_LARGE"
    assert f"{EVENT_BYTES if streamed else ANSWER_BYTES:,} bytes" in caught.value.info.message


async def test_what_amazon_sends_is_bounded_too(reach: Reach) -> None:
    reply = Reply((b" " * 1_000_000,) * 9, 200, (("Content-Type", "application/json"),))
    with BedrockServer(reply) as serving:
        async with reach(serving, retries=0) as model:
            with pytest.raises(ModelError) as caught:
                await model.respond(asked(*ASKED))
    assert caught.value.info.code == "MODEL_ANSWER_TOO_LARGE"


@pytest.mark.parametrize("packed", ["gzip", "deflate", "bare deflate"])
async def test_packed_answers_of_providers_are_read(packed: str, reach: Reach) -> None:
    whole = json.dumps(GoogleServer().whole(ModelResponse(text="It is shipped."))).encode()
    bits = {"gzip": 31, "deflate": 15, "bare deflate": -15}[packed]
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    body = packer.compress(whole) + packer.flush()
    headers = (("Content-Type", "application/json"), ("Content-Encoding", packed.removeprefix("bare ")))
    pieces = tuple(body[at : at + 50] for at in range(0, len(body), 50))
    with GoogleServer(Reply(pieces, 200, headers)) as serving:
        async with reach(serving) as model:
            assert (await model.respond(asked(*ASKED))).text == "It is shipped."


async def test_an_answer_of_very_many_objects_is_not_parsed(reach: Reach) -> None:
    reply = Reply((b"[" + b"{}," * 200_000 + b"{}]",), 200, (("Content-Type", "application/json"),))
    with AnthropicServer(reply) as serving:
        async with reach(serving, retries=0) as model:
            with pytest.raises(ModelError, match="lists and objects"):
                await model.respond(asked(*ASKED))


KEYS = {
    "google": {"GOOGLE_API_KEY": "k"},
    "azure": {
        "AZURE_OPENAI_API_KEY": "k",
        "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9/",
        "OPENAI_API_VERSION": "2024-10-21",
    },
    "bedrock": {"AWS_DEFAULT_REGION": "eu-central-1"},
    "snowflake": {"SNOWFLAKE_ACCOUNT": "a-b", "SNOWFLAKE_TOKEN": "k"},
}


@pytest.mark.parametrize("provider", [name for name in PROVIDERS if name != "google-cloud"])
async def test_the_client_of_every_provider_is_bounded(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = KEYS.get(provider) or {key_variable(provider): "k"}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    async with ProviderModel(f"{provider}:some/model") as model:
        try:
            found: Any = await model._clients.get()
        except ModelError as error:
            if error.info.code != "MODEL_NOT_INSTALLED":
                raise
            pytest.skip(f"the SDK of {provider} is not installed")
        sdk = found._provider
        client = sdk._own_http_client or getattr(sdk.client, "_async_client", None)
        if client is not None:
            assert any(hook.__module__ == "journeyman.models.bounded" for hook in client.event_hooks["response"])
        else:
            assert provider == "bedrock"


@pytest.mark.parametrize("server", SERVERS)
async def test_pictures_reach_the_provider_from_the_user_and_from_tools(
    server: type[ProviderServer], reach: Reach
) -> None:
    red, blue = Image.from_bytes(png(200)), Image.from_bytes(png(20))
    looked = call("get_time", zone="CET").with_id("a")
    with server(looked, say("A dot.")) as serving:
        async with reach(serving) as model:
            asked_for = Message(role=Role.USER, content="What is on it?", media=(red,))
            first = await model.respond(asked(asked_for, tools=TOOLS))
            assert str(red.data) in str(serving.bodies[-1])
            answered = Message(role=Role.FUNCTION, name="get_time", call_id="a", content="a photo", media=(blue,))
            said = Message(role=Role.ASSISTANT, calls=first.calls)
            await model.respond(asked(asked_for, said, answered, tools=TOOLS))
        body = str(serving.bodies[-1])
        assert str(red.data) in body
        assert str(blue.data) in body
        assert "a photo" in body


async def test_a_provider_is_told_in_words_what_settings_say_it_cannot_see(reach: Reach) -> None:
    with AnthropicServer(say("No."), say("Yes.")) as serving:
        async with reach(serving, settings=ModelSettings(name=AnthropicServer.prefix, media=())) as model:
            picture = Image.from_bytes(png(200), name="a.png")
            await run(Agent(name="a", instruction="x"), ["What?", picture], model=model)
            assert "[image a.png" in str(serving.bodies[-1])
            assert str(picture.data) not in str(serving.bodies[-1])
        async with reach(serving) as model:
            await run(Agent(name="a", instruction="x"), ["What?", picture], model=model)
            assert str(picture.data) in str(serving.bodies[-1])
