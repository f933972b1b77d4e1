"""The messages that the bot writes: status, questions with buttons, answers, failures.

A message is known by the id of its first block, and a button's value is the id of what it decides about: so buttons
work, and nothing is written twice, whatever process looks at the thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from journeyman.core.approvals import Approval, ApprovalStatus, Question
from journeyman.core.calls import ToolCallRecord
from journeyman.core.data import exact_json
from journeyman.core.errors import ErrorInfo
from journeyman.core.events import ApprovalDecided
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.doors.slack.text import code, escaped, mrkdwn, parts

ACTION = "journeyman:"
APPROVE, EDIT, DENY, CANCEL = (f"{ACTION}{name}" for name in ("approve", "edit", "deny", "cancel"))
NEW = f"{ACTION}new"
GOOD, BAD = f"{ACTION}rate:good", f"{ACTION}rate:bad"
DONE, RERUN, SKIP = f"{ACTION}unknown:done", f"{ACTION}unknown:rerun", f"{ACTION}unknown:skip"
SETTLED = {"rerun": "it runs again", "done": "taken as done", "skip": "left out"}
ANSWERED = {
    ApprovalStatus.APPROVED: (":white_check_mark:", "Answered"),
    ApprovalStatus.DENIED: (":no_entry:", "Declined"),
}
MOST_ARGUMENT_BLOCKS = 10
LONGEST_FALLBACK = 300
"""Characters of a message in notifications, where its blocks are not shown."""
LONGEST_REASON = 1_000
LONGEST_TEXT = 3_000
"""Characters of a section."""
MOST_FIELDS, LONGEST_FIELD = 50, 3_000
"""Of a dialogue."""
ANSWER = "answer:"


class Post(NamedTuple):
    """One message."""

    key: str
    """The id of its first block."""
    text: str
    """For notifications, and for whoever reads it as history."""
    blocks: list[dict[str, Any]]

    def plus(self, line: str) -> Post:
        """The same with one more line in its first block."""
        if not line:
            return self
        text = f"{self.blocks[0]['text']['text'][: LONGEST_TEXT - len(line) - 1]}\n{line}"
        return Post(self.key, f"{self.text} {line}", [section(text, self.key), *self.blocks[1:]])

    @property
    def whole(self) -> str:
        """All of it as one text, where Slack refuses its blocks."""
        lines = [block["text"]["text"] for block in self.blocks if block["type"] == "section"] or [self.text]
        if any(block["block_id"].startswith("decide:") for block in self.blocks):
            lines.append("Decide in my *Home* tab, or have whoever runs me do it: `journeyman approvals`.")
        return "\n".join(lines)


def status_post(run_id: str, lines: Sequence[str], *, ended: bool = False) -> Post:
    text = "\n".join(lines)
    block = section(text, key := f"status:{run_id}")
    if ended:
        return Post(key, text, [{"type": "context", "block_id": block["block_id"], "elements": [block["text"]]}])
    cancel = buttons(f"cancel:{run_id}", button(CANCEL, "Cancel", run_id, style="danger"))
    return Post(key, text, [block, cancel])


def approval_post(approval: Approval, decided: ApprovalDecided | None) -> Post:
    """The question about one call, or what was answered: both with the arguments."""
    key = f"approval:{approval.id}"
    if approval.question is not None:
        return _question_post(approval, approval.question, decided)
    what = escaped(approval.about) if approval.about else f"Call `{escaped(approval.tool_name)}`"
    edited = None if decided is None else decided.arguments
    shown = parts(code(exact_json(approval.arguments if edited is None else edited)))
    too_long = len(shown) > MOST_ARGUMENT_BLOCKS
    given = [section(text, f"{key}:{number}") for number, text in enumerate(shown[:MOST_ARGUMENT_BLOCKS])]
    if decided is not None:
        text = f"{_verdict(decided)}: {what}"
        lines = [text]
        if decided.reason:
            lines.append(f"> {escaped(' '.join(decided.reason.split()))[:LONGEST_REASON]}")
        lines.append(f"`{escaped(approval.tool_name)}` with {'these' if edited is None else 'changed'} arguments:")
        return Post(key, text, [section("\n".join(lines), key), *given])
    lines = [f"*May this run?* {what}", f"`{escaped(approval.tool_name)}` · {approval.risk.value}"]
    notes = [f":warning: {escaped(approval.flow)}"] if approval.flow else []
    if approval.ungrounded:
        named = ", ".join(f"`{escaped(name)}`" for name in approval.ungrounded)
        notes.append(f":warning: {named}: said nowhere before, it may be invented")
    if approval.not_bound_to:
        notes.append(f"An approval is not bound to {escaped(approval.not_bound_to)}.")
    if approval.four_eyes:
        notes.append("Somebody else than the person who asked must agree.")
    notes.append(f"Denied if nobody answers until {when(approval.expires_at.timestamp())}.")
    if too_long:
        notes.append(
            f"The arguments are too long to show. Whoever runs me can: `journeyman approvals show {approval.id}`"
        )
    blocks = [
        section("\n".join(lines), key),
        *given,
        section("\n".join(notes), f"{key}:notes"),
        approval_buttons(approval, seen=not too_long),
    ]
    return Post(key, f"May this run? {what}", blocks)


def _question_post(approval: Approval, asked: Question, decided: ApprovalDecided | None) -> Post:
    """What a tool asks while it runs, or that it was answered; what was answered is between it and that person."""
    key, text = f"approval:{approval.id}", f"`{escaped(approval.tool_name)}` asks: {escaped(approval.about)}"
    if decided is not None:
        sign, said = ANSWERED.get(decided.status, (":hourglass:", "Nobody answered in time"))
        by = f" by {person(decided.by)}" if decided.by else ""
        return Post(key, text, [section(f"{sign} {said}{by}: {text}", key)])
    until = f"Open until {when(approval.expires_at.timestamp())}."
    pieces = [section(piece, f"{key}:{number}") for number, piece in enumerate(parts(escaped(asked.message)))]
    shown = pieces[:MOST_ARGUMENT_BLOCKS]
    blocks = [section(text, key), *shown, section(until, f"{key}:notes"), approval_buttons(approval, seen=True)]
    return Post(key, text, blocks)


def editable(arguments: Mapping[str, Any]) -> bool:
    """Whether a dialogue has room for them, each in a field of its own."""
    texts = (value if isinstance(value, str) else exact_json(value) for value in arguments.values())
    return 0 < len(arguments) <= MOST_FIELDS and all(len(text) <= LONGEST_FIELD for text in texts)


def approval_buttons(approval: Approval, *, seen: bool) -> dict[str, Any]:
    """Nobody approves what they cannot see."""
    if approval.question is not None:
        # Without fields there is nothing to fill in but a yes.
        answer = button(EDIT if approval.arguments else APPROVE, "Answer", approval.id, style="primary")
        decline = button(DENY, "Decline", approval.id)
        return buttons(f"decide:{approval.id}", *([answer] if len(approval.arguments) <= MOST_FIELDS else []), decline)
    offered = [button(DENY, "Deny", approval.id, style="danger")]
    if seen:
        offered.insert(0, button(APPROVE, "Approve", approval.id, style="primary"))
        if editable(approval.arguments):
            offered.insert(1, button(EDIT, "Edit", approval.id))
    return buttons(f"decide:{approval.id}", *offered)


def withdrawn_post(approval: Approval) -> Post:
    """A question that the end of its run has left without an answer."""
    key = f"approval:{approval.id}"
    text = f":octagonal_sign: No longer asked: {escaped(approval.about or approval.tool_name)}"
    return Post(key, text, [section(text, key)])


def _verdict(decided: ApprovalDecided) -> str:
    by = f" by {person(decided.by)}" if decided.by else ""
    match decided.status:
        case ApprovalStatus.APPROVED:
            return f":white_check_mark: Approved{by}"
        case ApprovalStatus.DENIED:
            return f":no_entry: Denied{by}"
        case _:
            return ":hourglass: Nobody decided in time, so it was denied"


def unknown_post(run_id: str, record: ToolCallRecord, settled: str | None) -> Post:
    """The question what became of a call that was under way when its process died, or what was answered."""
    key = f"unknown:{run_id}:{record.call_id}"
    called = f"`{escaped(record.tool_name)}`"
    if settled is not None:
        text = f":white_check_mark: {called}: {settled}"
        return Post(key, text, [section(text, key)])
    text = f":grey_question: {called} was under way when its process died. Nobody knows whether it happened."
    value = f"{run_id}|{record.call_id}"
    offered = (
        button(DONE, "It happened", value),
        button(RERUN, "Run it again", value, style="danger"),
        button(SKIP, "Leave it out", value),
    )
    given = parts(code(exact_json(record.arguments or {})))[0]
    blocks = [
        section(f"{text} Look it up, then say what to do.", key),
        section(given, f"{key}:0"),
        buttons(f"settle:{run_id}:{record.call_id}", *offered),
    ]
    return Post(key, text, blocks)


def ending_posts(run_id: str, response: AgentResponse, people: Mapping[str, str]) -> list[Post]:
    """What came of a run: its answer in as many messages as it takes, or why there is none. The last ends the run."""
    texts = parts(mrkdwn(response.answer, people))
    if response.status is RunStatus.CANCELLED:
        texts = [":octagonal_sign: Cancelled. What had been done by then stays done."]
    elif response.status is RunStatus.LIMIT_REACHED:
        texts.append(f":warning: Stopped at its limit of {response.limit_reached or 'work'}: this may be incomplete.")
    elif response.status is not RunStatus.COMPLETED:
        texts = [failure_text(response.error, run_id)]
    texts = texts or [escaped(response.answer.strip()) or "_(There is nothing to say.)_"]  # of marks nothing is left
    posts = []
    for number, text in enumerate(texts):
        key = f"{ANSWER}{run_id}:{number}"
        posts.append(Post(key, text if number else text[:LONGEST_FALLBACK], [section(text, key)]))
    rating = (button(GOOD, ":thumbsup:", run_id), button(BAD, ":thumbsdown:", run_id))
    posts[-1].blocks.append(buttons(f"end:{run_id}", *rating))
    return posts


def when(moment: float) -> str:
    """A moment as each reader's clock has it."""
    at = datetime.fromtimestamp(moment, UTC)
    return f"<!date^{int(moment)}^{{date_short_pretty}} {{time}}|{at:%Y-%m-%d %H:%M} UTC>"


