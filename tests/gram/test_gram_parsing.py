"""What gram says, as data; how it is printed; and what is told about text that is no gram."""

from __future__ import annotations

from pathlib import Path as File
from typing import Any

import pytest

from journeyman import ConfigurationError, JourneymanError
from journeyman.gram import (
    Annotated,
    Arrow,
    Document,
    GramError,
    GramSyntaxError,
    Label,
    Map,
    Measurement,
    Path,
    Pattern,
    Property,
    Range,
    Reference,
    Subject,
    Symbol,
    Tagged,
    dumps,
    load,
    parse,
)


def value(text: str) -> Any:
    """What a single property's value says."""
    [found] = parse(f"{{k: {text}}}").properties
    return found.value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"a"', "a"),
        ("'a'", "a"),
        ("`a`", "a"),
        ('""', ""),
        ('"say \\"yes\\""', 'say "yes"'),
        ("'it\\'s'", "it's"),
        ('"a\\n\\t\\r\\b\\f\\\\\\/"', "a\n\t\r\b\f\\/"),
        ('"http://example.org // no comment"', "http://example.org // no comment"),
        ('"/\\/ no comment"', "// no comment"),
        ('"😀 ø™"', "😀 ø™"),
        ("```\nb\n  c\n```", "b\n  c\n"),
        ("```\n\n\n  c```", "\n\n  c"),
        ("```\n```", ""),
        ("```md\n# T\n```", Tagged("md", "# T\n")),
        ("```  md  \n # T```", Tagged("md", " # T")),
        ("date`2024-04-05`", Tagged("date", "2024-04-05")),
        ("json  `{}`", Tagged("json", "{}")),
        ("true", True),
        ("false", False),
        ("null", Symbol("null")),
        ("some.one@home", Symbol("some.one@home")),
        ("0", 0),
        ("-12", -12),
        ("0xCAFE", 0xCAFE),
        ("042", 0o42),
        ("3.50", 3.5),
        ("-0.25", -0.25),
        ("168cm", Measurement(168, "cm")),
        ("1..10", Range(1, 10)),
        ("1.5...", Range(1.5, None)),
        ("...10", Range(None, 10)),
        ('[1, "b", c, true]', (1, "b", Symbol("c"), True)),
        ("{}", Map()),
        ('{a: 1, "b c": d}', Map((Property("a", 1), Property("b c", Symbol("d"))))),
    ],
)
def test_a_value_is_read(text: str, said: Any) -> None:
    document = parse(f"{{k: {text}}}")
    assert document == Document((Property("k", said),))
    assert type(value(text)) is type(said)
    assert parse(dumps(document)) == document


def test_nodes_arrows_and_labels_are_read() -> None:
    [path] = parse("(a:Person::Known {name: 'Ada'})-[r:KNOWS {since: 1840}]->(`b c`)<==()~~(42)").elements
    assert path == Path(
        (
            Subject("a", (Label("Person"), Label("Known", True)), (Property("name", "Ada"),)),
            Subject("b c"),
            Subject(),
            Subject(42),
        ),
        (Arrow("-->", Subject("r", (Label("KNOWS"),), (Property("since", 1840),))), Arrow("<=="), Arrow("~~")),
    )


def test_every_arrow_is_read_and_printed() -> None:
    for line in "-=~":
        for text in (f"(){line * 2}()", f"(){line * 2}>()", f"()<{line * 2}()", f"()<{line * 2}>()"):
            assert dumps(parse(text)) == f"{text}\n"
        named = f"()<{line}[r]{line}>()"
        assert dumps(parse(named)) == f"{named}\n"
        assert dumps(parse(f"() {line} [ ] {line}> ()")) == f"(){line * 2}>()\n"


def test_patterns_references_and_annotations_are_read() -> None:
    [element] = parse("@@note:L @by('Ada') @n({a: 1}) [team:Team | ada, `b b`, 42, [inner | (x)]]").elements
    assert element == Annotated(
        Pattern(
            Subject("team", (Label("Team"),)),
            (
                Reference("ada"),
                Reference("b b"),
                Reference(42),
                Pattern(Subject("inner"), (Path((Subject("x"),)),)),
            ),
        ),
        (Property("by", "Ada"), Property("n", Map((Property("a", 1),)))),
        Subject("note", (Label("L"),)),
    )


def test_positions_are_kept_and_do_not_count() -> None:
    first, second = parse("(a)\n  [b {k: 1}]"), parse("(a) [b {k: 1}]")
    assert first == second
    assert first.source is not None
    assert [first.source.position(item.at or 0) for item in first.elements] == [(1, 1), (2, 3)]


def test_spelling_leaves_no_trace_but_kinds_do() -> None:
    assert parse("( `a` {'k':1} )".replace("'", '"')) == parse("(a {k: 0x1, })".replace(", ", ""))
    different = [parse(f"{{k: {text}}}") for text in ("1", "1.0", "true", '"1"', "[1]", "[true]", "1..2", "1.0..2.0")]
    assert all(a != b for a in different for b in different if a is not b)
    assert len(set(different[0].properties) | set(different[1].properties)) == 2


def test_comments_stay_with_their_elements() -> None:
    document = parse(
        "// about the record\n{a: 1}\n"
        "// one\n//two \n(a) // three\n"
        "[p // on p\n | // on x\n x, // also x\n // on y\n y // and y\n // p again\n]\n\n"
        "@k(1) // four\n(b)\n\n// the end"
    )
    pattern = document.elements[1]
    assert document.comments == ("about the record",)
    assert document.elements[0].comments == ("one", "two", "three")
    assert isinstance(pattern, Pattern)
    assert pattern.comments == ("on p", "p again")
    assert [element.comments for element in pattern.elements] == [("on x", "also x"), ("on y", "and y")]
    assert document.elements[2].comments == ("four",)
    assert document.ending == ("the end",)
    assert parse(dumps(document)) == document


