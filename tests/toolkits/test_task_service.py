"""The task service: values read or refused by code, tasks found by words, versions, attachments, search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from journeyman import ToolError
from journeyman.core.tasks import AttachmentType, Task, TaskPriority, TaskSort, TaskStatus
from journeyman.retrieval.search import HybridIndex
from journeyman.stores.store import SqlStore
from journeyman.testing import FakeClock
from journeyman.toolkits.tasks import TaskService

if TYPE_CHECKING:
    from journeyman.core.protocols import Vectors

PULL = "https://github.com/acme/rocket/pull/12"


async def refused(work: Awaitable[Any]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await work
    assert caught.value.info.category == "invalid_input"
    assert caught.value.recover_action
    return caught.value


def titles(tasks: Sequence[Task]) -> list[str]:
    return [task.title for task in tasks]


# --- values


async def test_a_new_task_is_pending_and_of_medium_priority(service: TaskService, clock: FakeClock) -> None:
    task = await service.create("  Buy\n milk ")
    assert (task.title, task.status, task.priority) == ("Buy milk", TaskStatus.PENDING, TaskPriority.MEDIUM)
    assert (task.eta, task.tags, task.description, task.attachments) == (None, (), None, ())
    assert task.created_at == task.updated_at == datetime.fromtimestamp(clock.time(), UTC)
    assert await service.get(task.id) == task


async def test_every_wrong_value_has_its_code_and_leaves_no_task(service: TaskService) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"title": ""}, "INVALID_TITLE"),
        ({"title": " \n\t"}, "INVALID_TITLE"),
        ({"title": "x" * 256}, "INVALID_TITLE"),
        ({"title": "bell \x07"}, "INVALID_TITLE"),
        ({"title": "half \ud83d"}, "INVALID_TITLE"),
        ({"priority": "urgent"}, "INVALID_PRIORITY"),
        ({"priority": ""}, "INVALID_PRIORITY"),
        ({"status": "lost"}, "INVALID_STATUS"),
        ({"eta": "tomorrow"}, "INVALID_ETA"),
        ({"eta": "2027-02-30"}, "INVALID_ETA"),
        ({"eta": "2027-01-01T10:00:00+01:00:30"}, "INVALID_ETA"),
        ({"eta": "31/12/2027"}, "INVALID_ETA"),
        ({"tags": [""]}, "INVALID_TAGS"),
        ({"tags": ["x" * 65]}, "INVALID_TAGS"),
        ({"tags": [str(n) for n in range(51)]}, "INVALID_TAGS"),
    ]
    for fields, code in cases:
        assert (await refused(service.create(**{"title": "Buy milk", **fields}))).code == code, fields
    assert (await service.query()).total == 0


async def test_a_wrong_value_is_named_with_the_right_ones(service: TaskService) -> None:
    error = await refused(service.create("Buy milk", priority="urgent"))
    assert error.message == "Invalid priority: urgent"
    assert error.recover_action == "Use one of: low, medium, high, critical"


async def test_a_title_of_255_characters_is_accepted(service: TaskService) -> None:
    assert len((await service.create("x" * 255)).title) == 255


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2027-01-31", "2027-01-31T00:00:00+00:00"),
        ("2027-01-31T17:00:00", "2027-01-31T17:00:00+00:00"),
        ("2027-01-31T17:00:00Z", "2027-01-31T17:00:00+00:00"),
        (" 2027-01-31T17:00+05:30 ", "2027-01-31T17:00:00+05:30"),
        ("2027-01-31 17:00:00-08:00", "2027-01-31T17:00:00-08:00"),
        ("20270131T170000Z", "2027-01-31T17:00:00+00:00"),
    ],
)
async def test_an_eta_keeps_its_time_zone(service: TaskService, written: str, expected: str) -> None:
    task = await service.create("Buy milk", eta=written)
    kept = await service.get(task.id)
    assert kept.eta is not None
    assert kept.eta.isoformat() == expected


@pytest.mark.parametrize(
    ("written", "status"), [("Done", "completed"), ("in progress", "in_progress"), ("TODO", "pending")]
)
async def test_a_status_is_understood_as_people_say_it(service: TaskService, written: str, status: str) -> None:
    task = await service.create("Buy milk")
    assert (await service.update(task.id, status=written)).task.status == status


async def test_tags_are_kept_once_whatever_their_case(service: TaskService) -> None:
    assert (await service.create("Buy milk", tags=[" Home ", "home", "#errand"])).tags == ("Home", "errand")


async def test_the_same_key_makes_one_task(service: TaskService) -> None:
    first = await service.create("Buy milk", key="call-1")
    assert await service.create("Buy milk", key="call-1") == first
    assert (await service.create("Buy milk", key="call-2")).id != first.id
    assert (await service.query()).total == 2


# --- queries


async def test_a_plain_date_includes_its_day_on_both_ends(service: TaskService) -> None:
    for eta in ("2027-01-30T23:59:59", "2027-01-31", "2027-01-31T23:59:59", "2027-02-01"):
        await service.create(eta, eta=eta)
    page = await service.query(due_after="2027-01-31", due_before="2027-01-31", sort=TaskSort.ETA_ASC)
    assert titles(page.tasks) == ["2027-01-31", "2027-01-31T23:59:59"]
    page = await service.query(due_before="2027-01-31T00:00:00")
    assert page.total == 2


async def test_filters_that_say_nothing_do_not_narrow(service: TaskService) -> None:
    await service.create("Buy milk")
    assert (await service.query(text=" ", status="", priority="", due_after="", due_before="")).total == 1


async def test_a_task_is_overdue_when_its_day_is_over_and_it_is_not_completed(
    service: TaskService, clock: FakeClock
) -> None:
    today = datetime.fromtimestamp(clock.time(), UTC).date()
    for title, days in (("Late", -1), ("Now", 0), ("Soon", 1), ("Done", -2)):
        await service.create(title, eta=(today + timedelta(days=days)).isoformat())
    await service.create("Whenever")
    await service.update("Done", status="completed")
    assert [task.title for task in (await service.query(overdue=True)).tasks] == ["Late"]


async def test_wrong_filters_are_refused(service: TaskService) -> None:
    assert (await refused(service.query(status="lost"))).code == "INVALID_STATUS"
    assert (await refused(service.query(priority="urgent"))).code == "INVALID_PRIORITY"
    assert (await refused(service.query(due_before="soon"))).code == "INVALID_ETA"
    assert (await refused(service.query(limit=0))).code == "INVALID_LIMIT"
    assert (await refused(service.query(limit=201))).code == "INVALID_LIMIT"
    assert (await refused(service.query(offset=-1))).code == "INVALID_LIMIT"


# --- names


@pytest.mark.parametrize(
    "name", ["quarterly report", "the Quarterly Report task", "report quarterly", "prepare the quarterly reports"]
)
async def test_words_of_its_title_name_a_task(service: TaskService, name: str) -> None:
    wanted = await service.create("Prepare the quarterly report")
    await service.create("Prepare the monthly report")
    assert (await service.named(name)).id == wanted.id


async def test_plurals_are_the_same_word_in_either_direction(service: TaskService) -> None:
    wanted = await service.create("Compare the insurance companies")
    assert (await service.named("insurance company")).id == wanted.id


async def test_an_id_wins_over_words(service: TaskService) -> None:
    first = await service.create("Buy milk")
    await service.create(f"Look at {first.id}")
    assert (await service.named(f" {first.id} ")).id == first.id


async def test_a_whole_title_wins_over_a_longer_one(service: TaskService) -> None:
    wanted = await service.create("Report")
    await service.create("Report draft")
    assert (await service.named("report")).id == wanted.id


async def test_a_part_of_a_word_names_nothing(service: TaskService) -> None:
    await service.create("Paint the fence")
    assert (await refused(service.named("pain"))).code == "TASK_NOT_FOUND"


async def test_my_task_is_the_one_that_is_open_and_of_several_one_must_be_named(service: TaskService) -> None:
    await service.create("Paint the fence", status="completed")
    assert (await refused(service.named("my task"))).code == "TASK_NOT_FOUND"
    wanted = await service.create("Report for Anna")
    assert (await service.named("my task")).id == wanted.id
    await service.create("Report for Bob")
    assert (await refused(service.named("the task"))).code == "AMBIGUOUS_TASK"


async def test_several_matches_list_the_candidates(service: TaskService) -> None:
    first = await service.create("Report for Anna")
    second = await service.create("Report for Bob", status="completed")
    for work in (service.named("report"), service.update("report", status="completed"), service.delete("report")):
        error = await refused(work)
        assert error.code == "AMBIGUOUS_TASK"
        told = error.recover_action or ""
        assert f"{first.id}: 'Report for Anna' (pending)" in told
        assert f"{second.id}: 'Report for Bob' (completed)" in told
        assert "Ask the user" in told
        # People know tasks by their titles.
        guidance = error.info.user_guidance or ""  # made in one moment, either may come first
        assert "“Report for Anna”" in guidance
        assert "“Report for Bob”" in guidance
        assert first.id not in f"{error.message} {error.info.user_guidance}"
    assert (await service.query()).total == 2


async def test_equal_titles_are_ambiguous_even_when_whole(service: TaskService) -> None:
    for _ in range(12):
        await service.create("Buy milk")
    error = await refused(service.named("Buy milk"))
    assert error.message == "'Buy milk' fits 12 tasks"
    assert (error.recover_action or "").endswith("and 2 more")


async def test_no_match_names_the_nearest_titles(service: TaskService) -> None:
    for title in ("Call the dentist", "Water the plants", "Prepare the report", "Fix the login bug"):
        await service.create(title)
    error = await refused(service.named("dentist appointment"))
    assert error.code == "TASK_NOT_FOUND"
    told = error.recover_action or ""
    assert told.index("Call the dentist") < told.index(";", told.index("nearest"))
    assert "“Call the dentist”" in (error.info.user_guidance or "")
    misspelt = await refused(service.named("Prepair teh raport"))
    assert (misspelt.recover_action or "").count("'Prepare the report'") == 1


@pytest.mark.parametrize("name", ["", "  ", "the", "task", "milk", "%", "task_0"])
async def test_without_tasks_nothing_is_found(service: TaskService, name: str) -> None:
    error = await refused(service.named(name))
    assert error.code == "TASK_NOT_FOUND"
    assert "no tasks yet" in error.message


async def test_get_takes_an_id_and_nothing_else(service: TaskService) -> None:
    await service.create("Buy milk")
    assert (await refused(service.get("Buy milk"))).code == "TASK_NOT_FOUND"


# --- changes


async def test_an_update_changes_what_is_given_and_tells_what_was(service: TaskService, clock: FakeClock) -> None:
    task = await service.create("Buy milk", description="2 litres", priority="low", tags=["home"])
    clock.advance(60)
    changed = await service.update("milk", status="completed", priority="low", tags=["shop"])
    assert (changed.task.status, changed.task.description, changed.task.tags) == ("completed", "2 litres", ("shop",))
    assert changed.task.updated_at - task.updated_at == timedelta(seconds=60)
    assert dict(changed.previous) == {"status": "pending", "tags": ("home",)}


async def test_versions_are_kept_newest_first(service: TaskService) -> None:
    task = await service.create("Buy milk")
    await service.update(task.id, title="Buy tea", eta="2027-01-31")
    await service.update(task.id, title="Buy coffee", eta="")
    await service.update(task.id, title="Buy coffee")
    newer, older = await service.versions(task.id)
    assert (older.task.title, older.task.eta) == ("Buy milk", None)
    assert (newer.task.title, newer.task.eta) == ("Buy tea", datetime(2027, 1, 31, tzinfo=UTC))
    assert (await service.get(task.id)).eta is None


async def test_wrong_updates_change_nothing(service: TaskService) -> None:
    task = await service.create("Buy milk")
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "NOTHING_TO_CHANGE"),
        ({"title": ""}, "INVALID_TITLE"),
        ({"title": "Tea", "priority": "urgent"}, "INVALID_PRIORITY"),
        ({"title": "Tea", "eta": "soon"}, "INVALID_ETA"),
        ({"title": "Tea", "status": "lost"}, "INVALID_STATUS"),
    ]
    for fields, code in cases:
        assert (await refused(service.update(task.id, **fields))).code == code
    assert (await refused(service.update("piano", title="Tea"))).code == "TASK_NOT_FOUND"
    assert await service.get(task.id) == task
    assert await service.versions(task.id) == ()


async def test_a_deleted_task_is_gone_with_all_it_had(service: TaskService) -> None:
    task = await service.create(f"Review {PULL}")
    assert await service.delete(task.id) == task
    assert (await refused(service.get(task.id))).code == "TASK_NOT_FOUND"
    assert (await refused(service.attachment(task.attachments[0].id))).code == "ATTACHMENT_NOT_FOUND"
    assert (await refused(service.delete(task.id))).code == "TASK_NOT_FOUND"


# --- attachments


async def test_addresses_in_title_and_description_become_attachments(service: TaskService) -> None:
    task = await service.create(f"Review {PULL}/files", description=f"See https://example.com/a?utm_source=x, {PULL}.")
    assert [(item.type, item.reference) for item in task.attachments] == [
        (AttachmentType.GITHUB, PULL),
        (AttachmentType.URL, "https://example.com/a"),
    ]
    assert task.attachments[0].title == "acme/rocket#12"
    assert (await service.named("review")).attachments == (await service.get(task.id)).attachments == task.attachments


async def test_a_new_description_brings_its_new_addresses(service: TaskService) -> None:
    task = await service.create(f"Review {PULL}")
    changed = await service.update(task.id, description=f"{PULL}/commits and https://example.com/a")
    assert {item.reference for item in changed.task.attachments} == {PULL, "https://example.com/a"}
    assert task.attachments[0] in changed.task.attachments


async def test_an_attachment_that_was_removed_does_not_come_back_with_another_change(service: TaskService) -> None:
    task = await service.create(f"Review {PULL}")
    await service.detach(task.attachments[0].id)
    assert (await service.update(task.id, status="completed")).task.attachments == ()
    assert (await service.update(task.id, description="Soon")).task.attachments == ()


async def test_an_address_is_attached_once_per_task(service: TaskService) -> None:
    first = await service.create("Review the rocket")
    second = await service.create("Praise the rocket")
    made = await service.attach("review", f"{PULL}/files", title="The engine", metadata={"n": 1})
    assert (made.type, made.reference, made.title) == (AttachmentType.GITHUB, PULL, "The engine")
    assert made.metadata == {"owner": "acme", "repository": "rocket", "kind": "pull", "number": 12, "n": 1}
    error = await refused(service.attach(first.id, PULL.upper().replace("/PULL/", "/pull/")))
    assert error.code == "ATTACHMENT_EXISTS"
    assert (await service.attach(second.id, PULL)).task_id == second.id


async def test_the_same_key_attaches_once_without_an_error(service: TaskService) -> None:
    await service.create("Review the rocket")
    made = await service.attach("rocket", PULL, key="call-1")
    assert await service.attach("rocket", PULL, key="call-1") == made
    assert (await refused(service.attach("rocket", PULL, key="call-2"))).code == "ATTACHMENT_EXISTS"


async def test_a_given_type_wins_over_the_inferred_one(service: TaskService) -> None:
    await service.create("Review the rocket")
    made = await service.attach("rocket", "https://git.acme.example/rocket/1", type=AttachmentType.GITHUB)
    assert made.type is AttachmentType.GITHUB


async def test_what_cannot_be_attached_is_refused(service: TaskService) -> None:
    await service.create("Review the rocket")
    error = await refused(service.attach("rocket", "file:///etc/passwd"))
    assert (error.code, "'file'" in error.message) == ("INVALID_REFERENCE", True)
    assert (await refused(service.attach("piano", PULL))).code == "TASK_NOT_FOUND"


@pytest.mark.parametrize("name", [PULL, f"{PULL}/files", "acme/rocket#12", "rocket 12", "pull"])
async def test_an_attachment_is_named_by_address_or_words(service: TaskService, name: str) -> None:
    await service.create(f"Review {PULL} and https://example.com/report.pdf")
    assert (await service.detach(name, task="review")).reference == PULL
    assert [item.reference for item in (await service.named("review")).attachments] == [
        "https://example.com/report.pdf"
    ]


async def test_attachments_that_cannot_be_told_apart_are_listed(service: TaskService) -> None:
    task = await service.create("Read https://example.com/a/report and https://example.com/b/report")
    error = await refused(service.detach("report", task="read"))
    assert error.code == "AMBIGUOUS_ATTACHMENT"
    assert all(f"{item.id}: {item.reference}" in error.message for item in task.attachments)
    error = await refused(service.detach("piano", task="read"))
    assert error.code == "ATTACHMENT_NOT_FOUND"
    assert "https://example.com/a/report" in error.message
    assert (await refused(service.detach("report"))).code == "ATTACHMENT_NOT_FOUND"
    assert len((await service.named("read")).attachments) == 2


# --- search


class Meaning:
    """An embedder for which a few words mean the same."""

    name = "meaning"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        topics = ({"money", "bill", "invoice"}, {"travel", "flight", "passport"})
        rows = [[float(bool(topic & set(text.lower().split()))) for topic in topics] + [0.1] for text in texts]
        return np.array(rows, dtype=np.float32)


async def search_titles(service: TaskService, text: str) -> list[str]:
    return titles([found.task for found in await service.search(text)])


async def test_without_an_embedder_search_goes_by_words(service: TaskService) -> None:
    await service.create("Pay the bill", description="electricity", tags=["House"])
    await service.create("Book a flight")
    for text in ("electricity bills", "house"):
        assert await search_titles(service, text) == ["Pay the bill"]
    assert await search_titles(service, "money") == []


async def test_with_an_embedder_search_goes_by_meaning(store: SqlStore, clock: FakeClock) -> None:
    service = TaskService(store.tasks, clock, index=HybridIndex(embedder=Meaning()))
    await service.create("Pay the bill")
    await service.create("Book a flight")
    await service.create("Paint the fence")
    assert await search_titles(service, "money") == ["Pay the bill"]
    assert await search_titles(service, "travel") == ["Book a flight"]


Step = Callable[[TaskService], Awaitable[Any]]


async def test_search_follows_what_others_change(store: SqlStore, clock: FakeClock, service: TaskService) -> None:
    elsewhere = TaskService(store.tasks, clock)
    steps: list[tuple[Step, list[str]]] = [
        (lambda tasks: tasks.create("Buy milk"), ["Buy milk"]),
        (lambda tasks: tasks.update("milk", title="Buy oat milk"), ["Buy oat milk"]),
        (lambda tasks: tasks.update("milk", title="Buy tea"), []),
        (lambda tasks: tasks.create("Sell milk"), ["Sell milk"]),
        (lambda tasks: tasks.delete("sell"), []),
    ]
    for step, expected in steps:
        clock.advance(1)
        await step(elsewhere)
        assert await search_titles(service, "milk") == expected
