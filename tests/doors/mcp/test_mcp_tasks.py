"""Calls as tasks: a client looks after a call that takes long or waits for a person, also after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from pydantic import Field

from journeyman import Policy, Principal, RiskLevel, ToolContext, ToolError, ToolLibrary, tool
from journeyman.app.service import Service, open_service
from journeyman.core.runs import RunStatus
from journeyman.doors.mcp import Gateway
from journeyman.doors.mcp.calls import TASKS, Places
from tests.doors.mcp.test_mcp_door import User, text_of
from tests.waiting import until

PLACES = Places(decide=lambda approval: f"Decide about {approval.id}.", settle=lambda run, call: f"Settle {call}.")
ADA, BOB, CARL = Principal("ada", permissions={"approvals:decide"}), Principal("bob"), Principal("carl")
SIZE = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}


class Task(types.Result):
    """What the server tells of a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None
    poll_interval_ms: int


class Told(types.Result):
    """What it tells when it is asked."""

    status: str = ""
    status_message: str = ""
    input_requests: dict[str, Any] = Field(default_factory=dict)
    result: dict[str, Any] = Field(default_factory=dict)
    error: dict[str, Any] = Field(default_factory=dict)


class Params(types.RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class About(types.Request[Params, str]):
    method: str
    params: Params


class Knows(ClientExtension):
    """A client that knows tasks, and leaves it to the test to look after them."""

    identifier = TASKS

    def __init__(self) -> None:
        self.begun: list[Task] = []

    def claims(self) -> list[ResultClaim[Any]]:
        async def resolve(task: Task, ctx: ClaimContext) -> types.CallToolResult:
            self.begun.append(task)
            return types.CallToolResult(content=[types.TextContent(text=f"task {task.task_id}")])

        return [ResultClaim(result_type="task", model=Task, resolve=resolve)]


class Bench:
    """What the tools of these tests work on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.done: list[str] = []

    def library(self) -> ToolLibrary:
        @tool(read_only=True, metadata={"task": "always"})
        async def compute(what: str) -> str:
            """Compute something."""
            if what == "nothing":
                raise ToolError("NOTHING", "there is nothing to compute")
            if what == "bug":
                raise RuntimeError("a bug")
            await self.go_on.wait()
            return f"computed {what}"

        @tool(read_only=True)
        async def soon(what: str) -> str:
            """Take a while."""
            await self.go_on.wait()
            return what

        @tool(read_only=True)
        def quick() -> str:
            """Be done at once."""
            return "quick"

        @tool(read_only=True, metadata={"task": "required"})
        def only() -> str:
            """For clients that know tasks."""
            return "only"

        @tool(risk=RiskLevel.IRREVERSIBLE, metadata={"task": "always"})
        def delete(name: str) -> str:
            """Delete something."""
            self.done.append(name)
            return f"deleted {name}"

        @tool(read_only=True, metadata={"task": "always"})
        async def choose(context: ToolContext) -> str:
            """Ask twice, the second time for two things."""
            first = await context.ask("Which size?", SIZE)
            form = {"method": "elicitation/create", "params": {"message": "More?", "requestedSchema": SIZE}}
            second = await context.put({"top": form, "bottom": form})
            return f"{first} {[second[key]['content'] for key in ('top', 'bottom')]}"

        return ToolLibrary([compute, soon, quick, only, delete, choose])


@asynccontextmanager
async def gateway(folder: Path, bench: Bench, who: Principal = ADA) -> AsyncIterator[tuple[Gateway, Service]]:
    opening = open_service(store=f"sqlite:///{folder}/runs.db", library=bench.library(), policy=Policy())
    async with opening as service:
        yield Gateway(service, principal=lambda _: who, places=PLACES), service


@asynccontextmanager
async def looking_after(door: Gateway, *, asked: bool = True) -> AsyncIterator[tuple[Client, Knows]]:
    knows = Knows()
    user = User("accept", size="large") if asked else None
    async with Client(door.server, extensions=[knows], elicitation_callback=user) as client:
        yield client, knows


async def about(client: Client, method: str, task_id: str, **responses: Any) -> Told:
    params = Params(task_id=task_id, input_responses=responses or None)
    return await client.session.send_request(About(method=f"tasks/{method}", params=params), Told)


async def begun(client: Client, knows: Knows, name: str, arguments: dict[str, Any] | None = None) -> str:
    known = len(knows.begun)
    await client.call_tool(name, arguments or {})
    assert len(knows.begun) == known + 1, f"{name} is no task"
    return knows.begun[-1].task_id


async def at(client: Client, task_id: str, *statuses: str) -> Told:
    found: list[Told] = []

    async def there() -> bool:
        found.append(await about(client, "get", task_id))
        return found[-1].status in statuses

    await until(there)
    return found[-1]


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


async def test_a_task_has_its_result_when_it_is_done_and_is_its_principals_alone(tmp_path: Path) -> None:
    bench = Bench()
    async with gateway(tmp_path, bench) as (door, service), looking_after(door) as (client, knows):
        task = await begun(client, knows, "compute", {"what": "much"})
        assert (knows.begun[0].status, knows.begun[0].ttl_ms) == ("working", None)
        assert (await about(client, "get", task)).status == "working"
        others = Gateway(service, principal=lambda _: CARL, places=PLACES)
        async with looking_after(others) as (other, _):
            for method in ("get", "update", "cancel"):
                with pytest.raises(MCPError, match="there is no task"):
                    await about(other, method, task)
        bench.go_on.set()
        told = await at(client, task, "completed")
        assert told.result["content"][0]["text"] == "computed much"
        assert not told.result.get("isError")
        await about(client, "cancel", task)
        assert (await about(client, "get", task)).status == "completed"  # one that has ended stays as it is


async def test_what_a_tool_says_is_a_result_and_what_breaks_is_an_error(tmp_path: Path) -> None:
    async with gateway(tmp_path, Bench()) as (door, _), looking_after(door) as (client, knows):
        told = await at(client, await begun(client, knows, "compute", {"what": "nothing"}), "completed", "failed")
        assert (told.status, told.result["isError"]) == ("completed", True)
        told = await at(client, await begun(client, knows, "compute", {"what": "bug"}), "completed", "failed")
        assert (told.status, told.error["code"], told.result) == ("failed", types.INTERNAL_ERROR, {})


async def test_a_cancelled_task_ends_its_run(tmp_path: Path) -> None:
    async with gateway(tmp_path, Bench()) as (door, service), looking_after(door) as (client, knows):
        task = await begun(client, knows, "compute", {"what": "much"})
        await about(client, "cancel", task)
        await at(client, task, "cancelled")
        row = await service.app.store.runs.get(task)
        assert row is not None
        assert row.status is RunStatus.CANCELLED


async def test_only_clients_that_know_tasks_get_some(tmp_path: Path) -> None:
    bench = Bench()
    bench.go_on.set()
    async with gateway(tmp_path, bench) as (door, _):
        async with looking_after(door) as (client, knows):
            assert text_of(await client.call_tool("quick", {})) == "quick"
            assert text_of(await client.call_tool("only", {})) == "only"
            assert knows.begun == []  # what is done at once is answered at once
        async with Client(door.server) as client:
            assert text_of(await client.call_tool("compute", {"what": "it"})) == "computed it"
            for asking in (client.call_tool("only", {}), about(client, "get", "run_x")):
                with pytest.raises(MCPError) as told:
                    await asking
                assert told.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
                assert told.value.data == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


@pytest.mark.slow
async def test_a_call_that_takes_long_becomes_a_task(tmp_path: Path) -> None:
    bench = Bench()
    async with gateway(tmp_path, bench) as (door, _), looking_after(door) as (client, knows):
        task = await begun(client, knows, "soon", {"what": "later"})
        bench.go_on.set()
        assert (await at(client, task, "completed")).result["content"][0]["text"] == "later"


async def test_a_person_decides_in_the_task_or_elsewhere(tmp_path: Path) -> None:
    bench = Bench()
    async with gateway(tmp_path, bench) as (door, _), looking_after(door) as (client, knows):
        task = await begun(client, knows, "delete", {"name": "a"})
        [(key, asked)] = (await at(client, task, "input_required")).input_requests.items()
        assert "Allow the call of 'delete'" in asked["params"]["message"]
        with pytest.raises(MCPError, match="must be that of an elicitation"):
            await about(client, "update", task, **{key: 5})
        assert bench.done == []
        await about(client, "update", task, **{key: accepted(approve=True), "unknown": 5})
        assert (await at(client, task, "completed")).result["content"][0]["text"] == "deleted a"
    async with gateway(tmp_path, bench, BOB) as (door, service), looking_after(door) as (client, knows):
        task = await begun(client, knows, "delete", {"name": "b"})

        async def waits() -> bool:
            told = await about(client, "get", task)
            assert told.status == "working"
            return "waits for a person's approval" in told.status_message

        await until(waits)
        [approval] = await service.app.approvals.pending(run_id=task)
        await about(client, "update", task, **{approval.id: accepted(approve=True)})  # which is not theirs to say
        assert bench.done == ["a"]
        await service.app.approvals.approve(approval.id, by="ada")
        await at(client, task, "completed")
    assert bench.done == ["a", "b"]


async def test_questions_of_a_task_are_answered_one_by_one(tmp_path: Path) -> None:
    async with gateway(tmp_path, Bench()) as (door, _), looking_after(door) as (client, knows):
        task = await begun(client, knows, "choose")
        first = (await at(client, task, "input_required")).input_requests
        with pytest.raises(MCPError, match="does not fit"):
            await about(client, "update", task, **dict.fromkeys(first, 5))
        await about(client, "update", task, **{key: accepted(size="large") for key in first})
        two: dict[str, Any] = {}

        async def asked() -> bool:
            two.update((await about(client, "get", task)).input_requests)
            return len(two.keys() - first.keys()) == 2

        await until(asked)
        one, other = sorted(two.keys() - first.keys())
        await about(client, "update", task, **{one: accepted(size="small")})
        assert list((await at(client, task, "input_required")).input_requests) == [other]
        await about(client, "update", task, **{other: accepted(size="tiny")})
        told = await at(client, task, "completed")
        assert "{'size': 'large'}" in told.result["content"][0]["text"]
        assert "tiny" in told.result["content"][0]["text"]


@pytest.mark.slow
async def test_tasks_outlive_their_gateway_and_ask_again(tmp_path: Path) -> None:
    bench = Bench()
    async with gateway(tmp_path, bench) as (door, _), looking_after(door) as (client, knows):
        computing = await begun(client, knows, "compute", {"what": "much"})
        choosing = await begun(client, knows, "choose")
        deleting = await begun(client, knows, "delete", {"name": "a"})
        await at(client, choosing, "input_required")
        await at(client, deleting, "input_required")
    bench = Bench()
    bench.go_on.set()
    async with gateway(tmp_path, bench) as (door, _), looking_after(door) as (client, knows):
        assert (await at(client, computing, "completed")).result["content"][0]["text"] == "computed much"
        [key] = (await at(client, deleting, "input_required")).input_requests
        await about(client, "update", deleting, **{key: accepted(approve=True)})
        await at(client, deleting, "completed")
        for _ in range(2):
            asked = (await at(client, choosing, "input_required")).input_requests
            await about(client, "update", choosing, **{key: accepted(size="large") for key in asked})
        assert "large" in (await at(client, choosing, "completed")).result["content"][0]["text"]
    assert bench.done == ["a"]
