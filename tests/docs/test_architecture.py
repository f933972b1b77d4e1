"""The page about the architecture: its drawing is that of the real imports, its walks are the ways programs take."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import journeyman
from journeyman import Agent, Approve, Journeyman, ToolLibrary, run, tool
from journeyman.testing import ScriptedModel, call, say
from scripts import draw_house

PACKAGE = str(Path(journeyman.__file__).parent) + "/"
WALKS = re.findall(r"### ([^\n]+)\n(.*?)(?=\n### |\Z)", draw_house.PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
STEPS = {name: re.findall(r"\| `([\w/]+\.py)` \| `(\w+)` \|", text) for name, text in WALKS}
LONGEST = {"One call": 10, "One durable run": 15, "How an approval wakes a run": 8}


def test_the_rooms_are_drawn_from_the_imports_as_they_are() -> None:
    rooms = draw_house.imports()
    text = draw_house.PAGE.read_text(encoding="utf-8")
    assert draw_house.page(text, rooms) == text, "run 'python -m scripts.draw_house'"
    assert draw_house.picture(rooms) == draw_house.PICTURE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LONGEST)
def test_a_walk_is_short(name: str) -> None:
    assert 1 < len({file for file, _ in STEPS[name]}) == len(STEPS[name]) <= LONGEST[name]


@tool(risk="irreversible")
def delete_order(order_id: str) -> str:
    """Delete an order."""
    return order_id


AGENT = Agent(name="clerk", instruction="Help.", tools=[delete_order])


def script() -> ScriptedModel:
    return ScriptedModel([call("delete_order", order_id="W-17"), say("Done.")])


@contextmanager
def entered() -> Iterator[Callable[[], list[tuple[str, str]]]]:
    """Gives our functions in the order in which they were first entered, in any thread, since it was last called."""
    seen: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            seen.setdefault((frame.f_code.co_filename.removeprefix(PACKAGE), frame.f_code.co_name))

    def take() -> list[tuple[str, str]]:
        found = list(seen)
        seen.clear()
        return found

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield take
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def assert_walked(name: str, found: list[tuple[str, str]]) -> None:
    assert [step for step in found if step in STEPS[name]] == STEPS[name]


async def test_the_walk_of_one_call() -> None:
    with entered() as take:
        await run(AGENT, "Delete W-17", model=script(), approver=lambda _: Approve())
        found = take()
    at = found.index(("agent/loop.py", "one_call"))  # what came before belongs to the run
    names = [step for step in found[at:] if step in STEPS["One call"]]
    before = [step for step in STEPS["One call"] if step not in names]
    assert before in ([], [("execution/recorder.py", "record")])  # it was entered for the run's first fact
    assert names == [step for step in STEPS["One call"] if step in names]


async def test_the_walks_of_a_durable_run_and_of_an_approval(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    app = Journeyman(library=ToolLibrary([delete_order]), store=store, model=script(), poll_seconds=60)
    with entered() as take:  # before its threads begin
        async with app:
            take()
            handle = await app.start(AGENT, "Delete W-17")
            assert await handle.wait() == "awaiting_approval"
            started = take()
            [approval] = await app.approvals.pending()
            take()
            await app.approvals.approve(approval.id, by="grace")
            assert (await handle.result()).answer == "Done."
            decided = take()
    assert_walked("How an approval wakes a run", decided)
    both = list(dict.fromkeys(started + decided))
    walk = STEPS["One durable run"]
    assert set(walk) <= set(both)
    until_the_call = walk[: walk.index(("execution/executor.py", "execute")) + 1]
    assert [step for step in started if step in until_the_call] == until_the_call
