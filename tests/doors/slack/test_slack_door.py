"""The Slack door with the real SDK, against a Slack on the loopback interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Model, Principal, ToolLibrary, tool
from journeyman.app.service import Service, assistant, open_service, slack_library
from journeyman.core.errors import ConfigurationError
from journeyman.core.runs import Role, RunStatus, TaskInput
from journeyman.doors.slack import People, SlackDoor, find_workspaces, over_http, over_socket
from journeyman.doors.slack.threads import Place
from journeyman.testing import ScriptedModel, call, say
from tests.doors.slack.loopback import (
    ADA,
    APP_TOKEN,
    BOT,
    CHANNEL,
    EVE,
    GRACE,
    OTHER_TEAM,
    SECRET,
    TEAM,
    TOKENS,
    LoopbackSlack,
    envelope,
    loopback_slack,
)
from tests.waiting import until

DELETED: list[str] = []


@tool(risk="irreversible")
def delete_order(order_id: str) -> str:
    """Delete an order. Use when the user wants an order gone.

    Args:
        order_id: The order.
    """
    DELETED.append(order_id)
    return f"{order_id} is deleted"


AGENT = Agent(name="clerk", instruction="Help with orders.", tools=[delete_order])
APPROVERS = People(approvers=[f"slack:{TEAM}:{GRACE}"])


@pytest.fixture(autouse=True)
def nothing_deleted() -> None:
    DELETED.clear()


@pytest.fixture
async def slack() -> AsyncIterator[LoopbackSlack]:
    async with loopback_slack() as found:
        yield found


@asynccontextmanager
async def opened(slack: LoopbackSlack, tmp_path: Path, model: Model, **options: Any) -> AsyncIterator[SlackDoor]:
    """A door without anything it receives from."""
    people = options.pop("people", APPROVERS)
    options.setdefault("status_seconds", 0.05)
    library = options.pop("library", None) or ToolLibrary([delete_order])
    agents = options.pop("agents", [AGENT])
    tokens = options.pop("tokens", {TEAM: TOKENS[TEAM]})
    policy = options.pop("policy", None)
    store = options.pop("store", None) or f"sqlite:///{tmp_path / 'store.db'}"
    async with open_service(
        store=store,
        library=library,
        agents=agents,
        model=model,
        principals=people.now,
        policy=policy,
        poll_seconds=0.05,
    ) as service:
        workspaces = await find_workspaces(tokens, base_url=slack.url)
        yield SlackDoor(
            service,
            workspaces,
            people=people,
            base_url=slack.url,
            signing_secret=SECRET,
            **options,
        )


@asynccontextmanager
async def listening(slack: LoopbackSlack, tmp_path: Path, model: Model, **options: Any) -> AsyncIterator[Service]:
    """A door on Socket Mode."""
    async with opened(slack, tmp_path, model, **options) as door, over_socket(door, APP_TOKEN):
        yield door._service


async def answers(slack: LoopbackSlack, count: int = 1, channel: str = CHANNEL) -> list[str]:
    """The bot's answers, once there are so many and their runs' status says so."""
    await until(lambda: len(slack.said(channel, key="end:")) >= count)
    return [message["blocks"][0]["text"]["text"] for message in slack.said(channel)]


async def test_a_mention_is_answered_in_its_thread_and_its_status_is_one_edited_message(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    async with listening(
        slack, tmp_path, ScriptedModel([say("**Hello**, [Ada](https://example.com) <!channel>")])
    ) as service:
        payload = slack.mention("say hello")
        await slack.deliver(payload)
        assert await answers(slack) == ["*Hello*, <https://example.com|Ada> &lt;!channel&gt;"]
        await until(lambda: "Completed" in slack.said(key="status:")[0]["text"])
        assert len(slack.said(key="status:")) == 1
        asked = payload["event"]["ts"]
        assert {message["thread_ts"] for message in slack.messages[CHANNEL] if message["user"] == BOT[TEAM]} == {asked}
        run = (await service.store.runs.list())[0]
        order = await service.store.runs.order(run.id)
        assert run.principal_id == f"slack:{TEAM}:{ADA}"
        assert order is not None
        assert order.task.description == "say hello"
        assert order.task.metadata["slack"]["channel_id"] == CHANNEL


async def test_a_direct_message_is_answered_and_other_messages_are_left_alone(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    async with listening(slack, tmp_path, ScriptedModel([say("Hello.")])) as service:
        await slack.deliver(envelope({**slack.write("not for you"), "channel_type": "channel"}))
        await slack.deliver(
            envelope({**slack.write("me neither", user=BOT[TEAM]), "channel_type": "im", "bot_id": "B1"})
        )
        await slack.deliver(envelope({**slack.write("hello", channel="D0DIRECT01"), "channel_type": "im"}))
        assert await answers(slack, channel="D0DIRECT01") == ["Hello."]
        assert len(await service.store.runs.list()) == 1


async def test_a_message_that_is_delivered_again_and_again_is_one_run(slack: LoopbackSlack, tmp_path: Path) -> None:
    model = ScriptedModel([say("Once.")])
    async with listening(slack, tmp_path, model) as service:
        payload = slack.mention("do it")
        await slack.deliver(payload, times=3)
        await answers(slack)
        # The same message under another event id, as where it is a mention and a direct message.
        await slack.deliver({**payload, "event_id": "Ev-other"})
        assert len(await service.store.runs.list()) == 1
    async with listening(slack, tmp_path, ScriptedModel([])):
        await slack.deliver(payload)
        assert await answers(slack) == ["Once."]
        assert len(slack.said(key="status:")) == 1


async def test_an_approved_call_has_its_effect_once_and_the_question_becomes_the_answer(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    model = ScriptedModel([call("delete_order", order_id="W-17"), say("Deleted.")])
    async with listening(slack, tmp_path, model):
        await slack.deliver(slack.mention("delete W-17"))
        await until(lambda: bool(slack.said(key="decide:")))
        question = dict(slack.said(key="decide:")[0])
        assert "W-17" in question["blocks"][1]["text"]["text"]
        pressed = slack.press(question, "Approve")
        await slack.deliver(pressed, kind="interactive", times=2)
        assert await answers(slack) == ["Deleted."]
        assert DELETED == ["W-17"]
        await until(lambda: f"Approved by <@{GRACE}>" in slack.said(key="approval:")[0]["text"])
        assert not slack.said(key="decide:")
        assert "approved already" in slack.ephemeral[0]["text"]


async def test_who_may_not_decide_is_refused_in_words_and_told_whom_to_ask(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    model = ScriptedModel([call("delete_order", order_id="W-17"), say("Not deleted.")])
    async with listening(slack, tmp_path, model):
        await slack.deliver(slack.mention("delete W-17"))
        await until(lambda: bool(slack.said(key="decide:")))
        question = dict(slack.said(key="decide:")[0])
        for stranger in (EVE, ADA):
            await slack.deliver(slack.press(question, "Approve", user=stranger), kind="interactive")
        await until(lambda: len(slack.ephemeral) == 2)
        assert [told["user"] for told in slack.ephemeral] == [EVE, ADA]
        assert all(
            "You may not decide this" in told["text"] and f"<@{GRACE}>" in told["text"] for told in slack.ephemeral
        )
        # Of the same name, but of another organisation.
        foreign = slack.press(question, "Approve")
        foreign["user"]["team_id"] = OTHER_TEAM
        await slack.deliver(foreign, kind="interactive")
        await until(lambda: len(slack.ephemeral) == 3)
        assert DELETED == []
        await slack.deliver(slack.press(question, "Deny"), kind="interactive")
        await slack.deliver(slack.submit(slack.views[0], reason="Not <on> a Friday"), kind="interactive")
        assert await answers(slack) == ["Not deleted."]
        await until(lambda: f"Denied by <@{GRACE}>" in slack.said(key="approval:")[0]["text"])
        assert "&lt;on&gt; a Friday" in slack.said(key="approval:")[0]["blocks"][0]["text"]["text"]
        assert "W-17" in slack.said(key="approval:")[0]["blocks"][1]["text"]["text"]
        assert DELETED == []


async def test_the_button_of_a_pending_approval_works_after_a_restart(slack: LoopbackSlack, tmp_path: Path) -> None:
    model = ScriptedModel([call("delete_order", order_id="W-17"), say("Deleted.")])
    async with listening(slack, tmp_path, model):
        await slack.deliver(slack.mention("delete W-17"))
        await until(lambda: bool(slack.said(key="decide:")))
    question = dict(slack.said(key="decide:")[0])
    async with listening(slack, tmp_path, model):
        await slack.deliver(slack.press(question, "Approve"), kind="interactive")
        assert await answers(slack) == ["Deleted."]
        assert DELETED == ["W-17"]
        await until(lambda: "Approved by" in slack.said(key="approval:")[0]["text"])
        assert len(slack.said(key="status:")) == len(slack.said(key="approval:")) == 1


async def test_an_answer_that_was_not_sent_before_the_end_is_sent_by_the_next_process(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    async with opened(slack, tmp_path, ScriptedModel([say("Here.")])) as door:
        payload = slack.mention("where?")
        await door._take(payload["event"], door._workspaces[TEAM])
        run_id = (await door._service.store.runs.list())[0].id
        await door.close()  # before anything was shown
        await (await door._service.app.handle(run_id)).wait()
    for _ in range(2):
        async with listening(slack, tmp_path, ScriptedModel([])):
            assert await answers(slack) == ["Here."]


async def test_a_run_is_cancelled_by_whoever_asked_and_by_nobody_else(slack: LoopbackSlack, tmp_path: Path) -> None:
    async with listening(slack, tmp_path, ScriptedModel([call("delete_order", order_id="W-17")])):
        await slack.deliver(slack.mention("delete W-17"))
        await until(lambda: bool(slack.said(key="decide:")))
        status = dict(slack.said(key="cancel:")[0])
        await slack.deliver(slack.press(status, "Cancel", user=EVE), kind="interactive")
        await until(lambda: bool(slack.ephemeral))
        assert f"Only <@{ADA}>" in slack.ephemeral[0]["text"]
        await slack.deliver(slack.press(status, "Cancel", user=ADA), kind="interactive")
        assert "Cancelled" in (await answers(slack))[0]
        assert "No longer asked" in slack.said(key="approval:")[0]["text"]
        assert not slack.said(key="decide:")


async def test_an_answer_is_rated_by_whoever_asked_and_by_nobody_else(slack: LoopbackSlack, tmp_path: Path) -> None:
    async with listening(slack, tmp_path, ScriptedModel([say("Hello.")])) as service:
        await slack.deliver(slack.mention("hello"))
        await answers(slack)
        last = slack.said(key="end:")[-1]
        await slack.deliver(slack.press(last, ":thumbsdown:", user=EVE), kind="interactive")
        await until(lambda: bool(slack.ephemeral))
        assert f"Only <@{ADA}>" in slack.ephemeral[0]["text"]
        await slack.deliver(slack.press(last, ":thumbsup:", user=ADA), kind="interactive")
        runs = await service.store.runs.list(statuses={RunStatus.COMPLETED})
        handle = await service.app.handle(runs[0].id)
        assert [(label.value, label.by) for label in await handle.labels()] == [("good", f"slack:{TEAM}:{ADA}")]


async def test_the_word_cancel_ends_what_its_writer_asked_for_in_the_thread(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    async with listening(slack, tmp_path, ScriptedModel([call("delete_order", order_id="W-17")])) as service:
        payload = slack.mention("delete W-17")
        await slack.deliver(payload)
        await until(lambda: bool(slack.said(key="decide:")))
        thread = payload["event"]["ts"]
        await slack.deliver(slack.mention("Cancel!", thread=thread, user=EVE))
        assert slack.messages[CHANNEL][-1]["text"] == "There is nothing of yours under way in this thread."
        await slack.deliver(slack.mention("Cancel!", thread=thread))
        await answers(slack)
        assert (await service.store.runs.list())[0].status is RunStatus.CANCELLED


async def test_a_thread_is_the_history_of_a_run_up_to_100_messages(slack: LoopbackSlack, tmp_path: Path) -> None:
    model = ScriptedModel([say("First."), say("Second.")])
    async with listening(slack, tmp_path, model) as service:
        first = slack.mention("hello")
        await slack.deliver(first)
        await answers(slack)
        thread = first["event"]["ts"]
        for number in range(120):
            slack.write(f"note {number}", user=EVE, thread=thread)
        await slack.deliver(slack.mention("and now?", thread=thread))
        await answers(slack, 2)
        newest = (await service.store.runs.list())[0]
        order = await service.store.runs.order(newest.id)
        assert order is not None
        assert len(order.history) == 100
        assert order.history[-1].content == "@Eve: note 119"


async def test_an_answer_is_an_assistants_message_in_the_history_and_status_is_none(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    async with listening(slack, tmp_path, ScriptedModel([say("First."), say("Second.")])) as service:
        first = slack.mention("hello")
        await slack.deliver(first)
        await answers(slack)
        await slack.deliver(slack.mention("and now?", thread=first["event"]["ts"]))
        await answers(slack, 2)
        order = await service.store.runs.order((await service.store.runs.list())[0].id)
        assert order is not None
        told = [(message.role, message.content) for message in order.history]
        assert told == [(Role.USER, "@Ada Lovelace: hello"), (Role.ASSISTANT, "First.")]


async def test_slack_is_asked_again_as_late_as_it_wants_to_be(slack: LoopbackSlack, tmp_path: Path) -> None:
    slack.limited["chat.postMessage"] = 2
    slack.retry_after = "0"
    async with listening(slack, tmp_path, ScriptedModel([say("Patience.")])):
        await slack.deliver(slack.mention("hello"))
        assert await answers(slack) == ["Patience."]
        assert len(slack.said(key="status:")) == 1
        assert slack.counted("chat.postMessage") == 4


async def test_long_answers_come_in_parts_and_the_last_can_be_rated(slack: LoopbackSlack, tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 200 for number in range(8))
    async with listening(slack, tmp_path, ScriptedModel([say(text)])):
        await slack.deliver(slack.mention("tell me all"))
        found = await answers(slack)
        assert len(found) > 2
        assert all(len(part) <= 3_000 for part in found)
        assert [part.startswith("Paragraph") for part in found] == [True] * len(found)
        assert len(slack.said(key="end:")) == 1


async def test_a_run_that_fails_says_what_happened_and_what_to_do(slack: LoopbackSlack, tmp_path: Path) -> None:
    async with listening(slack, tmp_path, ScriptedModel([])) as service:
        await slack.deliver(slack.mention("hello"))
        (told,) = await answers(slack)
        run_id = (await service.store.runs.list())[0].id
        assert told.startswith(":x: That did not work")
        assert run_id in told


async def test_what_cannot_be_begun_is_refused_in_words(slack: LoopbackSlack, tmp_path: Path) -> None:
    async with listening(slack, tmp_path, ScriptedModel([])) as service:
        await slack.deliver(slack.mention(""))
        await slack.deliver(slack.mention("x" * 2_001))
        said = [message["text"] for message in slack.messages[CHANNEL] if message["user"] == BOT[TEAM]]
        assert "Say what to do after my name" in said[0]
        assert "2,001 characters and I take 2,000" in said[1]
        assert not await service.store.runs.list()


async def test_signed_requests_are_taken_and_tampered_or_old_ones_refused(slack: LoopbackSlack, tmp_path: Path) -> None:
    model = ScriptedModel([call("delete_order", order_id="W-17"), say("Deleted.")])
    async with opened(slack, tmp_path, model) as door, over_http(door, host="127.0.0.1", port=0) as port:
        url, runs = f"http://127.0.0.1:{port}/slack/events", door._service.store.runs
        payload = slack.mention("delete W-17")
        assert await slack.request(url, payload, secret="another") == 401
        assert await slack.request(url, payload, age=600) == 401
        assert not await runs.list()
        assert await slack.request(url, payload) == 200
        assert await slack.request(url, payload) == 200
        await until(lambda: bool(slack.said(key="decide:")))
        pressed = slack.press(dict(slack.said(key="decide:")[0]), "Approve")
        assert await slack.request(url, pressed, form=True, secret="another") == 401
        assert DELETED == []
        assert await slack.request(url, pressed, form=True) == 200
        assert await answers(slack) == ["Deleted."]
        assert len(await runs.list()) == 1
        assert DELETED == ["W-17"]


async def test_each_workspace_is_answered_with_its_own_token_and_an_unknown_one_not_at_all(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    model = ScriptedModel([say("Here."), say("There.")])
    async with listening(slack, tmp_path, model, tokens=TOKENS) as service:
        await slack.deliver(slack.mention("one"))
        await answers(slack)
        await slack.deliver(slack.mention("two", team=OTHER_TEAM, channel="C0OTHER001"))
        await answers(slack, channel="C0OTHER001")
        assert {message["user"] for message in slack.said("C0OTHER001")} == {BOT[OTHER_TEAM]}
        assert {run.principal_id for run in await service.store.runs.list()} == {
            f"slack:{team}:{ADA}" for team in (TEAM, OTHER_TEAM)
        }
        stray = slack.mention("three")
        await slack.deliver({**stray, "team_id": "T0STRANGE", "authorizations": []})
        assert len(await service.store.runs.list()) == 2


async def test_tokens_that_slack_does_not_know_are_refused_at_the_start(slack: LoopbackSlack, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match="Slack does not accept the bot token of workspace 'T0AAAAAAA': invalid"
    ):
        await find_workspaces({TEAM: "xoxb-wrong"}, base_url=slack.url)
    with pytest.raises(ConfigurationError, match=f"belongs to workspace {OTHER_TEAM!r}"):
        await find_workspaces({TEAM: TOKENS[OTHER_TEAM]}, base_url=slack.url)
    async with opened(slack, tmp_path, ScriptedModel([])) as door:
        with pytest.raises(ConfigurationError, match="does not accept the app token: invalid_auth"):
            async with over_socket(door, "xapp-wrong"):
                pass


async def test_many_channels_at_once_are_each_answered_in_their_own_thread(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    class Echo:
        async def respond(self, request: Any, deltas: Any = None) -> Any:
            return say(f"re {request.messages[-1].content}")

    async with listening(slack, tmp_path, Echo()):
        channels = [f"C0MANY{number:04d}" for number in range(10)]
        sent = [slack.mention(f"{channel} {n}", channel=channel) for n in range(3) for channel in channels]
        await asyncio.gather(*(slack.deliver(payload) for payload in sent))
        for channel in channels:
            assert sorted(await answers(slack, 3, channel)) == [f"re {channel} {n}" for n in range(3)]
            asked = {m["ts"]: m["text"].split()[-1] for m in slack.messages[channel] if m["user"] == ADA}
            assert all(asked[m["thread_ts"]] == m["blocks"][0]["text"]["text"].split()[-1] for m in slack.said(channel))


async def test_a_busy_run_floods_nobody_with_its_status(slack: LoopbackSlack, tmp_path: Path) -> None:
    @tool(read_only=True, risk="reversible")
    def look_up(number: int) -> str:
        """Look a number up. Use when asked.

        Args:
            number: Which.
        """
        return f"number {number}"

    library = ToolLibrary([look_up])
    agent = Agent(name="reader", instruction="Look up.", tools=[look_up])
    model = ScriptedModel([*(call("look_up", number=number) for number in range(9)), say("Done.")])
    async with listening(slack, tmp_path, model, library=library, agents=[agent], status_seconds=60.0):
        await slack.deliver(slack.mention("look"))
        assert await answers(slack) == ["Done."]
        await until(lambda: slack.said(key="status:")[0]["text"] == "Completed with `look_up`")
    assert slack.counted("chat.update") == 1
    assert slack.counted("chat.postMessage") == 2


async def test_this_channel_is_summarised_with_the_bots_token(
    slack: LoopbackSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOURNEYMAN_SECRET_SLACK_BOT_TOKEN", TOKENS[TEAM])
    library = slack_library(model="embedded", base_url=slack.url)
    asked: list[str] = []

    def summarise(request: Any) -> Any:
        asked.append("\n".join(message.content for message in request.messages))
        return call("summarize_messages", channel=CHANNEL)

    model = ScriptedModel([summarise, say("It is about the release.")])
    async with listening(slack, tmp_path, model, library=library, agents=[assistant(library)]) as service:
        slack.write("The release is on Friday.", user=GRACE)
        await slack.deliver(slack.mention("what was said in this channel?"))
        assert await answers(slack) == ["It is about the release."]
        assert CHANNEL in asked[0]
        run = (await service.store.runs.list())[0]
        (record,) = (await (await service.app.handle(run.id)).result()).tool_calls
        assert "The release is on Friday." in record.result["summary"]
        assert TOKENS[TEAM] not in str(await service.store.runs.facts(run.id))


async def test_long_arguments_are_shown_whole_and_what_cannot_be_shown_cannot_be_approved(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    def labels(message: dict[str, Any]) -> list[str]:
        return [button["text"]["text"] for button in message["blocks"][-1]["elements"]]

    def ask(request: Any) -> Any:
        return call("delete_order", order_id="<&>" * int(request.messages[-1].content))

    async with listening(slack, tmp_path, ScriptedModel([ask])):
        for length in (1_000, 5_000):
            await slack.deliver(slack.mention(str(length)))
        await until(lambda: len(slack.said(key="decide:")) == 2)
        short, long = sorted(slack.said(key="decide:"), key=lambda message: len(message["blocks"]))
        assert labels(short) == ["Approve", "Edit", "Deny"]
        told = "".join(block["text"]["text"] for block in short["blocks"][1:-2])
        assert "&lt;&amp;&gt;" * 1_000 in told.replace("```", "").replace("\n", "")
        assert labels(long) == ["Deny"]
        assert "too long to show" in long["blocks"][-2]["text"]["text"]
        assert all(len(block["text"]["text"]) <= 3_000 for block in long["blocks"][:-1])


async def test_a_run_of_another_door_is_not_shown_in_slack_whatever_its_metadata_says(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    async with opened(slack, tmp_path, ScriptedModel([say("For nobody else.")])) as door:
        place = Place(TEAM, CHANNEL, ADA, "1.000001", "1.000001")
        task = TaskInput(description="hello", metadata=place.metadata)
        handle = await door._service.app.start(AGENT, task, principal=Principal("mallory"))
        await handle.wait()
        await door.open()
        assert not door._showing._following
        await door.close()
