"""Chains: references, governance, going on in another process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, ConfigurationError, Journeyman, RiskLevel, RunStatus, ToolError, ToolLibrary, run, tool
from journeyman.app.chains import ChainError, OneCall, UnresolvedError, literal, resolve, start_chain
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from tests.waiting import WAIT_SECONDS

RESULTS = [
    {"id": "t1", "metadata": {"url": "https://a.example", "sizes": [1, 2]}, "count": 3},
    "plain",
    {"id": "t2", "flag": True},
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$id", "t2"),
        ("$count", 3),
        ("$0.id", "t1"),
        ("$0.metadata", {"url": "https://a.example", "sizes": [1, 2]}),
        ("$0.metadata.sizes.1", 2),
        ("$1", "plain"),
        ("$metadata.url", "https://a.example"),
        ("see $0.id.", "see t1."),
        ("$count of $2.id", "3 of t2"),
        ("costs $$5", "costs $5"),
        ("$$id", "$id"),
        ("$$$id", "$t2"),
        ("no reference", "no reference"),
        ({"a": ["$flag", 1]}, {"a": [True, 1]}),
        (7, 7),
    ],
)
def test_a_reference_becomes_what_it_refers_to(text: Any, expected: Any) -> None:
    assert resolve(text, RESULTS) == expected


@pytest.mark.parametrize("text", ["$nothing", "$3.id", "$0.nothing", "$0.metadata.sizes.2", "$1.x", "5 $", "$-", "$9"])
def test_a_reference_that_leads_nowhere_is_an_error(text: str) -> None:
    with pytest.raises(UnresolvedError):
        resolve(text, RESULTS)


@pytest.mark.parametrize("text", ["$" + "9" * 5_000, "see $" + "9" * 5_000, "$0.metadata.sizes." + "9" * 5_000])
def test_a_number_longer_than_python_reads_leads_nowhere_and_is_told_in_short(text: str) -> None:
    with pytest.raises(UnresolvedError) as caught:
        resolve(text, RESULTS)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", ["$id", "$$", "a $ b", {"x": ["$0.id"]}, 5])
def test_a_literal_value_means_itself(value: Any) -> None:
    assert resolve(literal(value), RESULTS) == value


# --- as runs


class Shop:
    """Counts what it does."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def library(self) -> ToolLibrary:
        @tool(risk=RiskLevel.REVERSIBLE, idempotent=True)
        def make(name: str) -> dict[str, Any]:
            """Make a thing. Use when one is needed."""
            self.done.append(f"make {name}")
            return {"id": f"id-{name}", "name": name}

        @tool(risk=RiskLevel.REVERSIBLE)
        def fail(reason: str) -> None:
            """Fail. Use for tests."""
            raise ToolError("BROKEN", f"broken by {reason}", recover_action="Mend it")

        @tool
        def destroy(id: str) -> str:
            """Destroy a thing. Use when it must go."""
            self.done.append(f"destroy {id}")
            return "gone"

        @tool(read_only=True)
        def look(id: str) -> str:
            """Look at a thing. Use when its state matters."""
            self.done.append(f"look {id}")
            return "there"

        return ToolLibrary([make, fail, destroy, look])


@pytest.fixture
def workshop() -> Shop:
    return Shop()


@pytest.fixture
def reopened(tmp_path: Path, workshop: Shop) -> Callable[[], Journeyman]:
    store = f"sqlite:///{tmp_path / 'chains.db'}"
    return lambda: Journeyman(library=workshop.library(), store=store, poll_seconds=0.05)


async def test_a_chain_needs_no_model_and_gives_its_results(workshop: Shop, reopened: Callable[[], Journeyman]) -> None:
    async with reopened() as app:
        results = await app.chain(
            [{"tool": "make", "args": {"name": "cup"}}, {"tool": "make", "args": {"name": "lid for $0.id"}}]
        )
    assert [result["name"] for result in results] == ["cup", "lid for id-cup"]


async def test_an_unresolvable_reference_stops_the_chain_before_its_step(
    workshop: Shop, reopened: Callable[[], Journeyman]
) -> None:
    async with reopened() as app:
        with pytest.raises(ChainError, match="colour") as caught:
            await app.chain([{"tool": "make", "args": {"name": "cup"}}, {"tool": "make", "args": {"name": "$colour"}}])
        assert caught.value.results == [{"id": "id-cup", "name": "cup"}]
        row = await app.store.runs.get(caught.value.run_id)
        assert row is not None
        assert row.status is RunStatus.FAILED
    assert workshop.done == ["make cup"]


