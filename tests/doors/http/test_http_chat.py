"""Chat over HTTP: the stream, coming back to it, one answer, sessions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeyman import Agent, ModelError, RiskLevel, ToolContext, ToolLibrary, tool
from journeyman.core.errors import ErrorCategory
from journeyman.doors.http import events
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import chat, events_of, served
from tests.waiting import WAIT_SECONDS

MILK: list[Any] = [call("create_task", title="Buy milk"), say("Noted: milk.")]


async def test_tool_results_are_in_the_stream_before_the_answer_and_done_is_last(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server, server.client() as client:
        events = await chat(client, "Remind me to buy milk")
    kinds = [event.event for event in events]
    assert kinds.index("call_finished") < kinds.index("answer")
    assert events[-1].data == "[DONE]"
    assert [event.id for event in events if event.id is not None] == list(range(1, 11))
    finished = next(event.json for event in events if event.event == "call_finished")
    assert finished["record"]["result"]["title"] == "Buy milk"
    deltas = [event.json["text"] for event in events if event.event == "text_delta"]
    assert "".join(deltas) == "Noted: milk."
    assert all(event.id is None for event in events if event.event == "text_delta")


async def test_a_client_that_comes_back_gets_the_rest_and_nothing_twice(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server, server.client() as client:
        events = await chat(client, "Milk", run_id="my-own-run-1")
        again = await chat_after(client, "/api/v1/runs/my-own-run-1/events", 4)
        assert [event.id for event in again if event.id] == [5, 6, 7, 8, 9, 10]
        facts = [event.data for event in events if event.id]
        assert [event.data for event in again if event.id] == facts[4:]
        body = {"message": "Milk", "run_id": "my-own-run-1"}
        async with client.stream("POST", "/api/v1/chat", json=body, headers={"Last-Event-ID": "8"}) as response:
            posted = [event async for event in events_of(response)]
        assert [event.id for event in posted if event.id] == [9, 10]
        assert (await client.get("/api/v1/tasks")).json()["total"] == 1
        other = await client.post("/api/v1/chat", json={"message": "Bread", "run_id": "my-own-run-1"})
        assert (other.status_code, other.json()["code"]) == (409, "RUN_EXISTS")


async def chat_after(client: httpx.AsyncClient, path: str, seq: int) -> list[Any]:
    async with client.stream("GET", path, headers={"Last-Event-ID": str(seq)}) as response:
        return [event async for event in events_of(response)]


async def test_one_json_answer_for_those_who_ask_for_it(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server, server.client() as client:
        response = await client.post(
            "/api/v1/chat", json={"message": "Milk", "session_id": "s1"}, headers={"Accept": "application/json"}
        )
        body = response.json()
        assert response.headers["content-type"] == "application/json"
        assert (body["status"], body["answer"], body["session_id"]) == ("completed", "Noted: milk.", "s1")
        assert response.headers["X-Run-ID"] == body["run_id"]
        facts = await client.get(
            f"/api/v1/runs/{body['run_id']}/events?after=8", headers={"Accept": "application/json"}
        )
        assert [event["type"] for event in facts.json()["events"]] == ["answer", "run_finished"]


async def test_a_message_can_ask_for_data(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
    turns = [call("finish", price="three"), call("finish", price=3)]
    async with served(tmp_path, model=ScriptedModel(turns)) as server, server.client() as client:
        body = {"message": "Price?", "output": schema, "run_id": "my-own-run-2"}
        response = await client.post("/api/v1/chat", json=body, headers={"Accept": "application/json"})
        assert (response.json()["output"], response.json()["status"]) == ({"price": 3}, "completed")
        run_id = response.json()["run_id"]
        assert (await client.get(f"/api/v1/runs/{run_id}")).json()["response"]["output"] == {"price": 3}
        other = await client.post("/api/v1/chat", json={**body, "output": {"type": "object"}})
        assert (other.status_code, other.json()["code"]) == (409, "RUN_EXISTS")
        wrong = await client.post("/api/v1/chat", json={"message": "Price?", "output": {"type": "no such type"}})
        assert (wrong.status_code, wrong.json()["fields"][0]["field"]) == (422, "output")


async def test_a_session_has_its_history_until_it_is_deleted(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel([say("Hello.")])) as server, server.client() as client:
        await chat(client, "Hi", session_id="s1")
        await chat(client, "Hi again", session_id="s1")
        history = (await client.get("/api/v1/chat/history/s1")).json()
        assert [message["content"] for message in history["messages"]] == ["Hi", "Hello.", "Hi again", "Hello."]
        assert [row["id"] for row in (await client.get("/api/v1/sessions")).json()["sessions"]] == ["s1"]
        assert (await client.delete("/api/v1/sessions/s1")).status_code == 204
        gone = await client.get("/api/v1/chat/history/s1")
        assert (gone.status_code, gone.json()["code"]) == (404, "SESSION_NOT_FOUND")


async def test_mark_it_done_with_two_candidates_asks_which(tmp_path: Path) -> None:
    model = ScriptedModel(
        [
            call("update_task", task_id="report", status="completed"),
            lambda request: say(f"Which one? {request.messages[-1].content}"),
        ]
    )
    async with served(tmp_path, model=model) as server, server.client() as client:
        for title in ("Quarterly report", "Annual report"):
            await client.post("/api/v1/tasks", json={"title": title})
        events = await chat(client, "Mark the report as done")
        record = next(event.json["record"] for event in events if event.event == "call_finished")
        assert record["error"]["code"] == "AMBIGUOUS_TASK"
        answer = next(event.json["text"] for event in events if event.event == "answer")
        assert "Quarterly report" in answer
        assert "Annual report" in answer
        assert {task["status"] for task in (await client.get("/api/v1/tasks")).json()["tasks"]} == {"pending"}


async def test_progress_is_seen_while_a_tool_runs_and_cancel_ends_it(tmp_path: Path) -> None:
    @tool(risk=RiskLevel.REVERSIBLE)
    async def dig(context: ToolContext) -> str:
        """Dig a hole. Use when one is needed."""
        context.progress("half a metre", 0.5)
        await asyncio.sleep(30)
        return "a hole"

    library = ToolLibrary([dig])
    agent = Agent(name="digger", instruction="Dig.", tools=[dig])
    model = ScriptedModel([call("dig"), say("Done.")])
    async with served(tmp_path, model=model, library=library, agents=[agent]) as server, server.client() as client:
        async with client.stream("POST", "/api/v1/chat", json={"message": "Dig"}) as response:
            run_id = response.headers["X-Run-ID"]
            seen: list[Any] = []
            async for event in events_of(response):
                seen.append(event)
                if event.event == "call_progress":
                    assert event.json["fraction"] == 0.5
                    assert (await client.post(f"/api/v1/runs/{run_id}/cancel")).json()["status"] == "cancelled"
        assert next(event.json for event in seen if event.event == "run_finished")["status"] == "cancelled"
        assert (await client.post(f"/api/v1/runs/{run_id}/cancel")).json()["code"] == "RUN_ENDED"


async def test_an_idle_stream_is_kept_alive_and_a_client_that_leaves_frees_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "KEEP_ALIVE_SECONDS", 0.05)
    model = ScriptedModel([call("delete_task", task_id="milk"), say("Gone.")])
    async with served(tmp_path, model=model) as server, server.client() as client:
        await client.post("/api/v1/tasks", json={"title": "Buy milk"})
        async with client.stream("POST", "/api/v1/chat", json={"message": "Delete it"}) as response:
            run_id = response.headers["X-Run-ID"]
            pings = 0
            async for line in response.aiter_lines():
                pings += line.startswith(":")
                if pings == 3:
                    break
        async with asyncio.timeout(WAIT_SECONDS):
            # Each request lets the server's loop go on, so this ends as soon as it has noticed.
            while "journeyman_event_streams 0" not in (await client.get("/metrics")).text:
                pass
        assert not server.service.app.runner.watches.watched(run_id)


async def test_a_client_that_takes_nothing_does_not_hold_up_others(tmp_path: Path) -> None:
    agent = Agent(name="writer", instruction="Write.")
    model = ScriptedModel([say("x" * 8_000_000)])  # more than the buffers between two sockets hold
    tools = ToolLibrary([])
    async with served(tmp_path, model=model, library=tools, agents=[agent]) as server, server.client() as client:
        host, port = server.url.removeprefix("http://").split(":")
        _, stuck = await asyncio.open_connection(host, int(port), limit=1)
        body = b'{"message": "Read", "run_id": "stuck-run"}'
        head = f"POST /api/v1/chat HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        stuck.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await stuck.drain()
        async with asyncio.timeout(WAIT_SECONDS):
            events = await chat(client, "Read too")
            assert events[-1].data == "[DONE]"
            while (found := await client.get("/api/v1/runs/stuck-run")).status_code == 404:
                pass  # its request may still be on the way
            handle = await server.service.app.handle(found.json()["run"]["id"])
            assert (await handle.result()).status == "completed"
        assert "journeyman_event_streams 1" in (await client.get("/metrics")).text
        stuck.close()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "message"),
        ({"message": ""}, "message"),
        ({"message": "   "}, "message"),
        ({"message": "x" * 2001}, "message"),
        ({"message": "Hi", "session_id": "a b"}, "session_id"),
        ({"message": "Hi", "max_iterations": 0}, "max_iterations"),
    ],
)
async def test_a_message_that_cannot_be_taken_names_the_field(tmp_path: Path, body: Any, field: str) -> None:
    async with served(tmp_path, model=ScriptedModel([])) as server, server.client() as client:
        response = await client.post("/api/v1/chat", json=body)
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_ERROR")
        assert [item["field"] for item in response.json()["fields"]] == [field]


# --- without a language model


async def test_without_a_model_everything_but_chat_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("journeyman.models.resolve.model_from_name", _no_model)
    async with served(tmp_path) as server, server.client() as client:
        refused = await client.post("/api/v1/chat", json={"message": "Hi"})
        assert (refused.status_code, refused.json()["code"]) == (503, "NO_MODEL")
        assert "OPENAI_API_KEY" in refused.json()["error"]
        assert "work without one" in refused.json()["recover_action"]
        assert (await client.get("/api/v1/runs")).json()["runs"] == []
        [agent] = (await client.get("/api/v1/agents")).json()["agents"]
        assert (agent["ready"], "OPENAI_API_KEY" in agent["problem"]) == (False, True)
        made = await client.post("/api/v1/tools/create_task/call", json={"arguments": {"title": "Buy milk for $5"}})
        assert made.json()["record"]["result"]["title"] == "Buy milk for $5"
        found = await client.get("/api/v1/search", params={"q": "milk", "mode": "semantic"})
        assert found.json()["total"] == 1
        waiting = await client.post("/api/v1/tools/delete_task/call", json={"arguments": {"task_id": "milk"}})
        assert waiting.status_code == 202
        [approval] = waiting.json()["approvals"]
        await client.post(f"/api/v1/approvals/{approval['id']}/approve", json={})
        handle = await server.service.app.handle(waiting.json()["run_id"])
        assert (await handle.result()).status == "completed"
        assert (await client.get("/api/v1/tasks")).json()["total"] == 0


def _no_model(*_: Any, **__: Any) -> Any:
    from journeyman import ConfigurationError

    raise ConfigurationError("no model: set OPENAI_API_KEY")


async def test_what_a_provider_refuses_becomes_advice_in_the_stream(tmp_path: Path) -> None:
    error = ModelError(
        "MODEL_AUTHENTICATION",
        "the server refuses the key",
        category=ErrorCategory.AUTHENTICATION,
        user_guidance="set OPENAI_API_KEY to a valid key",
    )
    async with served(tmp_path, model=ScriptedModel([error])) as server, server.client() as client:
        events = await chat(client, "Hi")
        failed = next(event.json for event in events if event.event == "run_failed")
        assert failed["error"]["user_guidance"] == "set OPENAI_API_KEY to a valid key"
        assert events[-1].data == "[DONE]"
