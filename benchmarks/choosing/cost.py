"""What a step costs with 500 tools beside 20: tokens of the prompt, and CPU of everything but the model.

A model that answers from a script is sent each request as the bytes that an OpenAI-compatible server would get. Runs
have ten steps; in the sixth the model looks for a tool, and then calls what it found.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from typing import Any

from journeyman import Agent, Limits, Policy, Tool, ToolLibrary, run, tool
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.models.openai import OpenAIModel
from journeyman.testing import ScriptedModel, call, say

DEEDS = (
    *("create", "update", "delete", "list", "find", "send", "approve", "reject", "archive", "restore", "assign"),
    *("export", "import", "share", "lock", "unlock", "rename", "merge", "split", "copy", "move", "print", "sign"),
    *("translate", "schedule"),
)
THINGS = (
    *("invoice", "customer", "contract", "ticket", "parcel", "meeting", "report", "employee", "supplier", "refund"),
    *("subscription", "campaign", "document", "warehouse", "vehicle", "budget", "survey", "license", "branch", "order"),
)
TASK = "Please approve the refund of customer 17 and send the invoice again"
BYTES_PER_TOKEN = 4
STEPS = 10
MOST_TOKENS, MOST_CPU = 1.2, 10.0
"""Of 500 tools narrowed beside 20: how many times as much a step may cost. A model takes thousands of times as long."""


def tools(count: int) -> list[Tool[..., Any]]:
    """Tools as offices have them, with three parameters each. The first calls of the script are among the first ten."""

    @tool(read_only=True)
    def work(number: int, note: str = "", urgent: bool = False) -> str:
        """Do something.

        Args:
            number: The number, as printed on the form.
            note: What the next person should know.
            urgent: Whether it must be done today.
        """
        return f"{number} is done"

    names = [(deed, thing) for thing in THINGS for deed in DEEDS]
    names.sort(key=lambda pair: pair not in {("approve", "refund"), ("send", "invoice"), ("print", "report")})
    return [
        work.with_changes(
            name=f"{deed}_{thing}",
            description=f"{deed.title()} one {thing} by its number. Use when the user asks to {deed} a {thing}.",
        )
        for deed, thing in names[:count]
    ]


class Counting(ScriptedModel):
    """Writes each request as it would be sent, and notes how large it is."""

    def __init__(self, writer: OpenAIModel, *, find: bool) -> None:
        at_work = [call("approve_refund", number=n) if n % 2 else call("send_invoice", number=n) for n in range(STEPS)]
        if find:
            at_work[5] = call("find_tools", query="print a report", k=5)
            at_work[6] = call("print_report", number=1)
        super().__init__([*at_work[: STEPS - 1], say("done")])
        self.writer = writer
        self.sizes: list[int] = []

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        self.sizes.append(len(self.writer._body(request, self.writer._offer(request.tools), stream=False)))
        return await super().respond(request, deltas)


class Arrangement:
    """So many tools, of which so many are offered at most."""

    def __init__(self, count: int, most: int | None) -> None:
        made = tools(count)
        self.count = count
        self.narrowed = most is not None and count > most
        self.library = ToolLibrary(made)
        self.agent = Agent(name="office", instruction="Help with the office's work.", tools=made)
        self.policy = Policy(max_offered_tools=most)
        self.writer = OpenAIModel("m", base_url="http://127.0.0.1:9", api_key="none")
        self.index_ms, self.offered = 0.0, 0
        self.cpu, self.tokens = list[float](), list[float]()

    async def index(self) -> None:
        begun = time.process_time()
        await self.library.rank(TASK, self.library.specifications(), k=5)
        self.index_ms = (time.process_time() - begun) * 1000

    async def play(self, *, counts: bool) -> None:
        model = Counting(self.writer, find=self.narrowed)
        begun = time.process_time()
        response = await run(
            self.agent, TASK, library=self.library, model=model, policy=self.policy, limits=Limits(iterations=20)
        )
        spent = time.process_time() - begun
        assert response.answer == "done", response.error
        assert all(record.success for record in response.tool_calls)
        if counts:
            self.cpu.append(spent * 1000 / STEPS)
            self.tokens.append(statistics.fmean(model.sizes) / BYTES_PER_TOKEN)
            self.offered = max(self.offered, *(len(request.tools) for request in model.requests))


async def compare(runs: int) -> dict[str, Any]:
    """All arrangements take turns, so that whatever else the machine does meets them alike."""
    few, narrowed, _ = arranged = [Arrangement(20, 20), Arrangement(500, 20), Arrangement(500, None)]
    for one in arranged:
        await one.index()
    for number in range(runs + 2):
        for one in arranged:
            await one.play(counts=number >= 2)  # the first two warm up
    rows = {}
    for name, one in zip(("20 tools", "500 tools, narrowed", "500 tools, all offered"), arranged, strict=True):
        rows[name] = {
            "tools": one.count,
            "offered": one.offered,
            "tokens_per_step": round(statistics.median(one.tokens)),
            "tokens_ratio": round(statistics.median(one.tokens) / statistics.median(few.tokens), 2),
            "cpu_ms_per_step": round(statistics.median(one.cpu), 3),
            "cpu_ratio": round(statistics.median(mine / its for mine, its in zip(one.cpu, few.cpu, strict=True)), 2),
            "index_ms_once": round(one.index_ms, 1),
        }
    many = rows["500 tools, narrowed"]
    passed = narrowed.offered <= 20 and many["tokens_ratio"] <= MOST_TOKENS and many["cpu_ratio"] <= MOST_CPU
    return {"rows": rows, "passed": passed}


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choosing cost", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--runs", type=int, default=30, metavar="N", help="runs of ten steps for each arrangement")
    chosen = parser.parse_args(arguments)
    report = asyncio.run(compare(chosen.runs))
    if chosen.json:
        print(json.dumps(report, indent=1))
    else:
        print(f"{'':24} offered  tokens/step     ×  CPU ms/step     ×  index once")
        for name, row in report["rows"].items():
            print(
                f"{name:24} {row['offered']:7} {row['tokens_per_step']:12,} {row['tokens_ratio']:5.2f} "
                f"{row['cpu_ms_per_step']:12.3f} {row['cpu_ratio']:5.2f} {row['index_ms_once']:8.1f} ms"
            )
        verdict = "pass" if report["passed"] else "FAIL"
        print(f"{verdict}  ≤ 20 offered of 500, tokens ≤ {MOST_TOKENS} ×, CPU ≤ {MOST_CPU} × those with 20 tools")
    return 0 if report["passed"] else 1
