"""An agent with more tools than its model is told of: what is chosen, found, kept, dropped, and recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import Agent, Approve, Deny, Policy, Principal, Tool, ToolError, ToolLibrary, run, tool
from journeyman.agent import offer
from journeyman.agent.offer import Offer
from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import ErrorCategory
from journeyman.core.events import ToolsOffered
from journeyman.core.playbook import Advice
from journeyman.core.protocols import ToolRanker
from journeyman.core.runs import TaskInput
from journeyman.core.specification import ToolSpecification
from journeyman.models.openai import OpenAIModel
from journeyman.testing import ScriptedModel, ScriptedServer, call, say, together
from tests.playing import Played, agent_with, play
from tests.waiting import WAIT_SECONDS

THINGS = ["invoice", "parcel", "meeting", "ticket", "report", "photo", "song", "recipe", "contract", "holiday"]
DEEDS = ["send", "delete", "print", "archive", "translate", "rename", "share", "count", "check", "book"]


@tool(read_only=True)
def base(what: str = "") -> str:
    """Do it."""
    return "done"


def many(count: int = 100, **changes: Any) -> list[Tool[..., Any]]:
    names = [(deed, thing) for deed in DEEDS for thing in THINGS][:count]
    return [
        base.with_changes(name=f"{deed}_{thing}", description=f"{deed.title()} one {thing}.", **changes)
        for deed, thing in names
    ]


def offers(model: ScriptedModel) -> list[list[str]]:
    return [[item.name for item in request.tools] for request in model.requests]


def changes(played: Played) -> list[ToolsOffered]:
    return [fact for fact in played.facts if isinstance(fact, ToolsOffered)]


async def test_up_to_twenty_tools_are_all_offered_and_nothing_is_recorded() -> None:
    tools = many(20)
    played = await play(tools, [call("send_invoice"), say("done")])
    assert offers(played.model) == [[item.name for item in tools]] * 2
    assert "tools_offered" not in played.types


async def test_of_more_tools_twenty_are_offered_and_the_right_one_is_among_them() -> None:
    played = await play(many(), [say("done")], "Please archive this contract for me")
    [offered] = offers(played.model)
    assert len(offered) == 20
    assert offered[:2] == ["find_tools", "archive_contract"]
    [chosen] = changes(played)
    assert (chosen.reason, chosen.iteration, chosen.added) == ("chosen", 1, tuple(offered[1:]))


async def test_the_tools_of_the_loop_count_as_offered() -> None:
    tools = many()
    agent = Agent(name="a", instruction="i", tools=tools, finish=True)
    played = await play(tools, [call("finish", answer="x")], agent=agent)
    [offered] = offers(played.model)
    assert len(offered) == 20
    assert offered[:2] == ["finish", "find_tools"]


async def test_what_find_tools_finds_is_offered_from_the_next_step_on() -> None:
    turns = [call("find_tools", query="book a holiday", k=2), call("book_holiday"), say("done")]
    played = await play(many(), turns, "Archive this contract")
    first, second, third = offers(played.model)
    assert "book_holiday" not in first
    assert "book_holiday" in second
    assert second[:18] == first[:18]  # what came last, and was never used, made room at the end
    assert third == second
    assert '"book_holiday":"Book one holiday."' in played.told[0].replace('": "', '":"')
    _, found = changes(played)
    assert (found.reason, found.iteration, len(found.added), len(found.dropped)) == ("found", 2, 2, 2)


async def test_a_model_may_look_for_several_tools_before_it_calls_any() -> None:
    both = together(call("find_tools", query="book holiday", k=5), call("find_tools", query="share song", k=5))
    turns = [both, call("find_tools", query="rename photo", k=5), call("nowhere"), say("done")]
    played = await play(many(), turns, "Archive this contract")
    offered = offers(played.model)
    assert {"book_holiday", "share_song"} <= set(offered[1])
    assert {"book_holiday", "share_song", "rename_photo"} <= set(offered[3])
    assert [len(tools) for tools in offered] == [20] * 4


async def test_what_is_found_again_makes_no_room_for_what_is_found_beside_it() -> None:
    policy = Policy(max_offered_tools=6)
    first = await play(many(), [say("done")], "Archive this contract", policy=policy)
    last = offers(first.model)[0][-1]  # the first to go
    # Few: where all that is offered is found again, the last of it makes room.
    turns = [call("find_tools", query=last.replace("_", " "), k=4), say("done")]
    played = await play(many(), turns, "Archive this contract", policy=policy)
    assert last in offers(played.model)[1]
    assert [fact.reason for fact in changes(played)] == ["chosen", "found"]


async def test_an_offer_that_does_not_change_is_the_same_object_and_costs_no_fact() -> None:
    played = await play(many(), [call("send_invoice"), call("send_parcel"), say("done")], "send an invoice")
    assert len({id(request.tools) for request in played.model.requests}) == 1
    assert played.types.count("tools_offered") == 1


async def test_a_tool_that_was_not_offered_can_be_called_and_stays() -> None:
    played = await play(many(), [call("book_holiday"), say("done")], "Archive this contract")
    first, second = offers(played.model)
    assert "book_holiday" not in first
    assert played.response.tool_calls[0].success
    assert second == [*first[:-1], "book_holiday"]
    assert [change.reason for change in changes(played)] == ["chosen", "called"]


async def test_tools_that_the_principal_may_not_use_are_neither_offered_nor_found_nor_named() -> None:
    tools = [*many(), *many(0), base.with_changes(name="wipe_disk", description="Wipe a disk.", permissions={"root"})]
    turns = [call("find_tools", query="wipe a disk", k=10), call("wipe_disks"), call("wipe_disk"), say("done")]
    without = await play(tools, turns, "Wipe the disk")
    assert not any("wipe_disk" in offered for offered in offers(without.model))
    assert not any("wipe_disk" in told for told in without.told[:2] if "'wipe_disks'" not in told)
    assert without.told[1].count("wipe_disk") == 1  # what the model wrote itself
    assert without.response.tool_calls[2].error is not None
    assert without.response.tool_calls[2].error.code == "NOT_PERMITTED"
    permitted = await play(tools, [say("done")], "Wipe the disk", principal=Principal("ada", permissions={"root"}))
    assert "wipe_disk" in offers(permitted.model)[0]


class Teller:
    """A playbook that knows one strategy."""

    def __init__(self, *, holdout: bool = False) -> None:
        self.tools: Sequence[str] = ()
        self._holdout = holdout

    async def advise(self, text: str, *, tools: Sequence[str], **_: Any) -> Sequence[Advice]:
        self.tools = tools
        told = ("share_recipe", "count_song", "gone_tool")
        return [Advice(text="Share, then count.", tools=told, holdout=self._holdout)]


async def test_the_tools_of_a_strategy_come_first() -> None:
    teller = Teller()
    played = await play(many(), [say("done")], "Archive this contract", playbook=teller)
    assert offers(played.model)[0][:4] == ["find_tools", "share_recipe", "count_song", "archive_contract"]
    assert [(fact.reason, len(fact.added)) for fact in changes(played)] == [("strategy", 2), ("chosen", 17)]
    assert len(teller.tools) == 101  # it is asked with all tools that there are, not with those that happen to be told
    held = await play(many(), [say("done")], "Archive this contract", playbook=Teller(holdout=True))
    assert "share_recipe" not in offers(held.model)[0]


async def test_what_the_conversation_used_is_offered_again() -> None:
    tools = many()
    first = await play(tools, [call("count_song"), say("3")], "Count my songs")
    again = await play(tools, [say("done")], "And now?", history=first.response.messages)
    assert offers(again.model)[0][:2] == ["find_tools", "count_song"]
    assert [fact.reason for fact in changes(again)] == ["used", "chosen"]


# --- when a choice fails


def failing(name: str, **error: Any) -> Tool[..., Any]:
    @tool(name=name, description="Archive one contract in the vault.", read_only=True)
    def fails() -> str:
        raise ToolError("BROKEN", "the vault is not there", **error)

    return fails


async def test_in_the_place_of_a_tool_that_fails_for_good_the_next_best_are_offered() -> None:
    vault = failing("archive_contract_vault", category=ErrorCategory.AUTHENTICATION)
    policy = Policy(max_offered_tools=5)
    turns = [call(vault.name), call(vault.name), say("done")]
    played = await play([vault, *many()], turns, "Archive this contract in the vault", policy=policy)
    first, second, third = offers(played.model)
    assert vault.name in first
    _, instead = changes(played)
    assert (instead.reason, instead.because, instead.iteration) == ("fallback", vault.name, 2)
    assert len(instead.added) == 3
    assert not set(instead.added) & set(first)
    assert second[-3:] == list(instead.added)
    assert vault.name in second  # it was used
    assert third == second  # once for each tool


async def test_a_failure_that_may_be_about_the_values_counts_when_it_is_repeated() -> None:
    vault = failing("archive_contract_vault")
    turns = [call(vault.name), call(vault.name), say("done")]
    played = await play(
        [vault, *many()], turns, "Archive this contract in the vault", policy=Policy(max_offered_tools=5)
    )
    assert [fact.iteration for fact in changes(played) if fact.reason == "fallback"] == [3]


async def test_a_tool_that_does_not_exist_is_a_fallback_too() -> None:
    played = await play(many(), [call("mail_holiday"), say("done")], "Archive this contract")
    [instead] = [fact for fact in changes(played) if fact.reason == "fallback"]
    assert instead.because == "mail_holiday"
    assert any("holiday" in name for name in instead.added)
    assert "look for one with find_tools" in played.told[0]


async def test_what_a_person_denied_is_not_tried_in_another_way() -> None:
    risky = [item.with_changes(read_only=False, risk="irreversible") for item in many()]
    played = await play(risky, [call("archive_contract"), say("done")], "Archive this contract")
    assert played.response.tool_calls[0].status == "denied"
    assert [fact.reason for fact in changes(played)] == ["chosen"]


# --- tools that come and go


async def test_a_tool_that_vanishes_leaves_the_others_where_they_are_and_comes_back_to_its_place() -> None:
    library = ToolLibrary(many())

    @tool(read_only=True)
    def swap() -> str:
        """Archive one contract: take it away, or bring it back."""
        if "archive_contract" in library:
            library.unregister("archive_contract")
        else:
            library.register(next(item for item in many() if item.name == "archive_contract"))
        return "swapped"

    library.register(swap)
    agent = Agent(name="a", instruction="i", all_tools=True)
    model = ScriptedModel([call("swap"), call("archive_contract"), call("swap"), say("done")])
    response = await run(agent, "Archive one contract", library=library, model=model)
    first, second, third, fourth = offers(model)
    without = [name for name in first if name != "archive_contract"]
    assert second == without
    assert third[: len(without) - 2] == without[:-2]  # at the end: what may do instead
    assert "archive_contract" in fourth
    assert all(len(offered) <= 20 for offered in (first, second, third, fourth))
    assert [record.status for record in response.tool_calls] == ["success", "error", "success"]


async def test_an_offer_becomes_narrow_when_a_server_brings_many_tools_and_wide_again_when_it_goes() -> None:
    library = ToolLibrary(many(5))

    @tool(read_only=True)
    def server() -> str:
        """Start or stop the server."""
        if len(library) < 20:
            for item in many()[5:]:
                library.register(item)
        else:
            for item in many()[5:]:
                library.unregister(item.name)
        return "ok"

    library.register(server)
    agent = Agent(name="a", instruction="i", all_tools=True)
    model = ScriptedModel([call("server"), call("server"), say("done")])
    await run(agent, "Archive one contract", library=library, model=model)
    first, second, third = offers(model)
    assert len(second) == 20
    assert second[: len(first) + 1] == ["find_tools", *first]
    assert "archive_contract" in second
    assert sorted(third) == sorted(first)


def offer_with(ranker: ToolRanker) -> Offer:
    tools = many()
    task = TaskInput(description="Archive this contract")
    made = Offer(agent_with(*tools), ToolLibrary(tools), task, None, most=20, ranker=ranker)
    made.begin()
    return made


class Broken:
    async def rank(self, text: str, tools: Sequence[ToolSpecification], *, k: int) -> Sequence[str]:
        raise RuntimeError("no ranking today")


class Inventive:
    async def rank(self, text: str, tools: Sequence[ToolSpecification], *, k: int) -> Sequence[str]:
        return ["made_up", "book_song", "book_song", *(item.name for item in tools)]


class Slow:
    def __init__(self) -> None:
        self.go, self.ended = asyncio.Event(), asyncio.Event()

    async def rank(self, text: str, tools: Sequence[ToolSpecification], *, k: int) -> Sequence[str]:
        await self.go.wait()
        self.ended.set()
        return []


async def test_a_ranker_that_fails_is_replaced_by_the_words() -> None:
    assert (await offer_with(Broken()).rank("Archive this contract", k=3))[0] == "archive_contract"


async def test_a_ranker_that_takes_long_is_not_waited_for_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    monkeypatch.setattr(offer, "RANK_SECONDS", 0.01)
    assert (await offer_with(slow).rank("Archive this contract", k=3))[0] == "archive_contract"
    slow.go.set()
    async with asyncio.timeout(WAIT_SECONDS):
        await slow.ended.wait()


async def test_a_ranker_gives_no_names_that_it_was_not_given() -> None:
    found = await offer_with(Inventive()).rank("Archive", k=3, without=["send_invoice"])
    assert found == ["book_song", "send_parcel", "send_meeting"]


# --- as a provider sees it


async def test_what_is_sent_begins_as_before_so_that_a_prompt_cache_keeps_hitting() -> None:
    find = call("find_tools", query="book a holiday", k=1)
    script = ScriptedServer([call("archive_contract"), find, call("book_holiday"), say("ok")])
    async with script as server, OpenAIModel("m", base_url=server.url) as model:
        agent = Agent(name="a", instruction="i", tools=many())
        response = await run(agent, "Archive this contract", model=model)
    assert response.status == "completed"
    sent = [[json.dumps(item) for item in body["tools"]] for body in server.requests]
    assert len({json.dumps(body["messages"][:2]) for body in server.requests}) == 1
    assert sent[0] == sent[1] != sent[2] == sent[3]
    assert sent[2][:19] == sent[1][:19]
    assert [len(tools) for tools in sent] == [20] * 4


# --- always


def wander(deeds: Sequence[tuple[str, int]], tools: Sequence[str]) -> ScriptedModel:
    """A model that finds, calls and switches what the numbers say."""
    turns: list[Any] = []
    for at, (deed, number) in enumerate(deeds):
        name = tools[number % len(tools)]
        if deed == "find":
            turns.append(call("find_tools", query=name.replace("_", " "), k=1 + number % 10))
        else:
            turns.append(call("switch", name=name) if deed == "switch" else call(name, what=str(at)))
    return ScriptedModel([*turns, say("done")])


@given(
    st.lists(st.tuples(st.sampled_from(["find", "call", "call", "switch"]), st.integers(0, 99)), max_size=12),
    st.integers(6, 20),
)
async def test_never_too_many_what_was_used_stays_and_the_beginning_is_kept(
    deeds: list[tuple[str, int]], most: int
) -> None:
    tools = {item.name: item for item in many()}
    library = ToolLibrary(tools.values())

    @tool(risk="reversible")
    def switch(name: str) -> str:
        """Take a tool away, or bring it back."""
        if name in library:
            library.unregister(name)
        else:
            library.register(tools[name])
        return name

    library.register(switch)
    model = wander(deeds, list(tools))
    agent = Agent(name="a", instruction="i", all_tools=True, max_iterations=20)
    response = await run(
        agent, "Archive a contract", library=library, model=model, policy=Policy(max_offered_tools=most)
    )
    assert response.status == "completed"
    there, used = set(tools) | {"switch"}, dict[str, None]()
    before, seen = list[str](), set[str]()
    for step, offered in enumerate(offers(model)):
        if 0 < step <= len(response.tool_calls):
            note(response.tool_calls[step - 1], there, used)
        assert len(offered) <= most
        assert len(set(offered)) == len(offered)
        assert set(offered) - {"find_tools"} <= there
        if len(used) < most - 1:
            assert {name for name in used if name in there} <= set(offered)
        # What was offered keeps its place, what is new comes after it, and what comes back goes where it was.
        back = {name for name in offered if name in seen and name not in before}
        kept = [name for name in before if name in offered]
        assert [name for name in offered if name not in back][: len(kept)] == kept
        if not back and len(kept) == len(before):
            assert offered[: len(before)] == before
        before, seen = offered, seen | set(offered)


def note(record: ToolCallRecord, there: set[str], used: dict[str, None]) -> None:
    if record.tool_name == "switch" and record.success:
        there.symmetric_difference_update({record.result})
    if record.tool_name in there:
        used[record.tool_name] = None


async def test_where_most_tools_have_gone_others_take_their_places() -> None:
    library = ToolLibrary(many())

    def leave(request: Any) -> Any:
        for name in [item.name for item in request.tools if item.name != "find_tools"][1:]:
            library.unregister(name)
        return call("archive_contract")

    model = ScriptedModel([leave, say("done")])
    agent = Agent(name="a", instruction="i", all_tools=True)
    await run(agent, "Archive this contract", library=library, model=model)
    first, second = offers(model)
    assert second[:2] == first[:2]
    assert len(second) == 20


async def test_nothing_is_tried_instead_of_what_may_have_had_an_effect_or_was_denied() -> None:
    @tool(risk="irreversible")
    async def wire_money(amount: int = 1) -> str:
        """Send money."""
        raise ToolError("CONN", "connection reset after sending", category=ErrorCategory.NETWORK)

    tools = [*many(), wire_money]
    agent = Agent(name="a", instruction="i", tools=tools)

    async def reasons(*turns: Any, approver: Any) -> list[str]:
        model = ScriptedModel([*turns, say("done")])
        response = await run(agent, "Wire the money", model=model, approver=approver)
        assert response.answer == "done"
        offered = [set(names) for names in offers(model)]
        return sorted(offered[-1] - offered[0])

    assert await reasons(call("wire_money"), approver=lambda _: Approve()) == []
    assert await reasons(call("wire_money"), call("wire_cash"), approver=lambda _: Deny(reason="no")) == []
