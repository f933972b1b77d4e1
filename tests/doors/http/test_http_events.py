"""Many runs on one connection: in order, without gap or repeat, authorised run by run, bounded, and with an end."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeyman import Agent, RiskLevel, ToolContext, ToolLibrary, tool
from journeyman.core.policy import Principal
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.doors.http import Tokens
from journeyman.doors.http.events import MOST_RUNS
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import Sent, chat, served
from tests.waiting import until


class Writer:
    """A model that stops in the middle of its text until it is let go."""

    name = "writer"

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.half_way = asyncio.Event()

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        assert deltas is not None
        for piece in ("Once ", "upon ", "a "):
            deltas.text(piece)
        self.half_way.set()
        await self.go.wait()
        deltas.text("time.")
        return say("Once upon a time.")


async def begun(client: httpx.AsyncClient, message: str, **body: Any) -> str:
    """A run that was begun without waiting for it."""
    answer = await client.post(
        "/api/v1/chat", json={"message": message, **body}, headers={"Prefer": "respond-async", "Accept": "*/*"}
    )
    assert answer.status_code == 202, answer.text
    assert answer.headers["Preference-Applied"] == "respond-async"
    run_id: str = answer.json()["run_id"]
    return run_id


async def followed(client: httpx.AsyncClient, runs: list[str], **headers: str) -> list[Any]:
    """The events of a stream as (run, number or None, type), to its end."""
    async with client.stream("GET", "/api/v1/events", params={"run": runs}, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        return [event async for event in lines(response)]


async def lines(response: httpx.Response) -> Any:
    """The events with ids that are no numbers."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and fields:
            yield fields
            fields = {}


def seqs(events: list[dict[str, str]], run: str) -> list[int]:
    found = [Sent(None, event.get("event"), event["data"]).json for event in events if event["data"] != "[DONE]"]
    return [event["seq"] for event in found if event["run_id"] == run and event.get("seq")]


async def test_one_stream_carries_many_runs_each_in_order_and_ends_with_the_last(tmp_path: Path) -> None:
    model = ScriptedModel([say(f"{n}") for n in range(8)])
    async with served(tmp_path, model=model) as server, server.client() as client:
        runs = [await begun(client, f"Number {n}") for n in range(8)]
        events = await followed(client, runs)
        assert events[-1]["data"] == "[DONE]"
        for run in runs:
            numbers = seqs(events, run)
            assert numbers == list(range(1, len(numbers) + 1))
        whole = {run: len(seqs(events, run)) for run in runs}

        # From the middle of each, by its own number and by the id of an event of the stream.
        cursors = [f"{run}:{at}" for at, run in enumerate(runs[:3], start=1)]
        later = await followed(client, cursors)
        for at, run in enumerate(runs[:3], start=1):
            assert seqs(later, run) == list(range(at + 1, whole[run] + 1))
        seen = [event for event in later if "id" in event]
        rest = await followed(client, cursors, **{"Last-Event-ID": seen[3]["id"]})
        for run in runs[:3]:
            assert sorted(seqs(seen[:4], run) + seqs(rest, run)) == seqs(later, run)


async def test_whoever_comes_back_when_all_has_been_told_is_told_to_stay_away(tmp_path: Path) -> None:
    """204 is what makes a browser's EventSource stop connecting again."""
    async with served(tmp_path, model=ScriptedModel([say("Hello.")])) as server, server.client() as client:
        events = await chat(client, "Hi", run_id="my-own-run-1")
        last = str(max(event.id for event in events if event.id is not None))
        one = await client.get("/api/v1/runs/my-own-run-1/events", headers={"Last-Event-ID": last})
        many = await client.get("/api/v1/events?run=my-own-run-1", headers={"Last-Event-ID": last})
        assert (one.status_code, many.status_code) == (204, 204)


async def test_a_late_joiner_reads_the_answer_in_progress_from_its_beginning(tmp_path: Path) -> None:
    model = Writer()
    async with served(tmp_path, model=model) as server, server.client() as client:
        run = await begun(client, "A story")
        await model.half_way.wait()
        for path in (f"/api/v1/events?run={run}", f"/api/v1/runs/{run}/events"):
            async with client.stream("GET", path) as response, aclosing(lines(response)) as found:
                kinds = []
                async for event in found:
                    kinds.append(event["event"])
                    if event["event"] == "text_delta":
                        break
                assert Sent(None, None, event["data"]).json["text"] == "Once upon a "
                assert kinds[0] == "run_started"
        model.go.set()
        events = await followed(client, [run])
        assert seqs(events, run)[-1] == max(seqs(events, run))


async def test_text_joined_in_the_middle_is_whole_and_said_once(tmp_path: Path) -> None:
    model = Writer()
    async with served(tmp_path, model=model) as server, server.client() as client:
        run = await begun(client, "A story")
        await model.half_way.wait()
        text = ""
        async with client.stream("GET", f"/api/v1/events?run={run}") as response:
            async for event in lines(response):
                if event.get("event") == "text_delta":
                    text += Sent(None, None, event["data"]).json["text"]
                    model.go.set()
        assert text == "Once upon a time."


