"""What the adapter does about every fault of a server or of the way to it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from journeyman.core.errors import ErrorCategory, ModelError
from journeyman.models.openai import OpenAIModel
from journeyman.testing import FakeClock, ScriptedServer, cut, hang, html, http, raw
from tests.models.asking import KEY, Heard, ask, asked, failure


@pytest.mark.parametrize(
    ("status", "code", "category"),
    [
        (400, "MODEL_REFUSED_REQUEST", ErrorCategory.INVALID_INPUT),
        (401, "MODEL_AUTHENTICATION", ErrorCategory.AUTHENTICATION),
        (403, "MODEL_AUTHENTICATION", ErrorCategory.AUTHENTICATION),
        (404, "MODEL_NOT_FOUND", ErrorCategory.INVALID_INPUT),
        (422, "MODEL_REFUSED_REQUEST", ErrorCategory.INVALID_INPUT),
    ],
)
async def test_what_cannot_be_cured_is_not_asked_again(status: int, code: str, category: ErrorCategory) -> None:
    error = await failure(http(status, message=f"no: {KEY} " + "x" * 1000), "never", api_key=KEY)
    assert (error.info.code, error.info.category, error.info.retryable) == (code, category, False)
    assert f"answered {status}: no: ***" in error.info.message
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (http(408), "MODEL_TIMEOUT"),
        (http(409), "MODEL_UNAVAILABLE"),
        (http(429), "MODEL_RATE_LIMITED"),
        (http(500), "MODEL_UNAVAILABLE"),
        (html(502), "MODEL_UNAVAILABLE"),
        (cut(), "MODEL_UNAVAILABLE"),
        (raw(b'{"error": {"code": 503, "message": "busy"}}'), "MODEL_UNAVAILABLE"),
    ],
    ids=["408", "409", "429", "500", "502", "cut", "503 inside"],
)
async def test_what_may_pass_is_asked_again(fault: Any, code: str) -> None:
    clock = FakeClock()
    assert (await ask(fault, fault, "at last", clock=clock)).text == "at last"
    assert 0.3 < clock.slept[0] < clock.slept[1] < 2
    error = await failure(*[fault] * 3, "never")
    assert (error.info.code, error.info.retryable) == (code, True)
    assert error.info.user_guidance


async def test_an_error_page_is_shortened_to_its_title() -> None:
    error = await failure(html(502), retries=0)
    assert error.info.message.endswith("answered 502: 502 Bad Gateway")


async def test_an_exhausted_quota_is_not_asked_again() -> None:
    told = raw(b'{"error": {"message": "You exceeded", "code": "insufficient_quota"}}', status=429)
    error = await failure(told, "never")
    assert error.info.code == "MODEL_RATE_LIMITED"
    assert "billing" in (error.info.user_guidance or "")


def in_seconds(seconds: float) -> str:
    return datetime.fromtimestamp(FakeClock().time() + seconds, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")


@pytest.mark.parametrize(
    ("header", "pause"), [(7, 7), ("1.5", 1.5), (3600, 30), (in_seconds(12), 12), (in_seconds(-5), 0)]
)
async def test_the_server_says_how_long_to_wait(header: float | str, pause: float) -> None:
    clock = FakeClock()
    assert (await ask(http(429, retry_after=header), "ok", clock=clock)).text == "ok"
    assert clock.slept == [pause]


@pytest.mark.parametrize("header", ["soon", "nan", "Fri, 99 Foo 2099"])
async def test_a_waiting_time_that_cannot_be_read_is_ignored(header: str) -> None:
    clock = FakeClock()
    assert (await ask(http(503, retry_after=header), "ok", clock=clock)).text == "ok"
    assert 0.3 < clock.slept[0] < 0.7


async def test_nobody_waits_longer_than_the_run_has_left() -> None:
    clock = FakeClock()
    error = await failure(http(429, retry_after=20), "never", clock=clock, request=asked(timeout=10))
    assert error.info.code == "MODEL_RATE_LIMITED"
    assert clock.slept == []


@pytest.mark.parametrize("deltas", [None, Heard()], ids=["whole", "streamed"])
async def test_a_server_that_hangs_is_given_up(deltas: Heard | None) -> None:
    error = await failure(hang(), retries=0, timeout=0.05, deltas=deltas)
    assert (error.info.code, error.info.category) == ("MODEL_TIMEOUT", ErrorCategory.TIMEOUT)
    assert "within 0.05 s" in error.info.message


async def test_the_runs_own_time_counts_too() -> None:
    error = await failure(hang(), retries=0, request=asked(timeout=0.05))
    assert error.info.code == "MODEL_TIMEOUT"
    error = await failure("never", request=asked(timeout=0.0))
    assert error.info.code == "MODEL_TIMEOUT"


async def test_a_timeout_is_asked_again() -> None:
    assert (await ask(hang(), "ok", timeout=1.0)).text == "ok"


async def test_a_server_that_is_not_there_is_named() -> None:
    async with ScriptedServer([]) as server:
        gone = server.url
    async with OpenAIModel("m", base_url=gone, clock=FakeClock()) as model:
        with pytest.raises(ModelError) as caught:
            await model.respond(asked())
    error = caught.value.info
    assert (error.code, error.category, error.retryable) == ("MODEL_UNAVAILABLE", ErrorCategory.NETWORK, True)
    assert gone.removeprefix("http://").removesuffix("/v1") in error.message
    assert error.user_guidance == "start the model server, or check base_url"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"<html><title>Welcome</title></html>", "not JSON"),
        (b"", "not JSON"),
        (b"[1]", "a JSON list"),
        (b'{"choices": []}', "without 'choices'"),
        (b'{"choices": [1]}', "no 'message'"),
        (b'{"error": "overloaded"}', "overloaded"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_an_error(body: bytes, what: str) -> None:
    error = await failure(raw(body), "never")
    assert error.info.code == "MODEL_BAD_ANSWER"
    assert what in error.info.message


@pytest.mark.parametrize("event", [b"data: {nonsense\n\n", b'data: {"choices": [7]}\n\n'])
async def test_a_stream_that_cannot_be_read_is_an_error(event: bytes) -> None:
    error = await failure(raw(event, content_type="text/event-stream"), "never", deltas=Heard())
    assert error.info.code == "MODEL_BAD_ANSWER"


async def test_a_redirect_is_reported_and_not_followed() -> None:
    error = await failure(raw(b"", status=308))
    assert "redirect" in error.info.message


async def test_cancelling_ends_the_request_at_once() -> None:
    async with ScriptedServer([hang()]) as server, OpenAIModel("m", base_url=server.url) as model:
        task = asyncio.create_task(model.respond(asked()))
        await server.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(server.requests) == 1
