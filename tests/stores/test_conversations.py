"""Conversations in both databases: titles, words that are looked for, and those that an older program has left."""

from __future__ import annotations

from journeyman.core.runs import Message, Role
from journeyman.stores.store import SqlStore
from journeyman.testing.clock import START
from tests.stores.samples import claimed, finished, numbered, order, started, version_before


async def ended_in_session(store: SqlStore, session: str, *, said: str, answer: str, at: float = START) -> None:
    asked = order(f"run-{session}", session=session, at=at)
    asked = asked.model_copy(update={"task": asked.task.model_copy(update={"description": said})})
    await store.runs.create(asked)
    journal = await claimed(store, asked.run_id)
    facts = numbered(
        asked.run_id, started(), finished(messages=(Message.user(said), Message(role=Role.ASSISTANT, content=answer)))
    )
    for fact in facts:
        fact.stamp(asked.run_id, fact.seq, at)
    await journal.append(asked.run_id, facts)


async def test_sessions_are_found_by_title_and_by_what_was_said(store: SqlStore) -> None:
    await ended_in_session(store, "s", said="Where is ÖSTERREICH?", answer="In Europe_")
    await ended_in_session(store, "t", said="Hello", answer="content", at=START + 1)

    async def found(text: str) -> list[str]:
        return [row.id for row in await store.conversations.list(text=text)]

    assert await found("österreich") == ["s"]
    assert await found("EUROPE_ where") == ["s"]
    assert await found("europe%") == []
    assert await found("content") == ["t"]
    assert await found("o") == ["t", "s"]
    assert await store.conversations.rename("s", "Geography 100%")
    assert await found("geography 100%") == ["s"]
    assert [row.title for row in await store.conversations.list()] == ["Hello", "Geography 100%"]
    assert not await store.conversations.rename("nobody", "x")


async def test_sessions_of_an_older_program_are_titled_and_found_too(store: SqlStore) -> None:
    await ended_in_session(store, "s", said="An old question", answer="An old answer")
    await store.downgrade(version_before("conversation titles"))
    await store.upgrade()
    [row] = await store.conversations.list(text="ANSWER question")
    assert row.title == "An old question"
    assert (await store.conversations.get("s")) == row


async def test_a_page_begins_after_a_place(store: SqlStore) -> None:
    for name in ("a", "b", "c", "d"):
        await ended_in_session(store, name, said=name, answer="ok")
    await ended_in_session(store, "e", said="e", answer="ok", at=START + 1)
    rows = await store.conversations.list()
    assert [row.id for row in rows] == ["e", "d", "c", "b", "a"]
    for at, row in enumerate(rows):
        after = await store.conversations.list(after=(row.updated_at, row.id))
        assert after == rows[at + 1 :]
