"""Tests made of recorded runs: they pass as they are, fail when something that matters is changed, and hold no secret.

The runs are scenarios of BFCL's multi-turn part with its own tools, requests to the tasks toolkit, calls of an MCP
server, answers of a given form, and streamed ones.
"""

import copy
import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.bfcl import corpus
from journeyman import Agent, Approve, Journeyman, Policy, RiskLevel, ToolLibrary, run, stream, tool
from journeyman.app.service import task_library
from journeyman.core.runs import RunStatus
from journeyman.execution.recorder import MemoryJournal
from journeyman.replay.playing import Played, play
from journeyman.replay.recording import Recording
from journeyman.replay.stage import Today
from journeyman.replay.written import Redaction, written_test
from journeyman.sources import McpServer
from journeyman.testing import ScriptedModel, call, say
from journeyman.tools.tool import Tool

CANARY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
SERVER = Path(__file__).with_name("server.py")
TITLES = (
    "Buy stamps",
    "Call the dentist",
    "Renew the passport",
    "Water the plants",
    "Write the report",
    "Pay the rent",
)
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


async def recorded(agent: Agent, task: str, library: ToolLibrary, turns: list[Any], **options: Any) -> Recording:
    """A run with a secret in what its person says, in memory."""
    journal = MemoryJournal()
    asked = {**options, "journal": journal, "library": library, "model": ScriptedModel(turns)}
    asked["approver"] = lambda _: Approve(by="grace")
    if asked.pop("streamed", False):
        async for _ in stream(agent, f"{task} (key {CANARY})", **asked):
            pass
    else:
        await run(agent, f"{task} (key {CANARY})", **asked)
    [run_id] = journal.runs()
    return Recording(run_id, await journal.read(run_id))


async def bfcl(count: int) -> AsyncIterator[tuple[str, Recording, ToolLibrary]]:
    corpus.install()
    scenarios = [item for item in corpus.load(["base"]) if item.calls][: count * 4 : 4]
    for scenario in scenarios:
        actors = corpus.instances(scenario.classes)
        corpus.set_stage(actors, scenario)
        methods = {name: method for actor in actors.values() for name, method in corpus.methods(actor).items()}
        library = ToolLibrary(tool(method, risk=RiskLevel.REVERSIBLE) for method in methods.values())
        agent = Agent(name="bfcl", instruction="Do as asked.", tools=library.specifications(), max_iterations=40)
        turns = [call(one.tool, **corpus.arguments(methods[one.tool], one)) for one in scenario.calls]
        yield "bfcl", await recorded(agent, scenario.id, library, [*turns, say("Done.")]), library


async def tasks(count: int, *, streamed: bool = False) -> AsyncIterator[tuple[str, Recording, ToolLibrary]]:
    with tempfile.TemporaryDirectory() as folder:
        async with Journeyman(store=f"sqlite:///{folder}/tasks.db") as app:
            library = task_library(app.store)
            agent = Agent(name="tasks", instruction="Keep the tasks.", tools=library.specifications())
            for title in TITLES[:count]:
                turns: list[Any] = [
                    call("create_task", title=title),
                    call("search_tasks", query=title),
                    call("delete_task", task=title),
                ]
                turns.append(say(f"{title} is gone."))
                made = await recorded(agent, f"Add {title}, then remove it", library, turns, streamed=streamed)
                yield "streamed" if streamed else "tasks", made, library


async def mcp(count: int) -> AsyncIterator[tuple[str, Recording, ToolLibrary]]:
    source = McpServer(command=[sys.executable, str(SERVER)], name="box")
    async with ToolLibrary(sources=[source]) as library:
        agent = Agent(name="boxes", instruction="Mind the boxes.", tools=library.specifications())
        for number in range(count):
            turns = [call("box.look", shelf=number), call("box.put", shelf=number, thing="tea"), say("It is there.")]
            yield "mcp", await recorded(agent, f"Put tea on shelf {number}", library, turns), library


async def structured(count: int) -> AsyncIterator[tuple[str, Recording, ToolLibrary]]:
    @tool(read_only=True)
    def find_person(name: str) -> dict[str, Any]:
        """Find a person. Use when somebody is named."""
        return {"name": name, "age": 30 + len(name)}

    library = ToolLibrary([find_person])
    agent = Agent(name="people", instruction="Find them.", tools=library.specifications(), output=PERSON)
    for name in ("Ada", "Grace", "Barbara", "Frances", "Hedy", "Annie")[:count]:
        turns = [call("find_person", name=name), call("finish", name=name, age=30 + len(name))]
        yield "structured", await recorded(agent, f"Who is {name}?", library, turns), library


# --- what is broken on purpose: in the recording, in the rules, in the tools


def _other(value: Any) -> Any:
    if isinstance(value, dict):
        key = next(iter(value), "added")
        return {**value, key: _other(value.get(key))}
    if isinstance(value, list):
        return [*value, "one more"]
    return {str: f"{value} not", bool: not value, int: 7_777, float: 7_777.5}.get(type(value), "something else")


