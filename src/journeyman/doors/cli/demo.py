"""``journeyman demo``: one job from start to finish, with a word on what to look at. The model is scripted; the tools,
the governance and the records are real.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from journeyman.app import Agent, ToolLibrary, stream
from journeyman.core.approvals import Approval, Approve, Approver, Deny
from journeyman.core.events import MessageReceived, RunFailed, RunFinished
from journeyman.core.policy import Policy
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.doors.cli import screen
from journeyman.doors.cli.asking import TerminalApprover
from journeyman.doors.cli.faults import ExitCode, complain
from journeyman.doors.cli.scenes import INSTRUCTION, NARRATION, NOTES, TASK, furnish, script, tools
from journeyman.doors.cli.trace import Trace

ANSWER_SECONDS = 60
"""How long a person at a terminal may think."""
NOBODY_SECONDS = 3
"""How long the demo waits for nobody, to show that an unanswered question ends."""


def play(*, yes: bool, live: bool) -> ExitCode:
    """The whole tour."""
    console = screen.console()
    console.print(
        Panel(
            "The model is scripted: its replies were written beforehand.\n"
            "The tools, the governance and the records are real. No key, no network.",
            title="Journeyman demo",
            title_align="left",
            border_style="cyan",
        )
    )
    screen.show(console, Text.assemble(("Task  ", "bold"), TASK))
    with TemporaryDirectory(prefix="journeyman-demo-") as folder:
        root = Path(folder)
        furnish(root)
        response, facts = asyncio.run(_play(console, root, yes=yes, live=live))
        left = sorted(path.name for path in (root / NOTES).iterdir())
    if response is None or response.status is not RunStatus.COMPLETED:
        complain("the demo did not come to its end", None if response is None else response.reasoning)
        return ExitCode.FAILED
    _close(console, response, facts=facts, notes=left)
    return ExitCode.DONE


async def _play(console: Console, root: Path, *, yes: bool, live: bool) -> tuple[AgentResponse | None, int]:
    library = ToolLibrary(tools(root))
    agent = Agent(name="clerk", instruction=INSTRUCTION, tools=tuple(library.specifications()))
    trace = Trace(console, live=live)
    approver, seconds = _approver(console, trace, yes=yes)
    response, facts = None, 0
    with trace:
        async for event in stream(
            agent,
            TASK,
            library=library,
            model=script(),
            approver=approver,
            policy=Policy(approval_seconds=seconds),
        ):
            facts += event.seq is not None
            if isinstance(event, MessageReceived) and event.iteration in NARRATION:
                _narrate(console, *NARRATION[event.iteration])
            trace.show(event)
            if isinstance(event, RunFinished | RunFailed):
                response = event.response
    return response, facts


def _approver(console: Console, trace: Trace, *, yes: bool) -> tuple[Approver, float]:
    if yes:
        return lambda approval: Approve(by="--yes"), ANSWER_SECONDS
    if screen.someone_is_there() and sys.stdout.isatty():
        return TerminalApprover(console, trace), ANSWER_SECONDS

    async def nobody(approval: Approval) -> Approve | Deny:
        await trace.reached(approval.id)
        screen.show(console, f"no terminal, so nobody answers; this expires after {NOBODY_SECONDS} s …", indent=4)
        await asyncio.Event().wait()
        raise AssertionError

    return nobody, NOBODY_SECONDS


def _narrate(console: Console, title: str, told: str) -> None:
    console.print()
    console.print(Rule(Text(title, style="bold"), align="left", style="cyan"))
    screen.show(console, Text(told, style="dim"))


def _close(console: Console, response: AgentResponse, *, facts: int, notes: list[str]) -> None:
    console.print()
    console.print(Panel(Text(response.answer), title="Answer", title_align="left", border_style="green"))
    _narrate(console, "What each call came to", "From the records: every call has one, whatever became of it.")
    console.print(_costs(response))
    console.print()
    asked = screen.counted(response.usage.requests, "model request")
    screen.show(console, f"{facts} facts in the journal · {asked} · no tokens: the model is scripted")
    screen.show(console, f"Left in {NOTES}: {', '.join(notes)}")
    screen.show(console, "Next: journeyman tools list · journeyman doctor · journeyman run --help")


def _costs(response: AgentResponse) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("step", justify="right")
    for heading in ("tool", "risk", "outcome"):
        table.add_column(heading, no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    for step in response.structured_trace:
        for record in step.calls:
            table.add_row(
                str(step.iteration),
                record.tool_name,
                "–" if record.risk is None else screen.risk_text(record.risk),
                screen.status_text(record.status, None if record.error is None else record.error.code),
                screen.duration(record.duration_ms),
            )
    return table
