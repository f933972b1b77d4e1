"""Every kind of fault of tools, arguments and models: no run crashes, each leaves a record and a way out."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from journeyman import CallStatus, ErrorInfo, Limits, Policy, Principal, RunStatus, ToolLibrary, run, run_sync, tool
from journeyman.core import ErrorCategory
from journeyman.core.events import CallFinished
from journeyman.execution.recorder import MemoryJournal
from journeyman.models import ModelResponse
from journeyman.testing import ScriptedModel, call, say, together
from tests.killable import sleep_in_c, whoami
from tests.playing import Played, agent_with, play
from tests.waiting import WAIT_SECONDS


@asynccontextmanager
async def ticking(*, longest: float = 1.0) -> AsyncIterator[None]:
    """Watches that the event loop goes on all the while: it neither computes for long nor waits for anybody."""
    busy, still = [0.0], [0.0]

    async def tick() -> None:
        while True:
            computed, before = time.thread_time(), time.monotonic()
            await asyncio.sleep(0.005)
            busy.append(time.thread_time() - computed)
            still.append(time.monotonic() - before)

    ticker = asyncio.ensure_future(tick())
    await asyncio.sleep(0.02)
    yield
    await asyncio.sleep(0.02)
    ticker.cancel()
    assert max(busy) < longest, f"the event loop computed for {max(busy):.2f} s"
    # Tools here hang for longer; on a machine under load the loop may wait for its turn.
    assert max(still) < 20, f"the event loop stood still for {max(still):.2f} s"


@tool(read_only=True)
def fine(number: int = 0) -> str:
    """Work as it should."""
    return f"fine {number}"


async def faulty(*tools: Any, also: tuple[Any, ...] = (), **options: Any) -> tuple[Played, ErrorInfo]:
    """Call a faulty tool beside a good one, and check what must hold for every fault of a tool."""
    broken = tools[0]
    async with ticking():
        played = await play(
            [*tools, fine], [together(call(broken.name), call("fine", number=1)), say("over")], **options
        )
    response = played.response
    record, sibling = response.tool_calls
    assert (response.status, response.answer) == (RunStatus.COMPLETED, "over")
    assert (sibling.status, sibling.result) == (CallStatus.SUCCESS, "fine 1")
    assert record.error is not None
    assert record.result is None
    assert record.error.recover_action
    told = played.model.requests[1].messages[-2].content
    assert record.error.code in told
    assert record.error.recover_action in told
    assert response.confidence < 0.9
    noted = [fact.record for fact in played.facts if isinstance(fact, CallFinished)]
    assert record in noted
    assert played.types.count("call_started") == played.types.count("call_finished") == 2
    return played, record.error


# --- tools that fail


class Unreadable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise ValueError("no text")


class Odd(BaseException):
    pass


RAISED: list[tuple[Any, str]] = [
    (ValueError("bad value"), "ValueError: bad value"),
    (KeyError("name"), "KeyError: 'name'"),
    (RecursionError("too deep"), "RecursionError"),
    (MemoryError(), "MemoryError"),
    (ConnectionRefusedError("no route"), "no route"),
    (TimeoutError("of its own"), "of its own"),
    (FileNotFoundError("caf\udce9.txt"), "caf?.txt"),
    (Unreadable(), "Unreadable"),
    (ExceptionGroup("several", [ValueError("a"), TypeError("b")]), "several"),
    (StopIteration(3), "StopIteration"),
    (SystemExit(2), "tried to exit the program"),
    (Odd("odd"), "tried to exit the program"),
    (ValueError("x" * 1_000_000), "x" * 100),
]


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize(("error", "said"), RAISED, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("capture", [False, True])
async def test_a_tool_that_raises(kind: str, error: BaseException, said: str, capture: bool) -> None:
    def broken() -> None:
        """Fail."""
        raise error

    async def broken_later() -> None:
        """Fail."""
        raise error

    made = tool(broken if kind == "sync" else broken_later, name="broken", risk="reversible")
    _, told = await faulty(made, policy=Policy(capture_content=capture))
    assert told.code == "TOOL_RAISED"
    assert told.message.startswith(f"Unexpected tool error: {type(error).__name__}")
    if capture or "tried to exit" in said:
        assert said in told.message
    else:
        assert told.message == f"Unexpected tool error: {type(error).__name__}"
    assert len(told.message) < 5_000
    assert told.category == (ErrorCategory.NETWORK if isinstance(error, ConnectionError) else ErrorCategory.TOOL_ERROR)
    assert not told.retryable
    assert "may have taken effect" in (told.recover_action or "")


async def test_a_keyboard_interrupt_of_the_tools_own_does_not_end_the_program() -> None:
    @tool(risk="reversible")
    def broken() -> None:
        """Interrupt."""
        raise KeyboardInterrupt

    assert "tried to exit" in (await faulty(broken))[1].message


async def test_sys_exit_does_not_end_the_program() -> None:
    @tool(risk="reversible")
    async def leave() -> None:
        """Leave."""
        sys.exit("bye")

    assert "bye" not in (await faulty(leave))[1].message
    assert "tried to exit" in (await faulty(leave))[1].message


@tool(risk="reversible", timeout_seconds=1)
async def hang_async() -> None:
    """Wait for ever."""
    await asyncio.Event().wait()


@tool(risk="reversible", timeout_seconds=1)
def hang_in_c() -> None:
    """Sleep where no interrupt reaches."""
    time.sleep(30)


@tool(risk="reversible", timeout_seconds=1)
def hang_in_python() -> None:
    """Spin for ever."""
    while True:
        pass


@tool(risk="reversible", timeout_seconds=1)
def hang_in_a_generator() -> Iterator[int]:
    """Yield for ever."""
    while True:
        yield from ()


async def test_tools_that_hang_are_given_up_all_at_once() -> None:
    released = asyncio.Event()

    @tool(risk="reversible", timeout_seconds=1)
    async def hang_and_swallow() -> None:
        """Ignore every cancellation."""
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    hanging: list[Any] = [hang_async, hang_in_c, hang_in_python, hang_in_a_generator, hang_and_swallow, sleep_in_c]
    calls = [call(item.name) for item in hanging]
    async with ticking():
        played = await play([*hanging, fine], [together(*calls, call("fine")), say("over")])
    released.set()
    *given_up, sibling = played.response.tool_calls
    assert [record.status for record in given_up] == [CallStatus.TIMEOUT] * len(hanging)
    assert sibling.result == "fine 0"
    for record, told in zip(given_up, played.told, strict=False):
        assert record.error is not None
        assert (record.error.code, record.error.category) == ("TOOL_TIMEOUT", ErrorCategory.TIMEOUT)
        assert "within 1 s" in told
        assert "check before repeating" in told
        assert "timeout_seconds" in (record.error.user_guidance or "")
    assert played.response.answer == "over"


async def test_ten_blocking_tools_run_at_once() -> None:
    meeting = threading.Barrier(10)

    @tool(risk="reversible", timeout_seconds=WAIT_SECONDS)
    def meet(number: int) -> int:
        """Wait for nine others."""
        meeting.wait(WAIT_SECONDS)
        return number

    async with ticking():
        played = await play([meet], [together(*(call("meet", number=n) for n in range(10))), say("met")])
    assert [record.result for record in played.response.tool_calls] == list(range(10))


class Opaque:
    pass


class Explosive:
    def __iter__(self) -> Iterator[int]:
        raise ValueError("do not look")


def circular() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


@pytest.mark.parametrize(
    "value", [Opaque(), {"deep": [Opaque()]}, circular(), nested(10_000), lambda: 1, Explosive(), threading.Lock()]
)
async def test_a_result_that_is_not_json(value: Any) -> None:
    @tool(risk="reversible")
    def give() -> Any:
        """Give something odd."""
        return value

    _, told = await faulty(give)
    assert told.code == "UNSERIALISABLE_RESULT"
    assert "it has run" in (told.recover_action or "")
    assert "dataclasses or pydantic models" in (told.user_guidance or "")


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (None, None),
        (float("nan"), "NaN"),
        ([float("inf")], ["Infinity"]),
        ("caf\udce9", "caf?"),
        ({"caf\udce9": ["\ud800"]}, {"caf?": ["?"]}),
        (b"bytes", "Ynl0ZXM="),
        ({1: (2, {3})}, {"1": [2, [3]]}),
        ((number for number in (1, 2)), [1, 2]),
        (10**30, 10**30),
    ],
)
async def test_odd_results_that_json_can_say(value: Any, kept: Any) -> None:
    @tool(risk="reversible")
    def give() -> Any:
        """Give something odd."""
        return value

    played = await play([give], [call("give"), say("over")])
    assert played.response.tool_calls[0].result == kept


@pytest.mark.parametrize("kind", ["text", "list"])
async def test_a_result_of_fifty_megabytes(kind: str) -> None:
    whole: Any = "x" * 50_000_000 if kind == "text" else ["y" * 1_000_000] * 50

    @tool(read_only=True)
    def big() -> Any:
        """Give a lot."""
        return whole

    model, journal = ScriptedModel([together(call("big"), call("fine")), say("a lot")]), MemoryJournal()
    async with ticking(longest=3.0):
        response = await run(
            agent_with(big, fine), "go", library=ToolLibrary([big, fine]), model=model, journal=journal
        )
    assert [record.status for record in response.tool_calls] == ["success", "success"]
    assert response.tool_calls[0].result == whole
    told = model.requests[1].messages[-2].content
    assert len(told) <= Policy().max_result_chars
    assert "left out; read_result(handle=" in told
    finished = [fact for fact in await journal.read(response.run_id) if isinstance(fact, CallFinished)]
    assert any(fact.record.result == whole for fact in finished)


# --- processes


@pytest.mark.usefixtures("_token")
async def test_an_isolated_tool_knows_its_principal_and_its_secrets() -> None:
    played = await play([whoami], [call("whoami"), say("over")], principal=Principal("ada", permissions={"a:b"}))
    record = played.response.tool_calls[0]
    assert record.result == {"id": "ada", "secret": "•••", "key": record.execution_id}
    assert "hunter2" not in played.response.model_dump_json()


@pytest.fixture
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEYMAN_SECRET_TOKEN", "hunter2")


@pytest.mark.usefixtures("_token")
def test_isolated_tools_work_in_one_program_after_the_other() -> None:
    library, agent = ToolLibrary([whoami]), agent_with(whoami)
    for _ in range(2):
        response = run_sync(agent, "go", library=library, model=ScriptedModel([call("whoami"), say("over")]))
        assert [record.status for record in response.tool_calls] == ["success"]


# --- arguments


@tool(risk="reversible")
def order(item: str, amount: int = 1, options: dict[str, Any] | None = None) -> str:
    """Order something."""
    return f"{amount} × {item}"


def deep(depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(depth):
        made = {"x": made}
    return made


@pytest.mark.parametrize(
    ("scripted", "code", "said"),
    [
        (call("order").raw('{"item": "tea", '), "MALFORMED_ARGUMENTS", '{\\"item\\": \\"tea\\"'),
        (call("order").raw('["tea"]'), "MALFORMED_ARGUMENTS", "not a JSON object"),
        (call("order").raw("x" * 1_000_000), "MALFORMED_ARGUMENTS", "not a JSON object"),
        (call("order"), "INVALID_ARGUMENTS", "item: missing (required)"),
        (call("order", item="tea", sugar=2), "INVALID_ARGUMENTS", "sugar: unknown argument (known: item, amount"),
        (call("order", item=7), "INVALID_ARGUMENTS", "item: must be a string, got 7"),
        (call("order", item="tea", amount="2"), "INVALID_ARGUMENTS", "amount: must be an integer"),
        (call("order", item="tea", amount=True), "INVALID_ARGUMENTS", "amount: must be an integer"),
        (call("order", item="tea", amount=float("nan")), "INVALID_ARGUMENTS", "not JSON"),
        (call("order", item="tea", options={"x": float("inf")}), "INVALID_ARGUMENTS", "not JSON"),
        (call("order", item="tea", options=deep(100_000)), "MALFORMED_ARGUMENTS", "depth exceeded"),
        (call("order", item="tea", options=deep(240)), "MALFORMED_ARGUMENTS", "nested more than 100 levels"),
        (call("order", item="\ud800"), "MALFORMED_ARGUMENTS", "surrogates"),
        (call("order", item={1, 2}), "INVALID_ARGUMENTS", "not JSON"),
        (call("order", item=Opaque()), "MALFORMED_ARGUMENTS", "Opaque"),
        (call("order", item="x" * 10_000_000), "ARGUMENTS_TOO_LARGE", "10,000,"),
        (call("order", item=None), "INVALID_ARGUMENTS", "item: must be a string"),
    ],
)
async def test_arguments_that_do_not_conform(scripted: Any, code: str, said: str) -> None:
    async with ticking():
        played = await play([order, fine], [together(scripted, call("fine")), call("order", item="tea"), say("over")])
    refused, sibling, corrected = played.response.tool_calls
    assert refused.error is not None
    assert (refused.status, refused.error.code, refused.attempts) == ("error", code, 0)
    assert refused.error.category is ErrorCategory.INVALID_INPUT
    told = played.model.requests[1].messages[-2].content
    assert said in told
    assert "conform to its schema" in told
    assert len(told) < 2_000
    assert (sibling.status, corrected.result) == ("success", "1 × tea")
    started = [fact for fact in played.facts if fact.type == "call_started"]
    assert refused.call_id not in [fact.call_id for fact in started]


# --- models


@pytest.mark.parametrize("nothing", ["", "   \n"])
async def test_a_model_that_says_nothing_is_told_and_then_given_up(nothing: str) -> None:
    played = await play([fine], [nothing] * 5)
    response = played.response
    assert response.error is not None
    assert (response.status, response.error.code) == (RunStatus.FAILED, "EMPTY_ANSWER")
    assert response.error.user_guidance
    assert [m.content for m in played.model.requests[2].messages].count(
        "Your reply was empty. Call a tool, or answer the user in plain text."
    ) == 2


async def test_the_same_call_id_twice() -> None:
    twin = call("fine").with_id("same")
    played = await play([fine], [together(twin, twin), twin, say("over")])
    ids = [record.call_id for record in played.response.tool_calls]
    assert ids == ["call_1_1", "call_1_2", "call_2_1"]
    assert len({record.execution_id for record in played.response.tool_calls}) == 3


@pytest.mark.parametrize(
    ("name", "near"), [("fnie", "fine"), ("Fine", "fine"), ("ordr", "order"), ("weather", None), ("", None)]
)
async def test_a_tool_that_does_not_exist(name: str, near: str | None) -> None:
    played = await play([order, fine], [call(name), say("over")])
    record = played.response.tool_calls[0]
    assert record.error is not None
    assert (record.status, record.error.code) == ("error", "UNKNOWN_TOOL")
    assert (record.tool_name, repr(name or "unnamed") in record.error.message) == (name or "unnamed", True)
    assert (f"nearest are {near}" in played.told[0]) is (near is not None)
    assert "Call one of the tools you were given" in played.told[0]
    assert played.response.answer == "over"


async def test_an_endless_loop_ends_at_the_limit_with_its_trace() -> None:
    played = await play([fine], [call("fine", number=number) for number in range(100)])
    response = played.response
    assert (response.status, response.iteration_limit_reached) == (RunStatus.LIMIT_REACHED, True)
    assert response.total_iterations == len(response.tool_calls) == 10
    assert response.reasoning_trace.count("fine → success") == 10


async def test_an_endless_repetition_costs_two_executions() -> None:
    played = await play([fine], [call("fine")] * 100)
    assert [record.attempts for record in played.response.tool_calls] == [1, 1, *[0] * 8]
    assert played.response.total_iterations == 10


async def test_a_hundred_calls_in_one_turn() -> None:
    played = await play([fine], [together(*(call("fine", number=n) for n in range(100))), say("over")])
    assert [record.result for record in played.response.tool_calls] == [f"fine {n}" for n in range(100)]


async def test_a_model_that_never_answers_is_ended_by_the_runs_time() -> None:
    async def forever(request: object) -> ModelResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with ticking():
        played = await play([fine], [call("fine"), forever], limits=Limits(seconds=1))
    assert played.response.status is RunStatus.LIMIT_REACHED
    assert [record.status for record in played.response.tool_calls] == ["success"]
