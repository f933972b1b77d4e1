"""Forks at every step of runs of six kinds: the past equals the parent's, and nothing of it is done again.

Effects are lines of a file outside the store. A fork before its next call must add none; at its end, those of the steps
from which it goes on. Every third fork is taken over by another process: the first one is closed before it has ended.
"""

import asyncio
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.replay.written import SERVER
from journeyman import Agent, Journeyman, RiskLevel, RunStatus, ToolLibrary, tool
from journeyman.core.events import Fact
from journeyman.replay.recording import Recording
from journeyman.sources import McpServer
from journeyman.testing import ScriptedModel, call, say, together

KINDS = ("approval", "unknown", "parallel", "chain", "mcp", "session")
NAMES = ("Ada", "Grace", "Hedy", "Annie")
DEADLY = "deadly"


def shop(ledger: Path, *, deadly: int = 0, sources: Sequence[McpServer] = ()) -> ToolLibrary:
    """Tools whose effects stand in a file. Where it is deadly, the process dies when so many payments are under way."""
    begun = Counter[str]()

    def done(line: str) -> str:
        with ledger.open("a") as file:
            file.write(f"{line}\n")
        return line

    @tool(read_only=True)
    def find(name: str) -> dict[str, str]:
        """Find an order. Use when it is not known."""
        return {"order": f"O-{name}"}

    @tool(risk=RiskLevel.REVERSIBLE)
    async def tag(name: str) -> str:
        """Tag an order. Use when it is to be found again."""
        return done(f"tag {name}")

    @tool(risk=RiskLevel.IRREVERSIBLE)
    async def refund(name: str) -> str:
        """Refund an order. Use when money goes back."""
        return done(f"refund {name}")

    @tool(risk=RiskLevel.REVERSIBLE)
    async def pay(name: str) -> str:
        """Pay an order. Use when it is due."""
        done(f"pay {name}")
        begun["pay"] += 1
        if deadly:
            if begun["pay"] == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            await asyncio.sleep(3_600)
        return f"pay {name}"

    return ToolLibrary([find, tag, refund, pay], sources=list(sources))


def script(kind: str, number: int) -> list[Any]:
    """The calls of a run, one turn each, for runs of a kind that differ by their number."""
    chosen = random.Random(f"{kind} {number}")
    name = f"{chosen.choice(NAMES)}-{number}"
    tags = [call("tag", name=f"{name}-{at}") for at in range(chosen.randint(1, 3))]
    by_kind: dict[str, list[Any]] = {
        "approval": [call("find", name=name), *tags, call("refund", name=name)],
        "unknown": [call("pay", name=name)],
        "parallel": [together(call("find", name=name), *tags), together(*tags, call("find", name=name))],
        "mcp": [call("box.look", shelf=number), call("box.put", shelf=number, thing=name), *tags],
        "session": [call("find", name=name), *tags],
    }
    return [*by_kind[kind], say(f"Done for {name}.")]


class Playing:
    """Answers for every run by the script that its task names."""

    async def respond(self, request: Any, deltas: Any = None) -> Any:
        words = next(message.content for message in reversed(request.messages) if message.role == "user").split()
        return await ScriptedModel(script(words[0], int(words[1]))).respond(request, deltas)


def app_over(folder: Path, library: ToolLibrary) -> Journeyman:
    return Journeyman(library=library, store=f"sqlite:///{folder}/runs.db", model=Playing())


async def ended(app: Journeyman, run_id: str) -> RunStatus:
    """The run at its end: a person agrees to everything, and says of a payment that it was made."""
    handle = await app.handle(run_id)
    while True:
        response = await handle.result()
        if response.status is RunStatus.AWAITING_APPROVAL:
            for asked in await app.approvals.pending(run_id=run_id):
                await app.approvals.approve(asked.id, by="grace")
        elif response.status is RunStatus.AWAITING_RESOLUTION:
            for record in await handle.unknown():
                await handle.resolve(record.call_id, "done", result="paid", by="grace")
        else:
            return response.status


