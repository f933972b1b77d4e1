"""A run in the terminal: a line or two per event, what is under way right now, and the questions about its calls.

On a terminal what is under way grows and vanishes below the lines; in a log there are only the lines.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeAlias

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.text import Text

from journeyman.core import events
from journeyman.core.approvals import NOBODY, Approval, ApprovalStatus, Approve, Deny, Question
from journeyman.core.calls import ToolCallRecord
from journeyman.core.content import Medium
from journeyman.core.errors import ApprovalError, ErrorInfo
from journeyman.core.runs import AgentResponse, ToolCall
from journeyman.doors.cli import screen
from journeyman.doors.cli.options import user_name
from journeyman.doors.cli.program import must_not_be_a_tool

THINKING = "thinking"
ANSWERED = {ApprovalStatus.APPROVED: "answered", ApprovalStatus.DENIED: "not answered, on purpose"}
SETTLED = {"rerun": "it runs again", "done": "taken as done", "skip": "left out"}
OFFERED = {
    "strategy": "as in earlier runs",
    "used": "as before",
    "chosen": "as they fit the request",
    "called": "as it was called",
    "found": "as the model found",
    "fallback": "instead of",
}
"""Why the model is told of tools, where it is told of some only."""
TAIL_LINES = 6
"""How much of a growing text is shown."""
TAIL_CHARS = 4_000
CHOICES = "[y]es, run it · [n]o, and a reason if you like · [e]dit the arguments"
ALWAYS = " · [a]lways in this session, {terms}"
EDITING = "All arguments, as JSON: Enter runs the call with these, Ctrl-C goes back"

Asker: TypeAlias = Callable[[Approval], Awaitable[Approve | Deny]]
Allow: TypeAlias = Callable[[Approval], Awaitable[object]]
"""Lets a tool, by its name, run without asking from now on."""
Check: TypeAlias = Callable[[Approval, dict[str, Any]], Awaitable[object]]
"""Raises ApprovalError where a tool does not take what a person wants it to be called with."""


class Trace:
    """Shows the events of one run on a console. Without ``lines``, only what is under way.

    Without ``plans`` a call has no line before there is something to say of it. ``name`` tells several runs apart.
    With ``verbose`` also what calls took and returned, as it is, and what only the model was told.
    """

    def __init__(
        self,
        console: Console,
        *,
        live: bool = True,
        lines: bool = True,
        plans: bool = True,
        verbose: bool = False,
        name: str = "",
    ) -> None:
        self.console = console
        self._width = console.width if console.is_terminal else screen.LOG_WIDTH
        self._lines = lines
        self._plans = plans
        self._verbose = verbose
        self._name = f"{name} " if name else ""
        self._text = ""
        self._under_way: dict[str, str] = {}
        self._asked_at = time.monotonic()
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
                if isinstance(event, events.StepRestarted) and event.reason:
                    self._line(f"! asked again: {event.reason}, in {event.seconds:.0f} s", style="yellow")
                elif isinstance(event, events.RunStarted):
                    self._media(event.task.media, indent=2)
                self._think()
            case events.StrategiesInjected(advice=strategies):
                self._line(f"· {screen.counted(len(strategies), 'piece')} of advice from earlier runs", style="dim")
            case events.ToolsOffered(added=added, reason=reason) if added and reason in OFFERED:
                because = "" if event.because is None else f" {event.because}"
                text = f"{screen.counted(len(added), 'tool')} offered, {OFFERED[reason]}{because}: {', '.join(added)}"
                self._line(f"· {screen.shortened(text, self._width - 6)}", style="dim")
            case events.TextDelta(text=text):
                self._under_way.pop(THINKING, None)
                # Only its end is shown; all of it together would be copied with every piece.
                self._text = (self._text + text)[-TAIL_CHARS:]
            case events.MessageReceived():
                self._message(event)
            case events.CallsPlanned(calls=calls):
                for call in calls:
                    self._calls[call.id] = call
                    planned = self._under_way[call.id] = _asked_for(call, width=self._width - 24)
                    if self._live is None and self._plans:
                        self._line(f"→ {planned}", style="dim")
            case events.CallStarted(call_id=id, attempt=attempt) if attempt > 1:
                self._progress(id, f"attempt {attempt}")
            case events.CallProgress(call_id=id, message=message, fraction=fraction):
                self._progress(id, message if fraction is None else f"{message} ({fraction:.0%})")
            case events.ApprovalRequested(approval=approval):
                self.recall(event)
                self._under_way.pop(approval.call_id, None)
                if approval.question is not None:
                    self._line(f"? {approval.tool_name} asks: {screen.escaped(approval.about)}")
                    return
                text = screen.call_text(approval.tool_name, approval.arguments, width=self._width - 40)
                line = Text.assemble("? ", f"{screen.escaped(approval.about)} · " if approval.about else "", text)
                self._line(Text.assemble(line, " needs approval · ", screen.risk_text(approval.risk)))
                if approval.flow:
                    self._line(screen.escaped(approval.flow), style="yellow", indent=4)
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
        self._asked_at = time.monotonic()

    def _message(self, event: events.MessageReceived) -> None:
        self._text = ""
        self._under_way.pop(THINKING, None)
        if event.calls and event.text.strip():
            self._line(screen.escaped(event.text.strip()), style="italic")

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
            case _ if event.answers:
                line, style = ANSWERED.get(event.status, "not answered") + by, "cyan"
            case ApprovalStatus.APPROVED if event.arguments is not None:
                line, style = f"approved{by}, with other arguments", "green"
            case ApprovalStatus.APPROVED:
                line, style = f"approved{by}", "green"
            case ApprovalStatus.EXPIRED:
                line, style = "nobody answered in time: denied", "magenta"
            case ApprovalStatus.SUPERSEDED:
                line, style = f"the answer no longer counts{reason or ': the call is another one by now'}", "magenta"
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
        given = record.arguments if self._verbose else _telling(record.arguments, call)
        name = _asked_for(call, width=room) if call is not None and malformed else None
        self._line(
            Text.assemble(
                (f"{icon} ", style),
                name or screen.call_text(record.tool_name, given, width=room),
                "" if record.risk is None else Text.assemble(" · ", screen.risk_text(record.risk)),
                (f" · {' · '.join(facts)}", "dim"),
            )
        )
        if record.ungrounded:
            names = screen.escaped(", ".join(record.ungrounded))
            self._line(f"! found nowhere, may be invented: {names}", style="yellow", indent=4)
        self._media(record.media, indent=4)
        if record.error is not None:
            self._failed(record.error, style)
        elif self._verbose:
            self._line(f"= {screen.shortened(record.shown, self._width - 8)}", style="dim", indent=4)

    def _failed(self, error: ErrorInfo, style: str) -> None:
        self._line(Text.assemble((screen.escaped(error.message), style), (f" · {error.code}", "dim")), indent=4)
        if error.user_guidance:
            self._line(f"you can: {screen.escaped(error.user_guidance)}", style="dim", indent=4)
        if error.recover_action and self._verbose:
            self._line(f"the model is told: {screen.escaped(error.recover_action)}", style="dim", indent=4)

    def _media(self, media: Sequence[Medium], *, indent: int) -> None:
        for medium in media:
            self._line(f"+ {screen.escaped(medium.words())}", style="dim", indent=indent)

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
        waited = time.monotonic() - self._asked_at
        lines = [
            Text(f" {line} · {waited:.0f} s" if key == THINKING and waited >= 1 else f" {line}", style="dim")
            for key, line in self._under_way.items()
        ]
        rows: list[RenderableType] = [Spinner("dots", line) for line in lines]
        if self._text.strip():
            tail = "\n".join(screen.escaped(self._text).strip().splitlines()[-TAIL_LINES:])
            rows.insert(0, Text(tail[-TAIL_LINES * self._width :], style="italic dim"))
        return Group(*rows)


def _asked_for(call: ToolCall, *, width: int) -> str:
    if call.malformed is not None:
        return f"{call.tool_name}({screen.shortened(call.malformed, max(16, width - len(call.tool_name)))})"
    return screen.call_text(call.tool_name, call.arguments, width=width)


def _telling(arguments: dict[str, Any], call: ToolCall | None) -> dict[str, Any]:
    """The arguments that somebody chose: without what the tool filled in, and without what is empty."""
    asked = arguments if call is None else call.arguments
    changed = any(arguments.get(name) != value for name, value in asked.items())  # by a person, or put in other words
    return {name: value for name, value in arguments.items() if value is not None and (changed or name in asked)}


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


def nobody(_: Approval) -> Deny:
    """Answers for a run that lives and dies with this process, where nobody can be asked."""
    return Deny(reason=f"{NOBODY} here; in a terminal you are asked, and --yes approves")


def asker(trace: Trace, *, yes: bool, allow: Allow | None = None, check: Check | None = None) -> Asker | None:
    """Who answers for a run; None when nobody is there: a durable one can wait until somebody answers elsewhere."""
    if yes:
        must_not_be_a_tool()

        async def approve(approval: Approval) -> Approve:
            return Approve(by=f"{user_name()} (--yes)")

        return approve
    return TerminalApprover(trace, allow=allow, check=check) if screen.interactive() else None


class TerminalApprover:
    """Shows exactly what would run, and asks. One question at a time. With ``allow``, a yes may be for good.

    Edited arguments are tried with ``check`` at once: who has made a mistake can mend it.
    """

    def __init__(self, trace: Trace, *, allow: Allow | None = None, check: Check | None = None) -> None:
        self._trace = trace
        self._console = trace.console
        self._allow = allow
        self._check = check
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, approval: Approval) -> Approve | Deny:
        await self._trace.reached(approval.id)
        async with self._one_at_a_time:
            with self._trace.held():
                if approval.question is not None:
                    return await self._filled_in(approval.question)
                return await self._ask(approval)

    async def _filled_in(self, asked: Question) -> Approve | Deny:
        """What a tool or a server asks while a call runs: a form, field by field."""
        from journeyman.doors.cli.prompting import answer

        screen.show(self._console, screen.escaped(f"{asked.message} (to say nothing, leave it empty)"), indent=2)
        content: dict[str, Any] = {}
        for name, field in (asked.form.get("properties") or {}).items():
            choices = f" ({', '.join(map(str, field['enum']))})" if isinstance(field.get("enum"), list) else ""
            if text := (await answer(f"  {screen.escaped(name + choices)} › ")).strip():
                content[name] = text if field.get("type") == "string" else _json_or_text(text)
        return Approve(arguments=content, by=user_name()) if content else Deny(by=user_name())

    async def _ask(self, approval: Approval) -> Approve | Deny:
        from journeyman.doors.cli.prompting import answer

        self._console.print(question(approval))
        allow = self._allow if approval.grant is not None else None
        always = "" if allow is None else ALWAYS.format(terms=screen.grant_terms(approval.grant))
        while True:
            screen.show(self._console, f"{CHOICES}{always}", indent=2)
            choice, _, reason = (await answer("  › ")).strip().partition(" ")
            match choice.lower():
                case "y" | "yes":
                    return Approve(by=user_name())
                case "n" | "no" | "":
                    return Deny(reason=reason.strip(), by=user_name())
                case "e" | "edit":
                    edited = await self._edited(approval)
                    if edited is not None:
                        return Approve(arguments=edited, by=user_name())
                case "a" | "always" if allow is not None:
                    await allow(approval)
                    return Approve(by=user_name())
                case _:
                    self._console.print(f"  Please answer with {'y, n, e or a' if allow else 'y, n or e'}.")

    async def _edited(self, approval: Approval) -> dict[str, Any] | None:
        """Other arguments; None where the person goes back. What is wrong is said, and stays to be mended."""
        from journeyman.doors.cli.prompting import edited

        screen.show(self._console, EDITING, indent=2)
        text = screen.editable(approval.arguments, width=self._console.width - 4)
        while (changed := await edited("  › ", text)) is not None:
            text = changed
            try:
                value = json.loads(text)
                if not isinstance(value, dict):
                    raise ValueError("the arguments are a JSON object, in braces")
                if self._check is not None:
                    await self._check(approval, value)
            except (ValueError, RecursionError, ApprovalError) as error:
                screen.show(self._console, Text(f"Not run: {screen.escaped(str(error))}", style="red"), indent=2)
            else:
                return value
        return None


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def question(approval: Approval) -> Panel:
    """One call in full: what it is about, tool, exact arguments, risk, who it is for."""
    about = (f"{screen.escaped(approval.about)}\n", "bold") if approval.about else ""
    lines = Text.assemble(about, (screen.escaped(approval.tool_name), "" if about else "bold"), "  ")
    lines.append_text(screen.risk_text(approval.risk)).append(f"\n{screen.pretty(approval.arguments)}")
    if approval.flow:
        lines.append(f"\n{screen.escaped(approval.flow)}", style="bold yellow")
    for line, style in screen.source_lines(approval.grounding):
        lines.append(f"\n{line}", style=style)
    if approval.not_bound_to:
        lines.append(f"\nnot bound to {screen.escaped(approval.not_bound_to)}", style="dim")
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