def failure_text(error: ErrorInfo | None, run_id: str) -> str:
    """What happened and what to do, for a person."""
    why = escaped(error.message) if error is not None else "nobody knows why"
    advice = (error.user_guidance or error.recover_action) if error is not None else None
    again = "Ask again, or tell whoever runs me" if advice is None else escaped(advice)
    return f":x: That did not work: {why}\n{again}. (Run `{run_id}`.)".replace(".. (", ". (")


def person(principal_id: str) -> str:
    """Who it is, as a mention where they are somebody of Slack."""
    kind, _, rest = principal_id.partition(":")
    return f"<@{rest.rpartition(':')[2]}>" if kind == "slack" and ":" in rest else f"`{escaped(principal_id)}`"


def section(text: str, block_id: str) -> dict[str, Any]:
    return {"type": "section", "block_id": block_id[:255], "text": {"type": "mrkdwn", "text": text[:LONGEST_TEXT]}}


def buttons(block_id: str, *elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "actions", "block_id": block_id[:255], "elements": list(elements)}


def button(action: str, label: str, value: str, *, style: str | None = None) -> dict[str, Any]:
    text = {"type": "plain_text", "text": label, "emoji": True}
    made: dict[str, Any] = {"type": "button", "action_id": action, "text": text, "value": value}
    return made if style is None else {**made, "style": style}