async def test_a_step_that_fails_ends_the_chain(workshop: Shop, reopened: Callable[[], Journeyman]) -> None:
    async with reopened() as app:
        with pytest.raises(ChainError, match=r"step 0 .*BROKEN: broken by me"):
            await app.chain([{"tool": "fail", "args": {"reason": "me"}}, {"tool": "make", "args": {"name": "cup"}}])
    assert workshop.done == []


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([], "1 to 100 steps"),
        ([{"tool": "mke", "args": {}}], "did you mean 'make'"),
        ([{"tool": "make", "args": {"name": "$0.id"}}], "is not before it"),
        ([{"tool": "make", "arguments": {}}], "arguments"),
        ([{"args": {}}], "tool"),
    ],
)
async def test_what_can_be_seen_to_be_wrong_starts_nothing(
    reopened: Callable[[], Journeyman], steps: Any, told: str
) -> None:
    async with reopened() as app:
        with pytest.raises(ConfigurationError, match=told):
            await app.chain(steps)
        assert await app.store.runs.list() == ()


async def test_a_chain_may_repeat_itself_and_be_long(workshop: Shop, reopened: Callable[[], Journeyman]) -> None:
    async with reopened() as app:
        results = await app.chain([{"tool": "look", "args": {"id": "x"}}] * 15)
    assert results == ["there"] * 15
    assert workshop.done == ["look x"] * 15


async def test_a_chain_waits_for_a_person_and_goes_on_in_another_process(
    workshop: Shop, reopened: Callable[[], Journeyman]
) -> None:
    steps = [
        {"tool": "make", "args": {"name": "cup"}},
        {"tool": "destroy", "args": {"id": "$0.id"}},
        {"tool": "look", "args": {"id": "$0.id"}},
    ]
    async with reopened() as app:
        handle = await start_chain(app, steps)
        assert await handle.wait() is RunStatus.AWAITING_APPROVAL
        assert workshop.done == ["make cup"]
    async with reopened() as app:
        [handle] = await app.resume()
        [approval] = await app.approvals.pending()
        assert approval.arguments == {"id": "id-cup"}
        await app.approvals.approve(approval.id, by="grace")
        async with asyncio.timeout(WAIT_SECONDS):
            response = await handle.result()
    assert response.status is RunStatus.COMPLETED
    assert workshop.done == ["make cup", "destroy id-cup", "look id-cup"]


async def test_a_chain_with_a_name_of_its_own_runs_once(tmp_path: Path) -> None:
    ran: list[str] = []

    @tool(risk=RiskLevel.REVERSIBLE)
    def note(text: str) -> str:
        """Note a text. Use when it matters."""
        ran.append(text)
        return text.upper()

    steps = [{"tool": "note", "args": {"text": "once"}}]
    store = f"sqlite:///{tmp_path / 'store.db'}"
    for _ in range(2):
        async with Journeyman(library=ToolLibrary([note]), store=store) as app:
            first, second = await asyncio.gather(app.chain(steps, run_id="mine"), app.chain(steps, run_id="mine"))
            assert first == second == ["ONCE"]
    assert ran == ["once"]


class NeverAsked:
    """A model that is not there."""

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        raise AssertionError("a call that somebody has written asks no model")


@pytest.mark.parametrize(("number", "status"), [(1, "success"), (0, "error")])
async def test_one_call_is_planned_without_a_model_whatever_comes_of_it(number: int, status: str) -> None:
    @tool(risk=RiskLevel.REVERSIBLE)
    async def halve(number: int, label: str) -> str:
        """Halve a number."""
        if not number:
            raise ToolError("NOTHING", "there is nothing to halve")
        return f"{label}: {number / 2}"

    agent = Agent(name="hand", instruction="Do it.", tools=[halve])
    planner = OneCall("halve", {"number": number, "label": "$5"})
    response = await run(agent, "Halve it", planner=planner, model=NeverAsked())
    [record] = response.tool_calls
    assert (response.status, record.status) == (RunStatus.COMPLETED, status)
    assert record.arguments["label"] == "$5"
    assert record.grounding is None, "whoever wrote the call has said what is in it"
    assert response.answer
