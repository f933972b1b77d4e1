"""How much of a conversation is sent: never half a turn, never without the task."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from journeyman import Message, Role, ToolCall
from journeyman.agent.turn import window
from tests.playing import assert_well_formed


def turn(calls: int, number: int) -> list[Message]:
    made = tuple(ToolCall(id=f"{number}.{index}", tool_name="look") for index in range(calls))
    answers = [Message(role=Role.FUNCTION, name="look", call_id=call.id, content="seen") for call in made]
    return [Message(role=Role.ASSISTANT, content="" if calls else "text", calls=made), *answers]


def conversation(history: list[int], run: list[int]) -> tuple[list[Message], int]:
    messages: list[Message] = []
    for number, calls in enumerate(history):
        messages += [Message.user(f"question {number}"), *turn(calls, number)]
    task_at = len(messages)
    messages.append(Message.user("the task"))
    for number, calls in enumerate(run, start=len(history)):
        messages += turn(calls, number)
    return messages, task_at


sizes = st.lists(st.integers(0, 6), max_size=12)


@given(sizes, sizes, st.integers(1, 60))
def test_it_is_short_whole_and_holds_the_task(history: list[int], run: list[int], limit: int) -> None:
    messages, task_at = conversation(history, run)
    sent = window(messages, limit=limit, task_at=task_at)
    assert_well_formed(sent)
    assert messages[task_at] in sent
    last_turn = 1 + (run[-1] if run else 0)
    assert len(sent) <= max(limit, 1 + last_turn)
    assert sent[-1] is messages[-1]
    assert list(sent) == [message for message in messages if any(message is kept for kept in sent)]


def test_without_a_limit_everything_is_sent() -> None:
    messages, task_at = conversation([2] * 50, [3] * 50)
    assert window(messages, limit=None, task_at=task_at) is messages
    assert window(messages, limit=len(messages), task_at=task_at) is messages


def test_a_last_turn_larger_than_the_limit_is_sent_whole() -> None:
    messages, task_at = conversation([1], [2, 30])
    sent = window(messages, limit=5, task_at=task_at)
    assert len(sent) == 32
    assert sent[0].content == "the task"


def test_where_the_cut_falls_into_a_turn_the_whole_turn_goes() -> None:
    messages, task_at = conversation([], [3, 3])
    assert len(messages) == 9
    assert len(window(messages, limit=7, task_at=task_at)) == 5
