"""How runs end when the model does not answer as it was meant to: each kind has its status, and none asks for ever."""

from __future__ import annotations

import json
from typing import Any

import pytest

from journeyman import Agent, AgentResponse, Limits, ModelSettings, RunStatus, run, stream, tool
from journeyman.core.events import StepRestarted
from journeyman.core.protocols import ModelResponse
from journeyman.core.runs import Usage
from journeyman.models.openai import OpenAIModel
from journeyman.testing import FakeClock, ScriptedModel, ScriptedServer, call, cut, html, http, raw, say, together
from tests.models.provider_servers import AnthropicServer

AGENT = Agent(name="writer", instruction="Write.")


def completion(finish: str | None, text: str | None = "Once upon", **message: Any) -> Any:
    said = {"role": "assistant", "content": text, **message}
    return raw(json.dumps({"choices": [{"message": said, "finish_reason": finish}]}).encode())


def chunks(*deltas: dict[str, Any], finish: str) -> Any:
    events: list[Any] = [{"choices": [{"delta": delta}]} for delta in deltas]
    events.append({"choices": [{"delta": {}, "finish_reason": finish}]})
    lines = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    return raw(*lines, b"data: [DONE]\n\n", content_type="text/event-stream")


async def ended(*turns: Any, agent: Agent = AGENT, **options: Any) -> tuple[AgentResponse, int]:
    """What a run comes to, and how often the server was asked."""
    async with ScriptedServer(turns) as server:
        model = OpenAIModel("m", base_url=server.url, clock=FakeClock(), retries=1)
        response = await run(agent, "Tell me a story", model=model, **options)
    return response, len(server.requests)


PAGE = raw(b"<html><title>Hi</title></html>", content_type="text/html")
ENDINGS: list[tuple[str, tuple[Any, ...], RunStatus, str | None, str | None, int]] = [
    ("cut off", (completion("length"),), RunStatus.LIMIT_REACHED, "ANSWER_CUT_OFF", "length", 1),
    ("cut off while thinking", (completion("length", None),), RunStatus.LIMIT_REACHED, "ANSWER_CUT_OFF", "length", 1),
    ("filtered", (completion("content_filter"),), RunStatus.FAILED, "ANSWER_FILTERED", "filter", 1),
    ("filtered at once", (completion("content_filter", None),), RunStatus.FAILED, "ANSWER_FILTERED", "filter", 1),
    ("refused", (completion("stop", None, refusal="I cannot."),), RunStatus.COMPLETED, None, "refusal", 1),
    ("empty", (completion("stop", ""),) * 3, RunStatus.FAILED, "EMPTY_ANSWER", "stop", 3),
    ("a page", (PAGE,), RunStatus.FAILED, "MODEL_BAD_ANSWER", None, 1),
    ("no JSON", (raw(b"oops"),), RunStatus.FAILED, "MODEL_BAD_ANSWER", None, 1),
    ("a gateway", (html(502), html(502)), RunStatus.FAILED, "MODEL_UNAVAILABLE", None, 2),
    ("too many requests", (http(429), http(429)), RunStatus.FAILED, "MODEL_RATE_LIMITED", None, 2),
    ("no key", (http(401),), RunStatus.FAILED, "MODEL_AUTHENTICATION", None, 1),
    ("broken off", (cut(), cut()), RunStatus.FAILED, "MODEL_UNAVAILABLE", None, 2),
]


@pytest.mark.parametrize(
    ("turns", "status", "code", "reason", "asked"),
    [row[1:] for row in ENDINGS],
    ids=[row[0] for row in ENDINGS],
)
async def test_a_bad_ending_has_its_status(
    turns: tuple[Any, ...], status: RunStatus, code: str | None, reason: str | None, asked: int
) -> None:
    response, requests = await ended(*turns)
    assert response.status is status
    assert (None if response.error is None else response.error.code) == code
    assert response.finish_reason == reason
    assert requests == asked
    assert response.outcome != "achieved"
    if asked == 2 and response.error is not None:
        assert "asked 2 times in" in response.error.message


async def test_a_page_in_the_place_of_a_stream_gets_its_hint_at_once() -> None:
    async with ScriptedServer([PAGE]) as server:
        async for event in stream(AGENT, "hi", model=OpenAIModel("m", base_url=server.url)):
            last = event
    assert "it often ends in /v1" in (last.error.user_guidance or "")  # type: ignore[union-attr]


async def test_what_was_written_before_the_cut_is_there() -> None:
    response, _ = await ended(completion("length"))
    assert (response.answer, response.limit_reached) == ("Once upon", "tokens")
    assert response.structured_trace[-1].finish_reason == "length"
    assert response.messages[-1].content == "Once upon"
    assert response.error is not None
    assert "max_output_tokens" in (response.error.user_guidance or "")