async def begin(app: Journeyman, kind: str, number: int) -> str:
    if kind == "chain":
        steps = [{"tool": "tag", "args": {"name": f"c{number}-{at}"}} for at in range(1, 4)]
        await app.chain(steps, run_id=f"chain-{number}")
        return f"chain-{number}"
    agent = Agent(name="clerk", instruction="Help.", tools=app.library.specifications(), all_tools=True)
    session = f"talk-{number // 2}" if kind == "session" else None
    handle = await app.start(agent, f"{kind} {number}", run_id=f"{kind}-{number}", session_id=session)
    if kind != "unknown":
        await ended(app, handle.run_id)
    return handle.run_id


async def die(folder_name: str, count: int) -> None:
    """Begin payments and die in the middle of them all."""
    folder = Path(folder_name)
    async with app_over(folder, shop(folder / "ledger", deadly=count)) as app:
        await asyncio.gather(*(begin(app, "unknown", number) for number in range(count)))
        await asyncio.sleep(3_600)


def effects(ledger: Path) -> list[str]:
    return ledger.read_text().splitlines()


def plain(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    return [fact.model_dump(mode="json") for fact in facts]


async def measure(*, quick: bool) -> int:
    count, wrong, forks, taken_over = (8 if quick else 34), list[str](), Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        folder, ledger = Path(name), Path(name, "ledger")
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            f"import asyncio; from benchmarks.replay import forks; asyncio.run(forks.die({name!r}, {count}))",
        )
        assert await child.wait() == -signal.SIGKILL
        server = McpServer(command=[sys.executable, str(SERVER), str(ledger)], name="box")
        async with shop(ledger, sources=[server]) as library:
            app = await app_over(folder, library).__aenter__()
            await app.resume()
            for kind in KINDS:
                runs = [
                    await begin(app, kind, number) if kind != "unknown" else f"unknown-{number}"
                    for number in range(count)
                ]
                for at, run_id in enumerate(runs):
                    await ended(app, run_id)
                    parent = await app.store.runs.facts(run_id)
                    recording = Recording(run_id, parent)
                    for step in recording.steps:
                        iteration = step.message.iteration
                        before = effects(ledger)
                        handle = await app.fork(run_id, at=iteration)
                        forks[kind] += 1
                        if forks.total() % 3 == 0:  # another process takes it over
                            await app.__aexit__(None, None, None)
                            app = await app_over(folder, library).__aenter__()
                            await app.resume()
                            taken_over += 1
                        status = await ended(app, handle.run_id)
                        facts = await app.store.runs.facts(handle.run_id)
                        added = Counter(effects(ledger)[len(before) :])
                        expected = Counter(
                            line
                            for later in recording.steps
                            if later.message.iteration >= iteration
                            for item in later.calls.values()
                            if (line := _effect(item.call.tool_name, item.call.arguments)) is not None
                        )
                        where = f"{kind} {at}, step {iteration}"
                        if status is not RunStatus.COMPLETED:
                            wrong.append(f"{where}: {status.value}")
                        if plain(facts[: step.before]) != plain(parent[: step.before]):
                            wrong.append(f"{where}: another past")
                        if added != expected:
                            wrong.append(f"{where}: did {dict(added)}, expected {dict(expected)}")
                    if plain(await app.store.runs.facts(run_id)) != plain(parent):
                        wrong.append(f"{kind} {at}: the parent has changed")
            await app.__aexit__(None, None, None)
    told = ", ".join(f"{number} {kind}" for kind, number in forks.items())
    print(f"forks at every step of {count * len(KINDS)} runs: {forks.total()} ({told})")
    print(f"  taken over by another app: {taken_over}")
    print(f"  another past, or effects lost or doubled: {len(wrong)} (target 0)")
    for line in wrong[:10]:
        print(f"    {line}")
    return int(bool(wrong))


def _effect(name: str, arguments: dict[str, Any]) -> str | None:
    if name == "box.put":
        return f"put {arguments['shelf']} {arguments['thing']}"
    return f"{name} {arguments['name']}" if name in ("tag", "refund", "pay") else None
