"""Calls that are made again: after a restart, by a client that went away, under a name, and beside one another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from journeyman import Principal, RiskLevel, ToolLibrary, tool
from journeyman.app.service import Service, open_service
from journeyman.core.storing import NotedRequest
from journeyman.doors.mcp import Gateway
from journeyman.doors.mcp.calls import KEY, Places
from tests.doors.mcp.test_mcp_door import text_of
from tests.waiting import until

ADA = Principal("ada", permissions={"approvals:decide"})
PLACES = Places(decide=lambda approval: f"Decide about {approval.id}.", settle=lambda run, call: f"Settle {call}.")


class Ledger:
    """What the tools of these tests have done."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    def tools(self) -> ToolLibrary:
        @tool(risk=RiskLevel.IRREVERSIBLE)
        def delete(name: str) -> str:
            """Delete something."""
            self.written.append(name)
            return f"deleted {name}"

        @tool(risk=RiskLevel.REVERSIBLE)
        async def write(name: str) -> str:
            """Write something."""
            self.written.append(name)
            self.begun.set()
            await self.may_end.wait()
            return f"wrote {name} as number {len(self.written)}"

        return ToolLibrary([delete, write])


@asynccontextmanager
async def serving(tmp_path: Path, ledger: Ledger) -> AsyncIterator[tuple[Gateway, Service]]:
    store = f"sqlite:///{tmp_path / 'gateway.db'}"
    async with open_service(store=store, library=ledger.tools()) as service:
        yield Gateway(service, principal=lambda _: ADA, places=PLACES), service


async def test_the_link_to_a_call_that_waits_survives_a_restart(tmp_path: Path) -> None:
    ledger = Ledger()
    async with serving(tmp_path, ledger) as (gateway, service), Client(gateway.server) as client:
        assert "has not run yet" in text_of(await client.call_tool("delete", {"name": "x"}))
    async with serving(tmp_path, ledger) as (gateway, service), Client(gateway.server) as client:
        [approval] = await service.app.approvals.pending()
        await service.app.approvals.approve(approval.id, by="grace")
        await (await service.app.handle(approval.run_id)).result()  # it has ended before anybody asks again
        assert text_of(await client.call_tool("delete", {"name": "x"})) == "deleted x"
        assert "has not run yet" in text_of(await client.call_tool("delete", {"name": "x"}))  # which is another call
    assert ledger.written == ["x"]


async def test_a_client_that_comes_back_gets_the_result_of_what_it_began(tmp_path: Path) -> None:
    ledger = Ledger()
    async with serving(tmp_path, ledger) as (gateway, service):
        async with Client(gateway.server, mode="legacy") as client:
            calling = asyncio.ensure_future(client.session.call_tool("write", {"name": "x"}))
            await ledger.begun.wait()
        await asyncio.wait((calling,))

        async def noted() -> bool:
            [row] = await service.app.store.runs.list()
            return row.status == "running"

        await until(noted)
        ledger.may_end.set()
        async with Client(gateway.server, mode="legacy") as client:
            again = await client.call_tool("write", {"name": "x"})
            assert text_of(again) == "wrote x as number 1"
            other = await client.call_tool("write", {"name": "x"})
            assert text_of(other) == "wrote x as number 2"


@pytest.mark.parametrize("gateway", ["gone", "alive"])
async def test_what_another_gateway_began_is_taken_up_once_that_is_gone(tmp_path: Path, gateway: str) -> None:
    ledger = Ledger()
    ledger.may_end.set()
    async with serving(tmp_path, ledger) as (door, service), Client(door.server) as client:
        await client.call_tool("write", {"name": "x"})
        [row] = await service.app.store.runs.list()
        # As it stands where a gateway was killed after the call had run and before its client heard of it.
        order = await service.app.store.runs.order(row.id)
        assert order is not None
        begun_by = order.task.metadata["mcp"]["gateway"]
        assert begun_by == service.app.runner.shared.owner
    async with serving(tmp_path, ledger) as (door, service), Client(door.server) as client:
        if gateway == "alive":
            await service.app.store.programs.announce(begun_by, silent_seconds=60)
        await note_again(service, row.id, "x")
        told = text_of(await client.call_tool("write", {"name": "x"}))
    assert told == f"wrote x as number {1 if gateway == 'gone' else 2}"


async def note_again(service: Service, run_id: str, name: str) -> None:
    from journeyman.core.data import canonical_json, digest

    mark = digest("mcp", ADA.id, canonical_json([{"tool": "write", "args": {"name": name}}]))
    await service.app.store.idempotency.note(
        NotedRequest(digest=mark, run_id=run_id, asked_at=service.app.clock.time())
    )


async def test_a_named_call_runs_once(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.may_end.set()
    named: Any = {KEY: "order-17"}
    async with serving(tmp_path, ledger) as (gateway, _), Client(gateway.server) as client:
        for _ in range(2):
            told = await client.call_tool("write", {"name": "x"}, meta=named)
            assert text_of(told) == "wrote x as number 1"
        with pytest.raises(MCPError, match="belongs to another call"):
            await client.call_tool("write", {"name": "y"}, meta=named)
        wrong: Any = {KEY: 17}
        with pytest.raises(MCPError, match="must be a text of 1 to 200 characters"):
            await client.call_tool("write", {"name": "y"}, meta=wrong)
        assert text_of(await client.call_tool("write", {"name": "x"})) == "wrote x as number 2"
    assert ledger.written == ["x", "x"]


async def test_the_same_call_twice_at_once_is_two_calls(tmp_path: Path) -> None:
    ledger = Ledger()
    async with serving(tmp_path, ledger) as (gateway, _), Client(gateway.server) as client:
        calls = [asyncio.ensure_future(client.call_tool("write", {"name": "x"})) for _ in range(2)]
        await until(lambda: len(ledger.written) == 2)
        ledger.may_end.set()
        await asyncio.gather(*calls)
        assert text_of(await client.call_tool("write", {"name": "x"})) == "wrote x as number 3"
