"""``journeyman chat``: a stored conversation, in the terminal or line by line through a pipe."""

from __future__ import annotations

import asyncio
import difflib
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.panel import Panel
from rich.text import Text

from journeyman.app import Agent
from journeyman.app.desk import LOCAL, Desk
from journeyman.app.handles import Handle
from journeyman.app.journeyman import Journeyman
from journeyman.app.loading import open_at
from journeyman.app.service import model_name
from journeyman.core.content import Medium
from journeyman.core.data import new_id
from journeyman.core.errors import ConfigurationError, InvalidDataError, SessionTakenError
from journeyman.core.runs import CHAT_MESSAGE_LIMIT, UNFINISHED, Role, SessionRow, task_of
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.loading import Edited, RememberedTools, command, in_running_app, load_for_run
from journeyman.doors.cli.options import ExitCode, RunOptions
from journeyman.doors.cli.program import must_be_a_person
from journeyman.doors.cli.run import see_through
from journeyman.doors.cli.tools import print_tool, print_tools
from journeyman.doors.cli.trust import Gate

QUIT = "/quit"
HISTORY_SHOWN = 20
HISTORY_WIDTH = 500
SESSIONS_SHOWN = 20
TITLE_WIDTH = 60
_NAME = re.compile(r"/[a-zA-Z]*")


@dataclass(frozen=True, slots=True)
class Command:
    """One of them, in words."""

    name: str
    does: str
    argument: str = ""
    """What it can be given, e.g. ``NAME``; nothing for most."""

    @property
    def usage(self) -> str:
        return f"{self.name} {self.argument}".rstrip()


COMMANDS = {
    command.name: command
    for command in (
        Command("/help", "what can be typed here"),
        Command("/tools", "what the assistant can do, or all about one tool", "[NAME]"),
        Command("/attach", "add a picture or file to your next message", "FILE"),
        Command("/history", "what was said in this session"),
        Command("/rate", "say whether the last answer was right; people's ratings are learned from", "good|bad [NOTE]"),
        Command("/new", "begin a new session; this one is kept"),
        Command("/sessions", "your latest sessions"),
        Command("/session", "go on with another session", "ID"),
        Command("/quit", "leave; so does Ctrl-D"),
    )
}
KEYS = {
    "Ctrl-C": "cancel what is under way, and go on talking",
    "Alt-Enter": "another line of the same message; so does Enter after a backslash",
    "Tab": "complete a command",
    "Ctrl-R": "search what you have said before; the arrow keys go through it",
}


def parsed(line: str) -> tuple[str, str] | None:
    """The command and its argument that a line gives; None where it is a message, such as a path."""
    name, _, argument = line.partition(" ")
    return (name, argument.strip()) if _NAME.fullmatch(name) and "\n" not in line else None


def unknown(name: str) -> str:
    """What to say of a command that is not there."""
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    return f"there is no {name!r}; {f'did you mean {near[0]}?' if near else '/help tells what there is'}"


GoneOnWith = Annotated[
    str | None, typer.Option(metavar="NAME", help="Go on with a stored conversation. Without it, a new one.")
]


@options.taking("agent library model session permission yes store verbose debug log_level", session=GoneOnWith)
def chat(given: RunOptions) -> None:
    """Talk in the terminal; risky calls are asked about there, Ctrl-C cancels. Through a pipe, a line is a message."""
    database = open_at(given.store)
    loaded, tools, given = load_for_run(given, store=database)
    parts = {"library": tools, "origin": given.origin, "find_tools": RememberedTools(database), "gate": Gate(ask=True)}
    try:
        raise typer.Exit(in_running_app(database, lambda app: _Conversation(app, loaded, given).hold(), **parts))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


