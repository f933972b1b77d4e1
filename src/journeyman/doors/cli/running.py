"""``journeyman run``: one task, followed on stderr, answered on stdout."""

from __future__ import annotations

import asyncio
import sys
from contextlib import redirect_stdout

from rich.console import Console

from journeyman.app import Agent, ToolLibrary, stream
from journeyman.core.approvals import Approver
from journeyman.core.errors import InvalidDataError
from journeyman.core.events import RunFailed, RunFinished, RunSuspended
from journeyman.core.policy import Policy
from journeyman.core.principals import Principal
from journeyman.core.protocols import Model
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.doors.cli import screen
from journeyman.doors.cli.asking import approver
from journeyman.doors.cli.faults import ExitCode, complain, exit_code
from journeyman.doors.cli.loading import is_document, load_agent
from journeyman.doors.cli.options import WrongUsageError, user_name
from journeyman.doors.cli.storage import store_at, tasks_at_hand
from journeyman.doors.cli.trace import Trace


def run_task(
    task: str,
    *,
    url: str,
    agent: str | None,
    library: str | None,
    model: str | None,
    permissions: list[str],
    yes: bool,
    as_json: bool,
    live: bool,
) -> ExitCode:
    """Run a task and print what came out."""
    store = store_at(url)
    who, tools = load_agent(agent, library, store=store)
    console = screen.console(stderr=True)
    trace = Trace(console, live=live)
    given_by = principal(permissions)

    async def whole() -> AgentResponse | None:
        asks = approver(console, trace, yes=yes)
        async with tasks_at_hand(store, needed=library is None and (agent is None or is_document(agent))):
            return await follow(who, task, library=tools, model=model, approver=asks, principal=given_by, trace=trace)

    response = asyncio.run(whole())
    if response is None:
        complain("the run waits for a person")
        return ExitCode.WAITING
    return conclude(response, console, as_json=as_json)


def conclude(response: AgentResponse, console: Console, *, as_json: bool) -> ExitCode:
    """Print what came out of a run."""
    if as_json:
        print(response.model_dump_json(indent=2))
    elif response.answer:
        if console.is_terminal:
            console.print()
        print(screen.visible(response.answer) if sys.stdout.isatty() else response.answer)
    if response.status is not RunStatus.COMPLETED and response.error is not None:
        complain(response.error.message, response.error.user_guidance)
    return exit_code(response.status)


def principal(permissions: list[str]) -> Principal:
    """Who runs the program, with the permissions they say they have."""
    try:
        return Principal(user_name(), permissions=permissions)
    except InvalidDataError as error:
        problem = error.problems[0][1]
        raise WrongUsageError(f"--permission: {problem}") from None


async def follow(
    agent: Agent,
    task: str,
    *,
    library: ToolLibrary,
    model: Model | str | None,
    approver: Approver,
    principal: Principal | None,
    trace: Trace,
    policy: Policy | None = None,
) -> AgentResponse | None:
    """Run an agent and show its trace; None when the run waits for a person.

    Tools may print; stdout is for the answer alone, so that goes to stderr.
    """
    response = None
    with redirect_stdout(sys.stderr), trace:
        async for event in stream(
            agent, task, library=library, model=model, approver=approver, principal=principal, policy=policy
        ):
            trace.show(event)
            match event:
                case RunFinished() | RunFailed():
                    response = event.response
                case RunSuspended():
                    return None
                case _:
                    pass
    return response
