"""A run in the terminal: a line or two per event, what is under way right now, and the questions about its calls.

On a terminal what is under way grows and vanishes below the lines; in a log there are only the lines.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeAlias

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.text import Text

from journeyman.core import events
from journeyman.core.approvals import Approval, ApprovalStatus, Approve, Approver, Deny
from journeyman.core.calls import ToolCallRecord
from journeyman.core.messages import ToolCall
from journeyman.core.runs import AgentResponse
from journeyman.doors.cli import screen
from journeyman.doors.cli.options import user_name

THINKING = "thinking"
SETTLED = {"rerun": "it runs again", "done": "taken as done", "skip": "left out"}
TAIL_LINES = 6
"""How much of a growing text is shown."""
CHOICES = "[y]es, run it · [n]o, and a reason if you like · [e]dit the arguments"
ALWAYS = " · [a]lways in this session"

Asker: TypeAlias = Callable[[Approval], Awaitable[Approve | Deny]]
Allow: TypeAlias = Callable[[str], Awaitable[object]]
"""Lets a tool, by its name, run without asking from now on."""


class Trace:
    """Shows the events of one run on a console. Without ``lines``, only what is under way.

    Without ``plans`` a call has no line before there is something to say of it. ``name`` tells several runs apart.
    """

    def __init__(
        self, console: Console, *, live: bool = True, lines: bool = True, plans: bool = True, name: str = ""
    ) -> None:
        self.console = console
        self._width = console.width if console.is_terminal else screen.LOG_WIDTH
        self._lines = lines
        self._plans = plans
        self._name = f"{name} " if name else ""
        self._text = ""
        self._under_way: dict[str, str] = {}
        self._calls: dict[str, ToolCall] = {}
        self._held: list[tuple[Text, int]] | None = None
        self._asked: dict[str, asyncio.Event] = {}
        self._live: Live | None = None
        if live and console.is_terminal:
            self._live = Live(console=console, transient=True, refresh_per_second=8, get_renderable=self._now)

    def __enter__(self) -> Trace:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._text, self._under_way = "", {}
        if self._live is not None:
            self._live.stop()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Show nothing for a while, because a person is being asked; what happens is shown afterwards."""
        if self._live is not None:
            self._live.stop()
        self._held = []
        try:
            yield
        finally:
            lines, self._held = self._held, None
            for line, indent in lines:
                self._line(line, indent=indent)
            if self._live is not None:
                self._live.start()

    async def reached(self, approval_id: str) -> None:
        """Wait until everything that led to this question has been shown."""
        await self._asked.setdefault(approval_id, asyncio.Event()).wait()

    # --- events

    def recall(self, event: events.Event) -> None:
        """Know what was shown before, by another process or at another time."""
        match event:
            case events.CallsPlanned(calls=calls):
                self._calls.update((call.id, call) for call in calls)
            case events.ApprovalRequested(approval=approval):
                self._asked.setdefault(approval.id, asyncio.Event()).set()
            case _:
                pass

    def show(self, event: events.Event) -> None:
        match event:
            case events.RunStarted() | events.StepRestarted():
                self._think()
            case events.StrategiesInjected(advice=strategies):
                self._line(f"· {screen.counted(len(strategies), 'piece')} of advice from earlier runs", style="dim")
            case events.TextDelta(text=text):
                self._under_way.pop(THINKING, None)
                self._text += text
            case events.MessageReceived():
                self._message(event)
            case events.CallsPlanned(calls=calls):
                for call in calls:
                    self._planned(call)
            case events.CallStarted(call_id=id, attempt=attempt) if attempt > 1:
                self._progress(id, f"attempt {attempt}")
            case events.CallProgress(call_id=id, message=message, fraction=fraction):
                self._progress(id, message if fraction is None else f"{message} ({fraction:.0%})")
            case events.ApprovalRequested(approval=approval):
                self.recall(event)
                self._under_way.pop(approval.call_id, None)
                line = f"? {screen.call_text(approval.tool_name, approval.arguments, width=self._width - 40)}"
                self._line(Text.assemble(line, " needs approval · ", screen.risk_text(approval.risk)))
            case events.ApprovalDecided():
                self._decided(event)
            case events.CallResolved(call_id=id, action=action, by=by):
                name = self._calls[id].tool_name if id in self._calls else id
                self._line(f"{name}: settled{f' by {by}' if by else ''}: {SETTLED[action]}", style="cyan", indent=4)
            case events.CallFinished(record=record):
                self._finished(record)
            case events.StepFinished(nudge=nudge):
                if nudge:
                    self._line(
                        "! the reply neither called a tool nor answered; the model is asked again", style="yellow"
                    )
                self._think()
            case events.RunFinished(response=response) | events.RunFailed(response=response):
                self._under_way.clear()
                if response is not None:
                    self.sum_up(response)
            case _:
                pass

    def sum_up(self, response: AgentResponse) -> None:
        """The last line of a run."""
        self._line(summary(response), style="dim")

    def _think(self) -> None:
        self._text, self._under_way = "", {THINKING: "the model is thinking"}

    def _message(self, event: events.MessageReceived) -> None:
        self._text = ""
        self._under_way.pop(THINKING, None)
        if event.calls and event.text.strip():
            self._line(screen.escaped(event.text.strip()), style="italic")

    def _planned(self, call: ToolCall) -> None:
        self._calls[call.id] = call
        shown = _asked_for(call, width=self._width - 24)
        self._under_way[call.id] = shown
        if self._live is None and self._plans:
            self._line(f"→ {shown}", style="dim")

    def _progress(self, call_id: str, message: str) -> None:
        call = self._calls.get(call_id)
        if call is None:
            return
        if call_id in self._under_way:
            self._under_way[call_id] = f"{call.tool_name}: {screen.shortened(message, self._width - 30)}"
        if self._live is None:
            self._line(f"… {call.tool_name}: {screen.shortened(message, self._width)}", style="dim")

    def _decided(self, event: events.ApprovalDecided) -> None:
        by = f" by {event.by}" if event.by else ""
        reason = f": {screen.escaped(event.reason)}" if event.reason else ""
        match event.status:
            case ApprovalStatus.APPROVED if event.arguments is not None:
                line, style = f"approved{by}, with other arguments", "green"
            case ApprovalStatus.APPROVED:
                line, style = f"approved{by}", "green"
            case ApprovalStatus.EXPIRED:
                line, style = "nobody answered in time: denied", "magenta"
            case _:
                line, style = f"denied{by}{reason}", "magenta"
        call = self._calls.get(event.call_id)
        self._line(line if call is None else f"{call.tool_name}: {line}", style=style, indent=4)

    def _finished(self, record: ToolCallRecord) -> None:
        self._under_way.pop(record.call_id, None)
        call = self._calls.get(record.call_id)
        malformed = call is not None and call.malformed is not None
        icon, style = screen.STATUS_LOOKS.get(record.status, ("·", "dim"))
        facts = [screen.duration(record.duration_ms)]
        if record.attempts > 1:
            facts.append(screen.counted(record.attempts, "attempt"))
        if record.cached:
            facts.append("from the cache")
        room = self._width - 34
        name = _asked_for(call, width=room) if call is not None and malformed else None
        self._line(
            Text.assemble(
                (f"{icon} ", style),
                name or screen.call_text(record.tool_name, record.arguments, width=room),
                "" if record.risk is None else Text.assemble(" · ", screen.risk_text(record.risk)),
                (f" · {' · '.join(facts)}", "dim"),
            )
        )
        if record.error is None:
            self._line(f"= {screen.shortened(record.result, self._width - 8)}", style="dim", indent=4)
        else:
            self._line(screen.escaped(f"{record.error.code}: {record.error.message}"), style=style, indent=4)
            if record.error.recover_action:
                self._line(f"the model is told: {screen.escaped(record.error.recover_action)}", style="dim", indent=4)

    # --- lines

    def _line(self, text: str | Text, *, style: str = "", indent: int = 2) -> None:
        line = Text(text, style=style) if isinstance(text, str) else text
        if not self._lines:
            return
        if self._held is not None:
            self._held.append((line, indent))
        else:
            screen.show(self.console, Text.assemble(self._name, line), indent=indent)

    def _now(self) -> RenderableType:
        """What is under way."""
        lines = [Text(f" {line}", style="dim") for line in self._under_way.values()]
        rows: list[RenderableType] = [Spinner("dots", line) for line in lines]
        if self._text.strip():
            tail = "\n".join(screen.escaped(self._text).strip().splitlines()[-TAIL_LINES:])
            rows.insert(0, Text(tail[-TAIL_LINES * self._width :], style="italic dim"))
        return Group(*rows)


