"""``journeyman demo``: the main job from start to finish, on the embedded model, in a store that vanishes afterwards.

Nothing here is scripted: every sentence goes to the model. Where it does something else than a scene is about, the demo
says so and goes on. Started as a program with a store, a session and a sentence, it is the process that a scene kills.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from pydantic import TypeAdapter
from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from journeyman.app import Agent, LearningSettings
from journeyman.app.desk import LOCAL, Desk
from journeyman.app.handles import Handle
from journeyman.app.journeyman import Journeyman
from journeyman.app.loading import open_at
from journeyman.app.service import assistant, task_library
from journeyman.core.approvals import Approval, Approve, Deny
from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import CallFinished, Fact, MessageReceived
from journeyman.core.gaps import ToolGapReport
from journeyman.core.policy import Policy, RiskLevel
from journeyman.core.protocols import Deltas, Model, ModelRequest, ModelResponse
from journeyman.core.runs import AgentResponse, Message, RunStatus, TaskInput
from journeyman.core.specification import ToolSpecification
from journeyman.doors.cli import screen
from journeyman.doors.cli.options import ExitCode
from journeyman.doors.cli.printed import answer_stream
from journeyman.doors.cli.program import program
from journeyman.doors.cli.run import follow
from journeyman.doors.cli.screen import show_markdown
from journeyman.doors.cli.trace import Asker, TerminalApprover, Trace
from journeyman.sensitive.environment import clean_environment

ANSWER_SECONDS = 60
"""How long a person at a terminal may think."""
NOBODY_SECONDS = 3
"""How long the demo waits for nobody, to show that an unanswered question ends."""
CHILD_SECONDS = 120
MODEL: Model | str = "embedded"
SESSION = "demo"
LONGEST_LINE = 1_000_000
"""Bytes of a question to the model."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One chapter of the tour: a few sentences, each with the tool it is about, or None where no tool serves."""

    title: str
    told: str
    says: tuple[tuple[str, str | None], ...]


WORK = (
    Scene(
        "1 · Words become calls",
        "The model chooses a tool and fills its arguments; each call is checked, graded, run and recorded.",
        (
            ("Create a task to prepare the quarterly report with high priority", "create_task"),
            ("Create a task to archive the old newsletter", "create_task"),
        ),
    ),
    Scene("2 · Finding things", "Reading changes nothing.", (("Which tasks have high priority?", "query_tasks"),)),
    Scene(
        "3 · Changing things",
        "A task is named by words of its title. The version before is kept, so the change can be undone.",
        (("Change the priority of the quarterly report to critical", "update_task"),),
    ),
    Scene(
        "4 · Irreversible means: ask",
        "Deleting is for good, so the run stops until a person has decided about exactly this call.",
        (("Delete the newsletter task", "delete_task"),),
    ),
)
MISSING = Scene(
    "5 · What no tool can do",
    "Nothing is guessed: the answer says what can be done instead, and what is missing is reported.",
    (("Book me a flight to Paris", None),),
)
CRASH = Scene(
    "6 · A process dies in the middle",
    "Another process takes this request and is killed with SIGKILL after its call. Then this one resumes the run.",
    (("Create a task to water the plants", "create_task"),),
)
PRACTICE = Scene(
    "7 · Shown once",
    "Asked in other words, it is not sure. A person shows what a similar request means; then it is asked again.",
    (("The electrician must not slip my mind", "create_task"),),
)
REPLAY = Scene(
    "8 · Yesterday's runs, tomorrow's rules",
    "Every call of this tour passes the gate once more, under a rule that nobody has tried. Nothing is run for it.",
    (),
)
SHOWN = "The plumber must not slip my mind"
SHOWN_CALL: dict[str, Any] = {"tool": "create_task", "args": {"title": "plumber"}}
DOMAIN = "practice"
"""Of the playbook, which holds nothing but what the person shows."""
VERDICTS = {
    (False, True): "Practice helped: alone the model did not serve this request, after one example it does.",
    (False, False): "! Practice did not help here: the model serves this request neither alone nor after an example.",
    (True, True): "There was nothing to learn here: the model serves this request alone.",
    (True, False): "! Practice did harm here: the model served this request alone, and after an example it does not.",
}
"""By whether the request was served before and after."""

NEXT = (
    ('run "Create a task to buy milk"', "one request; risky calls ask you"),
    ("chat", "a conversation"),
    ("serve", "the same in your browser"),
    ("doctor", "which model, store and extras were found"),
)
"""Commands to go on with, and what they do; each works as it is printed."""


