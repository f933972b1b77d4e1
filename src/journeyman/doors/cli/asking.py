"""Who is asked about a risky call: the person at the terminal, nobody, or, with ``--yes``, nobody needs to be."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeAlias

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from journeyman.core.approvals import Approval, Approve, Approver, Deny
from journeyman.doors.cli import screen
from journeyman.doors.cli.options import user_name
from journeyman.doors.cli.trace import Trace

CHOICES = "[y]es, run it · [n]o, and a reason if you like · [e]dit the arguments"
ALWAYS = " · [a]lways in this session"


def approver(console: Console, trace: Trace, *, yes: bool) -> Approver:
    """Whoever answers in this process."""
    if yes:
        return lambda approval: Approve(by="--yes")
    if screen.someone_is_there():
        return TerminalApprover(console, trace)
    return lambda approval: Deny(reason="nobody can be asked here; in a terminal you are asked, and --yes approves")


Asker: TypeAlias = Callable[[Approval], Awaitable[Approve | Deny]]
Allow: TypeAlias = Callable[[str], Awaitable[object]]
"""Lets a tool, by its name, run without asking from now on."""


def asker(console: Console, trace: Trace, *, yes: bool, allow: Allow | None = None) -> Asker | None:
    """Who answers for a run that can wait: None when nobody is there, for somebody will answer later."""
    if yes:

        async def approve(approval: Approval) -> Approve:
            return Approve(by=f"{user_name()} (--yes)")

        return approve
    return TerminalApprover(console, trace, allow=allow) if screen.someone_is_there() else None


class TerminalApprover:
    """Shows exactly what would run, and asks. One question at a time. With ``allow``, a yes may be for good."""

    def __init__(self, console: Console, trace: Trace, *, allow: Allow | None = None) -> None:
        self._console = console
        self._trace = trace
        self._allow = allow
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, approval: Approval) -> Approve | Deny:
        await self._trace.reached(approval.id)
        async with self._one_at_a_time:
            with self._trace.held():
                return await self._ask(approval)

    async def _ask(self, approval: Approval) -> Approve | Deny:
        forget_typed_ahead()
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
            return await read_line() or ""
        except asyncio.CancelledError:
            self._console.print()  # whatever comes next does not belong beside the prompt
            raise


def question(approval: Approval) -> Panel:
    """The whole truth about one call: tool, exact arguments, risk, who it is for."""
    arguments = json.dumps(approval.arguments, indent=2, ensure_ascii=False)
    lines = Text.assemble((screen.visible(approval.tool_name), "bold"), "  ", screen.risk_text(approval.risk), "\n")
    lines.append(screen.visible(arguments))
    if approval.principal is not None:
        lines.append(f"\nfor {screen.visible(approval.principal.id)}", style="dim")
    left = max(0.0, (approval.expires_at - datetime.now(UTC)).total_seconds())
    return Panel(
        lines,
        title="May this run?",
        title_align="left",
        subtitle=f"denied after {screen.span(left)} without an answer",
        subtitle_align="right",
        border_style=screen.RISK_STYLES[approval.risk],
    )


async def read_line() -> str | None:
    """A line from the terminal, which hands out whole lines; None at the end of input."""
    typed = await read_input()
    return typed.decode(errors="replace").strip() if typed else None


async def piped_lines() -> AsyncIterator[str]:
    """The lines of a pipe or a file, as they come."""
    rest = b""
    while read := await read_input():
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


async def read_input() -> bytes:
    """What there is to read; nothing at the end of input. Waits on the event loop, so that it can be given up."""
    source = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(source, ready.set)
    except PermissionError:  # a file cannot be watched, and need not be: it never keeps anybody waiting
        return os.read(source, 65_536)
    except NotImplementedError:  # event loops on Windows cannot watch a terminal
        line: str = await asyncio.to_thread(sys.stdin.readline)
        return line.encode()
    try:
        await ready.wait()
    finally:
        loop.remove_reader(source)
    return os.read(source, 65_536)


def forget_typed_ahead() -> None:
    """What was typed before a question was shown is no answer to it."""
    with suppress(ImportError, OSError):
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
