"""Citations are compared with what was really read; what does not hold is marked, and nothing else is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as some

from journeyman.toolkits.research import Source, check_citations, sources_of
from journeyman.toolkits.research.citations import source_list

NOW = datetime(2026, 11, 16, tzinfo=UTC)
SOURCES = {
    1: Source(
        1, "web", "The bridge", "https://b.example/", "It opened on 19 March 1932, 1,149 metres long. It’s “grey”."
    ),
    2: Source(2, "file", "", "notes.md", "The toll is 4.50 since 2021-07-01; 12 000 cars a day."),
    3: Source(3, "memory", "", "mem_1", "Ada prefers the ferry.", datetime(2026, 11, 13, tzinfo=UTC)),
}


def problems(text: str) -> tuple[str, ...]:
    return check_citations(text, SOURCES, now=NOW).problems


@pytest.mark.parametrize(
    "text",
    [
        "The bridge opened on 19 March 1932 [1].",
        "The bridge is 1149 metres long. [1]",
        "It opened in 1932 and is “grey” [1], and the toll is 4.5 [2].",
        "The toll has been 4.50 since July 2021 [2].",
        "About 12,000 cars use it a day [2].",
        "It is long [1] [2].",
        'The page says "it\'s grey" about the bridge [1].',
        "# The 7 wonders of the bridge\n\nThe bridge is long [1].",
        "- The bridge is long [1]\n- The toll is fixed [2]",
        "1. The bridge is long [1].",
        "What would you like to know about the bridge?",
        "I could not find anything about the tunnel.",
        "Hello there!",
        "```\nthis is code with 99 words in it\n```",
        "| Year | Length |\n|---|---|\n| 1932 | 1,149 [1] |",
        "E.g. Dr. Bradfield's bridge is long, i.e. it has a long arch [1].",
        "See [1](https://example.com) and what it says of the bridge [1].",
    ],
)
def test_what_holds_is_not_marked(text: str) -> None:
    assert problems(text) == ()


@pytest.mark.parametrize(
    ("text", "told", "mark"),
    [
        ("The bridge is made of steel plates.", "cites no source", "plates. [no source]"),
        ("The bridge is 1,150 metres long [1].", "1,150 is not in source 1", "[1]. [1,150 not in source 1]"),
        ("The toll is 45 a trip [2].", "45 is not in source 2", "[45 not in source 2]"),
        ("It was built in 1932 [7].", "cites 7", "[source 7 was not read]"),
        ("It is called “the Hanger” [1].", "'the Hanger' is not in source 1", "[quotation not in source 1]"),
        ("The bridge opened in 1932 [2].", "1932 is not in source 2", "[1932 not in source 2]"),
    ],
)
def test_what_does_not_hold_is_marked_where_it_stands(text: str, told: str, mark: str) -> None:
    checked = check_citations(text, SOURCES, now=NOW)
    [problem] = checked.problems
    assert told in problem
    assert mark in checked.text


def test_each_sentence_is_judged_by_itself() -> None:
    checked = check_citations("The bridge is long [1]. The moon is made of cheese. The toll is fixed [2].", SOURCES)
    assert checked.text == ("The bridge is long [1]. The moon is made of cheese. [no source] The toll is fixed [2].")
    assert [source.number for source in checked.cited] == [1, 2]


def test_what_comes_from_memory_says_so_with_its_age() -> None:
    checked = check_citations("Ada prefers the ferry [3]. She said so [3].", SOURCES, now=NOW)
    assert checked.text == "Ada prefers the ferry [3]. (from memory, stored 3 days ago) She said so [3]."
    listed = source_list(checked.cited, now=NOW)
    assert listed == "- [3] From memory, stored 3 days ago (2026-11-13): Ada prefers the ferry."
    assert source_list((SOURCES[1], SOURCES[2])) == "- [1] The bridge – <https://b.example/>\n- [2] File `notes.md`"


def test_a_list_of_sources_that_the_model_wrote_is_left_out() -> None:
    checked = check_citations("The bridge is long [1].\n\n## Sources\n[1] https://evil.example", SOURCES)
    assert (checked.text, checked.problems) == ("The bridge is long [1].", ())


def test_results_of_odd_shapes_are_no_sources() -> None:
    odd = [None, "x", {"results": "x"}, {"results": [1, {"source": "1", "url": "u"}, {"source": True, "url": "u"}]}]
    assert sources_of([*odd, {"source": 4}, {"source": 5, "url": 7}]) == {}


@given(some.text(alphabet=some.sampled_from(list('ab1 .[]23,“”"\n#-|%')), max_size=300))
def test_nothing_of_a_text_is_lost(text: str) -> None:
    checked = check_citations(text, SOURCES)
    left = iter(checked.text)
    kept = text.strip()
    if "ources" not in text.lower():
        assert all(character in left for character in kept)


@given(some.integers(0, 10**7), some.integers(0, 10**7))
def test_a_number_holds_exactly_when_the_source_has_it(written: int, claimed: int) -> None:
    source = {1: Source(1, "web", "", "u", f"There are {written:,} of them")}
    assert (not check_citations(f"There are {claimed} of them [1].", source).problems) is (written == claimed)


def test_a_long_text_is_checked_in_time_in_proportion_to_its_length() -> None:
    for piece in ("a. ", "1 ", "[1]", '"', "“", "1,", "- ", "x" * 50 + " [1] "):
        check_citations(piece * (100_000 // len(piece)), SOURCES)
