"""Labels in both databases: one of each person, verifier and call; audited; forgotten with their runs."""

from __future__ import annotations

import pytest

from journeyman.core.approvals import Label, LabelSource
from journeyman.core.errors import ConfigurationError
from journeyman.stores.store import SqlStore
from tests.stores.samples import NOW, order


def rating(value: str, *, by: str = "ada", note: str = "", time: float = NOW) -> Label:
    return Label.model_validate({"source": "rating", "value": value, "by": by, "note": note, "time": time})


async def test_a_rating_replaces_the_same_persons_and_leaves_audit_rows(store: SqlStore) -> None:
    await store.runs.create(order("r-1"))
    assert await store.labels.put("r-1", rating("bad", note="wrong order"))
    assert not await store.labels.put("r-1", rating("bad", note="wrong order", time=NOW + 1))
    assert await store.labels.put("r-1", rating("good", time=NOW + 2))
    assert await store.labels.put("r-1", rating("bad", by="grace", time=NOW + 3))
    assert await store.labels.of("r-1") == [rating("good", time=NOW + 2), rating("bad", by="grace", time=NOW + 3)]
    rows = [(row.kind, row.actor, row.details) for row in await store.audit.list()]
    assert rows == [
        ("run_rated", "ada", {"value": "bad", "before": None}),
        ("run_rated", "ada", {"value": "good", "before": "bad"}),
        ("run_rated", "grace", {"value": "bad", "before": None}),
    ]


async def test_the_most_reliable_come_first_and_runs_are_kept_apart(store: SqlStore) -> None:
    await store.runs.create(order("r-1"))
    await store.runs.create(order("r-2"))
    decided = Label(source=LabelSource.DECISION, value="good", call_id="call_1_1", decision="edited", time=NOW)
    verified = Label(source=LabelSource.VERIFIER, value="bad", by="check", time=NOW + 1)
    for label in (decided, verified, rating("good", time=NOW + 2)):
        await store.labels.put("r-1", label)
    found = await store.labels.of_runs(["r-1", "r-2", "r-3"])
    assert found == {"r-1": [rating("good", time=NOW + 2), verified, decided]}
    assert await store.labels.of_runs([]) == {}


async def test_a_run_that_is_not_there_cannot_be_labelled(store: SqlStore) -> None:
    with pytest.raises(ConfigurationError, match="no run 'r-9'"):
        await store.labels.put("r-9", rating("good"))
    assert list(await store.labels.of("r-9")) == []
