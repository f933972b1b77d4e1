"""The durable program, killed with -9 wherever a process can die, and gone on with by another process."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.events import CallFinished, CallStarted, Fact
from journeyman.stores.store import open_store
from journeyman.testing import CrashPoint, crash_and_recover, crash_points
from tests.app.durable_program import DIE_AT_LINE, RUN, in_child
from tests.app.shop import DIE_IN_TOOL, Ledger
from tests.marking import daily
from tests.waiting import WAIT_SECONDS

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.app.durable_program"])
FACTS = 35
"""Of the program when nothing goes wrong."""
LINES = 13
ONCE = {("note", "W-17"): 1, ("delete_order", "W-17"): 1, ("delete_order", "W-18"): 1}

pytestmark = pytest.mark.slow


class Place:
    """A store, a ledger, and the program that is run on them."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.ledger = Ledger(folder / "ledger")
        self.url = url or f"sqlite:///{folder / 'store.db'}"
        self._told = folder / "told"

    def run(self, **environment: str) -> dict[str, Any] | None:
        """What the program told, or None when it was killed."""
        self._told.unlink(missing_ok=True)
        child = FORKS.Process(target=in_child, args=(self.url, str(self.ledger.path), environment, str(self._told)))
        child.start()
        child.join(WAIT_SECONDS)
        assert child.exitcode in (0, -signal.SIGKILL), f"exit code {child.exitcode}"
        if child.exitcode != 0:
            return None
        told: dict[str, Any] = json.loads(self._told.read_text())
        return told

    def facts(self) -> tuple[Fact, ...]:
        async def read() -> tuple[Fact, ...]:
            store = open_store(self.url)
            await store.open()
            try:
                return tuple(await store.runs.facts(RUN))
            finally:
                await store.close()

        return asyncio.run(read())

    def ended_well(self, told: dict[str, Any] | None) -> None:
        assert told is not None
        assert (told["status"], told["answer"]) == ("completed", "Both are deleted.")
        assert [status for _, status in told["calls"]] == ["success"] * 5
        assert told["facts"] == list(range(1, len(told["facts"]) + 1))
        effects = self.ledger.effects()
        assert {what: count for what, count in effects.items() if what in ONCE} == ONCE
        # What may be repeated was repeated under its own key.
        keys = {(name, key) for name, key, _ in self.ledger.lines()}
        assert len(keys) == 5


def under_way(facts: Iterable[Fact]) -> list[str]:
    """Calls without a second chance that are started and have no outcome."""
    open_calls: Counter[str] = Counter()
    for fact in facts:
        if isinstance(fact, CallStarted) and fact.tool_name in ("note", "delete_order"):
            open_calls[fact.call_id] += 1
        elif isinstance(fact, CallFinished):
            open_calls.pop(fact.record.call_id, None)
    return sorted(open_calls)


def killed_and_gone_on(place: Place, **environment: str) -> bool:
    """Whether it was killed; in any case it must end well, with unknown calls exactly where they must be."""
    told = place.run(**environment)
    if told is not None:
        place.ended_well(told)
        return False
    expected = under_way(place.facts())
    told = place.run()
    place.ended_well(told)
    assert told is not None
    assert sorted(told["unknown"]) == expected
    return True


def everywhere(tmp_path: Path, variable: str, points: Iterable[object]) -> int:
    """How many of the points were reached."""
    named = [str(point) for point in points]
    places = [Place(tmp_path / str(number)) for number in range(len(named))]
    return sum(killed_and_gone_on(place, **{variable: point}) for place, point in zip(places, named, strict=True))


def test_undisturbed_the_program_runs_as_expected(tmp_path: Path) -> None:
    place = Place(tmp_path)
    told = place.run()
    place.ended_well(told)
    assert told is not None
    assert (len(told["facts"]), told["lines"], told["unknown"]) == (FACTS, LINES, [])


def test_killed_between_any_two_lines_it_goes_on(tmp_path: Path) -> None:
    assert everywhere(tmp_path, DIE_AT_LINE, range(1, LINES + 1)) == LINES


@pytest.mark.parametrize("every", daily(3, nightly=1))
def test_killed_at_the_boundaries_of_the_journal_it_goes_on(tmp_path: Path, every: int) -> None:
    points = list(crash_points(FACTS))
    assert len(points) == 2 * FACTS
    assert everywhere(tmp_path, "JOURNEYMAN_CRASH", points[::every]) == len(points[::every])


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("tool_name", ["look", "stamp", "note", "delete_order"])
def test_killed_within_a_tool_only_what_may_not_be_repeated_becomes_unknown(
    tmp_path: Path, tool_name: str, when: str
) -> None:
    place = Place(tmp_path)
    assert place.run(**{DIE_IN_TOOL: f"{tool_name}:{when}"}) is None
    told = place.run()
    place.ended_well(told)
    assert told is not None
    assert bool(told["unknown"]) == (tool_name in ("note", "delete_order"))
    again = place.ledger.effects()[(tool_name, "W-17")]
    assert again == (2 if when == "after" and tool_name in ("look", "stamp") else 1)


def test_killed_again_and_again_it_still_ends(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number in range(2, 60):
        # Every process writes a few facts more than the one before got to write.
        if (told := place.run(JOURNEYMAN_CRASH=f"after:{number}")) is not None:
            break
    place.ended_well(told)


def test_on_postgresql_it_goes_on_after_a_kill_at_every_call(tmp_path: Path, postgres_url: str) -> None:
    place = Place(tmp_path, postgres_url)
    assert place.run(**{DIE_IN_TOOL: "stamp:after"}) is None
    assert place.run(**{DIE_IN_TOOL: "note:after"}) is None
    assert place.run(**{DIE_IN_TOOL: "delete_order:after"}) is None
    place.ended_well(place.run())


def test_the_crash_harness_says_how_a_program_came_through(tmp_path: Path) -> None:
    place = Place(tmp_path)
    command = [sys.executable, "-m", "tests.app.durable_program", place.url, str(place.ledger.path)]
    found = crash_and_recover(command, CrashPoint("after", 8))
    assert (found.crashed, found.attempts) == (True, 2)
    place.ended_well(json.loads(found.output))


def test_the_crash_harness_does_not_hide_a_program_that_cannot_recover(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    with pytest.raises(AssertionError, match="after:1"):
        crash_and_recover(command, CrashPoint("after", 1), most_attempts=2)
