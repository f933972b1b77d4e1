"""``journeyman chat``: a stored conversation, in the terminal or line by line through a pipe."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from typing import Annotated

import typer
from rich.panel import Panel
from rich.text import Text

from journeyman.app import Agent, Handle, Journeyman
from journeyman.core.data import new_id
from journeyman.core.messages import Role
from journeyman.core.runs import CHAT_MESSAGE_LIMIT, UNFINISHED
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.loading import command, load_agent, open_at, running_app
from journeyman.doors.cli.options import DEFAULT_STORE, ExitCode, RunOptions
from journeyman.doors.cli.run import see_through, with_model
from journeyman.doors.cli.tools import print_tools

PROMPT = "you › "
UNSURE = 0.3
HISTORY_SHOWN = 20
HISTORY_WIDTH = 500
HELP = """\
/tools    what the assistant can do
/history  what was said in this session
/quit     leave; so do Ctrl-D, and Ctrl-C while nothing is under way
Ctrl-C    cancel what is under way; a second one leaves
Everything else is said to the assistant."""


def chat(
    agent: options.AgentName = None,
    library: options.Library = None,
    model: options.Model = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Go on with a stored conversation. Without it, a new one.", show_default=False
        ),
    ] = None,
    permission: options.Permissions = None,
    yes: options.Yes = False,
    store: options.Store = DEFAULT_STORE,
    log_level: options.Log = None,
) -> None:
    """Talk in the terminal; risky calls are asked about there, Ctrl-C cancels. Through a pipe, a line is a message."""
    given = RunOptions(
        store=store,
        agent=agent,
        library=library,
        model=model,
        principal=options.user_with(permission),
        session=session,
        yes=yes,
        log_level=log_level,
    )
    database = open_at(store)
    loaded, tools = load_agent(agent, library, store=database)
    loaded = with_model(loaded, model)

    async def whole() -> ExitCode:
        async with running_app(database, library=tools) as app:
            return await _Conversation(app, loaded, given).hold()

    try:
        raise typer.Exit(asyncio.run(whole()))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


class _Conversation:
    """One conversation, as long as the command lasts. What was said stays in the store."""

    def __init__(self, app: Journeyman, agent: Agent, given: RunOptions) -> None:
        self._app = app
        self._agent = agent
        self._options = given
        self._model = str(getattr(app.model_for(agent), "name", None) or agent.model)
        self._session = app.session(given.session or new_id("chat"))
        self._console = screen.console(stderr=True)
        self._under_way: Handle | None = None
        self._cancelling: asyncio.Task[None] | None = None

    async def hold(self) -> ExitCode:
        """Everything from the first line to the last."""
        self._watch_for_ctrl_c()
        interactive = screen.interactive()
        if interactive:
            self._greet()
        code = await self._resume()
        if code is not ExitCode.WAITING:
            async for line in self._typed() if interactive else screen.piped_lines():
                if (text := line.strip()) and not (interactive and await self._obeyed(text)):
                    code = await self._say(text)
                if code is ExitCode.WAITING:  # nothing more can be said before somebody has decided
                    break
        if interactive:
            again = command(self._options.store, f"chat --session {self._session.id}")
            self._console.print(f"go on: {again}", style="dim")
            return code if code is ExitCode.WAITING else ExitCode.DONE
        return code

    # --- saying something

    async def _resume(self) -> ExitCode:
        """Finish what was left unfinished when this conversation was left."""
        rows = await self._app.store.runs.list(statuses=UNFINISHED, session_id=self._session.id, limit=1_000)
        code = ExitCode.DONE
        for row in reversed(rows):  # by turn, the latest first
            if code is not ExitCode.WAITING:
                self._console.print(f"· left unfinished, taken up again: {row.id}", style="dim")
                [handle] = await self._app.resume(row.id)
                code = await self._see(handle, seen=row.last_seq)
        return code

    async def _say(self, text: str) -> ExitCode:
        if len(text) > CHAT_MESSAGE_LIMIT:
            screen.note(f"a message has at most {CHAT_MESSAGE_LIMIT:,} characters, this one {len(text):,}; not sent")
            return ExitCode.FAILED
        handle = await self._session.send(self._agent, text, principal=self._options.principal)
        code = await self._see(handle)
        if code is ExitCode.DONE:
            await self._report_gap(text, handle)
        return code

    async def _report_gap(self, text: str, handle: Handle) -> None:
        """Where the model called nothing and says that it is not sure, perhaps there is no tool for this."""
        response = await handle.result()
        if response.tool_calls or response.confidence >= UNSURE:
            return
        report = await self._app.gaps.detect(text, confidence=response.confidence, run_id=handle.run_id)
        if report is not None:
            missing = ", ".join(map(screen.escaped, report.missing_tools))
            kept = command(self._options.store, "gaps list")
            self._console.print(Text(f"· no tool for: {missing} · kept: {kept}", style="dim"), soft_wrap=True)

    async def _see(self, handle: Handle, *, seen: int = 0) -> ExitCode:
        self._under_way = handle
        try:
            return await see_through(self._app, handle, self._options, seen=seen, allow=self._allow)
        finally:
            self._under_way = self._cancelling = None

    async def _allow(self, tool_name: str) -> None:
        await self._app.approvals.grant(
            self._session.id, tool_name, by=options.user_name(), principal=self._options.principal
        )

    # --- the person at the terminal

    def _greet(self) -> None:
        text = Text.assemble(
            (self._agent.name, "bold"), f" · model {screen.escaped(self._model)} · ",
            screen.counted(len(self._app.library), "tool"), f"\nsession {screen.escaped(self._session.id)} · ",
            ("/help", "bold"), " tells what else there is",
        )  # fmt: skip
        self._console.print(Panel(text, border_style="cyan"))

    async def _typed(self) -> AsyncIterator[str]:
        while True:
            self._console.print(Text(f"\n{PROMPT}", style="bold cyan"), end="", soft_wrap=True)
            try:
                line = await screen.read_line()
            except asyncio.CancelledError:
                self._console.print()
                raise
            if line is None or line == "/quit":
                if line is None:
                    self._console.print()
                return
            yield line

    async def _obeyed(self, line: str) -> bool:
        """Whether a line was an order to this command and not something to say."""
        match line:
            case "/help":
                self._console.print(HELP)
            case "/tools":
                print_tools((item, None) for item in self._app.library.specifications())
            case "/history":
                await self._history()
            case _ if line.startswith("/"):
                screen.note(f"there is no {line.split()[0]!r}; /help tells what there is")
            case _:
                return False
        return True

    async def _history(self) -> None:
        names = {Role.USER: "you", Role.ASSISTANT: self._agent.name}
        for message in await self._session.messages(last=HISTORY_SHOWN):
            if message.role in names and message.content.strip():
                said = screen.shortened(message.content, HISTORY_WIDTH)
                screen.show(self._console, Text.assemble((f"{names[message.role]}: ", "bold"), said))

    # --- Ctrl-C

    def _watch_for_ctrl_c(self) -> None:
        talking = asyncio.current_task()
        assert talking is not None

        def pressed() -> None:
            if self._under_way is None or self._cancelling is not None:
                talking.cancel()
            else:
                self._cancelling = asyncio.create_task(self._under_way.cancel())

        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, pressed)
