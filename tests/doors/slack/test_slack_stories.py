"""Ten stories of a team with its assistant, told by another Slack than the other tests': strict, and with memory.

At the end of each, every payload was within Slack's published limits, and nobody was shown what was not for them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Policy, ToolContext, ToolLibrary, tool
from journeyman.app.service import open_service
from journeyman.core.runs import RunStatus
from journeyman.doors.slack import People, SlackDoor, find_workspaces, over_socket
from journeyman.testing import ScriptedModel, ScriptedServer, call, say
from tests.doors.slack.strict_slack import APP_TOKEN, Json, StrictSlack, Team, strict_slack
from tests.waiting import until

ADA, GRACE, EVE, BOSS, GUEST = "U0ADAAAAA", "U0GRACEEE", "U0EVEEEEE", "U0BOSSSSS", "U0GUESTTT"
OPEN, CLOSED = "C0OPENNNN", "C0CLOSEDD"
SENT: list[tuple[str, int, Any]] = []


@tool(risk="irreversible")
def pay(to: str, cents: int, note: str | None = None) -> str:
    """Pay somebody. Use when money is to be sent.

    Args:
        to: Who.
        cents: How much.
        note: What for.
    """
    SENT.append((to, cents, note))
    return f"paid {to}"


@tool(risk="reversible")
async def order(context: ToolContext) -> str:
    """Order something. Use when something is wanted."""
    fields = {
        "size": {"type": "string", "enum": ["small", "large"], "title": "Size", "description": "of the box"},
        "count": {"type": "integer", "default": 1},
        "gift": {"type": "boolean"},
        "note": {"type": "string"},
    }
    wish = await context.ask("How <large> is it?", {"type": "object", "properties": fields, "required": ["size"]})
    return "nothing" if wish is None else f"ordered {wish}"


LONG = "a very long choice that begins like the other one, " * 4
CHOICES = ["", f"{LONG}and ends otherwise", f"{LONG}and ends like this"]


@tool(risk="reversible")
async def choose(context: ToolContext) -> str:
    """Choose something. Use when a choice is to be made."""
    fields = {
        "what": {"type": "string", "enum": CHOICES},
        "size": {"type": "integer", "enum": [1, 10], "default": 10},
    }
    wish = await context.ask("Which?", {"type": "object", "properties": fields, "required": ["what"]})
    return f"chosen {wish}"


CLERK = Agent(name="clerk", instruction="Help with money.", tools=[pay, order, choose])


def team(name: str = "T0FIRSTTT") -> Team:
    people = {ADA: "Ada Lovelace", GRACE: "Grace", EVE: "grace", BOSS: "<!channel> Boss", GUEST: "Guest"}
    everybody = {*people, f"U0BOT{name[2:6]}"} - {BOSS}
    bot = f"U0BOT{name[2:6]}"
    return Team(name, bot, people, {OPEN: everybody, CLOSED: {ADA, bot}})


@asynccontextmanager
async def at_work(
    slack: StrictSlack, tmp_path: Path, model: Any, *approvers: str, policy: Policy | None = None
) -> AsyncIterator[SlackDoor]:
    named = [who if ":" in who else f"slack:{team}:{who}" for who in approvers for team in list(slack.teams)[:1]]
    people = People(approvers=named, teams=slack.teams)
    async with open_service(
        store=f"sqlite:///{tmp_path / 'store.db'}",
        library=ToolLibrary([pay, order, choose]),
        agents=[CLERK],
        model=model,
        principals=people.now,
        policy=policy,
        poll_seconds=0.05,
    ) as service:
        tokens = {name: f"xoxb-{name}" for name in slack.teams}
        spaces = await find_workspaces(tokens, base_url=slack.url)
        door = SlackDoor(service, spaces, people=people, base_url=slack.url, signing_secret="s", status_seconds=0.05)
        async with over_socket(door, APP_TOKEN):
            yield door


def cards(team: Team, channel: str, key: str = "approval:") -> list[Json]:
    return [
        message
        for message in team.messages.get(channel, ())
        if any(str(block.get("block_id", "")).startswith(key) for block in message.get("blocks") or ())
    ]


async def shown(team: Team, channel: str, key: str, count: int = 1) -> list[Json]:
    await until(lambda: len(cards(team, channel, key)) >= count)
    return cards(team, channel, key)


async def answered(team: Team, channel: str, count: int = 1) -> list[str]:
    return [message["blocks"][0]["text"]["text"] for message in await shown(team, channel, "end:", count)]


def asking(*, answer: str = "Done.", **arguments: Any) -> ScriptedModel:
    return ScriptedModel([call("pay", **({"to": "Bob", "cents": 500} | arguments)), say(answer)])


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    SENT.clear()


async def test_who_may_decide_is_mentioned_in_the_thread_and_approves_there(tmp_path: Path) -> None:
    first = team()
    async with strict_slack(first) as slack, at_work(slack, tmp_path, asking(), GRACE):
        await slack.says(first, ADA, "pay Bob 5", OPEN)
        (card,) = await shown(first, OPEN, "decide:")
        assert f"<@{GRACE}>" in card["blocks"][0]["text"]["text"]
        await slack.presses(first, EVE, card, "Approve")
        assert "You may not decide this" in first.whispers[-1]["text"]
        await slack.presses(first, GRACE, card, "Approve")
        assert await answered(first, OPEN) == ["Done."]
        await until(lambda: not cards(first, OPEN, "decide:"))
        (decided,) = cards(first, OPEN)
        assert f"Approved by <@{GRACE}>" in decided["blocks"][0]["text"]["text"]
        assert '"Bob"' in decided["blocks"][1]["text"]["text"]
        assert SENT == [("Bob", 500, None)]
        assert not any(name.startswith("D") and said for name, said in first.messages.items())


async def test_who_may_decide_elsewhere_is_written_to_and_nobody_else_is(tmp_path: Path) -> None:
    first = team()
    async with strict_slack(first) as slack, at_work(slack, tmp_path, asking(), BOSS):
        await slack.says(first, ADA, "pay Bob 5 &amp; &lt;b&gt;", CLOSED)
        boss = first.direct(BOSS)
        (card,) = await shown(first, boss, "decide:")
        assert f"<@{ADA}> asks in <#{CLOSED}>: “pay Bob 5 &amp; &lt;b&gt;”" in card["blocks"][0]["text"]["text"]
        assert len(await shown(first, CLOSED, "decide:")) == 1
        await slack.presses(first, BOSS, card, "Approve")
        assert await answered(first, CLOSED) == ["Done."]
        await until(lambda: all("Approved by" in cards(first, name)[0]["text"] for name in (CLOSED, boss)))
        assert len(cards(first, boss)) == len(cards(first, CLOSED)) == 1
        for other in (GRACE, EVE, GUEST):
            assert "Bob" not in first.seen_by(other)


async def test_a_refusal_has_a_reason_that_the_model_and_the_card_keep(tmp_path: Path) -> None:
    heard: list[str] = []

    def refused(request: Any) -> Any:
        heard.append(request.messages[-1].content)
        return say("I did not.")

    first = team()
    model = ScriptedModel([call("pay", to="Bob", cents=500), refused])
    async with strict_slack(first) as slack, at_work(slack, tmp_path, model, GRACE):
        await slack.says(first, ADA, "pay Bob 5", OPEN)
        (card,) = await shown(first, OPEN, "decide:")
        await slack.presses(first, GRACE, card, "Deny")
        assert SENT == []
        assert cards(first, OPEN, "decide:")  # nothing is decided yet
        assert await slack.fills_in(first, GRACE, reason="Not <on> a Friday @channel") == {}
        assert await answered(first, OPEN) == ["I did not."]
        assert "Not <on> a Friday" in heard[0]
        await until(lambda: "Denied by" in cards(first, OPEN)[0]["text"])
        told = json.dumps(cards(first, OPEN)[0], ensure_ascii=False)
        assert f"<@{GRACE}>" in told
        assert "Not &lt;on&gt; a Friday" in told
        assert "Bob" in told
        # Who was too late is told in the dialogue.
        assert "already" in json.dumps(await slack.fills_in(first, GRACE, reason="again"))
        assert SENT == []


async def test_arguments_are_edited_field_by_field_and_what_ran_is_on_the_card(tmp_path: Path) -> None:
    first = team()
    async with strict_slack(first) as slack, at_work(slack, tmp_path, asking(), GRACE):
        await slack.says(first, ADA, "pay Bob 5", OPEN)
        (card,) = await shown(first, OPEN, "decide:")
        await slack.presses(first, GRACE, card, "Edit")
        labels = [b["label"]["text"] for b in first.views[-1][1]["blocks"] if b["type"] == "input"]
        assert labels == ["to", "cents", "note"]
        wrong = await slack.fills_in(first, GRACE, **{"1": "lots"})
        assert wrong["response_action"] == "errors"
        assert "JSON" in wrong["errors"]["1"]
        wrong = await slack.fills_in(first, GRACE, **{"1": '"5"x'})
        assert wrong["response_action"] == "errors"
        wrong = await slack.fills_in(first, GRACE, **{"1": "[]"})
        assert "cents" in json.dumps(wrong)
        assert SENT == []
        assert await slack.fills_in(first, GRACE, **{"0": "Bób", "1": "300", "2": "lunch"}) == {}
        assert await answered(first, OPEN) == ["Done."]
        assert SENT == [("Bób", 300, "lunch")]
        await until(lambda: "Approved by" in cards(first, OPEN)[0]["text"])
        told = json.dumps(cards(first, OPEN)[0], ensure_ascii=False)
        assert "changed arguments" in told
        assert "lunch" in told


async def test_what_a_tool_asks_is_answered_in_a_dialogue_by_whoever_asked_for_it(tmp_path: Path) -> None:
    first, heard = team(), list[str]()

    def told(request: Any) -> Any:
        heard.append(request.messages[-1].content)
        return say("Done.")

    async with strict_slack(first) as slack, at_work(slack, tmp_path, ScriptedModel([call("order"), told]), GRACE):
        await slack.says(first, ADA, "order a box", OPEN)
        (card,) = await shown(first, OPEN, "decide:")
        shown_text = json.dumps(card["blocks"], ensure_ascii=False)
        assert "How &lt;large&gt; is it?" in shown_text
        assert f"For <@{ADA}>" in shown_text
        assert GRACE not in shown_text
        await slack.presses(first, EVE, card, "Answer")
        assert "You may not decide this" in first.whispers[-1]["text"]
        await slack.presses(first, ADA, card, "Answer")
        fields = [b for b in first.views[-1][1]["blocks"] if b["type"] == "input"]
        assert [(b["label"]["text"], b["element"]["type"], b["optional"]) for b in fields] == [
            ("Size", "static_select", False),
            ("count", "plain_text_input", True),
            ("gift", "static_select", True),
            ("note", "plain_text_input", True),
        ]
        assert "count" in json.dumps(await slack.fills_in(first, ADA, **{"0": "large", "1": "[]"}))
        assert await slack.fills_in(first, ADA, **{"0": "large", "1": "2", "2": "true"}) == {}
        assert await answered(first, OPEN) == ["Done."]
        assert "ordered {'size': 'large', 'count': 2, 'gift': True}" in heard[0]
        await until(lambda: f"Answered by <@{ADA}>" in cards(first, OPEN)[0]["text"] + str(cards(first, OPEN)[0]))


async def test_choices_that_are_long_alike_or_empty_can_be_chosen(tmp_path: Path) -> None:
    first = team()
    model = ScriptedModel([call("choose"), lambda request: say(request.messages[-1].content)])
    async with strict_slack(first) as slack, at_work(slack, tmp_path, model):
        await slack.says(first, ADA, "choose", OPEN)
        (card,) = await shown(first, OPEN, "decide:")
        await slack.presses(first, ADA, card, "Answer")
        what, size = (b["element"] for b in first.views[-1][1]["blocks"] if b["type"] == "input")
        assert size["initial_option"]["text"]["text"] == "10"
        chosen = {"0": what["options"][2]["value"], "1": size["options"][0]["value"]}
        assert await slack.fills_in(first, ADA, **chosen) == {}
        (text,) = await answered(first, OPEN)
        assert "and ends like this" in text
        assert "'size': 1" in text


async def test_a_question_can_be_declined_at_once(tmp_path: Path) -> None:
    first = team()
    model = ScriptedModel([call("order"), lambda request: say(request.messages[-1].content)])
    async with strict_slack(first) as slack, at_work(slack, tmp_path, model):
        await slack.says(first, ADA, "order a box", OPEN)
        (card,) = await shown(first, OPEN, "decide:")
        await slack.presses(first, ADA, card, "Decline")
        assert "nothing" in (await answered(first, OPEN))[0]


async def test_direct_messages_over_three_days_are_one_conversation_until_a_new_one_is_wanted(tmp_path: Path) -> None:
    heard: list[list[str]] = []

    class Listener:
        async def respond(self, request: Any, deltas: Any = None) -> Any:
            heard.append([message.content for message in request.messages[1:]])
            return say(f"answer {len(heard)}")

    first = team()
    async with strict_slack(first) as slack:
        direct = first.direct(ADA)
        for day, text in enumerate(("I am planning a trip", "To Rome", "What did I plan?")):
            async with at_work(slack, tmp_path, Listener()):  # a new process each day
                await slack.says(first, ADA, text, direct)
                await answered(first, direct, day + 1)
            slack.days_pass(1)
        assert heard[2] == ["I am planning a trip", "answer 1", "To Rome", "answer 2", "What did I plan?"]
        async with at_work(slack, tmp_path, Listener()):
            await slack.says(first, ADA, "New conversation!", direct)
            assert "new conversation" in first.messages[direct][-1]["text"]
        async with at_work(slack, tmp_path, Listener()):
            await slack.says(first, ADA, "Hello", direct)
            await slack.says(first, ADA, "and?", direct)
            await answered(first, direct, 5)
            assert heard[3] == ["Hello"]
            assert heard[4] == ["Hello", "answer 4", "and?"]
            assert all("thread_ts" not in message for message in first.messages[direct])
            await slack.opens_home(first, ADA)
            await slack.presses(first, ADA, first.homes[ADA], "New conversation")
            await slack.says(first, ADA, "Anew", direct)
            await answered(first, direct, 6)
            assert heard[5] == ["Anew"]
        assert "trip" not in first.seen_by(GRACE)


async def test_people_have_names_for_the_model_and_mentions_in_answers(tmp_path: Path) -> None:
    told: list[str] = []

    def reply(request: Any) -> Any:
        told.append("\n".join(message.content for message in request.messages))
        return say(
            f"@Ada Lovelace, ask @grace (2) or <@{GRACE}>, not @channel, <!here> or <@U0STRANGER> `@Ada Lovelace`"
        )

    first = team()
    async with strict_slack(first) as slack, at_work(slack, tmp_path, ScriptedModel([reply])):
        root = await slack.says(first, GRACE, "", OPEN)
        first.messages[OPEN].append({"user": EVE, "text": "I know", "ts": slack.moment(), "thread_ts": root["ts"]})
        await slack.says(first, ADA, f"whom to ask, <@{BOSS}>?", OPEN, thread_ts=root["ts"])
        (text,) = await answered(first, OPEN)
        assert text == (
            f"<@{ADA}>, ask <@{EVE}> or <@{GRACE}>, not @\u200bchannel, &lt;!here&gt; or @somebody `@Ada Lovelace`"
        )
        assert "@grace (2): I know" in told[0]
        assert "The user is @Ada Lovelace" in told[0]
        assert "!channel Boss" in told[0]
        assert not any(user in told[0] for user in (ADA, GRACE, EVE, BOSS))
        assert "worked in similar" not in told[0]


async def test_a_file_that_nobody_can_read_is_acknowledged(tmp_path: Path) -> None:
    told: list[str] = []

    def reply(request: Any) -> Any:
        told.append(request.messages[0].content)
        return say("I cannot see it.")

    first = team()
    async with strict_slack(first) as slack, at_work(slack, tmp_path, ScriptedModel([reply])):
        files = [{"id": "F1", "name": "plan <x>.pdf", "url_private": "https://elsewhere.example/plan.pdf"}]
        await slack.says(first, ADA, "what does it say?", OPEN, files=files)
        await answered(first, OPEN)
        assert "plan <x>.pdf" in told[0]
        said = [message["text"] for message in first.messages[OPEN] if message["user"] == first.bot]
        assert sum("plan &lt;x&gt;.pdf" in text for text in said) == 1
        await slack.says(first, ADA, "", first.direct(ADA), files=files, subtype="file_share")
        assert "plan &lt;x&gt;.pdf" in first.messages[first.direct(ADA)][-1]["text"]


async def test_a_guest_of_another_organisation_decides_nothing_and_sees_nothing(tmp_path: Path) -> None:
    first = team()
    approvers = (GRACE, f"slack:{first.id}:{GUEST}")  # the same id, but of this workspace
    async with strict_slack(first) as slack, at_work(slack, tmp_path, asking(), *approvers):
        await slack.says(first, ADA, "pay Bob 5", CLOSED)
        (card,) = await shown(first, CLOSED, "decide:")
        await slack.presses(first, GUEST, card | {"channel": OPEN}, "Approve", home="T0ELSEWHER")
        assert "You may not decide this" in first.whispers[-1]["text"]
        await slack.presses(first, GUEST, card | {"channel": OPEN}, "Edit", home="T0ELSEWHER")
        assert not first.views
        assert SENT == []


async def test_two_workspaces_see_nothing_of_each_other(tmp_path: Path) -> None:
    first, second = team(), team("T0SECONDD")
    boss = f"slack:{second.id}:{BOSS}"
    async with strict_slack(first, second) as slack, at_work(slack, tmp_path, asking(), GRACE, boss):
        await slack.says(first, ADA, "pay Bob 5", OPEN)
        (card,) = await shown(first, OPEN, "decide:")
        assert "Bob" in await slack.opens_home(first, GRACE)
        assert "Bob" not in await slack.opens_home(second, BOSS)
        assert "Nothing waits for you" in json.dumps(second.homes[BOSS])
        stray = card | {"channel": OPEN}
        await slack.presses(second, BOSS, stray, "Approve")
        assert SENT == []
        for user in second.people:
            assert "Bob" not in second.seen_by(user)
        # Decided in the Home tab, which is shown anew.
        await slack.presses(first, GRACE, first.homes[GRACE], "Approve")
        assert await answered(first, OPEN) == ["Done."]
        assert "Nothing waits for you" in json.dumps(first.homes[GRACE])
        home = await slack.opens_home(first, ADA)
        assert "pay Bob 5" in home
        assert "clerk" in home
        assert "pay Bob 5" not in await slack.opens_home(first, EVE)


async def test_a_dialogue_that_slack_wants_much_later_is_not_waited_for(tmp_path: Path) -> None:
    """Whoever pressed the button has three seconds until nothing can be opened any more."""
    first = team()
    async with strict_slack(first) as slack, at_work(slack, tmp_path, asking(), GRACE):
        await slack.says(first, ADA, "pay Bob 5", OPEN)
        (card,) = await shown(first, OPEN, "decide:")
        slack.storm["views.open"] = ["3600.5"]
        await slack.presses(first, GRACE, card, "Edit")
        assert "press it again" in first.whispers[-1]["text"]
        assert not first.views
        slack.storm["views.open"] = ["0.5"]
        await slack.presses(first, GRACE, card, "Edit")
        assert await slack.fills_in(first, GRACE, **{"1": "300"}) == {}
        assert await answered(first, OPEN) == ["Done."]
        assert SENT == [("Bob", 300, None)]


async def test_who_has_left_is_waited_for_by_nobody(tmp_path: Path) -> None:
    first = team()
    first.gone.add(BOSS)
    async with strict_slack(first) as slack, at_work(slack, tmp_path, asking(), BOSS):
        await slack.says(first, ADA, "pay Bob 5", OPEN)
        (card,) = await shown(first, OPEN, "decide:")
        told = json.dumps(card["blocks"])
        assert "Nobody who may decide can be reached" in told
        assert BOSS not in told
    (tmp_path / "two").mkdir()
    async with strict_slack(first) as slack, at_work(slack, tmp_path / "two", asking(), BOSS, GRACE):
        await slack.says(first, ADA, "pay Bob 6", OPEN)
        card = (await shown(first, OPEN, "decide:", 2))[-1]
        assert f"For <@{GRACE}> to decide" in json.dumps(card["blocks"])
        await slack.presses(first, GRACE, card, "Approve")
        assert await answered(first, OPEN) == ["Done."]
        assert SENT == [("Bob", 500, None)]


async def test_a_message_of_40_000_characters_is_refused_once_and_starts_nothing(tmp_path: Path) -> None:
    first = team()
    async with strict_slack(first) as slack, at_work(slack, tmp_path, ScriptedModel([])) as door:
        said = await slack.says(first, ADA, "x" * 40_000, OPEN)
        await slack.send(
            {"type": "event_callback", "team_id": first.id, "event": {**said, "type": "app_mention"}}, "events_api"
        )
        own = [message["text"] for message in first.messages[OPEN] if message["user"] == first.bot]
        assert len(own) == 1
        assert "40,000 characters" in own[0]
        assert not await door._service.store.runs.list()


async def test_what_is_said_directly_in_another_way_is_answered_too(tmp_path: Path) -> None:
    """A reply that is also sent to the conversation, and '/me …'."""
    first = team()
    answers = ScriptedModel([say("One.")])
    async with strict_slack(first) as slack, at_work(slack, tmp_path, answers):
        direct = first.direct(ADA)
        await slack.says(first, ADA, "is waiting", direct, subtype="me_message")
        assert await answered(first, direct) == ["One."]
        root = first.messages[direct][-1]["ts"]
        await slack.says(first, ADA, "and now?", direct, subtype="thread_broadcast", thread_ts=root)
        assert len(await answered(first, direct, 2)) == 2


async def test_whoever_asked_is_told_directly_when_the_bot_is_put_out_of_the_channel(tmp_path: Path) -> None:
    first = team()
    async with strict_slack(first) as slack, at_work(slack, tmp_path, asking(), BOSS):
        await slack.says(first, ADA, "pay Bob 5", OPEN)
        (card,) = await shown(first, first.direct(BOSS), "decide:")
        first.channels[OPEN].discard(first.bot)
        await slack.presses(first, BOSS, card, "Approve")
        direct = first.direct(ADA)
        await until(lambda: bool(first.messages.get(direct)))
        (told,) = first.messages[direct]
        assert "I cannot answer you" in told["text"]
        assert "is kept as run" in told["text"]
        await until(lambda: SENT == [("Bob", 500, None)])


async def test_storms_of_429_lose_and_double_nothing(tmp_path: Path) -> None:
    first = team()
    async with strict_slack(first) as slack, at_work(slack, tmp_path, asking(), GRACE, BOSS):
        for method in ("chat.postMessage", "chat.update", "users.info", "conversations.members", "conversations.open"):
            slack.storm[method] = ["0.05", "0.01", "0.05", "0"]
        await slack.says(first, ADA, "pay Bob 5", OPEN)
        (card,) = await shown(first, first.direct(BOSS), "decide:")
        slack.storm["views.open"] = ["0.05"]
        await slack.presses(first, BOSS, card, "Deny")
        await slack.fills_in(first, BOSS, reason="no")
        assert await answered(first, OPEN) == ["Done."]
        await until(lambda: not cards(first, OPEN, "cancel:"))
        assert not any(slack.storm.values())
        counts = [len(cards(first, OPEN, key)) for key in ("status:", "approval:", "end:")]
        assert counts == [1, 1, 1]
        assert len(cards(first, first.direct(BOSS))) == 1
        assert SENT == []


async def test_blocks_that_slack_refuses_become_plain_text_once(tmp_path: Path) -> None:
    first = team()
    async with strict_slack(first) as slack:
        slack.no_blocks = True
        async with at_work(slack, tmp_path, asking(answer="*Paid* Bob, @Ada Lovelace."), GRACE) as door:
            await slack.says(first, ADA, "pay Bob 5", OPEN)
            said = first.messages[OPEN]
            await until(lambda: any("May this run?" in m["text"] for m in said))
            question = next(m for m in said if "May this run?" in m["text"])
            assert "Bob" in question["text"]
            assert "Home" in question["text"]
            assert not question["blocks"]
            await slack.opens_home(first, GRACE)
            await slack.presses(first, GRACE, first.homes[GRACE], "Approve")
            await until(lambda: any(m["text"].startswith("_Paid_ Bob") for m in said))
            runs = await door._service.store.runs.list()
            assert runs[0].status is RunStatus.COMPLETED
        before = len(said)
        async with at_work(slack, tmp_path, ScriptedModel([])) as door:
            await door._showing.follow(runs[0].id, again=True)
            await until(lambda: not door._showing._following)
        assert len(said) == before
        assert sum(m["text"].startswith(f"_Paid_ Bob, <@{ADA}>") for m in said) == 1


SHOP = """
import os, signal
from journeyman import Agent, tool

