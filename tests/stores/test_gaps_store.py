"""Gap reports on both databases."""

from __future__ import annotations

from journeyman import ToolGapReport
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
