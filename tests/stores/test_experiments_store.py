"""Reports of experiments on both databases."""

from __future__ import annotations

from journeyman.core.storing import ExperimentRow, StoredExperiment
from journeyman.stores.store import SqlStore
from tests.stores.samples import NOW


def found(id: str, *, now: float = NOW, winner: str | None = None, report: str = "{}") -> StoredExperiment:
    return StoredExperiment(id=id, name=f"name of {id}", created_at=now, winner=winner, report=report)


async def test_a_report_is_found_again_by_its_id(store: SqlStore, other: SqlStore) -> None:
    kept = found("exp_1", winner="b", report='{"verdict": "b ≻ a"}')
    await store.experiments.add(kept)
    assert await other.experiments.get("exp_1") == kept
    assert await other.experiments.get("exp_2") is None


async def test_experiments_are_listed_newest_first_and_without_their_reports(store: SqlStore) -> None:
    for number in range(4):
        await store.experiments.add(found(f"exp_{number}", now=NOW + number, winner="a" if number == 3 else None))
    first, second = await store.experiments.list(limit=2)
    assert first == ExperimentRow(id="exp_3", name="name of exp_3", created_at=NOW + 3, winner="a")
    assert (second.id, second.winner) == ("exp_2", None)
    assert [row.id for row in await store.experiments.list(limit=2, offset=3)] == ["exp_0"]


async def test_a_later_report_of_an_experiment_takes_the_place_of_the_earlier(store: SqlStore) -> None:
    await store.experiments.add(found("exp_1", report="[1]"))
    later = found("exp_1", now=NOW + 9, winner="a", report="[2]")
    await store.experiments.add(later)
    assert await store.experiments.get("exp_1") == later
    assert len(await store.experiments.list()) == 1


async def test_names_that_no_database_takes_do_not_lose_a_report(store: SqlStore) -> None:
    await store.experiments.add(found("exp_1").model_copy(update={"name": "half \ud800 and \0 none"}))
    [row] = await store.experiments.list()
    assert row.name.startswith("half ")
    assert row.name.endswith(" none")
