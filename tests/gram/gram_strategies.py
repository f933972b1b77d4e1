"""Documents, agents and specifications of every shape, for the property tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from journeyman import Agent, ToolSpecification
from journeyman.core.specification import RESERVED_NAMES
from journeyman.gram import (
    Annotated,
    Arrow,
    Document,
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
)

AWKWARD = ["", "//", " //x", "\t\u00a0// y", "`", "```", "\\", '"', "'", "\n", "a\nb", "a\nb`", "//a\nb", "\r\n"]
AWKWARD += ["\x0b", "\x85", "\u2028", "é", "😀", "json`", "true", "null", "a-b", "1", "a.b@c", "{", "]", "|"]
AWKWARD += ["\n\n  x", "x ", "/", "/\\/"]
speakable = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
texts = st.text(speakable, max_size=8) | st.lists(st.sampled_from(AWKWARD), max_size=3).map("".join)
symbols = st.from_regex(r"[A-Za-z_][0-9A-Za-z_.\-@]{0,6}", fullmatch=True).filter(lambda s: s not in ("true", "false"))
units = st.sampled_from(["cm", "kg", "s", "Hz"])
integers = st.integers(-(10**30), 10**30)
numbers: st.SearchStrategy[Any] = st.one_of(
    integers,
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: number == 0 or 1e-200 < abs(number) < 1e200),
    st.builds(Measurement, st.integers(-1000, 1000), units),
)
ranges = st.one_of(
    st.builds(Range, numbers, numbers), st.builds(Range, numbers, st.none()), st.builds(Range, st.none(), numbers)
)
scalars: st.SearchStrategy[Any] = st.one_of(
    texts, st.booleans(), numbers, ranges, st.builds(Symbol, symbols), st.builds(Tagged, symbols, texts)
)
maps = st.builds(Map, st.lists(st.builds(Property, texts, scalars), max_size=3).map(tuple))
values: st.SearchStrategy[Any] = st.one_of(scalars, maps, st.lists(scalars, min_size=1, max_size=3).map(tuple))
properties = st.lists(st.builds(Property, texts, values, st.booleans()), max_size=3).map(tuple)
identifiers = st.one_of(texts, st.integers(-1000, 1000))
labels = st.lists(st.builds(Label, texts, st.booleans()), max_size=2).map(tuple)
subjects = st.builds(Subject, st.none() | identifiers, labels, properties)
comments = st.lists(texts.map(lambda text: " ".join(text.split())), max_size=2).map(tuple)
SHAPES = [shape for line in "-=~" for shape in (line * 2, f"{line * 2}>", f"<{line * 2}", f"<{line * 2}>")]
arrows = st.builds(Arrow, st.sampled_from(SHAPES), subjects)


@st.composite
def paths(draw: st.DrawFn) -> Path:
    between = tuple(draw(st.lists(arrows, max_size=3)))
    nodes = tuple(draw(st.lists(subjects, min_size=len(between) + 1, max_size=len(between) + 1)))
    return Path(nodes, between, draw(comments))


references = st.builds(Reference, identifiers, comments)


def patterns_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(Pattern, subjects, st.lists(inner, max_size=3).map(tuple), comments)


elements: st.SearchStrategy[Any] = st.recursive(paths() | references, patterns_of, max_leaves=5)
patterns = patterns_of(elements)
uncommented = (patterns | paths()).map(lambda element: replace(element, comments=()))
identities = st.builds(Subject, identifiers, labels)
notes = st.lists(st.builds(Property, symbols, values), min_size=1, max_size=2).map(tuple)
annotated = st.one_of(
    st.builds(Annotated, uncommented, notes, st.just(Subject()), comments),
    st.builds(Annotated, uncommented, notes, identities, comments),
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    record = draw(properties)
    before = draw(comments) if record else ()
    return Document(record, tuple(draw(st.lists(patterns | paths() | annotated, max_size=3))), before, draw(comments))


# -- agents

any_text = st.one_of(texts, st.text(max_size=8))
plain_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), any_text),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=5,
)
KINDS = ["string", "integer", "number", "boolean", "array", "object", "null"]
schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(KINDS),
        "description": any_text,
        "default": plain_json,
        "enum": st.lists(plain_json, max_size=3),
        "minimum": st.integers(),
        "items": st.just({"type": "string"}),
        "anyOf": st.just([{"type": "string"}, {"type": "null"}]),
    },
)


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, Any]:
    found = draw(st.dictionaries(any_text, schemas, max_size=3))
    closed, bare = draw(st.sampled_from([None, False, True])), draw(st.booleans())
    root: dict[str, Any] = {"type": "object"}
    if found or not bare:
        root["properties"] = found
    if found and not bare:
        root["required"] = draw(st.lists(st.sampled_from(sorted(found)), unique=True))
    if closed is not None:
        root["additionalProperties"] = closed
    return root


tool_names = st.one_of(
    st.sampled_from(["a", "lookup_order", "x.y-z", "`", "ä", "//", "42", "\x7f"]),
    any_text.map(lambda text: "".join(each for each in text if not each.isspace() and ord(each) > 31)),
).filter(lambda name: name not in RESERVED_NAMES | {""})
said = any_text.filter(lambda text: bool(text.strip()))
fields = st.fixed_dictionaries(
    {},
    optional={
        "returns": st.none() | schemas,
        "category": any_text,
        "enabled": st.booleans(),
        "idempotent": st.booleans(),
        "risk": st.sampled_from(["reversible", "irreversible"]),
        "timeout_seconds": st.floats(1, 300),
        "permissions": st.frozensets(st.sampled_from(["a:b", "orders:write"])),
        "tags": st.lists(any_text, max_size=3).map(tuple),
        "examples": st.lists(plain_json, max_size=2).map(tuple),
        "metadata": st.dictionaries(any_text, plain_json, max_size=2),
        "version": any_text,
        "deprecated": st.booleans() | said,
    },
)
TEXT_FORMS = ["(name: Text, age: Maybe Int) --> IO Text", "() -> ()", "(a::Text)  ==> (::Int)"]
TEXT_FORMS += ["(a: [Text]) --> {b: Int}"]


@st.composite
def specifications(draw: st.DrawFn) -> ToolSpecification:
    given: dict[str, Any] = {"name": draw(tool_names), "description": draw(said), **draw(fields)}
    if draw(st.integers(0, 3)):
        given["parameters"] = draw(parameters())
    elif draw(st.booleans()):
        given["signature"] = draw(st.sampled_from(TEXT_FORMS))
    return ToolSpecification(**given)


@st.composite
def agents(draw: st.DrawFn, tools: list[ToolSpecification] | None = None) -> Agent:
    offered = specifications() if tools is None else st.one_of(st.sampled_from(tools), specifications())
    more: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {},
        optional={
            "description": any_text,
            "model": said,
            "max_iterations": st.integers(1, 99),
            "finish": st.booleans(),
            "output": schemas | parameters(),
        },
    )
    chosen = draw(st.lists(offered, max_size=3, unique_by=lambda item: item.name))
    return Agent(name=draw(said), instruction=draw(said), tools=tuple(chosen), **draw(more))