class _Conversation:
    """One conversation after another, as long as the command lasts. What was said stays in the store."""

    def __init__(self, app: Journeyman, agent: Agent, given: RunOptions) -> None:
        self._app = app
        self._agent = agent
        self._options = given
        self._model = model_name(app, agent)
        self._desk = Desk(app, LOCAL)
        self._session = app.session(given.session or new_id("chat"))
        self._console = screen.console(stderr=True)
        self._interrupts = _Interrupts()
        self._edited = Edited()
        self._attached: list[Medium] = []
        """Goes with the next message."""

    async def hold(self) -> ExitCode:
        """Everything from the first line to the last."""
        await self._session.must_be_open_to(self._options.principal)
        if self._options.session is not None and not await self._desk.has_session(self._session.id):
            screen.note(f"there is no session {self._session.id!r} yet: the first message begins it")
        interactive = screen.interactive()
        self._interrupts.watch()
        if interactive:
            self._greet()
        code = await self._resume()
        lines = self._typed() if interactive else screen.piped_lines()
        while code is not ExitCode.WAITING:  # then nothing more can be said before somebody has decided
            with self._interrupts.reading():
                line = await anext(lines, None)
            if line is None:
                break
            if not (text := line.strip()):
                continue
            self._edited.note()
            if (order := parsed(text)) is None:
                code = await self._say(text)
            elif order[0] == QUIT:
                break
            elif (came_to := await self._obey(*order)) is ExitCode.WAITING or interactive:
                code = came_to  # through a pipe, the code is that of the last run
        if not interactive:
            return code
        if await self._desk.has_session(self._session.id):
            again = command(self._options.store, "chat --session", self._session.id, *self._options.repeated)
            self._console.print(f"go on: {again}", style="dim", soft_wrap=True)
        return code if code is ExitCode.WAITING else ExitCode.DONE

    # --- saying something

    async def _resume(self) -> ExitCode:
        """Finish what was left unfinished when this conversation was left."""
        rows = await self._desk.runs(statuses=UNFINISHED, session_id=self._session.id, limit=1_000)
        code = ExitCode.DONE
        if rows and self._options.yes:  # questions that were asked before are a person's to decide
            must_be_a_person()
        for row in reversed(rows):  # by turn, the latest first
            if code is not ExitCode.WAITING:
                self._console.print(f"· left unfinished, taken up again: {row.id}", style="dim")
                await self._app.must_bind(row.id)
                [handle] = await self._app.resume(row.id)
                code = await self._see(handle, seen=row.last_seq)
        return code

    async def _say(self, text: str) -> ExitCode:
        if len(text) > CHAT_MESSAGE_LIMIT:
            screen.note(f"a message has at most {CHAT_MESSAGE_LIMIT:,} characters, this one {len(text):,}; not sent")
            return ExitCode.FAILED
        try:
            task = task_of([text, *self._attached])
        except InvalidDataError as error:
            screen.note(f"{error.problems[0][1]}; not sent")
            return ExitCode.FAILED
        finally:
            self._attached = []
        handle = await self._session.send(self._agent, task, principal=self._options.principal)
        code = await self._see(handle)
        if code is not ExitCode.WAITING and (report := (await handle.result()).gap) is not None:
            missing = ", ".join(map(screen.escaped, report.missing_tools))
            kept = command(self._options.store, "gaps list")
            self._console.print(Text(f"· no tool for: {missing} · kept: {kept}", style="dim"), soft_wrap=True)
        return code

    async def _see(self, handle: Handle, *, seen: int = 0) -> ExitCode:
        allow = partial(self._app.approvals.grant_like, by=options.user_name())
        with screen.keys_hidden(), self._interrupts.cancelling(handle):
            return await see_through(self._app, handle, self._options, seen=seen, allow=allow, talking=True)

    # --- the person at the terminal

    def _greet(self) -> None:
        text = Text.assemble(
            (self._agent.name, "bold"), f" · model {screen.escaped(self._model)} · ",
            screen.counted(len(self._app.library), "tool"), f"\nsession {screen.escaped(self._session.id)} · ",
            ("/help", "bold"), " tells what else there is",
        )  # fmt: skip
        self._console.print(Panel(text, border_style="cyan"))

    async def _typed(self) -> AsyncIterator[str]:
        from journeyman.doors.cli.prompting import ChatPrompt

        prompt = ChatPrompt(COMMANDS, self._choices)
        while True:
            self._console.print()
            line = await prompt.read()
            if line is None:
                return
            yield line

    async def _obey(self, name: str, argument: str) -> ExitCode:
        """Carry out a command of the chat."""
        match name:
            case "/help":
                rows = ((item.usage, item.does) for item in COMMANDS.values())
                self._console.print(screen.fields(*rows, *KEYS.items()))
                self._console.print("Everything else is said to the assistant.")
            case "/tools":
                self._tools(argument)
            case "/attach":
                self._attach(argument)
            case "/history":
                await self._history()
            case "/rate":
                await self._rate(argument)
            case "/new":
                self._session = self._app.session(new_id("chat"))
                self._greet()
            case "/sessions":
                await self._sessions()
            case "/session":
                return await self._go_on_with(argument)
            case _:
                screen.note(unknown(name))
        return ExitCode.DONE

    def _attach(self, file: str) -> None:
        try:
            self._attached.append(options.attached(Path(file).expanduser(), option="/attach"))
        except options.WrongUsageError as error:
            return screen.note(str(error))
        return self._console.print(f"+ {screen.escaped(self._attached[-1].words())}", style="dim", markup=False)

    def _tools(self, name: str) -> None:
        if not name:
            print_tools((item, None) for item in self._app.library.specifications())
        elif (found := self._app.library.lookup(name)) is None:
            screen.note(f"there is no tool {name!r}; /tools shows all of them")
        else:
            print_tool(found.specification)

    async def _rate(self, argument: str) -> None:
        rating, _, note = argument.partition(" ")
        if rating not in ("good", "bad"):
            return screen.note("say /rate good or /rate bad, and why if you like")
        rows = await self._desk.runs(session_id=self._session.id, limit=1)
        if not rows or not rows[0].status.ended:
            return screen.note("there is no answer yet that could be rated")
        handle = await self._app.handle(rows[0].id)
        try:
            await handle.rate(cast("Any", rating), by=options.user_name(), note=note.strip())
        except ConfigurationError as error:
            return screen.note(str(error))
        return self._console.print(f"· rated {rating}: {rows[0].id}", style="dim")

    async def _history(self) -> None:
        names = {Role.USER: "you", Role.ASSISTANT: self._agent.name}
        for message in await self._session.messages(last=HISTORY_SHOWN):
            if message.role in names and message.content.strip():
                media = " ".join(medium.words() for medium in message.media)
                said = screen.shortened(f"{message.content} {media}".strip(), HISTORY_WIDTH)
                screen.show(self._console, Text.assemble((f"{names[message.role]}: ", "bold"), said))

    async def _own_sessions(self) -> Sequence[SessionRow]:
        return await Desk(self._app, self._options.principal or LOCAL).own_sessions(limit=SESSIONS_SHOWN)

    async def _sessions(self) -> None:
        table = screen.listing("session", "last used", "began with")
        for row in await self._own_sessions():
            here = " (this one)" if row.id == self._session.id else ""
            title = screen.shortened(row.title, TITLE_WIDTH)
            table.add_row(screen.escaped(row.id) + here, screen.local_time(row.updated_at), title)
        if table.row_count:
            self._console.print(table)
        else:
            screen.note("nothing was said yet, in no session")

    async def _go_on_with(self, session_id: str) -> ExitCode:
        if not session_id or not await self._desk.has_session(session_id):
            missing = f"there is no session {session_id!r}" if session_id else "/session needs the ID of a session"
            screen.note(f"{missing}; /sessions shows what there is")
            return ExitCode.DONE
        session = self._app.session(session_id)
        try:
            await session.must_be_open_to(self._options.principal)
        except SessionTakenError as error:
            screen.note(str(error))
            return ExitCode.DONE
        order, own = await self._desk.latest_order(session_id), self._options.origin
        if order is not None and order.origin and own and order.origin.code != own.code:
            again = command(self._options.store, "chat --session", session_id)
            screen.note(f"{session_id!r} is with another agent or other tools; go on with it by itself: {again}")
            return ExitCode.DONE
        self._session = session
        self._greet()
        return await self._resume()

    async def _choices(self, name: str) -> Sequence[tuple[str, str]]:
        """What a command can be given, with a few words about each."""
        match name:
            case "/tools":
                return [(item.name, item.description) for item in self._app.library.specifications()]
            case "/session":
                return [(row.id, row.title) for row in await self._own_sessions() if row.id != self._session.id]
            case _:
                return ()


