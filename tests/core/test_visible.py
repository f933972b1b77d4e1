"""What a person agrees to is what they see: nothing hidden, every digit there."""

from __future__ import annotations

import json
import unicodedata

import pytest

from journeyman.core.data import exact_json, one_line, visible

HIDDEN = [
    "\x00", "\x07", "\x1b", "\x7f", "\x85", "\u00a0", "\u00ad", "\u034f", "\u061c", "\u115f", "\u1160", "\u17b4",
    "\u180b", "\u180e", "\u200b", "\u200d", "\u200f", "\u2028", "\u202a", "\u202e", "\u2060", "\u2066", "\u2069",
    "\u2800", "\u3000", "\u3164", "\ufe00", "\ufe0f", "\ufeff", "\uffa0", "\ufff9", "\U0001d159", "\U0001d173",
    "\U000e0001", "\U000e0041", "\U000e0100", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("character", HIDDEN, ids=lambda character: f"U+{ord(character):04X}")
def test_what_cannot_be_seen_is_written_out(character: str) -> None:
    text = visible(f"a{character}b")
    assert text.isascii()
    assert "\\u" in text
    assert json.loads(f'"{text}"') == f"a{character}b"


@pytest.mark.parametrize("text", ["plain", "two\nlines\tand a tab", "Grüße, Ω, 日本語, 😀", r"a \u202e of six letters"])
def test_what_can_be_seen_stays(text: str) -> None:
    assert visible(text) == text


def test_nothing_of_unicode_without_ink_gets_through() -> None:
    ignorable = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp")]
    assert all(character in "\n\t" or visible(character) != character for character in ignorable)


@pytest.mark.parametrize(
    "value",
    [
        {"amount": 2**53 + 1},
        {"amount": -(2**63) - 1, "big": 10**300 + 7},
        {"small": 0.1, "large": 1e22, "text": 'quote " and \\ and \u202e and \U000e0041'},
        {"\u200bkey": ["\u2066", {"deep": None}]},
    ],
)
def test_exact_json_reads_back_as_the_same_value(value: object) -> None:
    text = exact_json(value)
    assert json.loads(text) == value
    assert text.isprintable()


def test_the_same_letters_typed_and_hidden_do_not_look_alike() -> None:
    assert exact_json({"path": "a\u202eb"}) != exact_json({"path": "a\\u202eb"})


def test_foreign_text_becomes_one_short_line() -> None:
    assert one_line("Buy\nmilk \u202e now", most=200) == "Buy milk \\u202e now"
    assert len(one_line("x" * 10_000, most=200)) == 200