async def test_a_late_joiner_sees_how_far_a_call_has_come(tmp_path: Path) -> None:
    go = asyncio.Event()
    working = asyncio.Event()

    @tool(risk=RiskLevel.REVERSIBLE)
    async def count(context: ToolContext) -> str:
        """Count. Use when asked."""
        context.progress("shelf 1", 0.25)
        context.progress("shelf 3", 0.75)
        working.set()
        await go.wait()
        return "41"

    library = ToolLibrary([count])
    agent = Agent(name="clerk", instruction="Count.", tools=library.specifications())
    model = ScriptedModel([call("count"), say("41.")])
    async with served(tmp_path, model=model, library=library, agents=[agent]) as server, server.client() as client:
        run = await begun(client, "Count")
        await working.wait()
        told: list[str] = []
        kinds: list[str] = []
        async with client.stream("GET", f"/api/v1/events?run={run}") as response:
            async for event in lines(response):
                kinds.append(event.get("event", ""))
                if kinds[-1] == "call_progress":
                    told.append(Sent(None, None, event["data"]).json["message"])
                    go.set()
        assert told == ["shelf 3"]
        assert kinds.index("call_started") < kinds.index("call_progress") < kinds.index("call_finished")


async def test_each_run_is_authorised_by_itself(tmp_path: Path) -> None:
    tokens = Tokens({"a-token-for-ada-1": Principal("ada"), "a-token-for-bob-1": Principal("bob")})
    ada, bob = ({"Authorization": f"Bearer a-token-for-{name}-1"} for name in ("ada", "bob"))
    model = ScriptedModel([say("one"), say("two")])
    async with (
        served(tmp_path, model=model, tokens=tokens) as server,
        server.client(headers=ada) as hers,
        server.client(headers=bob) as his,
    ):
        ours, theirs = await begun(hers, "Mine"), await begun(his, "His")
        events = await followed(hers, [ours, theirs, "run_of_nobody"])
        refused = [Sent(None, None, event["data"]).json for event in events if event.get("event") == "error"]
        assert {(item["run_id"], item["code"]) for item in refused} == {
            (theirs, "RUN_NOT_FOUND"),
            ("run_of_nobody", "RUN_NOT_FOUND"),
        }
        assert seqs(events, theirs) == []
        assert seqs(events, ours)
        none = await hers.get(f"/api/v1/events?run={theirs}")
        assert (none.status_code, none.json()["code"]) == (404, "RUN_NOT_FOUND")


async def test_a_run_is_followed_by_the_name_that_one_gave_it(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel([say("Hello.")])) as server, server.client() as client:
        run = await begun(client, "Hi", run_id="my-own-run-1")
        events = await followed(client, ["run_of_nobody", "my-own-run-1:2"])
        numbers = seqs(events, run)
        assert numbers == list(range(3, numbers[-1] + 1))
        assert [event["id"] for event in events if "id" in event][-1] == f"0.{numbers[-1]}"


async def test_a_stream_has_bounds(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel([say("Hello.")])) as server, server.client() as client:
        too_many = await client.get("/api/v1/events", params={"run": [f"run_{n}" for n in range(MOST_RUNS + 1)]})
        assert too_many.status_code == 422
        assert (await client.get("/api/v1/events")).status_code == 422
        run = await begun(client, "Hi")
        for wrong in ("1.2", "x", "-1", "9999999999", "²"):
            answer = await client.get(f"/api/v1/events?run={run}", headers={b"Last-Event-ID": wrong.encode()})
            assert answer.status_code == 422, wrong


@pytest.mark.slow
async def test_a_closed_stream_stops_reading_its_runs(tmp_path: Path) -> None:
    @tool(risk=RiskLevel.IRREVERSIBLE)
    def launch() -> str:
        """Launch. Use when asked."""
        return "gone"

    library = ToolLibrary([launch])
    agent = Agent(name="pilot", instruction="Fly.", tools=library.specifications())
    model = ScriptedModel([call("launch"), say("Launched.")])
    async with served(tmp_path, model=model, library=library, agents=[agent]) as server, server.client() as client:
        first = await begun(client, "Launch", session_id="s1")
        behind = [await begun(client, f"Then {n}", session_id="s1") for n in range(5)]
        async with client.stream("GET", "/api/v1/events", params={"run": [first, *behind]}) as response:
            async for event in lines(response):
                if event["event"] == "approval_requested":
                    break
        watches = server.service.app.runner.watches
        await until(lambda: not any(watches.watched(run) for run in (first, *behind)))


async def test_the_text_of_the_first_step_is_kept_however_late_the_first_reader_comes(tmp_path: Path) -> None:
    """Also with a name for the run, for which the service looks whether the request has come before."""
    model = Writer()
    async with served(tmp_path, model=model) as server, server.client() as client:
        for number in range(20):
            model.go.clear()
            model.half_way.clear()
            run = await begun(client, "A story", run_id=f"my-own-run-{number}")
            await model.half_way.wait()
            async with client.stream("GET", f"/api/v1/events?run={run}") as response:
                async for event in lines(response):
                    if event["event"] == "text_delta":
                        break
            assert Sent(None, None, event["data"]).json["text"] == "Once upon a "
            model.go.set()
