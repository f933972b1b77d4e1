"""YAML as plain values with positions, within budgets."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman.settings.document import MOST_NODES, DocumentError, read_document


def values(text: str) -> Any:
    return read_document(text).value


def test_values_and_where_they_stand() -> None:
    document = read_document("a: 1\nb:\n  - x\n  - {c: true}\n")
    assert document.value == {"a": 1, "b": ["x", {"c": True}]}
    assert document.positions[("a",)] == (1, 1)
    assert document.positions[("b", 0)] == (3, 5)
    assert document.positions[("b", 1, "c")] == (4, 6)
    assert document.position(("b", 1, "unheard", "of")) == (4, 5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("08:30", "08:30"),
        ("2024-01-02", "2024-01-02"),
        ("1_000", "1_000"),
        ("0o17", 15),
        ("0x1F", 31),
        ("010", 10),
        ("-3", -3),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("'5'", "5"),
        ("~", None),
        ("", None),
        ("TRUE", True),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_scalars_mean_what_they_mean_in_yaml_1_2(text: str, value: Any) -> None:
    assert values(f"a: {text}") == {"a": value}


def test_keys_that_stand_twice_and_keys_that_are_no_texts_are_told_with_the_rest() -> None:
    document = read_document("a: 1\nb: 2\na: 3\n5: x\n[c]: 4\n")
    assert document.value == {"a": 1, "b": 2}
    assert [(line, column, message) for (line, column), _, message in document.problems] == [
        (3, 1, "stands here twice; the first is in line 1"),
        (4, 1, "a key is a text; put 5 in quotes"),
        (5, 1, "a key is a text; put it in quotes"),
    ]


def test_anchors_and_merges() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\none: *b\nboth: {<<: [*b, *m], x: 9}\n"
    document = read_document(text)
    assert document.value["one"] == {"x": 1, "y": 2}
    assert document.value["both"] == {"x": 9, "y": 2, "z": 4}
    assert document.positions[("both", "z")] == (2, 17)


LAUGHS = "a0: &a0 [lol, lol]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
MERGED = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (LAUGHS, f"more than {MOST_NODES:,} values"),
        (MERGED, "'<<' takes an alias"),
        ("[" * 10_000, "nested more than 32"),
        ("- " * 10_000, "nested more than 32"),
        ("a: &a [*a]", "names no anchor that ended"),
        ("a: !!python/object/apply:os.system [ls]", "tags such as"),
        ("a: 1\n---\nb: 2", "one document"),
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("a: [1, 2", "not valid YAML"),
        ("a: b: c", "not valid YAML"),
        ("a: 'x", "not valid YAML"),
        ("a: \x00", "cannot stand in YAML"),
        ("<<: 5", "'<<' takes an alias"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    assert told in caught.value.message
    assert caught.value.position.line >= 1
