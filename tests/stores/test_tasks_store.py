"""Tasks on both databases: kept once, found by every filter, changed one at a time, with what they were before."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from journeyman.core.data import moment
from journeyman.core.tasks import (
    Attachment,
    AttachmentType,
    Task,
    TaskFilter,
    TaskPage,
    TaskPriority,
    TaskSort,
    TaskStatus,
)
from journeyman.stores.store import SqlStore
from tests.stores.samples import LATER, NOW

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


def task(task_id: str, title: str = "Buy milk", *, at: float = NOW, **fields: Any) -> Task:
    return Task(id=task_id, title=title, created_at=moment(at), updated_at=moment(at), **fields)


def attachment(attachment_id: str, task_id: str, reference: str = "https://example.com/a") -> Attachment:
    now = moment(NOW)
    return Attachment(
        id=attachment_id,
        task_id=task_id,
        type=AttachmentType.URL,
        reference=reference,
        metadata={"n": 1},
        created_at=now,
        updated_at=now,
    )


def ids(page: TaskPage) -> list[str]:
    return [found.id for found in page.tasks]


async def test_a_task_comes_back_as_it_was_given(store: SqlStore) -> None:
    given = task(
        "t1",
        "Größe 100% _prüfen_ \U0001f4a1",
        description="# Why\n- 'quotes' and \"more\"",
        status=TaskStatus.IN_PROGRESS,
        priority=TaskPriority.CRITICAL,
        eta=datetime(2027, 1, 1, 9, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        tags=("Home", "office"),
        metadata={"nested": {"list": [1, None, "x"]}},
        attachments=(attachment("a1", "t1"),),
    )
    assert await store.tasks.add(given) == given
    found = await store.tasks.get("t1")
    assert found == given
    assert found.eta is not None
    assert found.eta.utcoffset() == timedelta(hours=5, minutes=30)


async def test_a_task_that_is_not_there_is_none(store: SqlStore) -> None:
    assert await store.tasks.get("t1") is None
    assert await store.tasks.change("t1", lambda before: before, now=NOW) is None
    assert await store.tasks.delete("t1") is False
    assert await store.tasks.attach(attachment("a1", "t1")) is None
    assert await store.tasks.attachment("a1") is None
    assert await store.tasks.detach("a1") is False


async def test_the_same_task_twice_is_kept_once_as_it_stands(store: SqlStore) -> None:
    await store.tasks.add(task("t1"))
    await store.tasks.change("t1", lambda before: before.model_copy(update={"title": "Buy tea"}), now=LATER)
    again = await store.tasks.add(task("t1", attachments=(attachment("a1", "t1"),)))
    assert (again.title, again.attachments) == ("Buy tea", ())
    assert (await store.tasks.find()).total == 1


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (TaskFilter(), ["d", "c", "b", "a"]),
        (TaskFilter(status=TaskStatus.PENDING), ["d", "a"]),
        (TaskFilter(priority=TaskPriority.HIGH), ["b"]),
        (TaskFilter(tags=("HOME",)), ["b", "a"]),
        (TaskFilter(tags=("home", "garden")), ["b"]),
        (TaskFilter(text="fence"), ["c", "b"]),
        (TaskFilter(text="  PAINT fence "), ["b"]),
        (TaskFilter(text="fence paint"), ["b"]),
        (TaskFilter(text="a"), ["d", "c", "b", "a"]),
        (TaskFilter(text="c"), ["d", "c", "b"]),
        (TaskFilter(text="100%"), ["d"]),
        (TaskFilter(text="100_"), []),
        (TaskFilter(text="!"), ["d"]),
        (TaskFilter(text="straße"), ["a"]),
        (TaskFilter(title="fence"), ["b"]),
        (TaskFilter(due_after=NEW_YEAR), ["b", "a"]),
        (TaskFilter(due_before=NEW_YEAR), ["c", "a"]),
        (TaskFilter(due_after=NEW_YEAR, due_before=NEW_YEAR), ["a"]),
        (TaskFilter(overdue_at=NEW_YEAR), ["c"]),
        (TaskFilter(overdue_at=NEW_YEAR + timedelta(days=9)), ["c", "a"]),
        (TaskFilter(text="fence", status=TaskStatus.COMPLETED, tags=("home",)), ["b"]),
        (TaskFilter(text="fence", status=TaskStatus.PENDING, tags=("home",)), []),
    ],
)
async def test_every_filter_narrows(store: SqlStore, wanted: TaskFilter, expected: list[str]) -> None:
    day = timedelta(days=1)
    # The same moment, written in another zone.
    elsewhere = NEW_YEAR.astimezone(timezone(timedelta(hours=-8)))
    await store.tasks.add(task("a", "Sweep the STRASSE", at=NOW, tags=("home",), eta=elsewhere))
    await store.tasks.add(
        task(
            "b",
            "Paint the fence",
            at=NOW + 1,
            tags=("Home", "Garden"),
            priority=TaskPriority.HIGH,
            status=TaskStatus.COMPLETED,
            eta=NEW_YEAR + day,
            description="In black",
        )
    )
    await store.tasks.add(
        task(
            "c",
            "Call Carol",
            at=NOW + 2,
            status=TaskStatus.IN_PROGRESS,
            description="about the Fence",
            eta=NEW_YEAR - day,
        )
    )
    await store.tasks.add(task("d", "Reach 100% of the public!", at=NOW + 3))
    page = await store.tasks.find(wanted)
    assert (ids(page), page.total) == (expected, len(expected))


async def test_a_text_of_nothing_but_spaces_finds_everything(store: SqlStore) -> None:
    await store.tasks.add(task("a"))
    assert ids(await store.tasks.find(TaskFilter(text="  "))) == ["a"]


async def test_tasks_are_sorted_with_ties_by_age_then_id(store: SqlStore) -> None:
    day = timedelta(days=1)
    await store.tasks.add(task("b", at=NOW, priority=TaskPriority.LOW))
    await store.tasks.add(task("a", at=NOW, priority=TaskPriority.CRITICAL, eta=NEW_YEAR + day))
    await store.tasks.add(task("c", at=NOW + 1, priority=TaskPriority.CRITICAL))
    await store.tasks.add(task("d", at=NOW + 2, priority=TaskPriority.LOW, eta=NEW_YEAR))
    assert ids(await store.tasks.find(sort=TaskSort.CREATED_DESC)) == ["d", "c", "a", "b"]
    assert ids(await store.tasks.find(sort=TaskSort.ETA_ASC)) == ["d", "a", "c", "b"]
    assert ids(await store.tasks.find(sort=TaskSort.PRIORITY_DESC)) == ["a", "c", "d", "b"]


async def test_pages_are_cut_from_the_whole_and_know_its_size(store: SqlStore) -> None:
    for number in range(7):
        await store.tasks.add(task(f"t{number}", at=NOW + number))
    page = await store.tasks.find(limit=3, offset=2)
    assert (ids(page), page.total) == (["t4", "t3", "t2"], 7)
    assert (await store.tasks.find(offset=7)).tasks == ()


async def test_many_tasks_are_read_with_their_own_attachments(store: SqlStore) -> None:
    for number in range(120):
        await store.tasks.add(task(f"t{number}", attachments=(attachment(f"a{number}", f"t{number}"),)))
    for found in ((await store.tasks.find(limit=200)).tasks, await store.tasks.get_many([f"t{n}" for n in range(300)])):
        assert len(found) == 120
        assert all([item.task_id for item in kept.attachments] == [kept.id] for kept in found)
    assert await store.tasks.get_many([]) == ()


async def test_a_change_keeps_what_was_before(store: SqlStore) -> None:
    first = await store.tasks.add(task("t1", tags=("home",), attachments=(attachment("a1", "t1"),)))
    for number, title in enumerate(("Buy tea", "Buy coffee"), start=1):
        fields = {"title": title, "tags": ("office",), "updated_at": moment(NOW + number)}
        await store.tasks.change("t1", lambda before, new=fields: before.model_copy(update=new), now=NOW + number)  # type: ignore[misc]
    newer, older = await store.tasks.versions("t1")
    assert (older.number, older.task) == (1, first.model_copy(update={"attachments": ()}))
    assert (newer.number, newer.task.title, newer.replaced_at) == (2, "Buy tea", moment(NOW + 2))
    assert ids(await store.tasks.find(TaskFilter(tags=("office",), text="coffee"))) == ["t1"]
    assert ids(await store.tasks.find(TaskFilter(tags=("home",)))) == []
    assert await store.tasks.stamps() == {"t1": NOW + 2}


async def test_a_change_that_changes_nothing_makes_no_version(store: SqlStore) -> None:
    await store.tasks.add(task("t1"))
    await store.tasks.change("t1", lambda before: before, now=LATER)
    assert await store.tasks.versions("t1") == ()


async def test_a_change_that_raises_leaves_everything_as_it_was(store: SqlStore) -> None:
    kept = await store.tasks.add(task("t1"))

    def refuse(before: Task) -> Task:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await store.tasks.change("t1", refuse, now=LATER)
    assert await store.tasks.get("t1") == kept


async def test_changes_of_two_processes_at_once_are_both_kept(store: SqlStore, other: SqlStore) -> None:
    await store.tasks.add(task("t1"))

    def one_more(before: Task) -> Task:
        return before.model_copy(update={"tags": (*before.tags, str(len(before.tags)))})

    changes = [side.tasks.change("t1", one_more, now=LATER) for _ in range(5) for side in (store, other)]
    await asyncio.gather(*changes)
    found = await store.tasks.get("t1")
    assert found is not None
    assert found.tags == tuple(str(number) for number in range(10))
    assert [version.number for version in await store.tasks.versions("t1")] == list(range(10, 0, -1))


async def test_a_reference_is_attached_once_to_a_task(store: SqlStore) -> None:
    await store.tasks.add(task("t1"))
    await store.tasks.add(task("t2"))
    first = await store.tasks.attach(attachment("a1", "t1"))
    assert first == attachment("a1", "t1")
    assert await store.tasks.attach(attachment("a2", "t1")) == first
    assert await store.tasks.attach(attachment("a3", "t2")) == attachment("a3", "t2")
    assert await store.tasks.attachment("a1") == first
    assert await store.tasks.attachment("a2") is None
    assert await store.tasks.detach("a1") is True
    assert await store.tasks.attach(attachment("a2", "t1")) == attachment("a2", "t1")


async def test_a_deleted_task_leaves_nothing_behind(store: SqlStore, other: SqlStore) -> None:
    await store.tasks.add(task("t1", tags=("home",), attachments=(attachment("a1", "t1"),)))
    await store.tasks.change("t1", lambda before: before.model_copy(update={"title": "Buy tea"}), now=LATER)
    assert await store.tasks.delete("t1") is True
    assert await other.tasks.get("t1") is None
    assert await other.tasks.attachment("a1") is None
    assert await other.tasks.versions("t1") == ()
    assert (await other.tasks.find(TaskFilter(tags=("home",)))).total == 0
    assert await other.tasks.stamps() == {}


async def test_odd_characters_are_no_danger(store: SqlStore) -> None:
    await store.tasks.add(task("t1", "'; DROP TABLE tasks; --", description="half a character \ud83d and NUL \0"))
    found = (await store.tasks.find(TaskFilter(text="'; drop"))).tasks
    assert [kept.title for kept in found] == ["'; DROP TABLE tasks; --"]
