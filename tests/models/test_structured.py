"""How every adapter asks for data: by its server's own JSON Schema mode, or by ``finish``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from journeyman import Agent, AgentResponse, run, tool
from journeyman.core.errors import ConfigurationError
from journeyman.models import gguf
from journeyman.models.embedded import EmbeddedModel, model
from journeyman.models.embedded.files import EngineFiles
from journeyman.models.embedded.worker import Setup
from journeyman.models.gguf import GgufModel, GgufServer
from journeyman.models.openai import OpenAIModel
from journeyman.models.providers import ProviderModel
from journeyman.models.structured import strict_form
from journeyman.testing import FakeClock, ScriptedServer, call, http, say
from journeyman.testing.server import ServerTurn
from tests.models.asking import Heard, asked, model_at
from tests.models.provider_servers import AnthropicServer, BedrockServer, GoogleServer, ProviderServer


class Parcel(BaseModel):
    """A parcel."""

    number: str
    weight: float


class Noted(BaseModel):
    text: str
    author: str | None = None


@tool(read_only=True)
def find_parcel(number: str) -> str:
    """Find a parcel."""
    return f"{number} weighs 2 kg"


AGENT = Agent(name="post", instruction="Know the parcels.")
CLERK = Agent(name="post", instruction="Know the parcels.", tools=[find_parcel])
GOOD = '{"number": "W-17", "weight": 2}'
BAD = '{"number": "W-17", "weight": "heavy"}'
HEAVY = call("finish", number="W-17", weight="heavy")
LIGHT = call("finish", number="W-17", weight=2)
W17 = Parcel(number="W-17", weight=2)


async def found(agent: Agent, model: Any, output: Any = Parcel) -> AgentResponse:
    return await run(agent, "Find W-17", model=model, output=output)


def offered(body: dict[str, Any]) -> list[str]:
    return [item["function"]["name"] for item in body.get("tools", ())]


# --- OpenAI-compatible servers


async def test_without_tools_the_server_is_held_to_the_schema() -> None:
    async with ScriptedServer([say(BAD), say(GOOD)]) as server, model_at(server) as model:
        response = await found(AGENT, model)
    assert response.output == W17
    first, second = server.requests
    assert offered(first) == offered(second) == []
    wanted = first["response_format"]["json_schema"]
    assert (first["response_format"]["type"], wanted["strict"]) == ("json_schema", True)
    assert wanted["schema"]["required"] == ["number", "weight"]
    assert wanted["schema"]["additionalProperties"] is False
    assert "weight: must be a number" in second["messages"][-1]["content"]


async def test_what_is_optional_is_asked_for_without_strict() -> None:
    async with ScriptedServer([say('{"text": "Hm."}')]) as server, model_at(server) as model:
        response = await found(AGENT, model, Noted)
    assert response.output == Noted(text="Hm.")
    wanted = server.requests[0]["response_format"]["json_schema"]
    assert (wanted["strict"], wanted["schema"]["required"]) == (False, ["text"])


async def test_beside_tools_it_is_asked_for_with_finish() -> None:
    turns = [call("find_parcel", number="W-17"), HEAVY, LIGHT]
    async with ScriptedServer(turns) as server, model_at(server) as model:
        response = await found(CLERK, model)
    assert (response.output, response.tools_used) == (W17, ["find_parcel"])
    assert [offered(body) for body in server.requests] == [["find_parcel", "finish"]] * 3
    assert all("response_format" not in body for body in server.requests)
    assert "weight: must be a number" in server.requests[2]["messages"][-1]["content"]


async def test_a_server_that_refuses_a_schema_gets_finish_and_is_not_asked_again() -> None:
    turns: list[ServerTurn] = [http(400, message="response_format is not supported"), LIGHT, LIGHT]
    async with ScriptedServer(turns) as server, model_at(server) as model:
        assert (await found(AGENT, model)).output == (await found(AGENT, model)).output == W17
    assert ["response_format" in body for body in server.requests] == [True, False, False]
    assert [offered(body) for body in server.requests] == [[], ["finish"], ["finish"]]


async def test_a_request_that_is_refused_either_way_says_why_and_proves_nothing() -> None:
    turns: list[ServerTurn] = [http(400, message="too long"), http(400, message="too long"), say(GOOD)]
    async with ScriptedServer(turns) as server, model_at(server) as model:
        refused = await found(AGENT, model)
        assert refused.error is not None
        assert "too long" in refused.error.message
        assert (await found(AGENT, model)).output == W17
    assert ["response_format" in body for body in server.requests] == [True, False, True]


@pytest.mark.parametrize("mode", ["native", "finish"])
async def test_the_way_can_be_chosen(mode: Literal["native", "finish"]) -> None:
    turn = say(GOOD) if mode == "native" else LIGHT
    async with (
        ScriptedServer([call("find_parcel", number="W-17"), turn]) as server,
        model_at(server, output=mode) as it,
    ):
        assert (await found(CLERK, it)).output == W17
    assert ["response_format" in body for body in server.requests] == [mode == "native"] * 2
    assert offered(server.requests[1]) == (["find_parcel"] if mode == "native" else ["find_parcel", "finish"])
    with pytest.raises(ConfigurationError, match="'auto', 'native' or 'finish'"):
        OpenAIModel("m", output="json")  # type: ignore[arg-type]


async def test_streams_of_data() -> None:
    heard = Heard()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    async with ScriptedServer([say('{"n": 1}')]) as server, model_at(server) as model:
        response = await model.respond(asked(output=schema), heard)
    assert response.text == "".join(heard.pieces) == '{"n": 1}'
    assert server.requests[0]["response_format"]["json_schema"]["schema"] == schema


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "allowed"),
    [
        (OBJECT, True),
        ({**OBJECT, "additionalProperties": False}, True),
        ({**OBJECT, "additionalProperties": True}, False),
        ({**OBJECT, "required": []}, False),
        ({"type": "object"}, False),
        ({**OBJECT, "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, True),
        ({**OBJECT, "properties": {"a": {"type": "string", "default": "x"}}}, False),
        ({**OBJECT, "properties": {"a": {"type": "string", "minLength": 1}}}, False),
        ({**OBJECT, "properties": {"a": {"type": "string", "format": "date"}}}, True),
        ({**OBJECT, "properties": {"a": {"type": "string", "format": "binary"}}}, False),
        ({**OBJECT, "properties": {"a": {"type": "array", "items": OBJECT}}}, True),
        ({**OBJECT, "properties": {"a": {"type": "array", "items": {"type": "object"}}}}, False),
        ({**OBJECT, "properties": {"a": {"type": ["object", "null"]}}}, False),
        ({**OBJECT, "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": OBJECT}}, True),
        ({**OBJECT, "properties": {"a": {}}}, False),
    ],
)
def test_strict_only_where_the_schema_allows_it(schema: dict[str, Any], allowed: bool) -> None:
    assert (strict_form(schema) is not None) is allowed


# --- other providers

PROVIDERS: list[tuple[type[ProviderServer], str]] = [
    (AnthropicServer, "output_config"),
    (GoogleServer, "responseJsonSchema"),
    (BedrockServer, ""),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("kind", "field"), PROVIDERS)
@pytest.mark.parametrize("agent", [AGENT, CLERK])
async def test_other_providers(
    kind: type[ProviderServer], field: str, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    native = bool(field) and agent is AGENT
    turns = [say(BAD), say(GOOD)] if native else [HEAVY.with_id("a"), LIGHT.with_id("b")]
    with kind(*turns) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value.replace("URL", server.url))
        async with ProviderModel(server.prefix, clock=FakeClock()) as model:
            assert (await found(agent, model)).output == W17
        asked_natively = bool(field) and field in json.dumps(server.bodies[0])
        assert asked_natively is native
        assert native or "finish" in server.tools()
        assert "weight: must be a number" in json.dumps(server.bodies[1])


# --- models on this machine


class Engine:
    """In the place of xllamacpp: never likes a tool, and writes what it is told to write."""

    def __init__(self, *texts: str, refuses: bool = False) -> None:
        self.texts = list(texts)
        self.refuses = refuses
        self.bodies: list[dict[str, Any]] = []

    def handle_chat_completions(self, body: dict[str, Any]) -> dict[str, Any]:
        self.bodies.append(body)
        if "logprobs" in body:
            likely = -1.0 if "answer" in body["grammar"] else -9.0
            return {"choices": [{"logprobs": {"content": [{"token": "x", "logprob": likely}]}}]}
        if self.refuses and "response_format" in body:
            raise ValueError("no grammar for this schema")
        return {"choices": [{"message": {"content": self.texts.pop(0)}}]}


@pytest.mark.parametrize("agent", [AGENT, CLERK])
@pytest.mark.parametrize("refuses", [False, True])
async def test_gguf_writes_under_the_schema(agent: Agent, refuses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(BAD, GOOD, refuses=refuses)

    async def loaded(path: Path, *, context: int) -> GgufServer:
        return GgufServer(engine)

    monkeypatch.setattr(gguf, "gguf_server", loaded)
    assert (await found(agent, GgufModel("any.gguf"))).output == W17
    written = [body for body in engine.bodies if "logprobs" not in body]
    schemas = [body["response_format"]["json_schema"]["schema"] for body in written if "response_format" in body]
    assert [schema["required"] for schema in schemas] == [["number", "weight"]] * 2
    assert len(written) == (4 if refuses else 2)
    assert '"weight"' in written[-1]["messages"][0]["content"]  # also where there is no grammar
    assert all("finish" not in body.get("grammar", "") for body in engine.bodies)


class Engines:
    """In the place of the embedded engine: fills each form in turn."""

    def __init__(self, *filled: dict[str, Any] | None) -> None:
        self.filled = list(filled)
        self.asked: list[tuple[str, Sequence[str]]] = []

    async def ask(self, setup: Setup, turns: Sequence[str]) -> Any:
        self.asked.append((setup.tools, turns))
        given = self.filled.pop(0)
        name = json.loads(setup.tools)[0]["name"]
        calls = [] if given is None else [{"name": name, "arguments": given}]
        return {"function_calls": calls, "confidence": 0.01 if "unknown" in str(given) else 0.8}


@pytest.mark.parametrize(
    ("filled", "output", "code"),
    [
        ([{"number": "W-17", "weight": 2}], W17, None),
        ([{"number": "W-17"}, {"number": "W-17", "weight": 2}], W17, None),
        ([{"number": "W-17"}, {"number": "W-17"}], None, "MODEL_FOUND_NO_DATA"),
        ([None], None, "MODEL_FOUND_NO_DATA"),
        ([{"number": "unknown", "weight": 2}], None, "MODEL_FOUND_NO_DATA"),  # it is not sure at all
    ],
)
async def test_the_embedded_model_fills_a_form(
    filled: list[Any], output: Any, code: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "engine_files", lambda folder: EngineFiles(Path("engine"), Path("weights")))
    embedded = EmbeddedModel(clock=FakeClock())
    engines = Engines(*filled)
    monkeypatch.setattr(embedded, "_engines", engines)
    response = await found(AGENT, embedded)
    assert (response.output, response.error and response.error.code) == (output, code)
    assert "A parcel." in engines.asked[0][0]
    assert engines.asked[0][1] == ["Find W-17"]
    if output is None:
        assert response.outcome == "not"
