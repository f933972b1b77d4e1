"""A run as a demonstration: where values come from, and that none of them stays."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.calls import ResultField, Taken
from journeyman.learning.abstraction import abstract, find_key
from journeyman.learning.episodes import Episode, EpisodeCall, from_conversation, normalised

CANCELLED = Episode(
    "Cancel the meeting 'Budget review' with Anna Schmidt on November 30, and set its priority to high",
    (
        EpisodeCall("find_person", {"name": "Anna Schmidt"}, {"email": "anna.schmidt@corp.example"}),
        EpisodeCall(
            "search_events",
            {"query": "Budget review", "day": "2026-11-30", "participant": "anna.schmidt@corp.example", "limit": 5},
            [{"event_id": "00000087", "participant": "anna.schmidt@corp.example"}],
        ),
        EpisodeCall("delete_event", {"event_id": "00000087", "priority": "high"}, "ok", effect=True),
    ),
    answer="The meeting 'Budget review' with Anna Schmidt is cancelled.",
)


def test_every_argument_is_traced_to_where_it_came_from() -> None:
    found = abstract(CANCELLED)
    assert found is not None
    first, second, third = found.demonstration.calls
    assert first.arguments == {"name": "⟦name⟧"}
    assert first.result == '{"email": "⟦email⟧", "…": "…"}'
    assert second.arguments == {
        "query": "⟦query⟧",
        "day": "⟦day like 0000-00-00⟧",
        "participant": "⟦email⟧",
        "limit": 5,
    }
    assert second.sources == {
        "query": Taken.REQUEST,
        "day": Taken.COMPOSED,
        "participant": ResultField(0, ("email",)),
        "limit": Taken.CONSTANT,
    }
    assert third.arguments == {"event_id": "⟦event_id⟧", "priority": "⟦priority⟧"}
    assert third.sources["event_id"] == ResultField(1, ("event_id",))
    assert found.demonstration.request == (
        "Cancel the meeting '⟦query⟧' with ⟦name⟧ on November 30, and set its priority to ⟦priority⟧"
    )
    assert found.demonstration.closing == "The meeting '⟦query⟧' with ⟦name⟧ is cancelled."
    assert found.key == "Cancel the meeting ' ' with on November 30, and set its priority to high"
    assert found.ungrounded == []


def test_an_identifier_from_nowhere_is_noticed() -> None:
    found = abstract(Episode("Delete my next meeting", (EpisodeCall("delete_event", {"event_id": "12345678"}, "ok"),)))
    assert found is not None
    assert found.ungrounded == [(0, "event_id")]


def test_what_failed_or_was_repeated_is_left_out() -> None:
    calls = (
        EpisodeCall("look", {"x": 1}, ok=False),
        EpisodeCall("look", {"x": 2}),
        EpisodeCall("look", {"x": 2}),
        *(EpisodeCall("move", {"x": number}, effect=True) for number in range(5)),
    )
    episode = Episode("Move all", calls)
    found = abstract(episode)
    assert found is not None
    assert [call.tool_name for call in found.demonstration.calls] == ["look", "move", "move"]
    assert normalised(call.tool_name for call in episode.used) == ("look", "move")
    assert abstract(Episode("Look", (EpisodeCall("look", {}, ok=False),))) is None


def test_secrets_addresses_and_numbers_in_a_request_are_left_out_whether_or_not_they_were_used() -> None:
    text = (
        "Call me at +49 170 1234567 or ada@corp.example, I am customer #W6067464, says Omar; "
        "key sk-abcdefghijklmnopqrstuvwx123456"
    )
    key = find_key(text)
    assert not [part for part in ("1234567", "ada@", "W6067464", "Omar", "abcdefghijkl") if part in key]


VALUES = st.text(alphabet=string.ascii_letters + string.digits + "@._-", min_size=4, max_size=20).filter(
    lambda text: (
        any(map(str.isdigit, text)) and any(map(str.isalpha, text)) and text[0].isalnum() and text[-1].isalnum()
    )
)


@given(value=VALUES, other=VALUES, said=st.booleans())
def test_no_identifier_of_a_run_is_in_its_demonstration(value: str, other: str, said: bool) -> None:
    request = f"Change the entry {value} now" if said else "Change the entry now"
    calls = (
        EpisodeCall("find_entry", {"query": value}, {"id": other, "note": f"about {value}"}),
        EpisodeCall("change_entry", {"id": other, "to": value}, "ok", effect=True),
    )
    found = abstract(Episode(request, calls, answer=f"Changed {other} to {value}."))
    assert found is not None
    written = found.demonstration.model_dump_json()
    for secret in (value, other):
        assert secret.casefold() not in written.casefold().replace("change_entry", "").replace("find_entry", "")


def test_a_key_of_a_result_that_is_somebodys_value_is_left_out() -> None:
    calls = (
        EpisodeCall("list_orders", {}, {"ada@corp.example": "W-4190"}),
        EpisodeCall("cancel_order", {"order_id": "W-4190"}, "ok", effect=True),
    )
    found = abstract(Episode("Cancel the order of my colleague", calls))
    assert found is not None
    assert found.demonstration.calls[1].sources == {"order_id": ResultField(0)}
    assert "ada@" not in found.demonstration.model_dump_json()


def test_each_turn_of_a_conversation_is_an_episode() -> None:
    def asks(key: str, name: str, arguments: str) -> dict[str, Any]:
        return {"role": "assistant", "tool_calls": [{"id": key, "function": {"name": name, "arguments": arguments}}]}

    turns = from_conversation(
        [
            {"role": "system", "content": "Help."},
            {"role": "user", "content": "Find Ada"},
            asks("1", "find_person", '{"name": "Ada"}'),
            {"role": "tool", "tool_call_id": "1", "content": '{"email": "ada@corp.example"}'},
            {"role": "assistant", "content": "ada@corp.example"},
            {"role": "user", "content": [{"type": "text", "text": "Write to her"}]},
            asks("2", "send_note", '{"to": "ada@corp.example"}'),
            {"role": "tool", "tool_call_id": "2", "content": "Error: mailbox full"},
        ],
        domain="mail",
    )
    assert [(turn.request, len(turn.calls), turn.previous) for turn in turns] == [
        ("Find Ada", 1, None),
        ("Write to her", 1, "find_person"),
    ]
    assert not turns[1].calls[0].ok
    assert "ada@corp.example" in turns[1].known
