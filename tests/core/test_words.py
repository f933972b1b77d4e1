"""Words of a text and their stems."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.words import stem, words


def test_identifiers_are_split_into_words() -> None:
    assert words("lookupOrder lookup_orders HTTPServer2") == [
        "lookup",
        "order",
        "lookup",
        "orders",
        "http",
        "server",
        "2",
    ]


def test_letters_of_other_languages_belong_to_words() -> None:
    assert words("Größe ändern, ÄRGER: naïve Wörter, 日本語") == [
        "grösse",
        "ändern",
        "ärger",
        "naïve",
        "wörter",
        "日本語",
    ]


@pytest.mark.parametrize(
    ("word", "same"),
    [
        ("tagged", "tags"),
        ("completed", "complete"),
        ("renaming", "rename"),
        ("listing", "lists"),
        ("companies", "company"),
        ("boxes", "box"),
        ("statuses", "status"),
        ("addresses", "address"),
        ("names", "name"),
    ],
)
def test_forms_of_a_word_are_one(word: str, same: str) -> None:
    assert stem(word) == stem(same)


@pytest.mark.parametrize(("word", "other"), [("bus", "bu"), ("class", "clas"), ("red", "r")])
def test_what_only_looks_like_an_ending_stays(word: str, other: str) -> None:
    assert stem(word) != stem(other)


@given(st.text("abeignsy", min_size=1, max_size=9))
def test_a_word_begins_with_its_stem(word: str) -> None:
    assert word.startswith(stem(word).removesuffix("y"))
