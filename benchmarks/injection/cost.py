"""What the flow of values costs: CPU of the same runs with and without the stage, in turn, in one process.

Over HTTP a step is what `benchmarks.overhead` counts: a model's answer and a call, ten to a run. Each reads 1 kB of
others' words, and in one run of three it changes something, too. In memory nothing else is left of a step.
"""

import asyncio
import logging
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.overhead.processes import serving
from journeyman import Agent, Limits, Policy, RiskLevel, ToolLibrary, run, tool
from journeyman.models.openai import OpenAIModel
from journeyman.testing import ScriptedModel, call, say

MOST = 1.05
ROUNDS = 40
ACTING = 3
"""One of so many runs over HTTP changes something at each of its steps."""
BODY = "The quarterly figures are attached; sales of kettles rose by 4 % while those of lamps fell. " * 3


@tool(risk=RiskLevel.REVERSIBLE, read_only=True, reads="untrusted")
def read_mail(number: int) -> list[dict[str, str]]:
    """Read some mail."""
    return [
        {"id": f"m-{number}{at}", "sender": f"person{at}@corp.example", "subject": f"Figures {number}", "body": BODY}
        for at in range(4)
    ]


@tool(risk=RiskLevel.REVERSIBLE, sends="to")
def send_email(to: str, subject: str, body: str) -> str:
    """Send a mail."""
    return "sent"


REQUEST = "Read my mail and send a summary of each to anna@corp.example"


async def once(flow: str, *, steps: int, acts: int) -> None:
    """A run of so many steps, of which every n-th changes something and the others read."""
    library = ToolLibrary([read_mail, send_email])
    to, body = "anna@corp.example", "Sales of kettles rose, those of lamps fell: part "
    turns = [
        call("send_email", to=to, subject="Summary", body=f"{body} {at}")
        if at % acts == acts - 1
        else call("read_mail", number=at)
        for at in range(steps)
    ]
    response = await run(
        Agent(name="assistant", instruction="Help.", tools=library.specifications()),
        REQUEST,
        library=library,
        model=ScriptedModel([*turns, say("Done.")]),
        policy=Policy.model_validate({"flow": flow}),
        limits=Limits(iterations=steps + 1),
    )
    if not all(record.success for record in response.tool_calls):
        raise AssertionError([record.error_message for record in response.tool_calls])


@asynccontextmanager
async def over_http(flow: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Gives what does six runs of ten steps with a model over HTTP. The model's server knows one tool by its name."""
    with serving() as base_url:
        made = 0

        async def add_numbers(a: int, b: int) -> str:
            """Add two numbers, and say what others wrote of it."""
            nonlocal made
            made += 1
            return f"{BODY.replace('4 %', 'a little')} {chr(97 + made % 26) * 9}"

        how: dict[str, Any] = {"risk": RiskLevel.REVERSIBLE, "reads": "untrusted"}
        reading, acting = (ToolLibrary([tool(add_numbers, **how, read_only=only)]) for only in (True, False))
        model = OpenAIModel("scripted", base_url=base_url, api_key="none")

        async def runs() -> None:
            for number in range(6):
                library = acting if number % ACTING == 0 else reading
                response = await run(
                    Agent(name="bench", instruction="You are a bench.", tools=library.specifications()),
                    "Add the numbers. script: 10 turns of 1 add_numbers",
                    library=library,
                    model=model,
                    policy=Policy.model_validate({"flow": flow}),
                    limits=Limits(iterations=20),
                )
                if not all(record.success for record in response.tool_calls):
                    raise AssertionError([record.error_message for record in response.tool_calls])

        yield runs


async def http_ratio(*, rounds: int) -> float:
    logging.basicConfig(level=logging.INFO, handlers=[logging.NullHandler()])
    spent: dict[str, list[float]] = {"ask": [], "off": []}
    async with over_http("ask") as on, over_http("off") as off:
        for number in range(rounds + 2):
            for flow, runs in (("ask", on), ("off", off))[:: 1 if number % 2 else -1]:
                begun = time.process_time()
                await runs()
                if number > 1:
                    spent[flow].append(time.process_time() - begun)
    return statistics.median(one / two for one, two in zip(spent["ask"], spent["off"], strict=True))


async def ratio(*, steps: int, acts: int, rounds: int) -> float:
    """CPU of a run with the stage, for one of a run without: the median over rounds of both, one after the other."""
    found = []
    for number in range(rounds + 2):
        spent = {}
        for flow in ("off", "ask") if number % 2 else ("ask", "off"):
            begun = time.process_time()
            await once(flow, steps=steps, acts=acts)
            spent[flow] = time.process_time() - begun
        if number > 1:  # the first are to warm up
            found.append(spent["ask"] / spent["off"])
    return statistics.median(found)


def main() -> int:
    worst = asyncio.run(http_ratio(rounds=ROUNDS))
    print(f"10 steps over HTTP, one of {ACTING} runs changes something at each: {worst:.3f}")
    for steps, acts in ((20, 4), (20, 2), (80, 4)):
        found = asyncio.run(ratio(steps=steps, acts=acts, rounds=ROUNDS))
        print(f"in memory, {steps} steps, one of {acts} a change, the others read 1 kB of others' words: {found:.3f}")
    print(f"target: over HTTP at most {MOST} of the CPU without the stage")
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    raise SystemExit(main())