def _asked_for(call: ToolCall, *, width: int) -> str:
    if call.malformed is not None:
        return f"{call.tool_name}({screen.shortened(call.malformed, max(16, width - len(call.tool_name)))})"
    return screen.call_text(call.tool_name, call.arguments, width=width)


def summary(response: AgentResponse) -> str:
    """A run in one line."""
    milliseconds = sum(step.duration_ms for step in response.structured_trace)
    parts = [
        response.status.value.replace("_", " "),
        screen.counted(response.total_iterations, "step"),
        screen.counted(len(response.tool_calls), "call"),
        screen.counted(response.usage.total_tokens, "token"),
        screen.duration(milliseconds),
    ]
    return " · ".join(parts)


# --- approvals


def approver(trace: Trace, *, yes: bool) -> Approver:
    """Who answers for a run that lives and dies with this process."""
    if yes:
        return lambda approval: Approve(by="--yes")
    if screen.interactive():
        return TerminalApprover(trace)
    return lambda approval: Deny(reason="nobody can be asked here; in a terminal you are asked, and --yes approves")


def asker(trace: Trace, *, yes: bool, allow: Allow | None = None) -> Asker | None:
    """Who answers for a durable run: None when nobody is there, for it can wait until somebody answers elsewhere."""
    if yes:

        async def approve(approval: Approval) -> Approve:
            return Approve(by=f"{user_name()} (--yes)")

        return approve
    return TerminalApprover(trace, allow=allow) if screen.interactive() else None


