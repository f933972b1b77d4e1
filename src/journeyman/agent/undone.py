"""Did a run end without having done what was asked? Then what is missing is looked for, before its end is written.

Judged by the calls, by how sure the model's adapter says it is, and by what the answer says. A call that was denied or
failed is no gap: there is a tool for it.
"""

from __future__ import annotations

import asyncio
import logging
import re

from journeyman.agent.run import Run
from journeyman.agent.state import RunState
from journeyman.core.data import LOG_FIELDS
from journeyman.core.gaps import ToolGapReport
from journeyman.core.runs import UNSURE, RunStatus
from journeyman.core.specification import RESERVED_NAMES

logger = logging.getLogger("journeyman.agent")

LOOK_SECONDS = 10.0
"""How long the look may take: the run's end waits for it."""
_READ_CHARS = 2_000

_DECLINES = re.compile(
    r"\b(?:(?:can(?:no|['’])t|can not|unable to|not able to|not capable of|couldn['’]t|could not)\b"
    r"|(?:do not|don['’]t|does not|doesn['’]t) (?:currently )?have"
    r" (?:access|a tool|any tool|the tool|the ability|tools)"
    r"|no (?:suitable |available |matching |such )?(?:tool|function|way for me)\b|(?:none|not one) of (?:my|the) tools"
    r"|not (?:supported|something i can)|beyond my|outside (?:of )?my|lacks? (?:a|the|any) (?:tool|ability|access))",
    re.IGNORECASE,
)
_OF_THE_WORLD = re.compile(
    r"^\W*(?:(?:please|now|hi|hello|hey)\b[,\s]*|(?:can|could|would|will)\s+you\s+(?:please\s+)?|i\s+(?:want|need)\s+(?:you\s+)?to\s+)*"
    r"(?:(?:send|book|order|buy|pay|transfer|delete|remove|schedule|cancel|retrieve|fetch|download|upload|turn|switch|call|email"
    r"|invite|remind|restart|deploy|reserve|subscribe|unsubscribe|register|refund|reboot|print)\b"
    r"|(?:get|show|list|check|find|look\s+up|read|open|update|what(?:['’]s|\s+is|\s+are))\s+(?:me\s+)?(?:my|our)\b)",
    re.IGNORECASE,
)


async def missing_for(run: Run, status: RunStatus) -> ToolGapReport | None:
    """What is missing for a run that ends now; None where it did what was asked, or nothing is missing."""
    state = run.state
    if run.gaps is None or state.task is None or state.wants_output:
        return None
    tools = run.offer.permitted
    if not tools:  # who has none to give expects none to be used
        return None
    undone, sure = left_undone(state, status)
    if not undone:
        return None
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            return await run.gaps(state.task.description, tools, sure)
    except Exception:
        # The run is as good without a report as it was before there were any.
        logger.exception("looking for a gap failed", extra={LOG_FIELDS: {"run_id": run.id}})
        return None


def left_undone(state: RunState, status: RunStatus) -> tuple[bool, float | None]:
    """Whether nothing was done of what was asked; and how sure the model was that a tool would do, where it says."""
    if status not in (RunStatus.COMPLETED, RunStatus.LIMIT_REACHED):
        return False, None
    calls = [call for step in state.steps for call in step.calls if call.tool_name not in RESERVED_NAMES]
    if calls:
        # It asked for tools that are not there, and for no others.
        return all(call.error is not None and call.error.code == "UNKNOWN_TOOL" for call in calls), 0.0
    if status is RunStatus.LIMIT_REACHED or state.answer is None:
        return status is RunStatus.LIMIT_REACHED and bool(state.steps), None
    if state.answer.confidence is not None:
        return state.answer.confidence < UNSURE, state.answer.confidence
    if _DECLINES.search(state.answer.text[:_READ_CHARS]):
        return True, 0.0
    # An answer in words alone does nothing in the world, whatever it says.
    return _OF_THE_WORLD.match(state.task.description[:_READ_CHARS] if state.task else "") is not None, None
