"""Text from outside is read in time that grows with its length, whatever it is made of.

Work is measured in the processor's time, at one length and at four times that: a square would take sixteen times as
long.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from functools import partial
from typing import Any

import pytest

from journeyman import ToolLibrary, gram, tool
from journeyman.app.chains import UnresolvedError, resolve
from journeyman.app.desk import InvalidInputError
from journeyman.app.operations.table import read_json
from journeyman.choosing.gaps import ToolGapDetector, phrase
from journeyman.core.data import (
    ANSWER_BYTES,
    ARGUMENT_CONTAINERS,
    ARGUMENT_VALUES,
    JSON_CONTAINERS,
    STREAM_EVENTS,
    TURN_CALLS,
    OverBudgetError,
    check_containers,
    read_at_most,
    retry_after,
    safe_json,
)
from journeyman.core.errors import JourneymanError, ToolError
from journeyman.core.words import words
from journeyman.execution.checks import categorize_action_risk
from journeyman.execution.results import without_the_rest
from journeyman.models.answer import EventParser, StreamedAnswer, read_answer, read_arguments, read_body
from journeyman.models.arguments import as_iso
from journeyman.models.embedded.tools import small_talk, stems
from journeyman.models.faults import readable
from journeyman.retrieval.search import BM25, terms
from journeyman.toolkits.github import PullOrIssue
from journeyman.toolkits.tasks.inputs import read_eta, read_tags, read_title
from journeyman.toolkits.tasks.references import find_references, read_reference
from journeyman.tools.callables import read_docstring
from journeyman.tools.library import nearest_names
from journeyman.tools.tool import ForeignSchema

LENGTH = 6_000
MOST_GROWTH = 9.0
"""Four for linear work, sixteen for the square; the rest is for a busy machine."""
TOO_SHORT_TO_MEASURE = 0.05
"""Seconds at four times the length."""

UNITS = [
    *"aA1/.,:-%<>&()[]{}\\'\"`*#=$é@\n\t\r\x1b\x00\u2028\u202e ",
    "a ", "a://", "a://b@", "http://a.b)", "www.a", "<title", "<title>", "<script>", "</script", "%25", "%2",
    "/..", "//",
    "-----BEGIN ", "-----BEGIN A", "proc/", "proc/a/task/", " .env.", "1,111", "1.1", "a=b&", "&token", "&#1",
    "&amp;",
    "e\u0301", "aA", "and then ", ", and ", "please ", "\\\"", "[1,", '{"a":', "$a", "$0.a", "Args:\n  a: b\n",
    ":param x: ",
    "---\n", "](", "x@b.c ", "`a`", "(a::String)==>", "[a:Tool | ", "due ", " at a", "1st ", "data: {}\n\n",
    "data:\n",
    "\ud800",
]  # fmt: skip
FILLINGS = ["a", ")", "A ", " ", "1", "@", "%25", "<", "&a=b", "."]
OPENINGS = ["a://", "http://a.b/", "<title>", "-----BEGIN ", "proc/", '{"a": "', "read_result(", "1", "x " * 50]


def spent(work: Callable[[str], Any], text: str) -> float:
    before = time.process_time()
    with suppress(ValueError, JourneymanError, ToolError):
        work(text)
    return time.process_time() - before


def grows_too_fast(work: Callable[[str], Any], make: Callable[[int], str]) -> str | None:
    """None, or what it cost; a first look that seems wrong is taken twice more, for others work on this machine."""
    whole = make(4 * LENGTH)
    seconds = spent(work, whole)
    if seconds < TOO_SHORT_TO_MEASURE:
        return None
    quarter = min(spent(work, make(LENGTH)) for _ in range(2))
    if seconds <= MOST_GROWTH * max(quarter, TOO_SHORT_TO_MEASURE / 4):
        return None
    seconds = min(seconds, spent(work, whole)) if seconds < 2 else seconds
    quarter = max(quarter, TOO_SHORT_TO_MEASURE / 4)
    return None if seconds <= MOST_GROWTH * quarter else f"{quarter:.3f} s, then {seconds:.3f} s"


def hostile() -> list[Callable[[int], str]]:
    around = [(opening, unit, ending) for unit in UNITS for opening, ending in [("", ""), ("x ", " z://x")]]
    after = [(opening, unit, "") for opening in OPENINGS for unit in FILLINGS]
    return [partial(repeated, *parts) for parts in around + after]


def repeated(opening: str, unit: str, ending: str, length: int) -> str:
    return opening + unit * (length // len(unit)) + ending


def streamed(text: str) -> dict[str, Any]:
    answer, parser = StreamedAnswer(lambda _: None), EventParser()
    for at in range(0, len(text), 10):
        answer.take(parser.feed(text[at : at + 10].encode("utf-8", "replace")))
    return answer.body()


def streamed_text(text: str) -> dict[str, Any]:
    """As the text of an answer, a few characters to a piece."""
    answer = StreamedAnswer(lambda _: None)
    for at in range(0, len(text), 40):
        delta = {
            "content": text[at : at + 40],
            "tool_calls": [{"index": 0, "function": {"arguments": text[at : at + 40]}}],
        }
        answer.take([json.dumps({"choices": [{"delta": delta}]}).encode()])
    return answer.body()


def detect(text: str) -> Any:
    @tool
    def create_task(title: str) -> str:
        """Create a task."""
        return title

    return asyncio.run(ToolGapDetector(ToolLibrary([create_task])).detect(text or "x"))


@tool
def take(a: str, b: list[int] | dict[str, int] | None = None) -> str:
    """Take a text."""
    return a


FOREIGN = ForeignSchema(
    {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}, "b": {"type": "array", "uniqueItems": True}},
        "patternProperties": {"^(k|k)*$": {"type": "integer"}},
    },
    where="test",
)

ENTRANCES: dict[str, Callable[[str], Any]] = {
    "risk of an argument": lambda text: categorize_action_risk("read_file", {"path": text}),
    "risk of a name": lambda text: categorize_action_risk("read_file", {text: 1}),
    "links in a text": find_references,
    "one link": read_reference,
    "an error page": lambda text: readable(text.encode("utf-8", "replace")),
    "a header": lambda text: retry_after(text, now=0),
    "arguments that a model wrote": read_arguments,
    "a model's answer": lambda text: read_body(text.encode("utf-8", "replace")),
    "a model's stream": streamed,
    "a model's streamed text": streamed_text,
    "arguments of a tool": lambda text: take.freeze(json.dumps({"a": text})),
    "arguments of a foreign tool": lambda text: FOREIGN.read(json.dumps({"a": text, text: 1})),
    "a tool that is not there": lambda text: nearest_names(text, ["create_task", "aaaa", "a" * 100, "query_tasks"]),
    "words": words,
    "words to search": terms,
    "a request": stems,
    "small talk": lambda text: small_talk(f"hi {text}", ()),
    "a day": lambda text: as_iso(text, date(2026, 11, 16)),
    "a phrase": phrase,
    "a result that was cut": lambda text: without_the_rest(text, handle="call_1_1"),
    "a chain's step": lambda text: resolve({"a": text}, [{"a": "b"}]),
    "a docstring": read_docstring,
    "a pull request": PullOrIssue.read,
    "a title": read_title,
    "a date": read_eta,
    "tags": lambda text: read_tags(text.split()),
    "a log line": lambda text: safe_json(json.dumps(text, ensure_ascii=False)),
}


@pytest.mark.slow
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_time_grows_with_the_length(entrance: str) -> None:
    work = ENTRANCES[entrance]
    slow = {repr(make(24)): found for make in hostile() if (found := grows_too_fast(work, make)) is not None}
    assert slow == {}


def test_time_to_detect_a_gap_grows_with_the_length() -> None:
    texts: list[Callable[[int], str]] = [
        lambda n: "x" + " " * n + "z",
        lambda n: "a. " * (n // 3),
        lambda n: "a" + "\t" * n + ", and b",
    ]
    assert [found for make in texts if (found := grows_too_fast(detect, make)) is not None] == []


@pytest.mark.parametrize("unit", ["[a | ", "(a {b: 1})\n", "(a)-->", "`", "{", "é ", "// "])
def test_a_gram_document_is_read_in_time_that_grows_with_its_length(unit: str) -> None:
    assert grows_too_fast(gram.parse, lambda n: unit * (n // len(unit))) is None


def test_a_gram_document_has_a_largest_size() -> None:
    with pytest.raises(gram.GramSyntaxError, match="at most 1,000,000"):
        gram.parse("(a)\n" * 300_000)


# --- budgets: more than them is an answer that names the limit


def test_calls_under_one_id_are_read_in_time_that_grows_with_their_number() -> None:
    def calls(n: int) -> str:
        one = {"id": "same", "function": {"name": "look", "arguments": "{}"}}
        return json.dumps({"choices": [{"message": {"tool_calls": [one] * (n // 60)}}]})

    with pytest.raises(OverBudgetError, match=f"at most {TURN_CALLS}"):
        read_answer(json.loads(calls(100_000)), names={}, model="m")
    few = read_answer(json.loads(calls(60 * TURN_CALLS)), names={}, model="m")
    assert len(few.calls) == TURN_CALLS


def test_a_stream_of_calls_ends_at_the_limit() -> None:
    answer = StreamedAnswer(lambda _: None)
    events = (
        json.dumps({"choices": [{"delta": {"tool_calls": [{"id": f"c{n}", "function": {"name": "f"}}]}}]}).encode()
        for n in range(10_000)
    )
    with pytest.raises(OverBudgetError, match=f"at most {TURN_CALLS}"):
        answer.take(events)


def test_a_stream_of_text_ends_at_the_limit() -> None:
    answer = StreamedAnswer(lambda _: None)
    piece = json.dumps({"choices": [{"delta": {"content": "x" * 1_000_000}}]}).encode()
    with pytest.raises(OverBudgetError, match=f"{ANSWER_BYTES:,}"):
        answer.take([piece] * 10)


def test_a_stream_of_nothing_ends_at_the_limit() -> None:
    answer = StreamedAnswer(lambda _: None)
    answer._events = STREAM_EVENTS
    with pytest.raises(OverBudgetError, match=f"{STREAM_EVENTS:,}"):
        answer.take([b"{}"])


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        ([("same", "a", '{"x": 1}'), ("same", "b", '{"x": 2}')], [("a", {"x": 1}), ("b", {"x": 2})]),
        ([("same", "a", '{"x": 1}'), ("same", "a", '{"x": 2}')], [("a", {"x": 1}), ("a", {"x": 2})]),
        ([("same", "a", '{"x"'), ("same", "a", ": 1}")], [("a", {"x": 1})]),
    ],
)
def test_calls_under_one_id_are_not_mixed_up(fragments: list[Any], expected: list[Any]) -> None:
    for indexed in (False, True):
        answer = StreamedAnswer(lambda _: None)
        for call_id, name, arguments in fragments:
            fragment: dict[str, Any] = {"id": call_id, "function": {"name": name, "arguments": arguments}}
            fragment |= {"index": 0} if indexed else {}
            answer.take([json.dumps({"choices": [{"delta": {"tool_calls": [fragment]}}]}).encode()])
        read = read_answer(answer.body(), names={}, model="m")
        assert [(call.tool_name, call.arguments) for call in read.calls] == expected


def test_json_of_nothing_but_brackets_is_refused_before_it_is_read() -> None:
    text = '{"a": [' + ",".join(["[]"] * (JSON_CONTAINERS + 1)) + "]}"
    for data in (text, text.encode()):
        with pytest.raises(OverBudgetError, match=f"{JSON_CONTAINERS:,}"):
            check_containers(data)
    arguments, malformed = read_arguments(text)
    assert arguments == {}
    assert malformed is not None
    assert f"{ARGUMENT_CONTAINERS:,}" in malformed


def test_brackets_and_commas_inside_of_texts_are_no_values() -> None:
    text = json.dumps({"text": '[{,"\\\\' * 60_000})
    assert read_arguments(text) == (json.loads(text), None)
    many = json.dumps({"numbers": list(range(ARGUMENT_VALUES + 1))})
    assert read_arguments(many) == ({}, f"(has more than {ARGUMENT_VALUES:,} values)")


@pytest.mark.parametrize("item", ['"x"', "1.5", "1.0", "[]", "null"])
def test_a_million_characters_of_wrong_values_are_refused_at_once(item: str) -> None:
    text = '{"a": "x", "b": [' + ",".join([item] * (1_000_000 // (len(item) + 1))) + "]}"
    before = time.process_time()
    with pytest.raises(ValueError, match="break their rules"):
        take.freeze(text)
    # It took half a minute for numbers.
    assert time.process_time() - before < 5


def test_a_pattern_that_needs_backtracking_is_not_matched_against_long_texts() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)(a+)+$"}}}
    gate = ForeignSchema(schema, where="test")
    assert gate.read('{"a": "aaa"}')[0] == {"a": "aaa"}
    with pytest.raises(ValueError, match="at most 8,000"):
        gate.read(json.dumps({"a": "a" * 1_000_000 + "b"}))


def test_references_of_a_chain_cannot_multiply() -> None:
    with pytest.raises(UnresolvedError, match="1,000,000"):
        resolve({"a": "$0" * 500_000}, ["x" * 1_000])
    with pytest.raises(UnresolvedError, match="1,000,000"):
        resolve({"a": ["$0"] * 2_000}, ["x" * 1_000])


def test_of_a_long_text_the_beginning_is_found() -> None:
    index = BM25({"long": "milk " + "filler " * 200_000})
    assert index.rank("milk " + "other " * 200_000)[0][0] == "long"


async def test_a_body_is_read_up_to_the_limit_and_no_further() -> None:
    taken = 0

    async def body() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 1_000

    found, complete = await read_at_most(body(), 10_500)
    assert (len(found), complete, taken) == (10_500, False, 11)


def test_a_request_of_a_hundred_thousand_fields_is_refused_with_one_line() -> None:
    body = json.dumps({f"k{number}": 1 for number in range(15_000)}).encode()
    with pytest.raises(InvalidInputError, match="more than 1,000 fields"):
        read_json(body)
    with pytest.raises(InvalidInputError, match=f"{ARGUMENT_CONTAINERS:,}"):
        read_json(b"[" * (ARGUMENT_CONTAINERS + 1))
