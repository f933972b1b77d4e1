"""Gap reports on both databases."""

from __future__ import annotations

from journeyman.choosing import ToolGapReport
from journeyman.stores.store import SqlStore
from tests.stores.samples import NOW


def gap(task: str) -> ToolGapReport:
    return ToolGapReport(missing_tools=("book flight",), attempted_task=task, existing_tools_checked=("add", "sub"))


async def test_reports_are_kept_as_they_were_and_listed_newest_first(store: SqlStore, other: SqlStore) -> None:
    first = await store.gaps.add(gap("Fliege nach Zürich ✈"), now=NOW)
    second = await store.gaps.add(gap("Fly to Oslo"), now=NOW + 1, run_id="r1")
    assert tuple(await other.gaps.list()) == (second, first)
    assert (first.run_id, second.run_id) == (None, "r1")
    assert first.report == gap("Fliege nach Zürich ✈")


async def test_reports_are_listed_page_by_page(store: SqlStore) -> None:
    rows = [await store.gaps.add(gap(f"task {number}"), now=NOW + number) for number in range(5)]
    assert tuple(await store.gaps.list(limit=2)) == (rows[4], rows[3])
    assert tuple(await store.gaps.list(limit=2, offset=4)) == (rows[0],)


async def test_the_same_gap_may_be_met_twice(store: SqlStore) -> None:
    first, second = [await store.gaps.add(gap("Fly"), now=NOW) for _ in range(2)]
    assert first.id != second.id
    assert len(await store.gaps.list()) == 2


async def test_a_character_that_no_database_takes_does_not_lose_a_report(store: SqlStore) -> None:
    kept = await store.gaps.add(gap("Fly to \0 Oslo"), now=NOW)
    assert tuple(await store.gaps.list()) == (kept,)
    assert kept.report == gap("Fly to \0 Oslo")


async def test_demand_is_counted_by_people_then_by_times_and_seen_as_far_as_one_may(
    store: SqlStore, other: SqlStore
) -> None:
    for number, (missing, who) in enumerate(
        [("book flight", "ada"), ("book flights", "bob"), ("order pizza", "ada"), ("order pizza", "ada"), ("x", None)]
    ):
        report = ToolGapReport(missing_tools=(missing,), attempted_task=f"task {number}")
        await store.gaps.add(report, now=NOW + number, principal_id=who)
    flights, pizza, rest = await other.gaps.demand()
    assert (flights.missing, flights.times, flights.people) == ("book flights", 2, 2)
    assert (flights.first_at, flights.last_at, flights.report.attempted_task) == (NOW, NOW + 1, "task 1")
    assert (pizza.times, pizza.people, rest.missing) == (2, 1, "x")
    assert [gap.missing for gap in await other.gaps.demand(principal_id="bob")] == ["book flights"]
    assert [gap.missing for gap in await other.gaps.demand(principal_id=None)] == ["x"]
    assert [gap.key for gap in await other.gaps.demand(limit=1, offset=1)] == [pizza.key]
    assert [gap.key for gap in await other.gaps.demand(key=pizza.key)] == [pizza.key]


async def test_a_report_of_two_missing_tools_counts_for_both(store: SqlStore) -> None:
    await store.gaps.add(ToolGapReport(missing_tools=("fly", "swim"), attempted_task="Fly and swim"), now=NOW)
    assert sorted(gap.missing for gap in await store.gaps.demand()) == ["fly", "swim"]


async def test_what_is_dismissed_is_left_out_unless_it_is_asked_for(store: SqlStore, other: SqlStore) -> None:
    await store.gaps.add(gap("Fly"), now=NOW, principal_id="ada")
    [found] = await store.gaps.demand()
    assert await store.gaps.dismiss(found.key, by="grace", now=NOW + 5)
    assert await store.gaps.dismiss(found.key, by="bob", now=NOW + 6)  # the first word stands
    assert not await store.gaps.dismiss("nothing", by="grace", now=NOW)
    assert await other.gaps.demand() == ()
    [kept] = await other.gaps.demand(dismissed=True)
    assert (kept.dismissed_by, kept.dismissed_at) == ("grace", NOW + 5)
