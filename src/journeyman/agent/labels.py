"""What a run's end is labelled with: people's decisions on its calls, and the verdict of its verifier."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import Any

from journeyman.agent.agent import Verify
from journeyman.agent.run import Run
from journeyman.core.data import LOG_FIELDS
from journeyman.core.labels import Label, LabelSource
from journeyman.core.runs import AgentResponse, RunStatus

logger = logging.getLogger("journeyman.agent")

VERIFY_SECONDS = 60.0
"""How long a verifier may take."""


async def end_labels(run: Run, ended: AgentResponse) -> tuple[Label, ...]:
    """The labels that a run ends with. Most have none."""
    labels = tuple(run.state.decisions.values())
    if run.verify is not None and ended.status in (RunStatus.COMPLETED, RunStatus.LIMIT_REACHED):
        label = await _verified(run, run.verify, ended)
        labels = labels if label is None else (label, *labels)
    return labels


async def _verified(run: Run, verify: Verify, ended: AgentResponse) -> Label | None:
    name = getattr(verify, "__qualname__", type(verify).__name__)
    try:
        async with asyncio.timeout(VERIFY_SECONDS):
            # In a thread: it may well look into a database.
            verdict: Any = verify(ended) if _is_async(verify) else await asyncio.to_thread(verify, ended)
            if inspect.isawaitable(verdict):
                verdict = await verdict
        if verdict is not None and not isinstance(verdict, bool):
            raise TypeError(f"verify returned {type(verdict).__name__}, not True, False or None")
    except Exception as error:
        # A run is what it is, whoever fails to judge it.
        fields = {"run_id": run.id, "verifier": name, "error": type(error).__name__}
        logger.warning("a verifier failed: %s", type(error).__name__, exc_info=error, extra={LOG_FIELDS: fields})
        return None
    if verdict is None:
        return None
    value = "good" if verdict else "bad"
    return Label(source=LabelSource.VERIFIER, value=value, by=name, time=run.clock.time())


def _is_async(verify: Verify) -> bool:
    return inspect.iscoroutinefunction(verify) or inspect.iscoroutinefunction(type(verify).__call__)
