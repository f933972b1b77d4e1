"""Words of a text and their stems."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.words import Patterns, WordLists, patterns, stem, word_lists, words

SOURCE = Path(__file__).parents[2] / "src" / "journeyman"


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


def test_lists_of_words_are_also_read_from_a_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
        packed.writestr("packed_words/__init__.py", "")
        packed.writestr(
            "packed_words/verbs.txt", "# Said of all.\n[verbs]\n# Of these.\nadd put\ndrop\n[nouns]\ntask\n"
        )
    monkeypatch.syspath_prepend(tmp_path / "packed.zip")
    lists = WordLists("packed_words", "verbs.txt")
    assert lists.verbs == {"add", "put", "drop"}
    assert lists.nouns == {"task"}
    with pytest.raises(AttributeError, match="no list 'adverbs'"):
        _ = lists.adverbs


def test_expressions_are_joined_from_lines_and_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "packed_expressions"
    folder.mkdir()
    (folder / "__init__.py").touch()
    written = "[day]\nmonday|\ntuesday\n[when]\n# A day.\n(?i)\\bon ({{day}})\\b\n[lowered]\n[a-z]{2,}\n"
    (folder / "some.txt").write_text(written, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = Patterns("packed_expressions", "some.txt")
    match = found.when.search("Not before ON Tuesday")
    assert match is not None
    assert match[1] == "Tuesday"
    assert found.lowered.fullmatch("ab")
    with pytest.raises(AttributeError, match="no list 'day'"):
        _ = found.day


def test_every_list_is_used_and_every_list_that_is_used_is_there() -> None:
    """They are attributes by name: a type checker takes any."""
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    made = re.compile(r'^(\w+) = (WordLists|Patterns)\("([\w.]+)", "([\w.]+)"\)', re.MULTILINE)
    found = [(path, match) for path, text in texts.items() for match in made.finditer(text)]
    assert len(found) >= 5
    for path, match in found:
        variable, kind, package, file = match.groups()
        users = path.parent.glob("*.py") if path.name == "__init__.py" else [path]
        used = {name for user in users for name in re.findall(rf"(?<!\")\b{variable}\.(\w+)", texts[user])}
        assert used == (word_lists if kind == "WordLists" else patterns)(package, file).keys(), file