def demo(*, yes: bool, log_level: str | None) -> None:
    """A guided tour on the embedded model, over real tasks, in a store of its own. No key, no network."""
    interactive = screen.interactive() and answer_stream().isatty()
    policy = Policy(stored_approval_seconds=ANSWER_SECONDS if yes or interactive else NOBODY_SECONDS)
    with TemporaryDirectory(prefix="journeyman-demo-") as folder:
        url = f"sqlite:///{Path(folder) / 'demo.db'}"

        async def whole() -> ExitCode:
            store = open_at(url)
            library = task_library(store, github_url=None)
            async with Journeyman(library=library, store=store, model=MODEL, policy=policy) as app:
                tour = _Tour(app, assistant(library), url=url, yes=yes, interactive=interactive, live=not log_level)
                return await tour.lead()

        try:
            raise typer.Exit(asyncio.run(whole()))
        except ConfigurationError as error:
            screen.note(f"the demo needs its model: {error}")
            raise typer.Exit(ExitCode.FAILED) from None


class _Tour:
    """One showing of the demo."""

    def __init__(self, app: Journeyman, agent: Agent, *, url: str, yes: bool, interactive: bool, live: bool) -> None:
        self._app = app
        self._agent = agent
        self._url = url
        self._yes = yes
        self._interactive = interactive
        self._live = live
        self._console: Console = screen.console()
        self._costs = Costs()
        self._began = time.monotonic()

    async def lead(self) -> ExitCode:
        self._app.model_for(self._agent)  # raises what keeps the model from being used
        self._welcome()
        screen.show(self._console, Text("Loading the model; the first request takes longest …", style="dim"))
        for scene in (*WORK, MISSING):
            self._announce(scene)
            for sentence, tool in scene.says:
                handle = await self._app.session(SESSION).send(self._agent, sentence)
                self._said(sentence)
                response = await self._request(handle, sentence, tool)
                if response.status is RunStatus.FAILED:
                    return self._give_up(response)
                if scene is MISSING:
                    self._report(response.gap)
        self._announce(CRASH)
        [(sentence, tool)] = CRASH.says
        await self._survive(sentence, tool)
        self._announce(PRACTICE)
        [(sentence, tool)] = PRACTICE.says
        await self._practise(sentence, str(tool))
        self._announce(REPLAY)
        await self._replay()
        self._close()
        return ExitCode.DONE

    # --- one request

    async def _request(self, handle: Handle, sentence: str, tool: str | None, *, seen: int = 0) -> AgentResponse:
        """Follow a run to its answer, and say so where the model does something else than the scene is about."""
        response = await self._followed(self._app, handle, sentence, seen=seen)
        called = [record.tool_name for record in response.tool_calls]
        if called != ([] if tool is None else [tool]) and response.status is not RunStatus.FAILED:
            meant = f"meant for {tool}" if tool else "one that no tool serves"
            did = f"called {', '.join(called)}" if called else "called nothing"
            self._warn(f"Not what this scene is about: the sentence is {meant}, the model {did}.")
        return response

    async def _followed(self, app: Journeyman, handle: Handle, sentence: str, *, seen: int = 0) -> AgentResponse:
        with Trace(self._console, live=self._live, plans=False) as trace:
            await follow(app, handle, trace, ask=self._asker(trace), seen=seen)
        response = await handle.result()
        self._costs.add(sentence, await Desk(app, LOCAL).facts(handle.run_id))
        if response.answer:
            show_markdown(self._console, response.answer, indent=4)
        return response

    def _asker(self, trace: Trace) -> Asker:
        if not self._yes and self._interactive:
            return TerminalApprover(trace)

        async def answer(approval: Approval) -> Approve | Deny:
            if self._yes:
                return Approve(by="--yes")
            told = f"no terminal, so nobody answers; this expires after {NOBODY_SECONDS} s …"
            screen.show(self._console, told, indent=4)
            await asyncio.Event().wait()
            raise AssertionError

        return answer

    def _report(self, report: ToolGapReport | None) -> None:
        if report is None:
            return self._warn("No gap was found here.")
        missing, checked = ", ".join(report.missing_tools), screen.counted(len(report.existing_tools_checked), "tool")
        told = f"missing: {missing} · looked through {checked} · kept in the store"
        return screen.show(self._console, Text.assemble(("Gap report  ", "bold"), told), indent=2)

    # --- a process that dies

    async def _survive(self, sentence: str, tool: str | None) -> None:
        """Let another process begin, kill it, and take up what it left."""
        self._said(sentence)
        run_id = await self._killed(sentence)
        if run_id is None:
            return self._warn("The other process was done, or gave up, before it could be killed.")
        seen = (await Desk(self._app, LOCAL).run(run_id)).last_seq
        screen.show(self._console, f"in the store: {screen.counted(seen, 'fact')} of its run", indent=4)
        [handle] = await self._app.resume(run_id)
        response = await self._request(handle, sentence, tool, seen=seen)
        attempts = sum(record.attempts for record in response.tool_calls)
        calls = screen.counted(len(response.tool_calls), "call")
        told = f"This process has finished what the other began: {calls}, {screen.counted(attempts, 'attempt')} in all."
        return screen.show(self._console, Text(told, style="bold"), indent=2)

    async def _killed(self, sentence: str) -> str | None:
        """The run that a process left when it was killed right after its first call; None if there was none."""
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, __file__, self._url, SESSION, sentence),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            env=clean_environment(),
        )
        try:
            async with asyncio.timeout(CHILD_SECONDS):
                return await self._killed_after_its_call(child)
        except TimeoutError:
            return None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()

    async def _killed_after_its_call(self, child: asyncio.subprocess.Process) -> str | None:
        assert child.stdin is not None
        assert child.stdout is not None
        screen.show(self._console, f"process {child.pid} begins", indent=4)
        run_id = ""
        async for line in child.stdout:
            said = line.decode().strip()
            if said.startswith(ASKS):
                # It asks the model that is loaded here: another would take as long as all of this.
                answer = await self._app.model_for(self._agent).respond(read(said.removeprefix(ASKS)))
                child.stdin.write(answer.model_dump_json().encode() + b"\n")
                await child.stdin.drain()
            elif said == "call_finished":
                child.kill()
                await child.wait()
                told = f"process {child.pid} is killed: its call is done, its answer is not"
                screen.show(self._console, Text(told, style="red"), indent=4)
                return run_id
            run_id = run_id or said
        return None

    # --- what a person shows

    async def _practise(self, sentence: str, tool: str) -> None:
        """The same request before and after a person has shown what a similar one means."""
        task = TaskInput(description=sentence, domain=DOMAIN)
        alone = await self._tried(self._app, task)
        await self._app.chain([SHOWN_CALL], run_id="shown")
        told = f"a person shows: “{SHOWN}” is {SHOWN_CALL['tool']} with the title “{SHOWN_CALL['args']['title']}”"
        screen.show(self._console, told, indent=4)
        store = open_at(self._url)
        async with Journeyman(
            library=task_library(store, github_url=None),
            store=store,
            model=self._app.model_for(self._agent),
            policy=self._app.policy,
            learning=LearningSettings(holdout=0),  # else this one run might be one of those that go without advice
        ) as app:
            await app.playbooks[DOMAIN].learn("shown", request=SHOWN)
            practised = await self._tried(app, task)
        before, after = ([record.tool_name for record in tried.tool_calls] == [tool] for tried in (alone, practised))
        told = VERDICTS[before, after]
        screen.show(self._console, Text(told, style="bold" if after else "yellow"), indent=2)

    async def _tried(self, app: Journeyman, task: TaskInput) -> AgentResponse:
        """A request of which nobody knows whether it is served."""
        self._said(task.description)
        return await self._followed(app, await app.start(self._agent, task), task.description)

    # --- another policy

    async def _replay(self) -> None:
        """What would have been asked if every new task needed a person's word."""
        screen.show(self._console, "what if a person had to agree to every new task?", indent=4)
        stricter = self._app.policy.model_copy(update={"least_risks": {"create_task": RiskLevel.IRREVERSIBLE}})
        report = await self._app.replay(policy=stricter)
        screen.show(self._console, Text(report.verdict, style="bold"), indent=2)

    # --- what is shown around it

    def _welcome(self) -> None:
        told = (
            "A real language model on this machine's processor, real tools, a real store.\n"
            "No key, no network; nothing is scripted, and nothing is left behind.\n"
            "How long it takes depends on the processor: the time is told as it passes."
        )
        self._console.print(Panel(told, title="Journeyman demo", title_align="left", border_style="cyan"))

    def _announce(self, scene: Scene) -> None:
        self._console.print()
        passed = time.monotonic() - self._began
        title = Text.assemble((scene.title, "bold"), (f" · after {passed:.0f} s" if passed >= 1 else "", "dim"))
        self._console.print(Rule(title, align="left", style="cyan"))
        screen.show(self._console, Text(scene.told, style="dim"))

    def _said(self, sentence: str) -> None:
        self._console.print()
        screen.show(self._console, Text.assemble(("you » ", "bold cyan"), sentence))

    def _warn(self, told: str) -> None:
        screen.show(self._console, Text(f"! {told} The tour goes on.", style="yellow"), indent=2)

    def _give_up(self, response: AgentResponse) -> ExitCode:
        error = response.error
        screen.note(*(("the model failed",) if error is None else (error.message, error.user_guidance)))
        return ExitCode.FAILED

    def _close(self) -> None:
        self._announce(Scene("What it came to", "From the records: every step has one, whatever became of it.", ()))
        self._console.print(self._costs.table(width=self._console.width))
        self._console.print()
        seconds = time.monotonic() - self._began
        screen.show(self._console, f"{self._costs.told()} · {seconds:.0f} s in all")
        self._console.print()
        screen.show(self._console, "Next, with tasks of your own:")
        for words, does in NEXT:
            line = Text.assemble((f"{program()} {words}", "bold"), (f"  # {does}", "dim"))
            self._console.print(Text.assemble("  ", line), soft_wrap=True)


