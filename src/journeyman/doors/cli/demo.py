"""``journeyman demo``: the main job from start to finish, on the embedded model, in a store that vanishes afterwards.

Nothing here is played: every sentence goes to the model. Where it does something else than a scene is about, the demo
says so and goes on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from journeyman.app import Agent
from journeyman.app.durable import Handle, Journeyman, SqlStore, open_store, task_assistant, task_library
from journeyman.core.approvals import Approval, Approve, Deny
from journeyman.core.errors import ConfigurationError
from journeyman.core.policy import Policy
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.doors.cli import screen
from journeyman.doors.cli.asking import Asker, TerminalApprover
from journeyman.doors.cli.costs import Costs
from journeyman.doors.cli.faults import ExitCode, complain
from journeyman.doors.cli.following import follow
from journeyman.doors.cli.scenes import CRASH, MISSING, WORK, Scene
from journeyman.doors.cli.trace import Trace

ANSWER_SECONDS = 60
"""How long a person at a terminal may think."""
NOBODY_SECONDS = 3
"""How long the demo waits for nobody, to show that an unanswered question ends."""
CHILD_SECONDS = 120
SESSION = "demo"


def play(*, yes: bool, live: bool) -> ExitCode:
    """The whole tour."""
    console = screen.console()
    someone = screen.someone_is_there() and sys.stdout.isatty()
    policy = Policy(approval_seconds=ANSWER_SECONDS if yes or someone else NOBODY_SECONDS)
    with TemporaryDirectory(prefix="journeyman-demo-") as folder:
        url = f"sqlite:///{Path(folder) / 'demo.db'}"

        async def whole() -> ExitCode:
            store = open_store(url)
            library = task_library(store, github_url=None)
            async with Journeyman(library=library, store=store, model="embedded", policy=policy) as app:
                tour = Tour(app, store, task_assistant(library), url=url, console=console, live=live)
                return await tour.lead(yes=yes, someone=someone)

        try:
            return asyncio.run(whole())
        except ConfigurationError as error:
            complain(f"the demo needs its model: {error}")
            return ExitCode.FAILED


class Tour:
    """One showing of the demo."""

    def __init__(
        self, app: Journeyman, store: SqlStore, agent: Agent, *, url: str, console: Console, live: bool
    ) -> None:
        self._app = app
        self._store = store
        self._agent = agent
        self._url = url
        self._console = console
        self._live = live
        self._costs = Costs()
        self._began = time.monotonic()

    async def lead(self, *, yes: bool, someone: bool) -> ExitCode:
        self._app.model_for(self._agent)  # raises what keeps the model from being used
        self._welcome()
        for scene in (*WORK, MISSING):
            self._announce(scene)
            for sentence, tool in scene.says:
                handle = await self._app.session(SESSION).send(self._agent, sentence)
                response = await self._request(handle, sentence, tool, yes=yes, someone=someone)
                if response.status is RunStatus.FAILED:
                    return self._give_up(response)
                if scene is MISSING:
                    await self._report(sentence, handle, response)
        self._announce(CRASH)
        [(sentence, tool)] = CRASH.says
        await self._survive(sentence, tool)
        self._close()
        return ExitCode.DONE

    # --- one request

    async def _request(
        self, handle: Handle, sentence: str, tool: str | None, *, yes: bool, someone: bool
    ) -> AgentResponse:
        self._said(sentence)
        trace = Trace(self._console, live=self._live)
        with trace:
            await follow(self._app, handle, trace, ask=self._asker(trace, yes=yes, someone=someone))
        return await self._answered(handle, sentence, tool)

    async def _answered(self, handle: Handle, sentence: str, tool: str | None) -> AgentResponse:
        response = await handle.result()
        await self._count(handle.run_id, sentence)
        if response.answer:
            answer = Text(screen.visible(response.answer), style="green", no_wrap=True, overflow="ellipsis")
            screen.show(self._console, answer, indent=4)
        called = [record.tool_name for record in response.tool_calls]
        if called != ([] if tool is None else [tool]):
            meant = f"meant for {tool}" if tool else "one that no tool serves"
            did = f"called {', '.join(called)}" if called else "called nothing"
            told = f"! Not what this scene is about: the sentence is {meant}, the model {did}. The tour goes on."
            screen.show(self._console, Text(told, style="yellow"), indent=2)
        return response

    async def _count(self, run_id: str, sentence: str) -> None:
        self._costs.add(sentence, await self._store.runs.facts(run_id))

    def _asker(self, trace: Trace, *, yes: bool, someone: bool) -> Asker:
        if not yes and someone:
            return TerminalApprover(self._console, trace)

        async def answer(approval: Approval) -> Approve | Deny:
            if yes:
                return Approve(by="--yes")
            told = f"no terminal, so nobody answers; this expires after {NOBODY_SECONDS} s …"
            screen.show(self._console, told, indent=4)
            await asyncio.Event().wait()
            raise AssertionError

        return answer

    async def _report(self, sentence: str, handle: Handle, response: AgentResponse) -> None:
        report = await self._app.gaps.detect(sentence, confidence=response.confidence, run_id=handle.run_id)
        if report is None:
            screen.show(self._console, Text("! No gap was found here. The tour goes on.", style="yellow"), indent=2)
            return
        missing, checked = ", ".join(report.missing_tools), screen.counted(len(report.existing_tools_checked), "tool")
        told = Text.assemble(
            ("Gap report  ", "bold"), f"missing: {missing} · looked through {checked} · kept in the store"
        )
        screen.show(self._console, told, indent=2)

    # --- a process that dies

    async def _survive(self, sentence: str, tool: str | None) -> None:
        """Let another process begin, kill it, and take up what it left."""
        self._said(sentence)
        run_id = await self._killed(sentence)
        if run_id is None:
            told = "! The other process was done, or gave up, before it could be killed. The tour goes on."
            return screen.show(self._console, Text(told, style="yellow"), indent=2)
        row = await self._store.runs.get(run_id)
        seen = 0 if row is None else row.last_seq
        screen.show(self._console, f"in the store: {screen.counted(seen, 'fact')} of {run_id}", indent=4)
        trace = Trace(self._console, live=self._live)
        [handle] = await self._app.resume(run_id)
        with trace:
            await follow(self._app, handle, trace, ask=None, seen=seen)
        response = await self._answered(handle, sentence, tool)
        attempts = sum(record.attempts for record in response.tool_calls)
        calls = screen.counted(len(response.tool_calls), "call")
        told = f"This process has finished what the other began: {calls}, {screen.counted(attempts, 'attempt')} in all."
        return screen.show(self._console, Text(told, style="bold"), indent=2)

    async def _killed(self, sentence: str) -> str | None:
        """The run that a process left when it was killed right after its first call; None if there was none."""
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "journeyman.doors.cli.doomed", self._url, SESSION, sentence),
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # its engine, a process of its own, dies with it
        )
        assert child.stdout is not None
        try:
            async with asyncio.timeout(CHILD_SECONDS):
                run_id = (await child.stdout.readline()).decode().strip()
                screen.show(self._console, f"process {child.pid} works on {run_id}", indent=4)
                async for line in child.stdout:
                    if line.strip() == b"call_finished":
                        os.killpg(child.pid, signal.SIGKILL)
                        await child.wait()
                        told = f"process {child.pid} is killed: its call is done, its answer is not"
                        screen.show(self._console, Text(told, style="red"), indent=4)
                        return run_id
            return None
        except TimeoutError:
            return None
        finally:
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)
                await child.wait()

    # --- what is shown around it

    def _welcome(self) -> None:
        told = (
            "A real language model on this machine's processor, real tools, a real store.\n"
            "No key, no network; nothing is scripted, and nothing is left behind."
        )
        self._console.print(Panel(told, title="Journeyman demo", title_align="left", border_style="cyan"))

    def _announce(self, scene: Scene) -> None:
        self._console.print()
        self._console.print(Rule(Text(scene.title, style="bold"), align="left", style="cyan"))
        screen.show(self._console, Text(scene.told, style="dim"))

    def _said(self, sentence: str) -> None:
        self._console.print()
        screen.show(self._console, Text.assemble(("you » ", "bold cyan"), sentence))

    def _give_up(self, response: AgentResponse) -> ExitCode:
        error = response.error
        complain("the model failed" if error is None else error.message, None if error is None else error.user_guidance)
        return ExitCode.FAILED

    def _close(self) -> None:
        self._announce(Scene("What it came to", "From the records: every step has one, whatever became of it.", ()))
        self._console.print(self._costs.table(width=self._console.width))
        self._console.print()
        seconds = time.monotonic() - self._began
        screen.show(self._console, f"{self._costs.told()} · {seconds:.0f} s in all")
        screen.show(self._console, "Next: journeyman chat · journeyman tools list · journeyman doctor")
