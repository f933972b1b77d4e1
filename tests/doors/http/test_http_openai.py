"""The official openai client against an agent that poses as a model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from journeyman import ModelError
from journeyman.core.errors import ErrorCategory, StoreError
from journeyman.doors.http import completions
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import served
from tests.waiting import WAIT_SECONDS

HELLO: list[dict[str, str]] = [{"role": "user", "content": "Remind me to buy milk"}]
MILK: list[Any] = [call("create_task", title="Buy milk"), say("Noted: milk.")]


def client_of(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="ignored-here", max_retries=0, timeout=WAIT_SECONDS)


async def test_the_client_lists_agents_and_gets_an_answer(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server:

        def whole() -> tuple[list[Any], Any]:
            with client_of(server.url) as client:
                models = list(client.models.list())
                messages: Any = [{"role": "system", "content": "Be kind."}, *HELLO]
                return models, client.chat.completions.create(model=models[0].id, messages=messages)

        models, completion = await asyncio.to_thread(whole)
        assert [model.id for model in models] == ["assistant"]
        assert "create_task" in models[0].tools
        assert completion.choices[0].message.content == "Noted: milk."
        assert completion.choices[0].finish_reason == "stop"
        assert completion.usage.total_tokens == 0
        assert (await server.service.tasks.query()).total == 1


async def test_the_client_streams_the_answer_piece_by_piece(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server:

        def whole() -> list[Any]:
            with client_of(server.url) as client:
                messages: Any = HELLO
                options: Any = {"include_usage": True}
                return list(
                    client.chat.completions.create(
                        model="assistant", messages=messages, stream=True, stream_options=options
                    )
                )

        chunks = await asyncio.to_thread(whole)
        pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        assert "".join(piece for piece in pieces if piece) == "Noted: milk."
        assert len([piece for piece in pieces if piece]) > 1
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        assert chunks[-1].usage is not None


@pytest.mark.parametrize("stream", [False, True])
async def test_what_needs_a_person_is_said_in_the_answer(tmp_path: Path, stream: bool) -> None:
    model = ScriptedModel([call("delete_task", task_id="milk"), say("Gone.")])
    async with served(tmp_path, model=model) as server, server.client() as plain:
        await plain.post("/api/v1/tasks", json={"title": "Buy milk"})

        def whole() -> str:
            with client_of(server.url) as client:
                messages: Any = HELLO
                answer: Any = client.chat.completions.create(model="assistant", messages=messages, stream=stream)
                if not stream:
                    return str(answer.choices[0].message.content)
                return "".join(chunk.choices[0].delta.content or "" for chunk in answer)

        told = await asyncio.to_thread(whole)
        [approval] = await server.service.app.approvals.pending()
        assert approval.id in told
        assert "waits for a person" in told


async def test_a_stream_waits_for_a_store_that_is_away_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = 2
    async with served(tmp_path, model=ScriptedModel([call("delete_task", task_id="milk")])) as server:
        requests = server.service.store.idempotency
        mark = requests.mark

        async def away(*args: Any, **options: Any) -> None:
            nonlocal faults
            if faults:
                faults -= 1
                raise StoreError("the database is away")
            await mark(*args, **options)

        monkeypatch.setattr(requests, "mark", away)
        monkeypatch.setattr(completions, "AWAY_SECONDS", 0.01)

        def whole() -> str:
            with client_of(server.url) as client:
                messages: Any = HELLO
                chunks: Any = client.chat.completions.create(model="assistant", messages=messages, stream=True)
                return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

        assert "waits for a person" in await asyncio.to_thread(whole)
        assert faults == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_failures_are_errors_of_the_client(tmp_path: Path, stream: bool) -> None:
    limited = ModelError("MODEL_RATE_LIMITED", "slow down", category=ErrorCategory.RATE_LIMIT, user_guidance="wait")
    async with served(tmp_path, model=ScriptedModel([limited])) as server:

        def whole(model: str) -> None:
            with client_of(server.url) as client:
                messages: Any = HELLO
                list(client.chat.completions.create(model=model, messages=messages, stream=stream))

        with pytest.raises(openai.APIError, match=r"slow down \(wait\)") as caught:
            await asyncio.to_thread(whole, "assistant")
        assert stream or isinstance(caught.value, openai.RateLimitError)
        with pytest.raises(openai.NotFoundError, match="there are 'assistant'") as unknown:
            await asyncio.to_thread(whole, "gpt-17")
        assert unknown.value.code == "AGENT_NOT_FOUND"


async def test_errors_under_v1_have_openais_shape(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel([])) as server, server.client() as client:
        no_question = {"model": "assistant", "messages": [{"role": "assistant", "content": "Hm."}]}
        for body, param in ((no_question, "messages"), ({}, "model")):
            response = await client.post("/v1/chat/completions", json=body)
            assert response.status_code == 400
            error = response.json()["error"]
            assert (error["code"], error["type"], error["param"]) == (
                "VALIDATION_ERROR",
                "invalid_request_error",
                param,
            )


# --- what an agent cannot do as a model does


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 2),
        ("tools", [{"type": "function", "function": {"name": "f", "parameters": {}}}]),
        ("functions", [{"name": "f"}]),
        ("tool_choice", "required"),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}),
        ("response_format", {"type": "grammar"}),
        ("response_format", {"type": "json_schema"}),
        ("response_format", {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": 5}}}),
        ("logprobs", True),
        ("top_logprobs", 3),
        ("logit_bias", {"50256": -100}),
        ("stop", ["\n"]),
        ("stop", "END"),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "alloy", "format": "wav"}),
        ("web_search_options", {}),
        ("no_such_parameter", 1),
    ],
)
async def test_what_it_cannot_do_is_refused_by_name(tmp_path: Path, name: str, value: Any) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server:

        def whole() -> None:
            with client_of(server.url) as client:
                messages: Any = HELLO
                client.chat.completions.create(model="assistant", messages=messages, extra_body={name: value})

        with pytest.raises(openai.BadRequestError, match=name) as caught:
            await asyncio.to_thread(whole)
        assert (caught.value.param or "").partition(".")[0] == name
        assert caught.value.type == "invalid_request_error"
        assert await server.service.store.runs.list() == ()


async def test_what_says_nothing_new_and_settings_of_a_model_are_taken(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server:

        def whole() -> Any:
            with client_of(server.url) as client:
                messages: Any = HELLO
                return client.chat.completions.create(
                    model="assistant",
                    messages=messages,
                    n=1,
                    temperature=0.2,
                    top_p=0.9,
                    max_tokens=100,
                    seed=1,
                    logprobs=False,
                    tool_choice="auto",
                    response_format={"type": "text"},
                    user="ada",
                )

        assert (await asyncio.to_thread(whole)).choices[0].message.content == "Noted: milk."


# --- sent again


class LosesTheFirstAnswer(httpx.BaseTransport):
    """The server gets every request; its first answer never arrives."""

    def __init__(self) -> None:
        self._real = httpx.HTTPTransport()
        self.sent = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        response = self._real.handle_request(request)
        if self.sent == 1:
            response.read()
            raise httpx.ReadTimeout("lost on the way", request=request)
        return response

    def close(self) -> None:
        self._real.close()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_retry_of_the_client_does_nothing_twice(tmp_path: Path, stream: bool) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server:
        transport = LosesTheFirstAnswer()

        def whole(**options: Any) -> str:
            with openai.OpenAI(
                base_url=f"{server.url}/v1", api_key="ignored", max_retries=2, timeout=WAIT_SECONDS, **options
            ) as client:
                messages: Any = HELLO
                answer: Any = client.chat.completions.create(model="assistant", messages=messages, stream=stream)
                if not stream:
                    return str(answer.choices[0].message.content)
                return "".join(chunk.choices[0].delta.content or "" for chunk in answer)

        assert await asyncio.to_thread(whole, http_client=httpx.Client(transport=transport)) == "Noted: milk."
        assert transport.sent == 2
        assert (await server.service.tasks.query()).total == 1
        # Asked anew it is another request, and not a retry.
        assert await asyncio.to_thread(whole) == "Noted: milk."
        assert (await server.service.tasks.query()).total == 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["again", "continue", "same question"])
async def test_asking_again_goes_on_with_the_run_that_waited(tmp_path: Path, stream: bool, how: str) -> None:
    model = ScriptedModel([call("delete_task", task_id="milk"), say("Gone.")])
    async with served(tmp_path, model=model) as server, server.client() as plain:
        await plain.post("/api/v1/tasks", json={"title": "Buy milk"})
        messages: list[Any] = [{"role": "user", "content": "Delete milk"}]

        def whole() -> tuple[str, str, dict[str, Any]]:
            with client_of(server.url) as client:
                answer: Any = client.chat.completions.create(model="assistant", messages=messages, stream=stream)
                if not stream:
                    choice = answer.choices[0]
                    return choice.message.content, choice.finish_reason, answer.journeyman
                chunks = list(answer)
                text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
                return text, chunks[-1].choices[0].finish_reason, chunks[-1].journeyman

        text, reason, info = await asyncio.to_thread(whole)
        [approval] = await server.service.app.approvals.pending()
        assert reason == "content_filter"
        assert (info["status"], info["run_id"]) == ("awaiting_approval", approval.run_id)
        assert info["url"] == f"{server.url}/#/runs/{approval.run_id}"
        assert [item["id"] for item in info["approvals"]] == [approval.id]
        if how != "again":
            question = "Continue." if how == "continue" else "Delete milk"
            messages += [{"role": "assistant", "content": text}, {"role": "user", "content": question}]
        still, reason, info = await asyncio.to_thread(whole)
        assert (reason, info["run_id"]) == ("content_filter", approval.run_id)
        assert approval.id in still
        decided = await plain.post(httpx.URL(info["approvals"][0]["url"]).path + "/approve", json={})
        assert decided.status_code == 200
        text, reason, info = await asyncio.to_thread(whole)
        assert (text, reason, info["run_id"]) == ("Gone.", "stop", approval.run_id)
        assert len(await server.service.store.runs.list()) == 1
        if how == "again":
            # Answered: the next time it is a new question.
            assert (await asyncio.to_thread(whole))[2]["run_id"] != approval.run_id


async def test_another_question_does_not_go_on_with_what_waits(tmp_path: Path) -> None:
    model = ScriptedModel([call("delete_task", task_id="milk"), say("Gone.")])
    async with served(tmp_path, model=model) as server, server.client() as client:
        await client.post("/api/v1/tasks", json={"title": "Buy milk"})
        messages = [{"role": "user", "content": "Delete milk"}]
        asked = {"model": "assistant", "messages": messages}
        first = (await client.post("/v1/chat/completions", json=asked)).json()
        told = first["choices"][0]["message"]["content"]
        messages += [{"role": "assistant", "content": told}, {"role": "user", "content": "Rather delete bread"}]
        other = (await client.post("/v1/chat/completions", json=asked)).json()
        assert other["journeyman"]["run_id"] != first["journeyman"]["run_id"]


# --- answers that are data

PRICED = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "priced", "strict": True, "schema": PRICED}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("wanted", "turns", "answer"),
    [
        (SCHEMA, [say("It costs 3."), call("finish", price="three"), call("finish", price=3)], {"price": 3}),
        (SCHEMA, [say('{"price": 2.5}')], {"price": 2.5}),
        ({"type": "json_object"}, [say("[1]"), say('{"any": "thing"}')], {"any": "thing"}),
    ],
)
async def test_a_client_gets_the_data_it_asked_for(
    tmp_path: Path, wanted: Any, turns: list[Any], answer: Any, stream: bool
) -> None:
    async with served(tmp_path, model=ScriptedModel(turns)) as server:

        def whole() -> str:
            with client_of(server.url) as client:
                messages: Any = HELLO
                said: Any = client.chat.completions.create(
                    model="assistant", messages=messages, response_format=wanted, stream=stream
                )
                if not stream:
                    return str(said.choices[0].message.content)
                return "".join(chunk.choices[0].delta.content or "" for chunk in said)

        assert json.loads(await asyncio.to_thread(whole)) == answer


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_is_told_that_there_is_no_such_data(tmp_path: Path, stream: bool) -> None:
    async with served(tmp_path, model=ScriptedModel([say("It costs 3.")] * 10)) as server:

        def whole() -> None:
            with client_of(server.url) as client:
                messages: Any = HELLO
                wanted: Any = SCHEMA
                list(
                    client.chat.completions.create(
                        model="assistant", messages=messages, response_format=wanted, stream=stream
                    )
                )

        with pytest.raises(openai.APIError, match="no answer that fits"):
            await asyncio.to_thread(whole)
