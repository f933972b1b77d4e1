"""The messages that the bot writes: status, questions with buttons, answers, failures.

A message is known by the id of its first block, and a button's value is the id of what it decides about: so buttons
work, and nothing is written twice, whatever process looks at the thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from journeyman.core.approvals import Approval, ApprovalStatus
from journeyman.core.calls import ToolCallRecord
from journeyman.core.data import exact_json
from journeyman.core.errors import ErrorInfo
from journeyman.core.events import ApprovalDecided
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.doors.slack.text import code, escaped, mrkdwn, parts

ACTION = "journeyman:"
APPROVE, DENY, CANCEL = f"{ACTION}approve", f"{ACTION}deny", f"{ACTION}cancel"
GOOD, BAD = f"{ACTION}rate:good", f"{ACTION}rate:bad"
DONE, RERUN, SKIP = f"{ACTION}unknown:done", f"{ACTION}unknown:rerun", f"{ACTION}unknown:skip"
SETTLED = {"rerun": "it runs again", "done": "taken as done", "skip": "left out"}
MOST_ARGUMENT_BLOCKS = 10
LONGEST_FALLBACK = 300
"""Characters of a message in notifications, where its blocks are not shown."""
ANSWER = "answer:"


class Post(NamedTuple):
    """One message."""

    key: str
    """The id of its first block."""
    text: str
    """For notifications, and for whoever reads it as history."""
    blocks: list[dict[str, Any]]


def status_post(run_id: str, lines: Sequence[str], *, ended: bool = False) -> Post:
    text = "\n".join(lines)
    block = _section(text, key := f"status:{run_id}")
    if ended:
        return Post(key, text, [{"type": "context", "block_id": block["block_id"], "elements": [block["text"]]}])
    cancel = _buttons(f"cancel:{run_id}", _button(CANCEL, "Cancel", run_id, style="danger"))
    return Post(key, text, [block, cancel])


def approval_post(approval: Approval, decided: ApprovalDecided | None) -> Post:
    """The question about one call, or what was answered."""
    key = f"approval:{approval.id}"
    what = escaped(approval.about) if approval.about else f"Call `{escaped(approval.tool_name)}`"
    if decided is not None:
        text = f"{_verdict(decided)}: {what}"
        return Post(key, text, [_section(text, key)])
    lines = [f"*May this run?* {what}", f"`{escaped(approval.tool_name)}` · {approval.risk.value}"]
    shown = parts(code(exact_json(approval.arguments)))
    notes = [f":warning: {escaped(approval.flow)}"] if approval.flow else []
    if approval.ungrounded:
        named = ", ".join(f"`{escaped(name)}`" for name in approval.ungrounded)
        notes.append(f":warning: {named}: said nowhere before, it may be invented")
    if approval.not_bound_to:
        notes.append(f"An approval is not bound to {escaped(approval.not_bound_to)}.")
    if approval.four_eyes:
        notes.append("Somebody else than the person who asked must agree.")
    until = int(approval.expires_at.timestamp())
    notes.append(f"Denied if nobody answers until <!date^{until}^{{date_short_pretty}} {{time}}|{until}>.")
    buttons = [_button(DENY, "Deny", approval.id, style="danger")]
    if len(shown) > MOST_ARGUMENT_BLOCKS:
        # Nobody approves what they cannot see.
        shown = shown[:MOST_ARGUMENT_BLOCKS]
        notes.append(
            f"The arguments are too long to show. Whoever runs me can: `journeyman approvals show {approval.id}`"
        )
    else:
        buttons.insert(0, _button(APPROVE, "Approve", approval.id, style="primary"))
    blocks = [
        _section("\n".join(lines), key),
        *(_section(text, f"{key}:{number}") for number, text in enumerate(shown)),
        _section("\n".join(notes), f"{key}:notes"),
        _buttons(f"decide:{approval.id}", *buttons),
    ]
    return Post(key, f"May this run? {what}", blocks)


def withdrawn_post(approval: Approval) -> Post:
    """A question that the end of its run has left without an answer."""
    key = f"approval:{approval.id}"
    text = f":octagonal_sign: No longer asked: {escaped(approval.about or approval.tool_name)}"
    return Post(key, text, [_section(text, key)])


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
        return Post(key, text, [_section(text, key)])
    text = f":grey_question: {called} was under way when its process died. Nobody knows whether it happened."
    value = f"{run_id}|{record.call_id}"
    buttons = (
        _button(DONE, "It happened", value),
        _button(RERUN, "Run it again", value, style="danger"),
        _button(SKIP, "Leave it out", value),
    )
    given = parts(code(exact_json(record.arguments or {})))[0]
    blocks = [
        _section(f"{text} Look it up, then say what to do.", key),
        _section(given, f"{key}:0"),
        _buttons(f"settle:{run_id}:{record.call_id}", *buttons),
    ]
    return Post(key, text, blocks)


def ending_posts(run_id: str, response: AgentResponse) -> list[Post]:
    """What came of a run: its answer in as many messages as it takes, or why there is none. The last ends the run."""
    texts = parts(mrkdwn(response.answer))
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
        posts.append(Post(key, text if number else text[:LONGEST_FALLBACK], [_section(text, key)]))
    rating = (_button(GOOD, ":thumbsup:", run_id), _button(BAD, ":thumbsdown:", run_id))
    posts[-1].blocks.append(_buttons(f"end:{run_id}", *rating))
    return posts


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


def _section(text: str, block_id: str) -> dict[str, Any]:
    return {"type": "section", "block_id": block_id[:255], "text": {"type": "mrkdwn", "text": text[:3_000]}}


def _buttons(block_id: str, *buttons: dict[str, Any]) -> dict[str, Any]:
    return {"type": "actions", "block_id": block_id[:255], "elements": list(buttons)}


def _button(action: str, label: str, value: str, *, style: str | None = None) -> dict[str, Any]:
    text = {"type": "plain_text", "text": label, "emoji": True}
    button: dict[str, Any] = {"type": "button", "action_id": action, "text": text, "value": value}
    return button if style is None else {**button, "style": style}
