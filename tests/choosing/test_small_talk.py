"""What is said in passing is no request, and gets no report; what asks for something is one."""

import pytest

from benchmarks.gaps.corpus import talk
from journeyman import ToolLibrary
from journeyman.choosing.actions import asks_for_something
from journeyman.choosing.gaps import ToolGapDetector, fitting
from journeyman.retrieval.embedders import default_embedder
from tests.choosing.gap_requests import SERVED, TOOLS, UNSERVED


@pytest.mark.parametrize(
    "text",
    [
        "Thanks!",
        "Hello, how are you?",
        "ok",
        "Good morning!",
        "You're amazing!",
        "I'm so tired today.",
        "What's your name?",
    ],
)
@pytest.mark.parametrize("embedded", [True, False])
async def test_small_talk_gets_no_report_however_little_it_fits(text: str, embedded: bool) -> None:
    detector = ToolGapDetector(ToolLibrary(TOOLS), embedder=default_embedder() if embedded else None)
    assert await detector.detect(text, confidence=0.0) is None


@pytest.mark.parametrize(("kind", "most"), [("written", 2), ("corpus", 15)])
async def test_of_a_hundred_lines_of_chatter_few_are_taken_for_requests(kind: str, most: int) -> None:
    embedder, lines = default_embedder(), talk(kind)
    wrong = [line for line in lines if not (await fitting(line, (), embedder=embedder)).passing]
    assert len(lines) == 100
    assert len(wrong) <= most


@pytest.mark.parametrize("text", [*SERVED, *UNSERVED])
def test_requests_ask_for_something(text: str) -> None:
    assert asks_for_something(text)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks! Now book me a flight to Paris.",
        "Hello, could you send an email to Ana?",
        "Hi, I need the weather in Oslo",
        "ok delete the third task",
        "thanks, but I want my money back",
    ],
)
def test_a_request_after_a_greeting_is_one(text: str) -> None:
    assert asks_for_something(text)


@pytest.mark.parametrize("text", ["!" * 20_000 + "x", "do it.then " * 2_000, "a, and " * 3_000])
async def test_odd_texts_are_looked_up_in_no_time(text: str) -> None:
    await ToolGapDetector(ToolLibrary(TOOLS)).detect(text)


@pytest.mark.parametrize("text", ["a" * 100_000, "hi " * 50_000, "?!" * 50_000, "thank you " * 20_000])
def test_long_texts_are_read_in_no_time(text: str) -> None:
    asks_for_something(text)
