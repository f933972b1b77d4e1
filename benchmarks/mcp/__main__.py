"""``python -m benchmarks.mcp [calls] [tools] [hostile] [clients] [kills] [gates]``: all of them, unless some are named.

``calls``: CPU of this process for a governed call (validated, graded, limited, recorded in memory) against the same
call by the package's own client, over stdio to the same server, in turns. ``tools``: how much longer 500 tools take to
be there than the server itself takes to list them. ``hostile``: for how long the event loop stood still, at most, with
each of the servers in ``tests/sources/hostile``. ``clients``: whether the clients that others publish can work with the
gateway (``benchmarks/mcp/clients.py``). ``kills``: whether calls are lost or doubled where server, gateway or client
are killed (``benchmarks/mcp/kills.py``; ``--kills N``). ``gates``: how well tools of published servers are graded
(``benchmarks/mcp/gates.py``). Exit code 1 means that something was over its bound.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client, StdioServerParameters

from journeyman import Agent, Limits, Policy, ToolLibrary, run
from journeyman.sources import McpServer
from journeyman.testing import ScriptedModel, call, say

SERVER = Path(__file__).with_name("server.py")
TURNS, CALLS = 7, 100


def source(tools: int) -> McpServer:
    command = [sys.executable, str(SERVER), str(tools)]
    return McpServer(command=command, name="bench", trust_annotations=True, start_seconds=60)


async def calls() -> dict[str, float]:
    """Milliseconds of CPU for one call; the median of turns, bare and governed one after the other."""
    parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER), "10"])
    bare, governed = [], []
    async with (
        Client(parameters, mode="legacy") as client,
        ToolLibrary(sources=[source(10)]) as library,
    ):
        await client.list_tools()
        for _ in range(TURNS):
            bare.append(await _bare(client))
            governed.append(await _governed(library))
    found = {"bare_ms": statistics.median(bare), "governed_ms": statistics.median(governed)}
    ratios = [ours / theirs for ours, theirs in zip(governed, bare, strict=True)]
    return {**found, "ratio": statistics.median(ratios)}


async def _bare(client: Client) -> float:
    gc.collect()
    begun = time.process_time()
    for number in range(CALLS):
        await client.call_tool("look_up_1", {"path": f"/shelf/{number}"})
    return (time.process_time() - begun) / CALLS * 1000


async def _governed(library: ToolLibrary) -> float:
    """Through the executor alone: what a run adds around a call has benchmarks of its own."""
    from journeyman.app.assembly import in_process
    from journeyman.core.runs import ToolCall
    from journeyman.execution.approval import NoApprover
    from journeyman.execution.executor import CallScope
    from journeyman.execution.recorder import MemoryJournal, Recorder

    executor = in_process.of(library)
    recorder = Recorder("run_1", MemoryJournal(), clock=executor.clock, fold=lambda _: None, listeners=[])
    tools = {item.name: item for item in library}
    scope = CallScope(run_id="run_1", recorder=recorder, tools=tools, policy=Policy(), gate=NoApprover())
    gc.collect()
    begun = time.process_time()
    for number in range(CALLS):
        wanted = ToolCall(id=f"call_{number}", tool_name="bench.look_up_1", arguments={"path": f"/shelf/{number}"})
        record: Any = await executor.execute(wanted, scope)
        assert record.success, record
    return (time.process_time() - begun) / CALLS * 1000


async def tools(count: int = 500) -> dict[str, float]:
    """Seconds until all tools are there, and of them the server's own: its start and its lists, by the bare client."""
    async with ToolLibrary(sources=[source(1)]):
        pass  # what is imported once does not count
    begun = time.perf_counter()
    parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER), str(count)])
    async with Client(parameters, mode="legacy") as client:
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            if (cursor := page.next_cursor) is None:
                break
        theirs = time.perf_counter() - begun
    begun, spent = time.perf_counter(), time.process_time()
    async with ToolLibrary(sources=[source(count)]) as library:
        ours, cpu = time.perf_counter() - begun, time.process_time() - spent
        assert len(library) == count
        agent = Agent(name="a", instruction="x", all_tools=True)
        offered: list[int] = []

        class Counting(ScriptedModel):
            async def respond(self, request: Any, *rest: Any, **more: Any) -> Any:
                offered.append(len(request.tools))
                return await super().respond(request, *rest, **more)

        model = Counting([call("bench.look_up_7", path="/"), say("done")])
        await run(agent, "Look up collection 7", library=library, model=model, limits=Limits(iterations=3))
    told = {"ours_s": ours, "theirs_s": theirs, "added_s": ours - theirs, "our_cpu_s": cpu}
    return {**told, "offered": float(max(offered, default=0))}


