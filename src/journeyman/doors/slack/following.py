"""A run as its thread shows it: one status message that is edited, questions with buttons, and what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Sequence

from slack_sdk.errors import SlackApiError

from journeyman.app.handles import Handle
from journeyman.core.approvals import Approval
from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import JourneymanError, StoreError
from journeyman.core.events import (
    ApprovalDecided,
    ApprovalRequested,
    CallFinished,
    CallProgress,
    CallResolved,
    CallStarted,
    Event,
    RunQueued,
    RunStarted,
    RunSuspended,
)
from journeyman.core.protocols import beside
from journeyman.core.runs import RunStatus
from journeyman.doors.slack.client import PASSING, reason
from journeyman.doors.slack.posts import (
    SETTLED,
    Post,
    approval_post,
    ending_posts,
    person,
    status_post,
    unknown_post,
    withdrawn_post,
)
from journeyman.doors.slack.text import escaped
from journeyman.doors.slack.threads import Thread

logger = logging.getLogger("journeyman.slack")

MOST_DECIDERS = 20
LONGEST_REQUEST = 300
MOST_LINES = 5
"""Of a run's calls, the latest, that its status names."""
LONGEST_LINE = 150


class Circle:
    """Those who may decide about a run: whoever is in its channel is mentioned there, the others are written to.

    ``request`` is what was asked, for those who were not there.
    """

    def __init__(self, thread: Thread, deciders: Sequence[str], request: str) -> None:
        self._thread = thread
        self._deciders = deciders[:MOST_DECIDERS]
        place = thread.place
        where = "in a direct message" if place.channel.startswith("D") else f"in <#{place.channel}>"
        self._about = f"<@{place.user}> asks {where}: “{escaped(request[:LONGEST_REQUEST])}”"
        self._here: list[str] | None = None
        self._elsewhere: dict[str, Thread] = {}

    async def put(self, post: Post, *, asks: bool = False, others: bool = False) -> None:
        """Put a question, or what was answered; with ``others``, it is not for whoever asked to answer."""
        if asks and self._thread.knows(post.key) and self._here is not None:
            return  # nothing new
        here, asker = await self._look(), self._thread.place.user
        if asks:
            called = " ".join(f"<@{user}>" for user in here if not (others and user == asker))
            known = "can be reached" if self._deciders else "is named here"
            nobody = "" if self._elsewhere else f"Nobody who may decide {known}: tell whoever runs me."
            await self._thread.put(post.plus(f"For {called} to decide." if called else nobody), once=True)
        else:
            await self._thread.put(post)
        for user, thread in self._elsewhere.items():
            if (asks and not (others and user == asker)) or thread.knows(post.key):
                try:
                    await thread.put(post.plus(self._about), once=asks)
                except SlackApiError as error:
                    if reason(error) in PASSING:
                        raise
                    logger.warning("somebody who may decide cannot be asked: %s", reason(error), extra={"user": user})

    async def _look(self) -> list[str]:
        """Who of them is in the channel; how to write to the others is found out once."""
        if self._here is None:
            members = await self._thread.members() if self._deciders else set()
            self._here = [user for user in self._deciders if user in members]
            for user in self._deciders:
                if user not in members and (direct := await self._thread.directly(user)) is not None:
                    self._elsewhere[user] = direct
        return self._here


