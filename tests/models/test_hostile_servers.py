"""A model's server is not trusted: what it sends is bounded, and being over a bound is an error that names it."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from typing import Any

import pytest

from journeyman import RunStatus, ToolLibrary, run, tool
from journeyman.core.data import ANSWER_BYTES, ERROR_BYTES, TURN_CALLS
from journeyman.core.runs import Message, Role, ToolCall
from journeyman.models.faults import readable
from journeyman.models.openai import OpenAIModel
from journeyman.testing import ScriptedModel, ScriptedServer, call, raw, say, together
from journeyman.testing.server import Reply
from tests.models.asking import Heard, ask, asked, completion, failure, stream
from tests.playing import agent_with

MOST_MEMORY = 100_000_000


def gzipped(*pieces: bytes, content_type: str = "application/json", status: int = 200) -> Reply:
    headers = (("Content-Type", content_type), ("Content-Encoding", "gzip"))
    return Reply((gzip.compress(b"".join(pieces)),), status, headers)


def bomb(megabytes: int, *, prefix: bytes = b"") -> bytes:
    """A gzip of very much of the same."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(prefix)]
    parts += [packer.compress(b" " * 1_000_000) for _ in range(megabytes)]
    return b"".join([*parts, packer.flush()])


@pytest.fixture(scope="module")
def small_and_large() -> bytes:
    return bomb(300)


@pytest.mark.parametrize("status", [200, 500])
async def test_a_small_answer_that_unpacks_to_a_large_one_is_refused(status: int, small_and_large: bytes) -> None:
    headers = (("Content-Type", "application/json"), ("Content-Encoding", "gzip"))
    tracemalloc.start()
    try:
        error = await failure(Reply((small_and_large,), status, headers), retries=0)
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
    if status == 200:
        assert (error.info.code, error.info.retryable) == ("MODEL_ANSWER_TOO_LARGE", False)
        assert f"{ANSWER_BYTES:,} bytes" in error.info.message


async def test_a_stream_that_unpacks_to_a_large_one_is_refused(small_and_large: bytes) -> None:
    headers = (("Content-Type", "text/event-stream"), ("Content-Encoding", "gzip"))
    error = await failure(Reply((small_and_large,), 200, headers), deltas=Heard(), retries=0)
    assert error.info.code == "MODEL_ANSWER_TOO_LARGE"


async def test_compressed_answers_are_read() -> None:
    body = json.dumps({"choices": [{"message": {"content": "packed"}}]}).encode()
    assert (await ask(gzipped(body))).text == "packed"


async def test_more_calls_than_a_turn_may_have_are_refused() -> None:
    one = {"id": "same", "function": {"name": "f", "arguments": "{}"}}
    error = await failure(completion({"tool_calls": [one] * 10_000}))
    assert error.info.code == "MODEL_ANSWER_TOO_LARGE"
    assert f"10,000 calls in one turn; at most {TURN_CALLS}" in error.info.message
    streamed = [{"tool_calls": [{"index": n, **one}]} for n in range(TURN_CALLS + 1)]
    assert (await failure(stream(*streamed), deltas=Heard())).info.code == "MODEL_ANSWER_TOO_LARGE"


async def test_twenty_thousand_fragments_are_put_together() -> None:
    heard = Heard()
    answer = await ask(stream(*[{"content": "ab"}] * 20_000), deltas=heard)
    assert answer.text == "ab" * 20_000 == "".join(heard.pieces)


async def test_a_model_of_any_adapter_may_not_ask_for_too_many_calls() -> None:
    @tool(risk="reversible")
    def look(at: str) -> str:
        """Look at something."""
        return at

    model = ScriptedModel([together(*[call("look", at="x")] * (TURN_CALLS + 1)), say("done")])
    response = await run(agent_with(look), "Look.", library=ToolLibrary([look]), model=model)
    assert response.status is RunStatus.FAILED
    assert response.error is not None
    assert (response.error.code, response.tool_calls) == ("MODEL_ANSWER_TOO_LARGE", ())
    assert f"at most {TURN_CALLS}" in response.error.message