def broken_recordings(recording: Recording) -> Iterator[tuple[str, Recording]]:
    """The recording with one thing changed, again and again."""
    whole = json.loads(recording.to_json())

    def fresh(kind: str, wanted: Callable[[dict[str, Any]], Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """A copy, and the fact in it that is changed: the first that is wanted, then the last."""
        places = [at for at, fact in enumerate(whole["facts"]) if fact["type"] == kind and wanted(fact)]
        for at in sorted({*places[:1], *places[-1:]}):
            data = copy.deepcopy(whole)
            yield data, data["facts"][at]

    for data, fact in fresh("call_finished", lambda fact: fact["record"].get("result")):
        fact["record"]["result"] = _other(fact["record"]["result"])
        yield "result", Recording.read(json.dumps(data))
    for data, fact in fresh("message", lambda fact: fact["calls"] and fact["calls"][0]["arguments"]):
        fact["calls"][0]["arguments"] = _other(fact["calls"][0]["arguments"])
        yield "arguments", Recording.read(json.dumps(data))
    for data, fact in fresh("message", lambda fact: fact["calls"]):
        fact["calls"][0]["tool_name"] = "another_tool"
        yield "tool", Recording.read(json.dumps(data))
    for data, fact in fresh("message", lambda fact: not fact["calls"]):
        fact["text"] = "Something else."
        yield "answer", Recording.read(json.dumps(data))


def broken_rules(recording: Recording, library: ToolLibrary) -> Iterator[tuple[str, Today]]:
    """Rules and tools with one thing changed that concerns this run."""
    names = [item.call.tool_name for item in recording.calls if item.call.tool_name in library]
    asked = [item.call.tool_name for item in recording.calls if item.approval is not None]
    grades = {"risks": dict.fromkeys(asked, RiskLevel.REVERSIBLE)}
    yield "policy", Today(library, Policy(**grades if asked else {"least_risks": {names[0]: RiskLevel.IRREVERSIBLE}}))
    yield "policy", Today(library, Policy(max_argument_bytes=1))
    yield "instruction", Today(library, instruction="Do the opposite.")
    specification = library[names[0]].specification
    schema = copy.deepcopy(specification.parameters)
    schema["required"] = [*schema.get("required", []), "reason"]
    schema.setdefault("properties", {})["reason"] = {"type": "string"}
    stricter = specification.model_copy(update={"parameters": schema})
    others = (item for item in library if item.name != names[0])
    yield "schema", Today(ToolLibrary([Tool.from_specification(stricter, _nothing), *others]))


def _nothing(**_: Any) -> None:
    raise AssertionError("a replay runs no tool")


def passes(test: str, played: Played) -> bool:
    """Whether the written test passes with what came of the recording."""
    program: dict[str, Any] = {}
    exec(compile(test, "test_made", "exec"), program)
    [check] = [value for name, value in program.items() if name.startswith("test_")]

    def recorded_run(_: str, *, diverges: bool = False, **options: Any) -> Played:
        assert diverges or not played.problems, played.problems
        return played

    try:
        check(recorded_run)
    except AssertionError:
        return False
    return True


async def measure(*, quick: bool, packages: bool = True) -> int:
    """Prints what was found; 1 where a target is missed. Without ``packages`` nothing is installed: no scenarios."""
    share = 5 if quick else 1
    made, passed, tried, caught, missed = (Counter[str]() for _ in range(5))
    held = 0
    kinds = [tasks(6 // share), tasks(4 // share or 1, streamed=True), mcp(5 // share), structured(5 // share)]
    if packages:
        kinds.append(bfcl(30 // share))
    for kind in kinds:
        async for name, recording, library in kind:
            assert recording.status is RunStatus.COMPLETED, recording.facts[-1]
            clean = Redaction().recording(recording)
            test = written_test(await play(clean, Today(library)), "run.json")
            made[name] += 1
            passed[name] += passes(test, await play(Recording.read(clean.to_json()), Today(library)))
            held += CANARY in test or CANARY in clean.to_json()
            breaks = [(what, other, Today(library)) for what, other in broken_recordings(clean)]
            breaks += [(what, clean, today) for what, today in broken_rules(clean, library)]
            for what, other, today in breaks:
                tried[what] += 1
                if passes(test, await play(other, today)):
                    missed[f"{name}: {what}"] += 1
                else:
                    caught[what] += 1
    whole, found = tried.total(), caught.total()
    print(f"tests made of {made.total()} runs ({', '.join(f'{count} {name}' for name, count in made.items())})")
    print(f"  pass as they are: {passed.total()} of {made.total()}; hold the canary: {held} (target 0)")
    print(f"  fail when broken: {found} of {whole} ({found / whole:.1%}; target 90 %)")
    for what in tried:
        print(f"    {what:12} {caught[what]:4} of {tried[what]}")
    for line, count in missed.items():
        print(f"    missed: {line} ({count})")
    return int(passed != made or held > 0 or found < 0.9 * whole)