async def hostile() -> dict[str, float]:
    """Milliseconds in which nothing else could run, at most, by server."""
    from tests.sources.mcp_servers import HOSTILE, Lag, hostile, hostile_web, record_of

    async with hostile_web("redirects") as served:  # what is imported once does not count
        await _one(served, record_of)
    await _one(hostile("large_output"), record_of)
    gc.collect()
    gc.freeze()  # as `journeyman mcp serve` does: a full collection of what was imported takes longer than any server
    found = {}
    web = ("zip_bomb", "redirects", "breaks_off", "reconnect_storm", "stream_of_nothing")
    for path in sorted(HOSTILE.glob("*.py")):
        if path.stem in ("base", "web"):
            continue
        async with Lag() as lag:
            try:
                if path.stem in web:
                    async with hostile_web(path.stem, timeout_seconds=2) as served:
                        await _one(served, record_of)
                else:
                    await _one(hostile(path.stem, timeout_seconds=2, start_seconds=5), record_of)
            except Exception as error:  # each says something; the tests look at what
                print(f"  {path.stem}: {type(error).__name__}", file=sys.stderr)
        found[path.stem] = lag.worst * 1000
    return found


async def _one(server: McpServer, record_of: Any) -> None:
    async with ToolLibrary(sources=[server]) as library:
        for name in library.names()[:1]:
            shape = {"shape": "long_values"} if "shape" in str(library[name].specification.parameters) else {}
            await record_of(library, name, **shape)


BOUNDS = {"calls": {"ratio": 1.3}, "tools": {"added_s": 2.0}}
LONGEST_STALL_MS = 50.0
MOST_FALSE_GATES = 0.02
"""Of the reads."""
MODES = ("calls", "tools", "hostile", "clients", "kills", "gates")


def missed(mode: str, found: dict[str, float]) -> list[str]:
    """What is over its bound."""
    bounds = dict.fromkeys(found, LONGEST_STALL_MS) if mode == "hostile" else BOUNDS[mode]
    return [
        f"{mode}: {name} is {found[name]:.3g}, over {most:g}" for name, most in bounds.items() if found[name] > most
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modes", nargs="*", choices=[[], *MODES], metavar="MODE")
    parser.add_argument("--kills", type=int, default=36, help="of each of the three a third (default 36)")
    chosen = parser.parse_args()
    wanted = chosen.modes or MODES
    found: dict[str, Any] = {}
    over: list[str] = []
    for name, measure in (("calls", calls), ("tools", tools), ("hostile", hostile)):
        if name in wanted:
            found[name] = {key: round(value, 3) for key, value in asyncio.run(measure()).items()}
            over += missed(name, found[name])
    if found:
        print(json.dumps(found, indent=2))
    if "clients" in wanted:
        from benchmarks.mcp import clients

        told = asyncio.run(clients.all_clients())
        print(clients.table(told))
        over += [
            f"clients: {name} cannot work with the gateway: {what}" for name, what in told.items() if not what.right
        ]
    if "kills" in wanted:
        from benchmarks.mcp.kills import Campaign

        with TemporaryDirectory() as folder:
            findings = asyncio.run(Campaign(Path(folder)).run(chosen.kills))
        print(json.dumps({"kills": findings.told()}, indent=2))
        over += [f"kills: {what}" for what in (*findings.lost, *findings.doubled, *findings.misnamed)]
    if "gates" in wanted:
        from benchmarks.mcp import gates

        judged = asyncio.run(gates.gates())
        print(json.dumps({"gates": judged}, indent=2))
        over += [f"gates: {name} is taken for a read: {why}" for name, why in judged["false_passes"].items()]
        if len(judged["false_gates"]) > MOST_FALSE_GATES * judged["reads"]:
            over.append(f"gates: {len(judged['false_gates'])} of {judged['reads']} reads are asked about")
    print("\n".join(over) or "all within their bounds", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
