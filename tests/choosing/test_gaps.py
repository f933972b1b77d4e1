"""Requests that no tool can serve: how many are noticed, and what a report says."""

import numpy as np
import pytest

from journeyman import ToolLibrary, tool
from journeyman.choosing.gaps import NEEDED, ToolGapDetector, phrase, surroundings
from journeyman.choosing.languages import in_english
from journeyman.core.protocols import Embedder
from journeyman.core.words import packaged_text
from journeyman.retrieval.embedders import default_embedder
from journeyman.retrieval.index import unit
from tests.choosing.gap_requests import SERVED, TOOLS, UNSERVED, get_weather, send_email, web_search


@pytest.fixture(scope="module")
def library() -> ToolLibrary:
    return ToolLibrary(TOOLS, embedder=default_embedder())


async def rates(library: ToolLibrary) -> tuple[float, float]:
    """Precision and recall of gap reports over requests that set no threshold."""
    detector = ToolGapDetector(library)
    right = [await detector.detect(text) is not None for text in UNSERVED]
    wrong = [await detector.detect(text) is not None for text in SERVED]
    return sum(right) / (sum(right) + sum(wrong)), sum(right) / len(right)


async def test_most_gaps_are_noticed_and_most_reports_are_right(library: ToolLibrary) -> None:
    precision, recall = await rates(library)
    assert precision >= 0.75
    assert recall >= 0.85


async def test_words_alone_notice_gaps_too() -> None:
    precision, recall = await rates(ToolLibrary(TOOLS))
    assert precision >= 0.75
    assert recall >= 0.75


async def test_a_report_says_what_is_missing_in_the_words_of_the_request(library: ToolLibrary) -> None:
    request = "Retrieve my stock portfolio performance for Q3 2024"
    report = await ToolGapDetector(library).detect(request)
    assert report is not None
    assert report.missing_tools == ("retrieve stock portfolio performance",)
    assert report.attempted_task == request
    assert sorted(report.existing_tools_checked) == sorted(library.names())


async def test_the_tools_that_come_nearest_are_named_first() -> None:
    detector = ToolGapDetector(ToolLibrary([send_email, get_weather, web_search]))
    report = await detector.detect("Paint a picture of tropical rain and wind", confidence=0.0)
    assert report is not None
    assert report.existing_tools_checked[0] == "get_weather"
    assert sorted(report.existing_tools_checked) == ["get_weather", "send_email", "web_search"]


@pytest.mark.parametrize("text", ["Show me all open tasks", "What is the weather in Oslo?"])
async def test_a_request_that_a_tool_serves_is_no_gap(library: ToolLibrary, text: str) -> None:
    assert await ToolGapDetector(library).detect(text) is None


async def test_only_the_unserved_part_of_a_task_is_missing(library: ToolLibrary) -> None:
    report = await ToolGapDetector(library).detect("Show me all open tasks, then turn off the lights in the kitchen.")
    assert report is not None
    assert report.missing_tools == ("turn off lights",)


async def test_the_models_confidence_tips_the_scales(library: ToolLibrary) -> None:
    detector = ToolGapDetector(library)
    found = {text: await detector.fitting(text) for text in [*SERVED, *UNSERVED]}
    fits = {text: each.best for text, each in found.items()}
    near = min(fits, key=lambda text: abs(fits[text] - NEEDED))
    assert await detector.detect(near, confidence=0.0) is not None
    assert await detector.detect(near, confidence=1.0) is None


@tool(read_only=True)
def find_movies(genre: str) -> str:
    """Find movies by genre and, optionally, director or actors."""
    return genre


@tool(read_only=True)
def get_alarms() -> str:
    """Get the alarms user has already set."""
    return ""


@tool(read_only=True)
def check_balance(account_type: str) -> str:
    """Get the balance of an account."""
    return account_type


@pytest.mark.parametrize(
    ("text", "is_gap"),
    [
        ("Can you help me find a one way flight?", True),
        ("Can you find me a one way flight?", True),
        ("Can you find me a comedy movie?", False),
        ("Can you help me find a film with Tom Hanks?", False),
    ],
)
async def test_to_find_one_thing_is_not_to_find_another(text: str, is_gap: bool) -> None:
    library = ToolLibrary([find_movies, get_alarms, check_balance], embedder=default_embedder())
    assert (await ToolGapDetector(library).detect(text) is not None) == is_gap


