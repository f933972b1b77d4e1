"""Settings of a model: as values and texts, and on their way into the requests of every kind of server."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, ConfigurationError, Journeyman, ModelSettings, run
from journeyman.app.trust import names_in
from journeyman.core.errors import InvalidDataError, ModelError
from journeyman.core.model_settings import Timeouts
from journeyman.models.providers import ProviderModel
from journeyman.models.resolve import address_of, explain_choice, model_from_name
from journeyman.settings.problems import SettingsError
from journeyman.settings.reading import read_settings
from journeyman.testing import ScriptedServer, say
from tests.marking import daily
from tests.models.asking import Heard, asked
from tests.models.provider_servers import AnthropicServer, BedrockServer, GoogleServer, ProviderServer, Silence

KEY = "sk-very-secret-0123456789"
ALL: dict[str, Any] = {
    "temperature": 0.25,
    "max_output_tokens": 77,
    "reasoning": "low",
    "seed": 7,
    "stop": ("END",),
    "extra": {"grounded": 0.5},
}


@pytest.mark.parametrize(
    "settings",
    [
        ModelSettings(name="openai:gpt-5"),
        ModelSettings(name="openai:gpt-5", temperature=0, seed=3, cache_prompt=False, reasoning="high"),
        ModelSettings(name="http://127.0.0.1:1/v1?a=b#m", max_output_tokens=5),
        ModelSettings(name="openai:gpt-5", **ALL, timeout=Timeouts(idle=None, total=5), headers={"X-Team": "a"}),
        ModelSettings(name="groq:x", base_url="http://127.0.0.1:1", api_key="${THE_KEY}"),
    ],
)
def test_settings_are_the_same_after_a_way_through_text(settings: ModelSettings) -> None:
    assert ModelSettings.of(str(settings)) == settings
    assert Agent(name="a", instruction="b", model=settings).model_settings == settings


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("openai:gpt-5?temprature=0", "'temprature' is no setting"),
        ("openai:gpt-5?temperature=hot", "temperature: must be a number"),
        ('{"name": "openai:gpt-5", "retrys": 1}', "retrys: unknown field"),
        ('{"name": "http://h/v1#m", "base_url": "http://other"}', "the name holds an address"),
    ],
)
def test_a_mistake_is_named(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        model_from_name(text)


def test_a_key_is_in_no_dump_and_in_no_fact() -> None:
    settings = ModelSettings(name="openai:gpt-5", api_key=KEY, headers={"Authorization": KEY, "X-Team": "a"})
    agent = Agent(name="a", instruction="b", model=settings)
    shown = [repr(settings), str(settings), settings.model_dump_json(), repr(settings.model_dump())]
    shown += [repr(agent), agent.model_dump_json(), json.dumps(agent.snapshot), agent.to_gram()]
    assert KEY not in "".join(shown)
    assert "X-Team" in str(settings)
    assert agent.carries
    assert agent.with_output(int).model_settings.api_key == settings.api_key
    assert agent.model_copy(update={"model": "embedded"}).model_settings == ModelSettings(name="embedded")


def test_what_is_found_in_the_environment_is_shown_without_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"name": "openai:m", "base_url": f"http://u:{KEY}@127.0.0.1:1/v1", "api_key": KEY}
    monkeypatch.setenv("JOURNEYMAN_MODEL", json.dumps(given))
    told = explain_choice()
    assert told[-1] == "auto: openai:m with base_url, api_key"
    assert KEY not in "".join(told)


@pytest.mark.parametrize(
    "text", ['{"name": "openai:m", "api_key": "KEY"', '{"api_key": ["KEY"]}', '{"api_key": "KEY", "a": 1}']
)
def test_a_mistake_in_json_shows_no_key(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ModelSettings.of(text.replace("KEY", KEY))
    assert KEY not in str(caught.value)


def test_settings_without_a_name_are_laid_over_what_is_named_below() -> None:
    over = ModelSettings(temperature=0).over("openai:gpt-5?temperature=1&seed=2")
    assert over == ModelSettings(name="openai:gpt-5", temperature=0, seed=2)
    named = ModelSettings(name="ollama:x")
    assert named.over("openai:gpt-5?temperature=1") is named


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="temprature"):
        ModelSettings(name="x", temprature=0)  # type: ignore[call-arg]


async def test_every_setting_arrives_at_an_openai_compatible_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    async with ScriptedServer([say("Hi"), say("Hi")]) as server:
        settings = ModelSettings(
            name="openai:m",
            base_url=server.url,
            api_key="${THE_KEY}",
            headers={"X-Team": "a"},
            cache_prompt=True,
            **ALL,
        )
        agent = Agent(name="a", instruction="b", model=settings)
        assert (await run(agent, "hello")).answer == "Hi"
        assert (await run(agent, "hello", model=ModelSettings(temperature=1))).answer == "Hi"
    body = server.requests[0]
    assert {name: body[name] for name in ("model", "temperature", "max_tokens", "reasoning_effort", "seed")} == {
        "model": "m",
        "temperature": 0.25,
        "max_tokens": 77,
        "reasoning_effort": "low",
        "seed": 7,
    }
    assert (body["stop"], body["grounded"], body["cache_prompt"]) == (["END"], 0.5, True)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["x-team"] == "a"
    assert (server.requests[1]["temperature"], server.requests[1]["seed"]) == (1.0, 7)


SENT: list[tuple[type[ProviderServer], str, dict[str, dict[str, Any]]]] = [
    (
        AnthropicServer,
        "anthropic:claude-opus-4-5",
        {
            "temperature": {"temperature": 0.25},
            "max_output_tokens": {"max_tokens": 60_000},
            "reasoning": {
                "thinking.type": "enabled",
                "thinking.budget_tokens": 2048,
                "output_config.effort": "low",
            },
            "seed": {},
            "stop": {"stop_sequences.0": "END"},
            "extra": {"grounded": 0.5},
            "cache_prompt": {"cache_control.type": "ephemeral", "cache_control.ttl": "5m"},
        },
    ),
    (
        AnthropicServer,
        AnthropicServer.prefix,
        {"reasoning": {"thinking.type": "adaptive", "output_config.effort": "low"}},
    ),
    (
        GoogleServer,
        GoogleServer.prefix,
        {
            "temperature": {"generationConfig.temperature": 0.25},
            "max_output_tokens": {"generationConfig.maxOutputTokens": 60_000},
            "reasoning": {
                "generationConfig.thinkingConfig.include_thoughts": True,
                "generationConfig.thinkingConfig.thinking_budget": 2048,
            },
            "seed": {"generationConfig.seed": 7},
            "stop": {"generationConfig.stopSequences.0": "END"},
            "extra": {"grounded": 0.5},
            "cache_prompt": {},  # Gemini caches by itself
        },
    ),
    (
        BedrockServer,
        "bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0",
        {
            "temperature": {"inferenceConfig.temperature": 0.25},
            "max_output_tokens": {"inferenceConfig.maxTokens": 60_000},
            "reasoning": {
                "additionalModelRequestFields.thinking.type": "enabled",
                "additionalModelRequestFields.thinking.budget_tokens": 2048,
            },
            "seed": {},
            "stop": {"inferenceConfig.stopSequences.0": "END"},
            "extra": {"additionalModelRequestFields.grounded": 0.5},
            "cache_prompt": {"messages.0.content.1.cachePoint.type": "default"},
        },
    ),
    (BedrockServer, BedrockServer.prefix, {"reasoning": {}}),
]


def leaves(value: Any, place: str = "") -> dict[str, Any]:
    """Every value in a body by its place."""
    if not isinstance(value, dict | list):
        return {place[1:]: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {at: leaf for key, item in items for at, leaf in leaves(item, f"{place}.{key}").items()}


@pytest.mark.timeout(120)  # the SDKs take seconds to import
@pytest.mark.parametrize(("server", "name", "sent"), SENT, ids=[row[1] for row in SENT])
async def test_every_setting_arrives_at_a_provider(
    server: type[ProviderServer],
    name: str,
    sent: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for variable, value in BedrockServer.environment.items():
        if "URL" not in variable:
            monkeypatch.setenv(variable, value)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-the-environment")
    key = {} if server is BedrockServer else {"api_key": KEY}  # Bedrock takes keys only over HTTPS
    values = {**ALL, "max_output_tokens": 60_000, "cache_prompt": True}
    with server(*[say("Hi")] * (len(sent) + 1)) as serving:
        for given in ({}, *({setting: values[setting]} for setting in sent)):
            settings = ModelSettings(name=name, base_url=serving.url, headers={"X-Team": "a"}, **key, **given)
            caplog.clear()
            async with model_from_name(settings) as model:  # type: ignore[attr-defined]
                assert isinstance(model, ProviderModel)
                assert (await model.respond(asked())).text == "Hi"
            usual, body = leaves(serving.bodies[0]), leaves(serving.bodies[-1])
            [setting] = given or [""]
            assert {at: leaf for at, leaf in body.items() if usual.get(at) != leaf} == sent.get(setting, {})
            # What an API has not got is said, not dropped in silence.
            dropped = setting and not sent[setting] and setting != "cache_prompt"
            assert (f"takes no {setting}; it is left out" in caplog.text) == bool(dropped)
    assert all(headers["x-team"] == "a" for headers in serving.headers)
    assert "of-the-environment" not in str(serving.headers)
    assert server is BedrockServer or KEY in str(serving.headers)


@pytest.mark.timeout(120)
async def test_a_provider_of_openai_s_kind_is_asked_at_the_address_that_is_given() -> None:
    async with ScriptedServer([say("Hi")]) as server:
        model = model_from_name(ModelSettings(name="deepseek:m", base_url=server.url, api_key=KEY, temperature=0))
        assert isinstance(model, ProviderModel)
        async with model:
            assert (await model.respond(asked())).text == "Hi"
    assert server.requests[0]["temperature"] == 0
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("count", daily(5, nightly=360))
async def test_an_answer_that_goes_on_is_one_request(count: int) -> None:
    """Each pause is shorter than the limit on silence, all of them together are longer: three minutes in the night."""
    import asyncio

    words = [f"word {number} " for number in range(count)]
    asked_for = 0

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked_for
        await reader.readuntil(b"\r\n\r\n")
        asked_for += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for word in words:
            await asyncio.sleep(0.5)
            writer.write(b"data: " + json.dumps({"choices": [{"delta": {"content": word}}]}).encode() + b"\n\n")
            await writer.drain()
        writer.write(b"data: [DONE]\n\n")
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        closed.set()

    closed = asyncio.Event()
    serving = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with serving:
        url = f"http://127.0.0.1:{serving.sockets[0].getsockname()[1]}/v1"
        model: Any = model_from_name(ModelSettings(name="openai:m", base_url=url, timeout=Timeouts(idle=2)))
        async with model:
            answer = await model.respond(asked(), Heard())
        await closed.wait()
    assert answer.text == "".join(words)
    assert asked_for == 1


@pytest.mark.timeout(120)
async def test_a_provider_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    silence = Silence()
    with AnthropicServer(silence) as serving:
        settings = ModelSettings(
            name=serving.prefix, base_url=serving.url, api_key=KEY, retries=0, timeout=Timeouts(first_byte=0.3)
        )
        model: Any = model_from_name(settings)
        async with model:
            with pytest.raises(ModelError, match=r"did not answer within 0.3 s"):
                await model.respond(asked(), Heard())
            silence.over.set()


# --- in a file


def written(folder: Path, text: str) -> Path:
    path = folder / "journeyman.yaml"
    path.write_text(f"version: 1\n{text}\n")
    return path


async def test_a_file_says_how_a_model_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    async with ScriptedServer([say("Hi")]) as server:
        path = written(
            tmp_path,
            f"model:\n  name: openai:m\n  base_url: {server.url}\n  api_key: ${{THE_KEY}}\n  temperature: 0\n"
            "  timeout: {idle: 90}\ntoolkits: []",
        )
        async with Journeyman.from_config(path, watch=False) as app:
            handle = await app.start(Agent(name="a", instruction="b", model=ModelSettings(seed=4)), "hello")
            assert (await handle.result()).answer == "Hi"
            facts = [event async for event in handle.events()]
    assert (server.requests[0]["temperature"], server.requests[0]["seed"]) == (0, 4)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in "".join(fact.model_dump_json() for fact in facts)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model: {name: openai:m, temprature: 0}", r"3?.*model\.temprature: unknown key; did you mean 'temperature'"),
        ("model: {name: openai:m, temperature: hot}", r"model\.temperature: must be a number"),
        ("model: {name: openai:m, timeout: {idle: -1}}", r"model\.timeout\.idle: must be greater than 0"),
        (f"model: {{name: openai:m, api_key: {KEY}}}", r"model\.api_key: .*write \$\{NAME\}"),
        ("model: {name: openai:m, api_key: plain}", r"model\.api_key: .*write \$\{NAME\}"),
        ("model: {name: openai:m, api_key: '${NOT_SET_ANYWHERE}'}", r"NOT_SET_ANYWHERE is not set"),
    ],
)
def test_mistakes_in_a_file_are_found(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told) as caught:
        read_settings(written(tmp_path, text))
    assert KEY not in str(caught.value)


def test_an_address_in_a_file_or_a_document_passes_the_trust_gate(tmp_path: Path) -> None:
    loaded = read_settings(written(tmp_path, "model: {name: 'anthropic:x', base_url: 'http://elsewhere.example/v1'}"))
    [name] = names_in(loaded)
    assert (name.kind, name.text) == ("address", "http://elsewhere.example/v1")
    hidden = str(ModelSettings(name="openai:x", base_url="http://elsewhere.example/v1"))
    assert address_of(hidden) == "http://elsewhere.example/v1"
    assert address_of(str(ModelSettings(name="openai:x", temperature=0))) is None
