"""A library with sources: tools appear, change and vanish while it is open, and nothing a source does breaks it."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any

import pytest

from journeyman import Agent, ConfigurationError, ToolDefinitionError, ToolLibrary, run, tool
from journeyman.core.data import LOG_FIELDS
from journeyman.sources import SourceProblem
from journeyman.testing import ScriptedModel, call, say
from tests.sources.toy import Toy, made


@tool(read_only=True)
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


async def test_tools_appear_change_and_vanish_while_the_library_is_open() -> None:
    first, second = made("look", 1), made("look", 2)
    toy = Toy("toy", first)
    library = ToolLibrary([greet], sources=[toy])
    assert library.names() == ["greet"]
    async with library:
        assert library["look"] is first
        versions = [library.version]
        await toy.has(first, made("listen"))
        assert library.names() == ["greet", "look", "listen"]
        versions.append(library.version)
        await toy.has(second)
        assert library["look"] is second
        assert "listen" not in library
        versions.append(library.version)
        await toy.has()
        assert library.names() == ["greet"]
        versions.append(library.version)
        assert versions == sorted(set(versions))
        await toy.has()
        assert library.version == versions[-1]
        await toy.has(first)
    assert library.names() == ["greet"]
    assert toy.done[-2:] == ["unwatch", "close"]
    assert library.problems() == []


async def test_an_agent_calls_what_a_source_has_brought() -> None:
    async with ToolLibrary(sources=[Toy("toy", made("look", "a bird"))]) as library:
        agent = Agent(name="a", instruction="i", tools=library.specifications())
        response = await run(agent, "Look", library=library, model=ScriptedModel([call("look"), say("done")]))
    assert [record.result for record in response.tool_calls] == ["a bird"]


async def test_a_tool_that_has_not_changed_stays_the_same_object_and_costs_no_new_version() -> None:
    look = made("look")
    toy = Toy("toy", look)
    async with ToolLibrary(sources=[toy]) as library:
        agent = Agent(name="a", instruction="i", tools=[look])
        bound, version = library.bind(agent), library.version
        await toy.has(look)
        assert library.version == version
        assert library.bind(agent) is bound
        await toy.has(look, made("listen"))
        assert library.bind(agent) is not bound


async def test_what_is_found_keeps_up_with_what_is_there() -> None:
    toy = Toy("toy", made("look", description="Watch the birds."), made("listen", description="Hear the birds."))
    async with ToolLibrary([greet], sources=[toy]) as library:
        assert {item.name for item, _ in await library.find("birds")} == {"look", "listen"}
        assert {item.name for item, _ in library.search("birds")} == {"look", "listen"}
        await toy.has(made("look", description="Watch the fish."))
        assert await library.find("birds") == []
        assert library.search("birds") == []
        assert [item.name for item, _ in await library.find("fish")] == ["look"]


# --- names that clash


async def test_the_first_to_bring_a_name_keeps_it(caplog: pytest.LogCaptureFixture) -> None:
    one, two = Toy("one", made("greet"), made("look")), Toy("two", theirs := made("look"), made("listen"))
    with caplog.at_level(logging.WARNING, logger="journeyman.tools"):
        async with ToolLibrary([greet], sources=[one, two]) as library:
            assert library.names() == ["greet", "look", "listen"]
            assert library["greet"] is greet
            assert library.problems() == [
                SourceProblem("one", "lists 'greet', a name that the program has taken", "greet"),
                SourceProblem("two", "lists 'look', a name that the source 'one' has taken", "look"),
            ]
            told = [getattr(record, LOG_FIELDS) for record in caplog.records]
            assert told == [{"source": "one", "tool": "greet"}, {"source": "two", "tool": "look"}]

            await two.has(theirs, made("listen"))  # the same problem is not warned about again
            assert len(caplog.records) == 2

            await one.has()
            assert library["look"] is theirs
            assert library.problems() == []
            await one.has(made("look"))
            assert library["look"] is theirs
            assert [problem.source for problem in library.problems()] == ["one"]
    assert library.problems() == []


async def test_a_name_that_the_program_gives_up_goes_to_who_waited_for_it() -> None:
    async with ToolLibrary([greet], sources=[Toy("toy", theirs := made("greet"))]) as library:
        library.unregister("greet")
        assert library["greet"] is theirs
        with pytest.raises(ToolDefinitionError, match="'greet' is registered already"):
            library.register(greet)


async def test_what_the_program_does_to_a_tool_holds_until_the_source_changes_it() -> None:
    look, listen, smell = made("look"), made("listen"), made("smell")
    toy = Toy("toy", look, listen, smell)
    async with ToolLibrary(sources=[toy]) as library:
        library.deprecate("look", "Use watch")
        library.unregister("listen")
        library.register(ours := made("smell"), replace=True)
        await toy.has(look, listen, smell, made("taste"))
        assert library["look"].specification.deprecated == "Use watch"
        assert "listen" not in library
        assert library["smell"] is ours
        assert library.problems() == []

        await toy.has(made("look"), made("listen"), made("smell"))
        assert not library["look"].specification.deprecated
        assert "listen" in library
        assert library["smell"] is ours
        assert [problem.tool for problem in library.problems()] == ["smell"]
    assert library.names() == ["smell"]


class Shop:
    @tool
    def sell(self, item: str) -> str:
        """Sell something."""
        return item


async def test_what_is_no_tool_is_refused_and_the_others_are_taken() -> None:
    odd: list[Any] = [made("finish"), Shop.sell, "look", made("look"), made("look"), greet]
    async with ToolLibrary(sources=[Toy("toy", *odd)]) as library:
        assert library.names() == ["look", "greet"]
        assert [(problem.tool, problem.message) for problem in library.problems()] == [
            ("finish", "the name 'finish' is reserved; give another with tool(name=...)"),
            ("sell", "'sell' is a method of a class; register it from an instance"),
            (None, "lists str, which is no tool"),
            ("look", "lists 'look' more than once"),
        ]


# --- sources that fail


async def test_if_one_cannot_be_opened_none_is_left_open_and_all_that_failed_are_named() -> None:
    good, bad = Toy("good", made("look")), Toy("bad", fails=ConfigurationError("no such command 'uvxx'"))
    worse, unlisted = Toy("worse", fails=OSError("refused")), Toy("unlisted")
    unlisted.tools = ValueError("not JSON")
    library = ToolLibrary([greet], sources=[good, bad, worse, unlisted])
    with pytest.raises(ConfigurationError) as caught:
        await library.open()
    assert str(caught.value).splitlines() == [
        "the source of tools 'bad' cannot be opened: no such command 'uvxx'",
        "the source of tools 'worse' cannot be opened: OSError: refused",
        "the source of tools 'unlisted' cannot be opened: ValueError: not JSON",
    ]
    assert good.done == unlisted.done == ["open", "list", "close"]
    assert bad.done == worse.done == ["open"]
    assert library.names() == ["greet"]
    await library.close()


async def test_who_gives_up_while_opening_leaves_nothing_open() -> None:
    good, slow = Toy("good", made("look")), Toy("slow", slow=True)
    library = ToolLibrary(sources=[good, slow])
    opening = asyncio.create_task(library.open())
    await good.listed.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert good.done == ["open", "list", "close"]
    assert library.names() == []


async def test_a_source_that_cannot_be_listed_keeps_its_last_known_tools(caplog: pytest.LogCaptureFixture) -> None:
    toy = Toy("toy", made("look"))
    async with ToolLibrary(sources=[toy]) as library:
        with caplog.at_level(logging.WARNING, logger="journeyman.tools"):
            await toy.breaks(OSError("secret"))
        assert library.names() == ["look"]
        [problem] = library.problems()
        assert problem.message == "cannot be listed, so its last known tools are kept: OSError: secret"
        [record] = caplog.records
        assert getattr(record, LOG_FIELDS) == {"source": "toy", "error": "OSError"}
        assert "secret" not in record.getMessage()
        await toy.has(made("listen"))
        assert library.names() == ["listen"]
        assert library.problems() == []


async def test_a_source_that_cannot_be_watched_keeps_its_tools(caplog: pytest.LogCaptureFixture) -> None:
    toy = Toy("toy", made("look"))
    with caplog.at_level(logging.WARNING, logger="journeyman.tools"):
        async with ToolLibrary(sources=[toy]) as library:
            await toy.stops(OSError("gone"))
            assert library.names() == ["look"]
            assert "is no longer watched" in library.problems()[0].message
    assert toy.done[-1] == "close"
    assert len(caplog.records) == 1


async def test_a_source_that_cannot_be_closed_keeps_nobody_from_closing(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(Toy):
        async def close(self) -> None:
            raise OSError("stuck")

    stuck, good = Stuck("stuck", made("look")), Toy("good", made("listen"))
    with caplog.at_level(logging.WARNING, logger="journeyman.tools"):
        async with ToolLibrary(sources=[stuck, good]) as library:
            pass
    assert library.names() == []
    assert good.done[-1] == "close"
    assert [getattr(record, LOG_FIELDS) for record in caplog.records] == [{"source": "stuck", "error": "OSError"}]


def test_sources_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="more than once: toy"):
        ToolLibrary(sources=[Toy("toy"), Toy("toy")])


# --- opening and closing


async def test_opening_twice_opens_once_and_the_last_to_close_closes() -> None:
    toy = Toy("toy", made("look"))
    library = ToolLibrary(sources=[toy])
    await asyncio.gather(library.open(), library.open())
    await library.close()
    assert "look" in library
    await library.close()
    await library.close()
    assert toy.done.count("open") == toy.done.count("close") == 1
    async with library:
        assert "look" in library
    assert toy.done.count("open") == 2


def test_a_library_can_be_opened_again_in_another_event_loop() -> None:
    toy = Toy("toy", made("look"))
    library = ToolLibrary(sources=[toy])

    async def forget_to_close() -> None:
        await library.open()
        await toy.watching.wait()

    async def properly() -> None:
        async with library:
            assert library.names() == ["look"]

    asyncio.run(forget_to_close())
    asyncio.run(properly())
    assert library.names() == []
    assert toy.done.count("open") == 2


async def test_a_library_without_sources_starts_nothing() -> None:
    tasks = asyncio.all_tasks()
    async with ToolLibrary([greet]) as library:
        assert asyncio.all_tasks() == tasks
    assert library.names() == ["greet"]
    assert library.problems() == []


# --- views


async def test_views_follow_what_they_are_made_of_and_open_it() -> None:
    toy = Toy("toy", look := made("look"), made("listen"))
    base = ToolLibrary([greet], sources=[toy])
    narrow, layered, renamed = base.only(["look", "greet"]), base | ToolLibrary([made("smell")]), base.prefixed("t_")
    assert narrow.names() == ["greet"]
    async with narrow, layered, renamed:
        assert toy.done.count("open") == 1
        assert narrow.names() == ["look", "greet"]
        assert narrow["look"] is look
        assert layered.names() == ["greet", "look", "listen", "smell"]
        assert renamed.names() == ["t_greet", "t_look", "t_listen"]
        before, version = renamed["t_greet"], narrow.version
        await toy.has(look)
        assert narrow.version == version
        assert layered.names() == ["greet", "look", "smell"]
        assert renamed["t_greet"] is before
        await toy.has()
        assert (narrow.names(), renamed.names()) == (["greet"], ["t_greet"])
        await toy.has(made("greet"))
        assert [view.problems() for view in (narrow, layered, renamed)] == [base.problems()] * 3
        assert len(base.problems()) == 1
    assert toy.done[-1] == "close"
    assert layered.names() == ["greet", "smell"]


async def test_an_open_library_knows_which_names_there_are() -> None:
    async with ToolLibrary(sources=[Toy("toy", made("look"))]) as library:
        with pytest.raises(ToolDefinitionError, match="not registered: 'lock'"):
            library.only(["lock"])


async def test_a_view_whose_second_part_cannot_be_opened_closes_the_first() -> None:
    good, bad = Toy("good"), Toy("bad", fails=OSError("refused"))
    both = ToolLibrary(sources=[good]) | ToolLibrary(sources=[bad])
    with pytest.raises(ConfigurationError, match="'bad'"):
        await both.open()
    assert good.done[-1] == "close"


def test_what_is_registered_in_a_view_is_its_own() -> None:
    base = ToolLibrary([greet])
    view = base.only(["greet"])
    view.register(ours := made("look"))
    base.register(made("look"))
    base.unregister("greet")
    assert view.names() == ["look"]
    assert view["look"] is ours


def test_a_view_that_nobody_holds_is_not_kept() -> None:
    base = ToolLibrary([greet])
    base.only(["greet"])
    gc.collect()
    assert len(base._views) == 0
