"""The Home tab: what waits for somebody, what they asked for, and what the assistant is connected with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from journeyman.app.desk import DECIDE, Desk
from journeyman.app.operations.approvals import AskedApproval, list_approvals
from journeyman.app.operations.runs import RunView, list_runs
from journeyman.app.operations.service import list_agents
from journeyman.app.operations.table import Paging
from journeyman.core.data import exact_json
from journeyman.core.runs import RunStatus
from journeyman.doors.slack.posts import CANCEL, NEW, approval_buttons, button, buttons, person, section, when
from journeyman.doors.slack.text import code, escaped, parts
from journeyman.doors.slack.threads import Place

MOST_QUESTIONS, MOST_RUNS, MOST_CONNECTIONS = 10, 10, 20
LOOKED_AT = 100
"""Questions, of which some may be for people of other workspaces."""
LONGEST_LINE = 200
PLURAL_TOOLS = 8
_SIGNS = {
    RunStatus.COMPLETED: ":white_check_mark:",
    RunStatus.AWAITING_APPROVAL: ":raised_hand:",
    RunStatus.AWAITING_RESOLUTION: ":grey_question:",
    RunStatus.CANCELLED: ":octagonal_sign:",
}

Block: TypeAlias = dict[str, Any]


async def home_view(
    desk: Desk, team: str, place_of: Callable[[str], Awaitable[Place | None]], *, said: str = ""
) -> dict[str, Any]:
    """What somebody of a workspace sees; nothing of another workspace, and of others only what they may decide."""
    blocks = [section(said, "said")] if said else []
    asked: list[AskedApproval] = []
    if desk.principal.may(DECIDE):
        for item in (await list_approvals(desk, paging=Paging(LOOKED_AT))).approvals:
            place = await place_of(item.run_id)
            if place is not None and place.team == team and item.not_to_be_approved_by(desk.principal.id) is None:
                asked.append(item)
    blocks += [
        _heading("Waits for you", "waits"),
        *(line for item in asked[:MOST_QUESTIONS] for line in _question(item)),
    ]
    if not asked:
        blocks.append(section("Nothing waits for you.", "waits:none"))
    elif len(asked) > MOST_QUESTIONS:
        blocks.append(section(f"… and {len(asked) - MOST_QUESTIONS} more.", "waits:more"))
    runs = (await list_runs(desk, principal=desk.principal.id, paging=Paging(MOST_RUNS))).runs
    blocks += [_heading("Your runs", "runs"), *map(_run, runs)]
    if not runs:
        blocks.append(
            section("You have not asked for anything yet. Mention me in a channel, or write to me.", "runs:none")
        )
    blocks.append(buttons("new", button(NEW, "New conversation", desk.principal.id.rpartition(":")[2])))
    blocks += [_heading("Connections", "connections"), *await _connections(desk)]
    return {"type": "home", "blocks": blocks}


def _question(item: AskedApproval) -> list[Block]:
    shown = parts(code(exact_json(item.arguments)))
    asker = person(item.principal.id) if item.principal is not None else "Somebody"
    text = (
        f"*{escaped(item.about or item.tool_name)[:LONGEST_LINE]}* · `{escaped(item.tool_name)}` · {item.risk.value}\n"
        f"{asker} asks: “{escaped(item.request)[:LONGEST_LINE]}”, until {when(item.expires_at.timestamp())}"
    )
    whole = len(shown) == 1
    given = shown[0] if whole else "The arguments are too long to show here; they stand in the thread."
    return [
        section(text, f"asked:{item.id}"),
        section(given, f"given:{item.id}"),
        approval_buttons(item, seen=whole),
    ]


def _run(run: RunView) -> Block:
    sign = _SIGNS.get(run.status, ":x:" if run.status.ended else ":hourglass_flowing_sand:")
    until = f", until {when(run.waits_until)}" if run.waits_until is not None else ""
    state = run.status.value.replace("_", " ")
    text = f"{sign} {escaped(run.request)[:LONGEST_LINE] or '…'}\n{state}{until} · {when(run.created_at)}"
    made = section(text, f"run:{run.id}")
    return made if run.status.ended else {**made, "accessory": button(CANCEL, "Cancel", run.id, style="danger")}


async def _connections(desk: Desk) -> list[Block]:
    lines = []
    for agent in (await list_agents(desk)).agents[:MOST_CONNECTIONS]:
        answers = f"`{escaped(agent.model_name)}`" if agent.model_name else ":warning: no model answers"
        tools = [item for item in desk.app.library.specifications() if item.name in agent.tools and desk.may_use(item)]
        named = ", ".join(f"`{escaped(tool.name)}`" for tool in tools[:PLURAL_TOOLS])
        more = f" and {len(tools) - PLURAL_TOOLS} more" if len(tools) > PLURAL_TOOLS else ""
        lines.append(f"*{escaped(agent.name)}* · {answers} · {f'{named}{more}' if named else 'no tools for you'}")
    failing = dict.fromkeys(problem.source for problem in desk.app.library.problems())
    lines += [f":warning: `{escaped(source)}` cannot be used in full" for source in list(failing)[:MOST_CONNECTIONS]]
    return [section(line, f"connection:{number}") for number, line in enumerate(lines)]


def _heading(text: str, block_id: str) -> Block:
    return {"type": "header", "block_id": block_id, "text": {"type": "plain_text", "text": text}}
