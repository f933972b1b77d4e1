"""The ledger of a run: who said what, how results are read, and that every reader of origins sees the same values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from journeyman.core.calls import ResultField, Taken, read_source
from journeyman.core.playbook import DemonstratedCall, NextStep
from journeyman.core.runs import Message, ReasoningStep, Role
from journeyman.learning.abstraction import abstract
from journeyman.learning.episodes import Episode, EpisodeCall
from journeyman.provenance.ledger import Author, CalledTool, Ledger, Model, User, Utterance, values_at, written


@dataclass
class Said:
    messages: list[Message] = field(default_factory=list)
    task_at: int = 0
    steps: list[ReasoningStep] = field(default_factory=list)


def test_everything_that_was_said_has_its_speaker() -> None:
    said = Said(
        [
            Message.user("Hello"),
            Message(role=Role.ASSISTANT, content="What can I do?"),
            Message(role=Role.FUNCTION, content="[]", name="list_orders", call_id="c0"),
            Message.user("Cancel W-4190"),
            Message(role=Role.ASSISTANT, content="Is it W-4191?"),
            Message(role=Role.FUNCTION, content="cancelled W-4192", name="cancel_order", call_id="c1"),
        ],
        task_at=3,
    )
    ledger = Ledger(said, system="Help.", said=["elsewhere"])
    origins = ledger.trace(None, {f"{number}_id": f"W-{number}" for number in (4190, 4191, 4192)})
    assert [source.origin for source in origins] == ["request", "nowhere", "result"]
    assert [(item.speaker, item.origin) for item in ledger.utterances] == [
        (Author(), "system"),
        (User(), "request"),
        (User(), "history"),
        (Model(), "history"),
        (CalledTool("c0", "list_orders"), "history"),
        (User(), "request"),
        (Model(), "computed"),
        (CalledTool("c1", "cancel_order"), "result"),
    ]


@pytest.mark.parametrize(
    ("stored", "source"),
    [
        ("request", Taken.REQUEST),
        ("known", Taken.KNOWN),
        ("constant", Taken.CONSTANT),
        ("composed", Taken.COMPOSED),
        ("result 0", ResultField(0)),
        ("result 12 customer.email", ResultField(12, ("customer", "email"))),
    ],
)
def test_sources_are_stored_as_text_and_read_as_what_they_are(stored: str, source: Taken | ResultField) -> None:
    for kind in (NextStep, DemonstratedCall):
        read = kind.stored({"tool_name": "send", "sources": {"to": stored}})
        assert read.sources == {"to": source}
        assert read.model_dump(mode="json")["sources"] == {"to": stored}
        assert kind.stored(read.model_dump_json()) == read


@pytest.mark.parametrize("stored", ["result", "result x id", "result -1 id", "", "hearsay"])
def test_a_stored_source_that_says_nothing_is_read_and_kept(stored: str) -> None:
    source = read_source(stored)
    assert source is Taken.COMPOSED or (isinstance(source, ResultField) and source.call is None)
    assert read_source(str(source)) == source


def test_a_source_that_is_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match="a source is a text such as 'request'"):
        NextStep.stored({"tool_name": "send", "sources": {"to": 3}})


@pytest.mark.parametrize(
    ("value", "text"), [("30", "30"), (30, "30"), (30.0, "30"), (2.5, "2.5"), (float("nan"), "nan"), (True, "true")]
)
def test_a_value_is_written_in_one_way(value: Any, text: str) -> None:
    assert written(value) == text


def test_grounding_and_demonstrations_agree_on_a_number_however_it_is_written() -> None:
    request, call = "I filled up 30 gallons of account 1234567", {"gallons": 30.0, "account": 1234567.0}
    ledger = Ledger()
    ledger.hear(User(), request)
    assert [source.origin for source in ledger.trace(None, call)] == ["request", "request"]
    found = abstract(Episode(request, (EpisodeCall("convert", call, "ok"),)))
    assert found is not None
    assert found.demonstration.calls[0].sources == {"gallons": Taken.REQUEST, "account": Taken.REQUEST}
    assert found.demonstration.calls[0].arguments == {"gallons": "⟦gallons⟧", "account": "⟦account⟧"}


def test_a_quantity_is_no_invented_identifier_for_a_demonstration_either() -> None:
    found = abstract(Episode("Drive there", (EpisodeCall("drive", {"distance": 750.5, "day": "2026-11-30"}, "ok"),)))
    assert found is not None
    assert found.ungrounded == []


@pytest.mark.parametrize("result", [[{"id": 7, "of": {"name": "Ada"}}], '[{"id": 7, "of": {"name": "Ada"}}]'])
def test_a_result_is_read_alike_as_data_and_as_text(result: Any) -> None:
    said = Utterance(CalledTool("c1", "find"), result)
    assert said.field_of("ada") == ("of", "name")
    assert said.field_of("7") == ("id",)
    assert said.field_of("8") is None
    assert said.quotes("Ada")
    assert values_at(said.data, ("of", "name")) == ["Ada"]
    assert values_at(said.data, ("of",)) == []


@pytest.mark.parametrize("text", ["[not json", "[" * 5_000, "Ada"])
def test_a_text_that_is_no_json_is_one_row(text: str) -> None:
    said = Utterance(CalledTool("c1", "find"), text)
    assert list(said.rows) == [text]
    assert values_at(said.data, ("name",)) == []


def test_a_result_that_is_nested_deeper_than_python_recurses_is_read() -> None:
    nested: Any = ["W-4190"]
    for _ in range(5_000):
        nested = [nested]
    said = Utterance(CalledTool("c1", "find"), nested)
    assert values_at(said.data, ()) == ["W-4190"]
    assert said.field_of("W-4190") == ()
    found = abstract(Episode("Cancel it", (EpisodeCall("find", {}, nested), EpisodeCall("cancel", {"id": "W-4190"}))))
    assert found is not None
    assert found.demonstration.calls[1].sources == {"id": ResultField(0)}