@pytest.mark.parametrize("page", ["<title", "<title>", "<script>", "<", "&#1", "&#" + "1" * 5_000, "\x1b[31m"])
async def test_of_an_error_page_only_the_beginning_is_read(page: str) -> None:
    error = await failure(raw((page * (1_000_000 // len(page))).encode(), status=404, content_type="text/html"))
    assert error.info.code == "MODEL_NOT_FOUND"
    assert len(error.info.message) < 1_000


def test_what_a_page_says_is_still_found() -> None:
    assert readable(b"<html><HEAD><TITLE>502 Bad &amp; Gateway</TITLE></HEAD><p>x</p>") == "502 Bad & Gateway"
    assert readable(b"<style>p {}</style><p>Not <b>here</b></p><script>alert('<p>')</script>") == "Not here"
    assert readable(b"plain") == "plain"
    long = json.dumps({"error": {"message": "too many words", "more": "x" * ERROR_BYTES}}).encode()
    assert readable(long) == "too many words"


# --- ids


EVIL = "x; rm -rf ~ #\x1b[2J"


async def test_ids_are_ours_in_everything_that_is_kept_and_theirs_only_to_their_server() -> None:
    @tool(risk="reversible")
    def order(item: str) -> str:
        """Order something."""
        return item

    evil = ToolCall(id=EVIL, tool_name="order", arguments={"item": "tea"})
    fine = ToolCall(id="call_abc123", tool_name="order", arguments={"item": "milk"})
    turn = json.dumps(
        {
            "choices": [
                {
                    "message": {
                        "tool_calls": [
                            {"id": each.id, "function": {"name": "order", "arguments": json.dumps(each.arguments)}}
                            for each in (evil, fine)
                        ]
                    }
                }
            ]
        }
    ).encode()
    async with ScriptedServer([raw(turn), say("done")]) as server, OpenAIModel("m", base_url=server.url) as model:
        response = await run(agent_with(order), "Order.", library=ToolLibrary([order]), model=model)
    assert [record.call_id for record in response.tool_calls] == ["call_1_1", "call_1_2"]
    kept = response.model_dump_json()
    assert "rm -rf" not in kept
    assert "call_abc123" not in kept
    sent = server.requests[1]["messages"]
    asked_for = [made["id"] for message in sent for made in message.get("tool_calls") or []]
    answered = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert asked_for == answered == ["call_1_1", "call_abc123"]


async def test_without_the_server_s_own_ids_ours_are_sent() -> None:
    made = ToolCall(id="call_1_1", tool_name="f", arguments={})
    messages = (
        Message.user("hello"),
        Message(role=Role.ASSISTANT, calls=(made,)),
        Message(role=Role.FUNCTION, name="f", call_id="call_1_1", content="1"),
    )
    async with ScriptedServer([say("done")]) as server, OpenAIModel("m", base_url=server.url) as model:
        await model.respond(asked(*messages))
    assert server.requests[0]["messages"][1]["tool_calls"][0]["id"] == "call_1_1"


# --- the event loop


class LongestTurn:
    """How much of the processor's time the event loop's own thread took between two of its turns."""

    seconds = 0.0

    async def __aenter__(self) -> LongestTurn:
        self._watching = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: Any) -> None:
        await asyncio.sleep(0)
        self._watching.cancel()

    async def _watch(self) -> None:
        import time

        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.seconds = max(self.seconds, now - last)
            last = now


@pytest.mark.parametrize(
    "text",
    ["a" * 999_000 + "://", "%25" * 330_000, "x\\y " * 190_000, "a://b?a=b&" * 99_000, "proc/a" * 160_000],
)
async def test_a_megabyte_of_arguments_does_not_hold_the_event_loop(text: str) -> None:
    @tool(risk="reversible")
    def keep(text: str) -> int:
        """Keep a text."""
        return len(text)

    model = ScriptedModel([call("keep", text=text), say("done")])
    async with LongestTurn() as longest:
        response = await run(agent_with(keep), "Keep it.", library=ToolLibrary([keep]), model=model)
    assert response.tool_calls[0].result == len(text)
    # 50 ms are the aim; the rest is for a busy machine. It took minutes.
    assert longest.seconds < 0.5
