"""Documents by property: whatever can be said survives printing and parsing, and no text breaks the parser."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import Agent
from journeyman.agent.documents import dump_agents, load_agents
from journeyman.gram import Document, GramSyntaxError, dump_tools, dumps, load_tools, parse
from tests.gram.gram_strategies import agents, documents, specifications
from tests.marking import daily


@given(documents())
def test_a_document_survives_printing_and_parsing(document: Document) -> None:
    text = dumps(document)
    assert parse(text) == document
    assert dumps(parse(text)) == text


@given(agents())
def test_an_agent_survives_print_parse_print(agent: Agent) -> None:
    text = agent.to_gram()
    assert Agent.from_gram(text) == agent
    assert Agent.from_gram(text).to_gram() == text


@pytest.mark.slow
@given(st.data())
def test_several_agents_with_shared_tools_survive(data: st.DataObject) -> None:
    shared = data.draw(st.lists(specifications(), min_size=1, max_size=2))
    several = data.draw(st.lists(agents(shared), min_size=1, max_size=3))
    assert load_agents(dump_agents(several)) == several


@given(st.lists(specifications(), max_size=3, unique_by=lambda item: item.name))
def test_specifications_survive(tools: list[object]) -> None:
    assert load_tools(dump_tools(tools)) == tools  # type: ignore[arg-type]


SEED = """\
{title: "Seeds", created: date`2024-04-05`}
// the first agent
@@hello:Greeting @since(2024)
[hello_world:Agent {description: 'A "friendly" agent', instruction: ```
Greet
people.
```, model: "openai:gpt-5-mini", max_iterations: 0x0A} |
  // greets
  [say_hello:Tool {description: "Greet — somebody", tags: ["a", b], metadata: {k: 1, "l m": 2.5}} |
    (name::String)==>(times::Integer {default: 1, schema: json`{"minimum": 1}`})==>(::String)],
  say_bye // refers
]
[say_bye:Tool {description: "Part", typeSignature: "(name: Text) --> IO Text"}]
(a)<-[r:X {n: 1..5, m: ...7, o: 3cm}]->(`b c`)~~(42)
"""
PIECES = ["(", ")", "[", "]", "{", "}", "|", ",", ":", "::", "==>", "-->", "<~~", "@", "@@", '"', "'", "`", "```", "//"]
PIECES += ["\\", "\n", " ", "a", "1", "-", "0x", "...", "true", "null", "é", "\u2028", "\0", "\ud800", "json`", "Tool"]


def mutated(text: str, draw: random.Random) -> str:
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(text) + 1)
        end = min(len(text), start + draw.choice([0, 0, 1, 2, 8, 60]))
        moved = text[(other := draw.randrange(len(text) + 1)) : other + draw.randrange(30)]
        text = text[:start] + draw.choice([*PIECES, "", moved]) + text[end:]
    return text


def parsed_or_refused(text: str) -> bool:
    """Whether a text is gram. If so, it survives; if not, every fault says where it is and what was expected."""
    try:
        document = parse(text)
    except GramSyntaxError as error:
        faults = error.errors
    else:
        assert parse(dumps(document)) == document
        return True
    lines = text.encode("utf-8", "replace").decode().split("\n")
    for fault in faults:
        assert fault.expected
        assert 1 <= fault.line <= len(lines)
        assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1
    return False


@pytest.mark.parametrize("count", daily(2_000, nightly=100_000))
def test_mutations_are_parsed_or_refused(count: int) -> None:
    draw = random.Random(count)
    accepted = 0
    for _ in range(count):
        text = mutated(SEED, draw)
        began = time.thread_time()
        accepted += parsed_or_refused(text)
        assert time.thread_time() - began < 10, text
    assert 0 < accepted < count


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "{a:" * 30_000,
        "[a|" * 50_000 + "b" + "]" * 50_000,
        "()" + "==>()" * 50_000,
        "(a\n" * 20_000,
        "[" * 50_000,
        "```" * 20_001,
        "{a: " + "9" * 5_000 + "}",
        "{a: 1." + "9" * 5_000 + "}",
    ],
    ids=lambda text: text[:8],
)
def test_monstrous_texts_are_answered_in_time(text: str) -> None:
    began = time.thread_time()
    parsed_or_refused(text)
    assert time.thread_time() - began < 30