@tool(risk="irreversible", isolation="thread")
def pay(to: str) -> str:
    "Pay somebody. Use when money is to be sent."
    with open("paid.txt", "a") as file:
        file.write(to + "\\n")
    if os.environ.get("DIES"):
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid"

CLERK = Agent(name="clerk", instruction="Help with money.", tools=[pay])
"""


@asynccontextmanager
async def program(
    folder: Path, slack: StrictSlack, model: str, store: str, **variables: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    (name,) = slack.teams
    own = {
        "SLACK_APP_TOKEN": APP_TOKEN,
        "JOURNEYMAN_SECRET_SLACK_BOT_TOKEN": f"xoxb-{name}",
        "SLACK_API_URL": slack.url,
        **variables,
    }
    environment = {key: value for key, value in os.environ.items() if "SLACK" not in key}
    given = ("--agent", "shop.py:CLERK", "--model", model, "--store", store, "--config", "slack.yaml")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "journeyman", "slack", *given),
        cwd=folder,
        env=environment | own,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.slow
async def test_kill_9_in_socket_mode_on_postgresql_loses_and_doubles_nothing(tmp_path: Path, postgres_url: str) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    first = team()
    config = f"version: 1\ndoors: {{slack: {{workspaces: {{{first.id}: {{approvers: [{BOSS}]}}}}}}}}\n"
    (tmp_path / "slack.yaml").write_text(config)
    model = ScriptedServer([call("pay", to="Bob"), say("It is paid.")])
    async with strict_slack(first) as slack, model:
        given = (tmp_path, slack, f"{model.url}#any", postgres_url)
        boss = first.direct(BOSS)
        async with program(*given):
            await slack.says(first, ADA, "pay Bob", OPEN)
            await shown(first, boss, "decide:")  # killed while it waits
        async with program(*given, DIES="1") as dying:
            pressed = asyncio.create_task(slack.presses(first, BOSS, cards(first, boss)[0], "Approve"))
            await dying.wait()  # killed by its own tool
        async with program(*given):
            (unknown,) = await shown(first, boss, "settle:")
            await slack.presses(first, BOSS, unknown, "It happened")
            assert await answered(first, OPEN) == ["It is paid."]
            await pressed
            await until(lambda: not cards(first, boss, "settle:"))
        assert (tmp_path / "paid.txt").read_text() == "Bob\n"
        for channel, keys in ((OPEN, ("status:", "approval:", "unknown:", "end:")), (boss, ("approval:", "unknown:"))):
            assert [len(cards(first, channel, key)) for key in keys] == [1] * len(keys)
        assert "Bob" not in json.dumps([first.whispers, {who: first.homes.get(who) for who in (GRACE, EVE)}])
