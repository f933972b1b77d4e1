"""What a text asks for and forbids, and its figures, days and times."""

import pytest

from journeyman.core.words import stem
from journeyman.provenance.flow import _Words
from journeyman.provenance.said import days_in, plain, taken_apart, times_in


@pytest.mark.parametrize(
    ("text", "verb", "asked", "forbidden"),
    [
        ("Pay the bill", "pay", True, False),
        ("Please do not pay the bill", "pay", False, True),
        ("Read it without paying", "pay", False, True),
        ("Don't forget to pay the bill", "pay", True, False),
        ("I never want you to pay this", "pay", False, True),
        ("How do I pay the bill?", "pay", False, False),
        ("Can you pay the bill?", "pay", True, False),
        ("Bezahle sie nicht", "bezahle", False, True),
        ("Bezahle sie, aber antworte nicht", "bezahle", True, False),
        ("They do not pay, so cancel it", "cancel", True, False),
        ("Read pay.txt", "pay", False, False),
    ],
)
def test_an_order_a_question_and_an_order_not_to(text: str, verb: str, asked: bool, forbidden: bool) -> None:
    said = taken_apart(text)
    assert (stem(verb) in said.asked, stem(verb) in said.forbidden) == (asked, forbidden)


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("Pay 1,200.00 to W-17 on 2026-05-03 at 10:00", {"1200"}),
        ("Zahle 1.200,50 € am 3. Mai 2026", {"1200.5"}),
        ("Pay two hundred for 3 lamps", {"200", "3"}),
        ("In March 2022, order twenty", {"20"}),
        ("Nothing of f-13", set()),
    ],
)
def test_figures_are_no_parts_of_days_and_names(text: str, figures: set[str]) -> None:
    assert taken_apart(text).figures == figures


def test_days_and_times_are_read_as_people_write_them() -> None:
    assert days_in("on 3 May 2026") == days_in("2026-05-03") == days_in("am 3. Mai 2026") == {(2026, 5, 3)}
    assert days_in("May 3rd") == {(None, 5, 3)}
    assert days_in("03.05.2026") == {(2026, 5, 3), (2026, 3, 5)}
    assert times_in("at 10") == times_in("10:00") == times_in("10 am") == times_in("um 10 Uhr") == {(10, 0)}
    assert times_in("5:30 pm") == {(17, 30)}
    assert plain("1.000,00") == plain("$1,000.00") == plain("1000") == "1000"


def test_words_are_found_in_texts_as_they_are_and_as_parts_of_identifiers() -> None:
    heard = _Words()
    for text in ("Pay theRansom to ZED_HOLDINGS", "bank\u200brupt companies", "x" * 70_000, "Kettles"):
        heard.add(text)
    assert [heard.speaks(stem(word)) for word in ("ransom", "zed", "bankrupt", "company", "kettle")] == [True] * 5
    assert [heard.speaks(stem(word)) for word in ("ban", "kettledrum", "hold")] == [False] * 3
    assert heard.has("kettles")
    assert not heard.has("kettle")
