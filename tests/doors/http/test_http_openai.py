"""The official openai client against an agent that poses as a model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest

from journeyman import ModelError
from journeyman.core.errors import ErrorCategory
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
        own_tools = {"model": "assistant", "messages": HELLO, "tools": [{"type": "function"}]}
        no_question = {"model": "assistant", "messages": [{"role": "assistant", "content": "Hm."}]}
        for body in (own_tools, no_question, {}):
            response = await client.post("/v1/chat/completions", json=body)
            assert response.status_code == 422
            assert response.json()["error"]["code"] == "VALIDATION_ERROR"
