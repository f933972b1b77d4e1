"""What the flow of values costs: CPU of the same runs with and without the stage, in turn, in one process."""

import asyncio
import statistics
import time

from journeyman import Agent, Limits, Policy, RiskLevel, ToolLibrary, run, tool
from journeyman.testing import ScriptedModel, call, say

MOST = 1.05
ROUNDS = 40
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
    worst = 0.0
    for steps, acts in ((20, 4), (20, 2), (80, 4)):
        found = asyncio.run(ratio(steps=steps, acts=acts, rounds=ROUNDS))
        worst = max(worst, found)
        print(f"{steps} steps, one of {acts} changes something, the others read 1 kB of others' words: {found:.3f}")
    print(f"target: at most {MOST} of the CPU without the stage")
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    raise SystemExit(main())