class _Interrupts:
    """What Ctrl-C does. It cancels the run that is under way; only who insists leaves the program by it.

    While a person edits a line it is a key like any other. A signal then comes from elsewhere, and ends the program.
    """

    def __init__(self) -> None:
        self._reading = False
        self._presses = 0
        self._handle: Handle | None = None
        self._cancel: asyncio.Task[None] | None = None

    def watch(self) -> None:
        talking = asyncio.current_task()
        assert talking is not None
        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._pressed, talking)

    def _pressed(self, talking: asyncio.Task[Any]) -> None:
        self._presses += 1
        if self._reading or self._presses > 2:
            talking.cancel()
        elif self._presses == 2:
            screen.note("being cancelled; Ctrl-C once more leaves")
        else:
            self._cancel_run()

    def _cancel_run(self) -> None:
        if self._handle is not None:
            self._cancel = asyncio.create_task(self._handle.cancel())

    @contextmanager
    def cancelling(self, handle: Handle) -> Iterator[None]:
        """While a run is under way."""
        self._handle = handle
        if self._presses:  # while it was being stored
            self._cancel_run()
        try:
            yield
        finally:
            self._handle, self._presses = None, 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While the next line is waited for."""
        self._reading, self._presses = True, 0
        try:
            yield
        finally:
            self._reading = False