def test_canonical_text_is_stable() -> None:
    text = """\
// A team
[team:Team {name: "Developers", motto: "Be brief"} | ada, grace]

[long:Team {
  description: "A description that is long enough to make the line longer than it should be",
  text: ```
one
two```
} |
  // the first
  [a:Member],
  (x::String {note: "one\\ntwo"})==>(::Any)
]

(a)-[r:KNOWS {since: 1840}]->(b)
"""
    assert dumps(parse(text)) == text
    assert dumps(Document()) == ""
    assert parse("") == Document()
    assert parse("  \n\t") == Document()


@pytest.mark.parametrize(
    "said",
    [
        Document((Property("k", ()),)),
        Document((Property("k", "a\0b"),)),
        Document((Property("k", "\ud800"),)),
        Document((Property("k", Symbol("a b")),)),
        Document((Property("k", float("inf")),)),
        Document(comments=("no record",)),
        Document(ending=("two\nlines",)),
        Document(elements=(Path((Subject(), Subject()), (Arrow("-=>"),)),)),
    ],
)
def test_what_gram_cannot_say_is_refused_when_printed(said: Document) -> None:
    with pytest.raises(ValueError, match=r"gram|comment|arrow"):
        dumps(said)


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ("(a", 1, 3, "')'"),
        ("(a)\n(b {k: })", 2, 7, "a value"),
        ("{k: []}", 1, 6, "a value"),
        ("{k: [1,]}", 1, 8, "a value"),
        ("{k > 1}", 1, 4, "':' or '::'"),
        ("{k: 1 l: 2}", 1, 7, "','"),
        ("(12px)", 1, 4, "')'"),
        ("(a), (b)", 1, 4, "the end of the text"),
        ("[a | b c]", 1, 8, "',' or ']'"),
        ("[a |", 1, 5, "an element"),
        ("[a | @k(1) (b)]", 1, 6, "["),
        ("(a)-[r]=>(b)", 1, 9, "'=>'"),
        ("(a)--", 1, 6, "'('"),
        ("hello", 1, 1, "'('"),
        ('(a)\n{k: "no end}\n', 2, 5, 'a closing " on the same line'),
        ('{k: "no end}\n', 1, 5, 'a closing " on the same line'),
        ('{k: "two\nlines"}', 1, 5, "a closing"),
        ('{k: "// x"}', 1, 5, "a closing"),
        ('{k: "// x\n"}', 1, 5, "a closing quote on the same line"),
        ("{k: ```no line break```}", 1, 11, "a line break"),
        ("{k: {a: {b: 1}}}", 1, 9, "a value"),
        ("{k: [[1]]}", 1, 6, "a value"),
        ("@@ (a)", 1, 4, "a name"),
        ("{k: 'ä', 1}", 1, 10, "a name"),
        ("(a\0)", 1, 3, "text"),
        ("(ä\ud800)", 1, 3, "text"),
        ("{k: " + "9" * 301 + "}", 1, 5, "at most 300 characters"),
        ("[a|" * 150 + "b" + "]" * 150, 1, 304, "at most 100 levels"),
    ],
)
def test_what_is_no_gram_is_refused_with_place_and_expectation(
    text: str, line: int, column: int, expected: str
) -> None:
    with pytest.raises(GramSyntaxError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert expected in caught.value.expected


def test_an_error_shows_its_line_with_a_caret() -> None:
    with pytest.raises(GramSyntaxError) as caught:
        parse("(fine)\n\t[é:Agent {x: 1} foo]\n".replace("é", "e"), file="a.gram")
    assert str(caught.value).splitlines() == [
        "a.gram:2:18: found 'foo]'; expected '(', '[', ']' or '|'",
        "    \t[e:Agent {x: 1} foo]",
        "    \t                ^",
    ]
    assert isinstance(caught.value, JourneymanError | ValueError)
    assert caught.value.file == "a.gram"


def test_several_errors_are_found_in_one_go() -> None:
    with pytest.raises(GramSyntaxError) as caught:
        parse("(a\n(b)\n{k > 1}\n(c)\n(d {e: })\n(f)-->\n")
    assert [(fault.line, fault.column) for fault in caught.value.errors] == [(1, 3), (3, 1), (5, 7), (6, 7)]
    assert str(caught.value).count("^") == len(caught.value.errors)


def test_a_caret_is_shown_on_a_line_of_any_length() -> None:
    with pytest.raises(GramSyntaxError) as caught:
        parse("(a)" * 1000 + ">" + "(b)" * 1000)
    shown, caret = str(caught.value).splitlines()[1:3]
    assert len(shown) < 120
    assert shown[caret.index("^")] == ">"


def test_a_file_is_read_with_its_name(tmp_path: File) -> None:
    file = tmp_path / "a.gram"
    file.write_text("\ufeff(a)\r\n(b)\r\n", encoding="utf-8")
    assert load(file) == parse("(a) (b)")
    file.write_text("(a", encoding="utf-8")
    with pytest.raises(GramError, match=r"a\.gram:1:3: "):
        load(file)
    file.write_bytes(b"\xff(")
    with pytest.raises(ConfigurationError, match="is not UTF-8"):
        load(file)
    with pytest.raises(ConfigurationError, match="cannot read"):
        load(tmp_path / "none.gram")