class TerminalApprover:
    """Shows exactly what would run, and asks. One question at a time. With ``allow``, a yes may be for good."""

    def __init__(self, trace: Trace, *, allow: Allow | None = None) -> None:
        self._trace = trace
        self._console = trace.console
        self._allow = allow
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, approval: Approval) -> Approve | Deny:
        await self._trace.reached(approval.id)
        async with self._one_at_a_time:
            with self._trace.held():
                return await self._ask(approval)

    async def _ask(self, approval: Approval) -> Approve | Deny:
        screen.discard_typed_ahead()
        self._console.print(question(approval))
        while True:
            answer = await self._read(f"  {CHOICES}{ALWAYS if self._allow else ''}\n  › ")
            choice, _, reason = answer.partition(" ")
            match choice.lower():
                case "y" | "yes":
                    return Approve(by=user_name())
                case "n" | "no" | "":
                    return Deny(reason=reason.strip(), by=user_name())
                case "e" | "edit":
                    edited = await self._edited()
                    if edited is not None:
                        return Approve(arguments=edited, by=user_name())
                case "a" | "always" if self._allow is not None:
                    await self._allow(approval.tool_name)
                    return Approve(by=user_name())
                case _:
                    self._console.print(f"  Please answer with {'y, n, e or a' if self._allow else 'y, n or e'}.")

    async def _edited(self) -> dict[str, Any] | None:
        text = await self._read("  All arguments, as a JSON object on one line:\n  › ")
        try:
            value = json.loads(text)
        except ValueError as error:
            self._console.print(f"  That is not JSON: {error}.")
            return None
        if isinstance(value, dict):
            return value
        self._console.print("  That is not a JSON object.")
        return None

    async def _read(self, prompt: str) -> str:
        self._console.print(prompt, end="", soft_wrap=True)
        try:
            return await screen.read_line() or ""
        except asyncio.CancelledError:
            self._console.print()  # whatever comes next does not belong beside the prompt
            raise


def question(approval: Approval) -> Panel:
    """One call in full: tool, exact arguments, risk, who it is for."""
    arguments = json.dumps(approval.arguments, indent=2, ensure_ascii=False)
    lines = Text.assemble((screen.escaped(approval.tool_name), "bold"), "  ", screen.risk_text(approval.risk), "\n")
    lines.append(screen.escaped(arguments))
    if approval.principal is not None:
        lines.append(f"\nfor {screen.escaped(approval.principal.id)}", style="dim")
    left = max(0.0, (approval.expires_at - datetime.now(UTC)).total_seconds())
    return Panel(
        lines,
        title="May this run?",
        title_align="left",
        subtitle=f"denied after {screen.rough_duration(left)} without an answer",
        subtitle_align="right",
        border_style=screen.RISK_STYLES[approval.risk],
    )
