"""Live traffic divided between two libraries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, ConfigurationError, Journeyman, Principal, ToolLibrary, tool
from journeyman.app import splits
from journeyman.app.splits import Split
from journeyman.testing import ScriptedModel, call, say


def library(answer: str) -> ToolLibrary:
    @tool(read_only=True)
    def greet() -> str:
        """Greet somebody. Use when somebody comes."""
        return answer

    return ToolLibrary([greet])


def split(**options: Any) -> Split:
    return Split("greeting", {"a": library("from a"), "b": library("from b")}, **options)


async def greeting(app: Journeyman, session: str) -> str:
    agent = Agent(name="host", instruction="Greet.", tools=app.library.specifications())
    handle = await app.session(session).send(agent, "Hello")
    [record] = (await handle.result()).tool_calls
    return str(record.result)


def opened(tmp_path: Path, live: Split) -> Journeyman:
    model = ScriptedModel([call("greet"), say("Done.")])
    return Journeyman(store=f"sqlite:///{tmp_path / 'split.db'}", model=model, split=live, poll_seconds=0.05)


async def test_a_session_stays_with_its_library(tmp_path: Path) -> None:
    async with opened(tmp_path, split()) as app:
        first = {f"s{number}": await greeting(app, f"s{number}") for number in range(12)}
        again = {session: await greeting(app, session) for session in first}
    assert first == again
    assert set(first.values()) == {"from a", "from b"}


def test_shares_are_kept_and_raising_one_moves_sessions_only_into_it() -> None:
    few, more = split(shares={"a": 90, "b": 10}), split(shares={"a": 70, "b": 30})
    sessions = [f"session {number}" for number in range(5_000)]
    before, after = ({unit: live.arm_of(unit) for unit in sessions} for live in (few, more))
    assert 400 < Counter(before.values())["b"] < 600
    assert all(after[unit] == "b" for unit in sessions if before[unit] == "b")


async def test_without_a_session_the_shares_hold_for_each_task_of_one_principal(tmp_path: Path) -> None:
    live = split(shares={"a": 50, "b": 50})
    async with opened(tmp_path, live) as app:
        agent = Agent(name="host", instruction="Greet.", tools=app.library.specifications())
        handles = [await app.start(agent, "Hello", principal=Principal("ada")) for _ in range(40)]
        results = [(await handle.result()).tool_calls[0].result for handle in handles]
    assert set(results) == {"from a", "from b"}


async def test_a_stopped_split_sends_everything_to_the_first_arm_also_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "LOOK_SECONDS", 0.0)
    here, elsewhere = split(shares={"a": 0, "b": 100}), split(shares={"a": 0, "b": 100})
    async with opened(tmp_path, here) as app, opened(tmp_path, elsewhere) as other:
        assert await greeting(app, "s1") == "from b"
        await here.change(app.store.audit, by="grace", now=app.clock.time(), stopped=True)
        assert await greeting(app, "s1") == "from a"
        assert await greeting(other, "s1") == "from a"
        [row] = await app.store.audit.list()
        assert (row.kind, row.actor, row.subject) == ("split_changed", "grace", "greeting")
        assert await app.store.audit.verify() == 1
    later = split(shares={"a": 0, "b": 100})
    async with opened(tmp_path, later) as app:
        assert await greeting(app, "s2") == "from a"
        await later.change(app.store.audit, by="grace", now=app.clock.time(), stopped=False)
        assert await greeting(app, "s2") == "from b"


async def test_each_arm_counts_for_itself(tmp_path: Path) -> None:
    live = split(shares={"a": 0, "b": 100})
    async with opened(tmp_path, live) as app:
        await greeting(app, "s1")
    assert [live.arms[arm].counts("greet").success_count for arm in ("a", "b")] == [0, 1]


@pytest.mark.parametrize("shares", [{"a": 100}, {"a": 50, "b": 60}, {"a": 110, "b": -10}, {"a": 50, "c": 50}])
def test_shares_that_make_no_sense_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        split(shares=shares)