# --- what the requests cost


SHORTEST_COLUMN = 16
OTHER_COLUMNS = 46


@dataclass(frozen=True, slots=True)
class _Row:
    request: str
    message: MessageReceived | None
    record: ToolCallRecord | None


class Costs:
    """What each step of some runs cost, from their facts: how sure, how long the model and the call took."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._requests = 0

    def add(self, request: str, facts: Sequence[Fact]) -> None:
        """The steps of one run: a row for each call, one for an answer."""
        self._requests += 1
        message: MessageReceived | None = None
        for fact in facts:
            if isinstance(fact, MessageReceived):
                message = fact
                if not fact.calls:
                    self._rows.append(_Row(request, fact, None))
            elif isinstance(fact, CallFinished):
                self._rows.append(_Row(request, message, fact.record))
                message = None  # what the model took is told once

    def table(self, *, width: int) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("request", no_wrap=True, max_width=max(SHORTEST_COLUMN, width - OTHER_COLUMNS))
        table.add_column("did", no_wrap=True)
        for heading in ("sure", "model", "call"):
            table.add_column(heading, justify="right", no_wrap=True)
        shown = ""
        for row in self._rows:
            message, record = row.message, row.record
            confidence = record.confidence if record else message.confidence if message else None
            table.add_row(
                row.request if row.request != shown else "",
                screen.status_text(record.status, record.tool_name) if record else Text("  answer", style="dim"),
                "–" if confidence is None else f"{confidence:.2f}",
                "" if message is None else screen.duration((message.time - message.started) * 1000),
                screen.duration(record.duration_ms) if record else "",
            )
            shown = row.request
        return table

    def told(self) -> str:
        """All of it in one line."""
        models = {row.message.model for row in self._rows if row.message is not None and row.message.model}
        asked = sum(row.message is not None for row in self._rows)
        calls = sum(row.record is not None for row in self._rows)
        return " · ".join(
            [
                f"answered by {', '.join(sorted(models)) or 'no model'}",
                screen.counted(self._requests, "request"),
                f"the model asked {screen.counted(asked, 'time')}",
                screen.counted(calls, "call"),
            ]
        )


# --- the process that is killed

# It has no engine of its own, which would take long to load: what it asks the model is a line on stdout, and the answer
# a line on stdin.

ASKS = "asks "
"""Begins a line with a question to the model."""
_QUESTION = TypeAdapter(tuple[list[Message], tuple[ToolSpecification, ...], int])


class Relayed:
    """A model that lives in the process which started this one."""

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        question = _QUESTION.dump_json((list(request.messages), request.tools, request.step))
        print(ASKS + question.decode(), flush=True)
        return ModelResponse.model_validate_json(await asyncio.to_thread(sys.stdin.readline))


def read(question: str) -> ModelRequest:
    """What the process asks, in the one that started it."""
    messages, tools, step = _QUESTION.validate_json(question)
    return ModelRequest(messages=messages, tools=tools, step=step)


async def carry_out(url: str, session: str, sentence: str) -> None:
    store = open_at(url)
    library = task_library(store, github_url=None)
    async with Journeyman(library=library, store=store, model=Relayed()) as app:
        handle = await app.session(session).send(assistant(library), sentence)
        print(handle.run_id, flush=True)
        async for event in handle.events():
            if event.seq is not None:
                print(event.type, flush=True)


if __name__ == "__main__":
    asyncio.run(carry_out(*sys.argv[1:]))
