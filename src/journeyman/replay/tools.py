"""Recorded calls against the tools of today: reads are made again and compared, changes are never called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterable, Callable, Iterator
from typing import Any

from journeyman.core.calls import ToolContext
from journeyman.core.errors import JourneymanError
from journeyman.core.specification import RESERVED_NAMES
from journeyman.execution.checks import freeze, resolve
from journeyman.execution.invoke import Invoker
from journeyman.execution.outcome import Refusal
from journeyman.execution.threads import default_pool
from journeyman.replay.recording import RecordedCall, Recording
from journeyman.replay.report import ReplayReport, Share, Tally
from journeyman.replay.stage import Today

MOST_DIFFERENCES = 20
"""Of one result."""
VOLATILE = re.compile(
    r"(?:^|_)(?:time|timestamp|date|at|now|age|etag|nonce|request_id|trace_id|duration|elapsed)(?:_ms)?$"
)
"""Names of fields whose values change by themselves."""


async def replay_tools(
    recordings: AsyncIterable[Recording],
    today: Today,
    *,
    progress: Callable[[int], None] | None = None,
) -> ReplayReport:
    """Every recorded call of today's tools: would it be refused, and does a read still return what it returned?"""
    counts: Counter[str] = Counter()
    tally, invoker = Tally(), Invoker(threads=default_pool())
    async for recording in recordings:
        counts["runs"] += 1
        try:
            run = today.stage(recording)
            gone = today.bind(recording.started.agent).recorded
            for item in recording.calls:
                if item.call.tool_name in RESERVED_NAMES:
                    continue
                where = {"run_id": recording.run_id, "call_id": item.call.id}
                tool = resolve(item.call, run.offer.tools, recording.started.principal)
                if isinstance(tool, Refusal) or tool.name in gone:
                    counts["not_here"] += 1
                    continue
                counts["calls"] += 1
                frozen = await freeze(tool, item.call, run.policy)
                if isinstance(frozen, Refusal):
                    if item.ran:
                        counts["refused"] += 1
                        tally.add("refused", tool.name, frozen.error.code, frozen.error.message, **where)
                    continue
                if not tool.specification.read_only:
                    counts["changes_not_called"] += 1
                    continue
                if not item.ran or item.record is None:
                    continue
                context = ToolContext(principal=recording.started.principal, run_id=recording.run_id)
                counts["reads_called"] += 1
                outcome = await invoker.attempt(tool, frozen, context, tool.specification.timeout_seconds)
                for change, rule in _compared(item, outcome):
                    tally.add(change, tool.name, rule, rule, **where)
                    counts["differing_values"] += 1
                    if change == "failed":
                        counts["failed"] += 1
        except (JourneymanError, ValueError, LookupError) as error:
            tally.add("failed", "", type(error).__name__, str(error), run_id=recording.run_id)
        if progress is not None:
            progress(counts["runs"])
    return _report(counts, tally)


def _compared(item: RecordedCall, outcome: Any) -> Iterator[tuple[str, str]]:
    record = item.record
    assert record is not None
    if isinstance(outcome, Refusal):
        if record.error is None or record.error.code != outcome.error.code:
            yield "failed", f"{outcome.error.code}: {outcome.error.message}"
        return
    if record.error is not None:
        yield "succeeds", f"it failed with {record.error.code}"
        return
    if record.artifact is None:
        for number, (kind, path) in enumerate(differences(record.result, outcome.value)):
            if number == MOST_DIFFERENCES:
                break
            yield kind, path


def differences(before: Any, now: Any, path: str = "$") -> Iterator[tuple[str, str]]:
    """Where two values differ: ``other_shape`` (a field, a type, a length) or ``other_value``."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*before, *now)):
            if VOLATILE.search(str(key).lower()):
                continue
            if key not in before or key not in now:
                yield "other_shape", f"{path}.{key} is {'new' if key in now else 'gone'}"
            else:
                yield from differences(before[key], now[key], f"{path}.{key}")
    elif isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            yield "other_shape", f"{path} has another length"
        for one, other in zip(before, now, strict=False):
            yield from differences(one, other, f"{path}[]")
    elif type(before) is not type(now):
        yield "other_shape", f"{path} has another type"
    elif before != now:
        yield "other_value", f"{path} has another value"


def _report(counts: Counter[str], tally: Tally) -> ReplayReport:
    findings = tally.findings()
    kinds = {item.change for item in findings}
    verdict = "No recorded call would be refused" if "refused" not in kinds else "Recorded calls would be refused"
    if counts["reads_called"]:
        verdict += "; reads return what they returned" if not kinds - {"refused"} else "; reads return something else"
    notes = [f"{counts['changes_not_called']:,} calls that change something were not made."]
    if counts["not_here"]:
        notes.append(f"{counts['not_here']:,} calls are of tools that are not here: nothing is said of them.")
    kept = ("runs", "calls", "refused", "reads_called", "differing_values", "changes_not_called", "not_here")
    return ReplayReport(
        kind="tools",
        name="Recorded calls with today's tools",
        verdict=f"{verdict}.",
        counts={key: counts[key] for key in kept},
        shares={"calls_that_would_be_refused": Share.of(counts["refused"], counts["calls"])},
        findings=findings,
        notes=tuple(notes),
    )