@tool(read_only=True)
def read_file(path: str) -> str:
    """Read a file and return its text."""
    return path


@tool(read_only=True)
def search_memory(query: str) -> str:
    """Search what the user has told before."""
    return query


@pytest.mark.parametrize("embedder", [default_embedder(), None])
@pytest.mark.parametrize(
    ("text", "is_gap"),
    [
        ("What is the capital of France?", False),
        ("Who painted the Sistine Chapel?", False),
        ("What have I told you about my dog?", False),
        ("Was ist die Hauptstadt von Portugal?", False),
        ("Was steht in der Datei plan.txt?", False),
        ("Delete the file plan.txt", True),  # to read is not to delete
        ("Buche mir einen Flug", True),
        ("Bestelle Blumen für meine Mutter", True),
    ],
)
async def test_gaps_are_told_in_two_languages_and_a_search_of_the_web_answers_questions(
    text: str, is_gap: bool, embedder: Embedder | None
) -> None:
    library = ToolLibrary([web_search, read_file, search_memory], embedder=embedder)
    assert (await ToolGapDetector(library).detect(text) is not None) == is_gap


async def test_in_a_language_that_is_not_known_meaning_decides_and_the_report_says_so() -> None:
    text = "Rezerwuj bilet lotniczy dla babci"
    library = ToolLibrary([read_file, search_memory], embedder=default_embedder())
    report = await ToolGapDetector(library).detect(text)
    assert report is not None
    assert report.by_meaning_alone
    assert report.plain.endswith("told by meaning alone.")
    assert await ToolGapDetector(ToolLibrary([read_file])).detect(text) is None  # nobody can tell
    known = await ToolGapDetector(library).detect("Book a flight for my grandmother")
    assert known is not None
    assert not known.by_meaning_alone


@pytest.mark.parametrize(
    ("text", "english", "language"),
    [
        ("Wie spät ist es?", "what time is it?", "de"),
        ("Lösche die Datei alt.txt!", "delete the file alt.txt!", "de"),
        ("Stelle die Küchenlampe bitte heller", "set the kitchen lamp please heller", "de"),
        ("Kannst du die Fenster putzen?", "can you the window clean?", "de"),
        ("Show me the menu", "Show me the menu", "en"),
        ("Jazz", "Jazz", "en"),
        ("Réserve-moi un vol pour demain", "Réserve-moi un vol pour demain", "unknown"),
    ],
)
def test_german_is_put_into_english_words(text: str, english: str, language: str) -> None:
    assert in_english(text) == (english, language)


async def test_the_packaged_vectors_are_those_of_the_surroundings() -> None:
    lines = packaged_text("journeyman.choosing", "surroundings.txt").splitlines()
    kept, embedder = await surroundings(default_embedder()), default_embedder()
    assert kept is not None
    assert embedder is not None
    listed = [line for line in lines if not line.startswith("#")]
    made = unit(await embedder.embed([*listed[:2], *listed[-2:]]))
    assert len(kept) == len(listed)
    assert np.abs(made - kept[[0, 1, -2, -1]]).max() < 0.01


async def test_a_library_without_tools_can_do_nothing() -> None:
    report = await ToolGapDetector(ToolLibrary()).detect("Show me all open tasks")
    assert report is not None
    assert report.existing_tools_checked == ()


async def test_a_tool_that_is_switched_off_serves_nobody() -> None:
    request = "the current weather and forecast for a city"
    assert await ToolGapDetector(ToolLibrary([get_weather])).detect(request) is None
    off = get_weather.with_changes(enabled=False)
    assert await ToolGapDetector(ToolLibrary([off])).detect(request) is not None


@pytest.mark.parametrize("text", ["", "   ", "?!"])
async def test_a_request_without_words_is_no_gap(library: ToolLibrary, text: str) -> None:
    assert await ToolGapDetector(library).detect(text) is None


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("Could you please book me a flight to Paris?", "book flight"),
        ("I'd like you to pay the electricity bill", "pay electricity bill"),
        ("Calculate the square root of 1,764", "calculate square root"),
        ("What's the balance of my account?", "balance of account"),
        ("1,764", "1,764"),
    ],
)
def test_a_phrase_is_taken_from_the_request(request_text: str, expected: str) -> None:
    assert phrase(request_text) == expected
