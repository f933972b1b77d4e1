"""``app.gaps``: what no tool can do is noticed, kept, and listed; also by a later process."""

from __future__ import annotations

from journeyman import Journeyman, ToolLibrary, tool
from journeyman.testing import FakeClock

PORTFOLIO = "Retrieve my stock portfolio performance for Q3 2024"


@tool(read_only=True)
def get_weather(city: str) -> str:
    """The current weather and the forecast for a city."""
    return "sunny"


@tool(read_only=True)
def get_portfolio(quarter: str) -> str:
    """Retrieve the performance of the user's stock portfolio for a quarter."""
    return "up"


async def test_what_is_missing_is_kept_for_whoever_opens_the_store_next(url: str) -> None:
    clock = FakeClock()
    async with Journeyman(library=ToolLibrary([get_weather]), store=url, clock=clock) as app:
        report = await app.gaps.detect(PORTFOLIO, run_id="run_1")
    assert report is not None
    assert report.missing_tools == ("retrieve stock portfolio performance",)
    assert report.existing_tools_checked == ("get_weather",)
    async with Journeyman(store=url) as later:
        [row] = await later.store.gaps.list()
    assert (row.report, row.run_id, row.created_at) == (report, "run_1", clock.time())


async def test_what_a_tool_can_do_leaves_nothing(url: str) -> None:
    async with Journeyman(library=ToolLibrary([get_weather]), store=url) as app:
        assert await app.gaps.detect("What is the weather and the forecast for the city of Oslo?") is None
        assert await app.store.gaps.list() == ()


async def test_a_tool_that_is_registered_later_closes_the_gap(url: str) -> None:
    library = ToolLibrary([get_weather])
    async with Journeyman(library=library, store=url) as app:
        assert await app.gaps.detect(PORTFOLIO) is not None
        library.register(get_portfolio)
        assert await app.gaps.detect(PORTFOLIO) is None


async def test_the_models_confidence_tips_the_scales(url: str) -> None:
    async with Journeyman(library=ToolLibrary([get_weather]), store=url) as app:
        request = "Is it windy in Oslo?"
        assert await app.gaps.detect(request, confidence=1.0) is None
        assert await app.gaps.detect(request, confidence=0.0) is not None
