"""``journeyman chat``: a stored conversation, in the terminal or line by line through a pipe."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from journeyman.app import Agent
from journeyman.app.durable import Handle, Journeyman
from journeyman.core.data import new_id
from journeyman.core.messages import Role
from journeyman.core.principals import Principal
from journeyman.core.runs import CHAT_MESSAGE_LIMIT
from journeyman.doors.cli import screen
from journeyman.doors.cli.asking import asker, piped_lines, read_line
from journeyman.doors.cli.faults import ExitCode, complain
from journeyman.doors.cli.lasting import see_through, with_model
from journeyman.doors.cli.loading import library_name, load_agent
from journeyman.doors.cli.options import user_name
from journeyman.doors.cli.running import principal
from journeyman.doors.cli.standing import UNFINISHED
from journeyman.doors.cli.storage import command, store_at, workshop
from journeyman.doors.cli.toolbox import list_tools
from journeyman.doors.cli.trace import Trace

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
    *,
    url: str,
    session: str | None,
    agent: str | None,
    library: str | None,
    model: str | None,
    permissions: list[str],
    yes: bool,
    live: bool,
) -> ExitCode:
    """Talk until the person leaves or there are no more lines."""
    store = store_at(url)
    who, tools = load_agent(agent, library, store=store)
    who = with_model(who, model)
    given_by = principal(permissions)
    again = library_name(agent, library)

    async def whole() -> ExitCode:
        async with workshop(store, library=tools) as app:
            answers = str(getattr(app.model_for(who), "name", None) or who.model)
            talk = Talk(
                app, who, session or new_id("chat"), principal=given_by, url=url, library=again, yes=yes, live=live
            )
            return await talk.hold(answers=answers)

    try:
        return asyncio.run(whole())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


class Talk:
    """One conversation, as long as the command lasts. What was said stays in the store."""

    def __init__(
        self,
        app: Journeyman,
        agent: Agent,
        session: str,
        *,
        principal: Principal,
        url: str,
        library: str | None,
        yes: bool,
        live: bool,
    ) -> None:
        self._app = app
        self._agent = agent
        self._session = app.session(session)
        self._principal = principal
        self._url = url
        self._library = library
        self._yes = yes
        self._live = live
        self._console: Console = screen.console(stderr=True)
        self._under_way: Handle | None = None
        self._cancelling: asyncio.Task[None] | None = None

    async def hold(self, *, answers: str) -> ExitCode:
        """Everything from the greeting to the farewell."""
        self._watch_for_ctrl_c()
        there = screen.someone_is_there()
        if there:
            self._greet(answers)
        code = await self._take_up()
        if code is not ExitCode.WAITING:
            async for line in self._typed() if there else piped_lines():
                if (text := line.strip()) and not (there and await self._obeyed(text)):
                    code = await self._say(text)
                if code is ExitCode.WAITING:  # nothing more can be said before somebody has decided
                    break
        if there:
            self._console.print(f"go on: {command(self._url, f'chat --session {self._session.id}')}", style="dim")
            return code if code is ExitCode.WAITING else ExitCode.DONE
        return code

    # --- saying something

    async def _take_up(self) -> ExitCode:
        """Finish what was left unfinished when this conversation was left."""
        rows = await self._app.store.runs.list(statuses=UNFINISHED, session_id=self._session.id, limit=1_000)
        code = ExitCode.DONE
        for row in sorted(rows, key=lambda row: (row.created_at, row.id)):
            if code is not ExitCode.WAITING:
                self._console.print(f"· left unfinished, taken up again: {row.id}", style="dim")
                [handle] = await self._app.resume(row.id)
                code = await self._see(handle, seen=row.last_seq)
        return code

    async def _say(self, text: str) -> ExitCode:
        if len(text) > CHAT_MESSAGE_LIMIT:
            complain(f"a message has at most {CHAT_MESSAGE_LIMIT:,} characters, this one {len(text):,}; not sent")
            return ExitCode.FAILED
        handle = await self._session.send(self._agent, text, principal=self._principal)
        code = await self._see(handle)
        if code is ExitCode.DONE:
            await self._tell_what_is_missing(text, handle)
        return code

    async def _tell_what_is_missing(self, text: str, handle: Handle) -> None:
        """Where the model called nothing and says that it is not sure, perhaps there is no tool for this."""
        response = await handle.result()
        if response.tool_calls or response.confidence >= UNSURE:
            return
        report = await self._app.gaps.detect(text, confidence=response.confidence, run_id=handle.run_id)
        if report is not None:
            missing = ", ".join(map(screen.visible, report.missing_tools))
            kept = command(self._url, "gaps list")
            self._console.print(Text(f"· no tool for: {missing} · kept: {kept}", style="dim"), soft_wrap=True)

    async def _see(self, handle: Handle, *, seen: int = 0) -> ExitCode:
        trace = Trace(self._console, live=self._live)
        self._under_way = handle
        try:
            return await see_through(
                self._app,
                handle,
                self._console,
                trace,
                ask=asker(self._console, trace, yes=self._yes, allow=self._allow),
                url=self._url,
                library=self._library,
                as_json=False,
                seen=seen,
            )
        finally:
            self._under_way = self._cancelling = None

    async def _allow(self, tool_name: str) -> None:
        await self._app.approvals.grant(self._session.id, tool_name, by=user_name(), principal=self._principal)

    # --- the person at the terminal

    def _greet(self, answers: str) -> None:
        told = Text.assemble(
            (self._agent.name, "bold"), f" · model {screen.visible(answers)} · ",
            screen.counted(len(self._app.library), "tool"), f"\nsession {screen.visible(self._session.id)} · ",
            ("/help", "bold"), " tells what else there is",
        )  # fmt: skip
        self._console.print(Panel(told, border_style="cyan"))

    async def _typed(self) -> AsyncIterator[str]:
        while True:
            self._console.print(Text(f"\n{PROMPT}", style="bold cyan"), end="", soft_wrap=True)
            try:
                line = await read_line()
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
                list_tools(self._app.library, as_json=False)
            case "/history":
                await self._history()
            case _ if line.startswith("/"):
                complain(f"there is no {line.split()[0]!r}; /help tells what there is")
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