class Progress:
    """What a run has come to so far, from its events."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[str, str]] = {}
        """What is shown of each call: a sign and the rest of its line."""
        self._names: dict[str, str] = {}
        self.approvals: dict[str, Approval] = {}
        self.decided: dict[str, ApprovalDecided] = {}
        self.unknown: dict[str, ToolCallRecord] = {}
        self.settled: dict[str, str] = {}
        self.waits: RunStatus | None = None
        self.position: int | None = None

    def hear(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.position = None
            case CallStarted():
                self.waits = self.position = None
                self._names[event.call_id] = event.tool_name
                self.calls[event.call_id] = (":hourglass_flowing_sand:", f"`{escaped(event.tool_name)}`")
            case CallProgress() if event.call_id in self.calls:
                message = escaped(event.message[:LONGEST_LINE])
                self.calls[event.call_id] = (":hourglass_flowing_sand:", f"`{self._names[event.call_id]}` {message}")
            case CallFinished():
                record = event.record
                why = f": {escaped(record.error.message[:LONGEST_LINE])}" if record.error is not None else ""
                sign = ":white_check_mark:" if record.success else ":x:"
                self.calls[record.call_id] = (sign, f"`{escaped(record.tool_name)}`{why}")
            case ApprovalRequested():
                self.approvals[event.approval.id] = event.approval
            case ApprovalDecided():
                self.waits = None
                self.decided[event.approval_id] = event
            case CallResolved():
                self.waits = None
                by = f" ({person(event.by)})" if event.by else ""
                self.settled[event.call_id] = f"{SETTLED[event.action]}{by}"
            case RunSuspended():
                self.waits = event.status
            case RunQueued() if self.position is None or event.position * 2 <= self.position:
                # At each step forward, a thousand that wait would edit a thousand messages.
                self.position = event.position
            case _:
                pass

    def lines(self) -> Iterator[str]:
        match self.waits:
            case RunStatus.AWAITING_APPROVAL:
                yield ":raised_hand: Waiting for somebody to decide"
            case RunStatus.AWAITING_RESOLUTION:
                yield ":grey_question: Waiting for somebody to say what became of a call"
            case RunStatus.STUCK:
                yield ":warning: Stuck: processes died on it, again and again. Cancel it, or ask whoever runs me"
            case _:
                waiting = f", number {self.position} in the queue" if self.position else ""
                yield f":hourglass_flowing_sand: Working on it{waiting} …"
        left_out = len(self.calls) - MOST_LINES
        if left_out > 0:
            yield f"… {left_out} more"
        for sign, text in list(self.calls.values())[-MOST_LINES:]:
            yield f"{sign} {text}"


async def follow(handle: Handle, thread: Thread, circle: Circle, *, seconds: float) -> bool:
    """Show a run until it has ended and its answer is in the thread. Its status is edited every so many seconds.

    Its questions are put to ``circle``. False for one that cannot go on here.
    """
    progress, news, closing = Progress(), asyncio.Event(), asyncio.Event()
    # Where many ask at once, answers go before what is said meanwhile.
    if not await thread.put(status_post(handle.run_id, list(progress.lines())), once=True, if_room=True):
        news.set()

    async def edit_status() -> None:
        while not closing.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await closing.wait()
            await news.wait()
            news.clear()
            if not closing.is_set() and not await thread.put(
                status_post(handle.run_id, list(progress.lines())), if_room=True
            ):
                news.set()

    trouble: JourneymanError | None = None
    try:
        async with beside(edit_status()) as (editing,), contextlib.aclosing(handle.batches()) as batches:
            async for batch in batches:
                if editing.done():
                    editing.result()
                for event in batch:
                    progress.hear(event)
                await _ask(handle, thread, circle, progress)
                news.set()
            # An edit under way is not broken off: it might arrive after the last one.
            closing.set()
            news.set()
            await editing
    except StoreError:
        raise  # that passes
    except JourneymanError as error:
        trouble = error
    if trouble is not None:
        lines = [
            f":warning: I cannot go on here: {escaped(str(trouble))}",
            f"Tell whoever runs me; run `{handle.run_id}` is kept.",
        ]
        await thread.put(status_post(handle.run_id, lines))
        return False
    for approval in progress.approvals.values():
        if approval.id not in progress.decided and thread.knows(f"approval:{approval.id}"):
            await circle.put(withdrawn_post(approval))
    response = await handle.result()
    for post in ending_posts(handle.run_id, response, thread.place.people):
        await thread.put(post, once=True)
    used = ", ".join(f"`{escaped(name)}`" for name in response.tools_used)
    said = f"{response.status.value.replace('_', ' ').capitalize()}{f' with {used}' if used else ''}"
    if thread.knows(f"status:{handle.run_id}"):
        await thread.put(status_post(handle.run_id, [said], ended=True))
    return True


async def _ask(handle: Handle, thread: Thread, circle: Circle, progress: Progress) -> None:
    """Put the questions there are to those who may answer, and what was answered, here or at another door."""
    for approval in progress.approvals.values():
        decided = progress.decided.get(approval.id)
        if approval.question is not None:  # for whoever asked, and not for those who decide
            post = approval_post(approval, decided)
            await thread.put(post if decided else post.plus(f"For <@{thread.place.user}>."), once=decided is None)
        elif decided is None or thread.knows(f"approval:{approval.id}"):
            await circle.put(approval_post(approval, decided), asks=decided is None, others=approval.four_eyes)
    if progress.waits is RunStatus.AWAITING_RESOLUTION:
        progress.unknown |= {record.call_id: record for record in await handle.unknown()}
    for call_id, record in progress.unknown.items():
        settled = progress.settled.get(call_id)
        await circle.put(unknown_post(handle.run_id, record, settled), asks=settled is None)