async def test_a_refusal_in_words_is_an_answer_with_a_mark() -> None:
    response, _ = await ended(completion("stop", None, refusal="I cannot."))
    assert (response.answer, response.outcome, response.finish_reason) == ("I cannot.", "not", "refusal")


@pytest.mark.parametrize(
    ("served", "reason"),
    [
        (chunks({"content": "Once"}, {"content": " upon"}, finish="length"), "length"),
        (chunks({"refusal": "I can"}, {"refusal": "not."}, finish="stop"), "refusal"),
        (chunks({"content": "Once"}, finish="content_filter"), "filter"),
    ],
)
async def test_a_stream_says_why_it_ends(served: Any, reason: str) -> None:
    async with ScriptedServer([served]) as server:
        async for event in stream(AGENT, "Tell me a story", model=OpenAIModel("m", base_url=server.url)):
            last = event
    assert last.response.finish_reason == reason  # type: ignore[union-attr]
    assert len(server.requests) == 1


async def test_data_that_is_cut_off_is_not_asked_for_again() -> None:
    agent = AGENT.with_output(dict[str, int])
    response, requests = await ended(completion("length", '{"pages": 1'), agent=agent)
    assert (response.status, requests, response.output) == (RunStatus.LIMIT_REACHED, 1, None)
    whole, _ = await ended(completion("length", '{"pages": 1}'), agent=agent)
    assert (whole.status, whole.output) == (RunStatus.COMPLETED, {"pages": 1})


async def test_calls_of_an_answer_that_was_cut_off_are_made() -> None:
    @tool(read_only=True)
    def pages() -> int:
        """Count the pages."""
        return 3

    said = ModelResponse(calls=together(call("pages")).calls, finish="length")
    response = await run(AGENT.with_tools(pages), "How many?", model=ScriptedModel([said, say("Three.")]))
    assert (response.status, response.answer) == (RunStatus.COMPLETED, "Three.")
    assert response.structured_trace[0].finish_reason == "length"


async def test_every_retry_is_an_event_also_where_nothing_was_shown() -> None:
    async with ScriptedServer([http(429, retry_after=3), say("Hello")]) as server:
        model = OpenAIModel("m", base_url=server.url, clock=FakeClock())
        heard = [event async for event in stream(AGENT, "hi", model=model) if isinstance(event, StepRestarted)]
    assert [(event.seconds, "answered 429" in event.reason) for event in heard] == [(3.0, True)]


async def test_usage_tells_what_was_cached_and_thought_and_what_it_costs() -> None:
    usage = {
        "prompt_tokens": 1_000_000,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 900},
        "completion_tokens_details": {"reasoning_tokens": 7},
    }
    said = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": usage, "model": "gpt-5-mini"}
    response, _ = await ended(raw(json.dumps(said).encode()))
    assert response.usage == Usage(
        input_tokens=1_000_000, output_tokens=10, requests=1, cached_tokens=900, reasoning_tokens=7
    )
    assert response.cost is not None
    assert response.cost > 0
    assert response.seconds >= 0


async def test_thoughts_go_back_with_their_calls() -> None:
    @tool(read_only=True)
    def pages() -> int:
        """Count the pages."""
        return 3

    thought = {"reasoning_content": "Count first.", "reasoning_details": [{"type": "text", "signature": "s"}]}
    wanted = [{"id": "c1", "type": "function", "function": {"name": "pages", "arguments": "{}"}}]
    async with ScriptedServer([completion("tool_calls", None, tool_calls=wanted, **thought), say("Three.")]) as server:
        agent = AGENT.with_tools(pages)
        response = await run(agent, "How many?", model=ModelSettings(name="openai:m", base_url=server.url))
    assert response.answer == "Three."
    back = server.requests[1]["messages"][2]
    assert {name: back[name] for name in thought} == thought
    assert response.messages[1].returned == {"chat_completions": thought}


@pytest.mark.timeout(120)  # the SDK takes seconds to import
async def test_an_anthropic_model_that_stops_early_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    class Early(AnthropicServer):
        reason = "max_tokens"

        def whole(self, answer: ModelResponse) -> dict[str, Any]:
            return {**super().whole(answer), "stop_reason": self.reason}

    for reason, finish, status in [("max_tokens", "length", "limit_reached"), ("refusal", "refusal", "completed")]:
        with Early(say("Once upon")) as serving:
            serving.reason = reason
            settings = ModelSettings(name=serving.prefix, base_url=serving.url, api_key="k")
            response = await run(AGENT, "Tell me a story", model=settings, limits=Limits(iterations=3))
        assert (response.finish_reason, response.status.value) == (finish, status)
        assert len(serving.bodies) == 1
