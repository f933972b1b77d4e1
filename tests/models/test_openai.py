"""The adapter, over real HTTP to a server on this machine: what it sends and what it reads."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from journeyman.core.errors import ConfigurationError, ModelError
from journeyman.core.protocols import ModelResponse
from journeyman.core.runs import Message, Role, ToolCall, Usage
from journeyman.models.openai import OpenAIModel
from journeyman.testing import FakeClock, ScriptedServer, call, http, say, together
from tests.models.asking import KEY, Heard, ask, asked, completion, model_at, spec
from tests.waiting import WAIT_SECONDS

# --- what is sent ----------------------------------------------------------------------------------------------------


async def test_a_whole_conversation_is_sent_as_the_format_wants_it() -> None:
    history = (
        Message.system("Help."),
        Message.user("Where is W-17?"),
        Message(
            role=Role.ASSISTANT,
            calls=(
                ToolCall(id="c1", tool_name="orders.find", arguments={"id": "W-17", "share": float("inf")}),
                ToolCall(id="c2", tool_name="broken", malformed='{"a": ' + "x" * 500),
            ),
        ),
        Message(role=Role.FUNCTION, name="orders.find", call_id="c1", content="shipped \ud800"),
        Message(role=Role.ASSISTANT, content="It is shipped."),
    )
    tools = (spec("orders.find", id={"type": "string"}), spec("orders_find"), spec("orders/find"))
    async with ScriptedServer(["ok"]) as server:
        async with OpenAIModel("m", base_url=server.url, api_key=KEY, options={"temperature": 0}) as model:
            await model.respond(asked(*history, tools=tools))
        [body], [headers] = server.requests, server.headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    system, user, assistant, function, last = body.pop("messages")
    assert system == {"role": "system", "content": "Help."}
    assert user == {"role": "user", "content": "Where is W-17?"}
    assert assistant["content"] is None
    first, second = assistant["tool_calls"]
    assert first["id"] == "c1"
    assert first["type"] == "function"
    assert first["function"]["name"] == "orders_find_2"
    assert json.loads(first["function"]["arguments"]) == {"id": "W-17", "share": None}
    assert json.loads(second["function"]["arguments"]) == {"malformed_arguments": '{"a": ' + "x" * 194}
    assert function == {"role": "tool", "tool_call_id": "c1", "content": "shipped ?"}
    assert last == {"role": "assistant", "content": "It is shipped."}
    offered = body.pop("tools")
    assert offered[0] == {
        "type": "function",
        "function": {
            "name": "orders_find_2",
            "description": "Does orders.find.",
            "parameters": {
                "type": "object",
                "properties": {"id": {"type": "string"}},
                "additionalProperties": False,
            },
        },
    }
    assert [tool["function"]["name"] for tool in offered] == ["orders_find_2", "orders_find", "orders_find_3"]
    assert body == {"model": "m", "temperature": 0}


async def test_names_come_back_as_ours() -> None:
    tools = (spec("orders.find"), spec("plain"))
    answer = together(call("orders_find"), call("plain"), call("no_such"))
    response = await ask(answer, request=asked(tools=tools))
    assert [made.tool_name for made in response.calls] == ["orders.find", "plain", "no_such"]


async def test_messages_and_tools_are_encoded_once() -> None:
    first, tools = Message.user("one"), (spec("look"),)
    memo: dict[Any, Any] = {}
    async with ScriptedServer(["a", "b"]) as server, OpenAIModel("m", base_url=server.url) as model:
        await model.respond(asked(first, tools=tools, memo=memo))
        [(key, (known, encoded))] = memo.items()
        assert list(known) == [first]
        memo[key] = (known, encoded.replace(b"one", b"kept"))
        await model.respond(asked(first, Message.user("two"), tools=tools, memo=memo))
    assert [message["content"] for message in server.requests[1]["messages"]] == ["kept", "two"]
    assert server.requests[0]["tools"] == server.requests[1]["tools"]


async def test_a_window_that_moved_on_is_encoded_anew() -> None:
    system, one, two, three = Message.system("s"), Message.user("one"), Message.user("two"), Message.user("three")
    memo: dict[Any, Any] = {}
    async with ScriptedServer(["a", "b", "c"]) as server, OpenAIModel("m", base_url=server.url) as model:
        await model.respond(asked(system, one, two, memo=memo))
        await model.respond(asked(system, two, three, memo=memo))
        await model.respond(asked(system, two, memo=memo))
    said = [[message["content"] for message in body["messages"]] for body in server.requests]
    assert said == [["s", "one", "two"], ["s", "two", "three"], ["s", "two"]]


async def test_many_sets_of_tools_do_not_get_mixed_up() -> None:
    sets = [(spec(f"tool_{number}"),) for number in range(70)]
    async with ScriptedServer(["ok"] * 71) as server, model_at(server) as model:
        for tools in [*sets, sets[0]]:
            await model.respond(asked(tools=tools))
    offered = [body["tools"][0]["function"]["name"] for body in server.requests]
    assert offered == [*(f"tool_{number}" for number in range(70)), "tool_0"]


async def test_a_large_body_is_sent_whole() -> None:
    text = "ü" * 2_000_000
    async with ScriptedServer([http(500), "ok"]) as server, model_at(server) as model:
        assert (await model.respond(asked(Message.user(text)))).text == "ok"
    assert [body["messages"][0]["content"] == text for body in server.requests] == [True, True]


async def test_connections_are_used_again() -> None:
    async with ScriptedServer(["a", "b", "c", "d"]) as server, OpenAIModel("m", base_url=server.url) as model:
        for deltas in (None, Heard(), Heard(), None):
            await model.respond(asked(), deltas)
    assert len(server.connections) == 1


async def test_the_proxy_of_the_environment_is_used_except_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer(["through the proxy"]) as proxy, ScriptedServer(["directly"]) as server:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        async with OpenAIModel("m", base_url="http://models.example/v1") as model:
            assert (await model.respond(asked())).text == "through the proxy"
        async with model_at(server) as model:
            assert (await model.respond(asked())).text == "directly"
    assert proxy.headers[0]["host"] == "models.example"


def test_fields_of_the_adapter_are_no_options() -> None:
    with pytest.raises(ConfigurationError, match="'messages', 'stream'"):
        OpenAIModel("m", options={"stream": True, "messages": []})


# --- what is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deltas", [None, Heard()], ids=["whole", "streamed"])
async def test_text_calls_and_usage_are_read(deltas: Heard | None) -> None:
    answer = ModelResponse(
        text="Let me löök.",
        calls=(ToolCall(id="x", tool_name="a", arguments={"n": [1, {"ä": None}]}), ToolCall(id="y", tool_name="b")),
        usage=Usage(input_tokens=7, output_tokens=5),
    )
    response = await ask(answer, deltas=deltas)
    assert (response.text, response.calls, response.model) == (answer.text, answer.calls, "m")
    assert response.usage == Usage(input_tokens=7, output_tokens=5, requests=1)
    if deltas is not None:
        assert len(deltas.pieces) > 1
        assert "".join(deltas.pieces) == answer.text


@pytest.mark.parametrize(
    "written",
    [
        "{",
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": ' + "9" * 309 + ".0}",
        "[1]",
        '"text"',
        "7",
        "null",
        '{"a":' * 300 + "1" + "}" * 300,
        "{'a': 1}",
    ],
)
@pytest.mark.parametrize("deltas", [None, Heard()], ids=["whole", "streamed"])
async def test_arguments_that_are_no_json_object_are_kept_as_written(written: str, deltas: Heard | None) -> None:
    response = await ask(call("look").raw(written), deltas=deltas)
    assert response.calls == (ToolCall(id="call_0", tool_name="look", malformed=written),)


@pytest.mark.parametrize("written", ["", " ", None, "{}"])
async def test_no_arguments_are_no_arguments(written: str | None) -> None:
    made = {"id": "x", "function": {"name": "look", "arguments": written}}
    response = await ask(completion({"content": None, "tool_calls": [made]}))
    assert response.calls == (ToolCall(id="x", tool_name="look"),)


async def test_huge_arguments_are_kept_only_when_they_can_be_read() -> None:
    huge = "y" * 3_000_000
    response = await ask(together(call("look", text=huge), call("look").raw("[" + huge)))
    assert response.calls[0].arguments == {"text": huge}
    assert response.calls[1].malformed == "[" + huge[:9_999]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": None, "refusal": "I will not."}, "I will not."),
        ({"content": None}, ""),
        ({"content": "  "}, "  "),
    ],
)
async def test_text_has_several_forms(message: dict[str, Any], expected: str) -> None:
    assert (await ask(completion(message))).text == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"function_call": {"name": "f", "arguments": '{"a": 1}'}}, ToolCall(tool_name="f", arguments={"a": 1})),
        ({"tool_calls": [{"function": {"name": "f"}}, "?"]}, ToolCall(tool_name="f")),
        ({"tool_calls": [{"id": 3, "function": {"name": "f", "arguments": {"a": 1}}}]}, None),
        ({"tool_calls": [{"id": "x"}]}, ToolCall(id="x", tool_name="")),
    ],
)
async def test_calls_of_unusual_servers_are_read(message: dict[str, Any], expected: ToolCall | None) -> None:
    response = await ask(completion(message, usage={"prompt_tokens": None, "completion_tokens": "?"}))
    assert response.calls == (expected or ToolCall(id="3", tool_name="f", arguments={"a": 1}),)
    assert response.usage == Usage(requests=1)


# --- keys and loops --------------------------------------------------------------------------------------------------


async def test_the_public_endpoint_needs_a_key() -> None:
    with pytest.raises(ModelError, match="set OPENAI_API_KEY") as caught:
        await OpenAIModel("gpt-5-mini").respond(asked())
    assert caught.value.info.code == "MODEL_AUTHENTICATION"


async def test_the_key_of_the_environment_goes_to_the_server_of_the_environment_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with ScriptedServer(["a", "b"]) as server:
        async with OpenAIModel("m", base_url=server.url) as model:
            await model.respond(asked())
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        async with OpenAIModel("m") as model:
            await model.respond(asked())
    assert [headers.get("authorization") for headers in server.headers] == [None, f"Bearer {KEY}"]


async def test_the_key_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ScriptedServer([http(500, message=f"bad {KEY}")] * 3) as server:
        url = server.url.replace("//", "//ada:hunter2@")
        model = OpenAIModel("m", base_url=url, api_key=KEY, clock=FakeClock())
        async with model:
            with pytest.raises(ModelError) as caught:
                await model.respond(asked(run_id="run_1"))
    shown = f"{model!r} {caught.value!r} {caught.value} {caplog.text}"
    assert "run_1" in caplog.text
    assert KEY not in shown
    assert "hunter2" not in shown


@contextlib.contextmanager
def server_elsewhere(turns: Sequence[Any]) -> Iterator[ScriptedServer]:
    """A server whose event loop is another thread's, so that it outlives the loops of the test."""
    started: Future[ScriptedServer] = Future()
    stop = threading.Event()

    async def serve() -> None:
        async with ScriptedServer(turns) as server:
            started.set_result(server)
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield started.result(WAIT_SECONDS)
    finally:
        stop.set()
        thread.join()


def test_one_model_serves_several_event_loops_and_leaves_nothing_open() -> None:
    with server_elsewhere(["a", "b", "c"]) as server:
        model = OpenAIModel("m", base_url=server.url)
        texts = [asyncio.run(model.respond(asked())).text for _ in range(3)]
    # What a loop left open would warn now, and warnings are errors.
    del model
    gc.collect()
    assert texts == ["a", "b", "c"]
    assert len(server.connections) == 3


async def test_a_closed_model_opens_again() -> None:
    async with ScriptedServer([say("a"), say("b")]) as server:
        model = OpenAIModel("m", base_url=server.url)
        await model.aclose()
        assert (await model.respond(asked())).text == "a"
        await model.aclose()
        assert (await model.respond(asked())).text == "b"
        await model.aclose()
    assert len(server.connections) == 2
