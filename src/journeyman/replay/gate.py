"""Recorded calls through today's gate: the same, now asked, now denied or now free, and by which rule. No model.

And against the tools of today: reads are made again and compared, changes are never called. And the reports of many
runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from typing import Any, Literal, TypeAlias

from journeyman.core.calls import CallStatus, ToolCallRecord, ToolContext, ungrounded
from journeyman.core.data import Entity
from journeyman.core.errors import JourneymanError
from journeyman.core.events import CallFinished, MessageReceived
from journeyman.core.policy import Policy, RiskLevel, for_tool
from journeyman.core.runs import ToolCall
from journeyman.core.specification import RESERVED_NAMES
from journeyman.execution.checks import KNOWN_RISKS, base_risk, freeze, resolve
from journeyman.execution.executor import Judgement
from journeyman.execution.invoke import Invoker
from journeyman.execution.outcome import Refusal
from journeyman.execution.threads import default_pool
from journeyman.replay.recording import RecordedCall, Recording
from journeyman.replay.report import ReplayReport, Share, Tally
from journeyman.replay.stage import Today
from journeyman.tools.library import AnyTool

Decided: TypeAlias = Literal["free", "asked", "denied"]
CHANGES = ("now_asked", "now_denied", "now_free")
Change: TypeAlias = Literal["same", "now_asked", "now_denied", "now_free", "unknown"]


class CallVerdict(Entity):
    """What today's gate says of one recorded call."""

    run_id: str
    call_id: str
    tool_name: str
    before: str
    """What was decided then: free, asked or denied."""
    now: Decided | None
    """The same today; None where nothing here says what the tool is."""
    rule: str
    """What decides it."""
    code: str | None = None
    """The code of a refusal."""
    conditional: bool = False
    """Whether an earlier call of the run was decided otherwise: then the model might not have asked for this one."""

    @property
    def change(self) -> Change:
        if self.now is None:
            return "unknown"
        if self.now == self.before:
            return "same"
        return {"free": "now_free", "asked": "now_asked", "denied": "now_denied"}[self.now]  # type: ignore[return-value]


async def judge(recording: Recording, today: Today) -> AsyncIterator[CallVerdict]:
    """Every call of a recording through the gate of today, one after another.

    The past of a call is the recorded one, except that what is refused today has no result then: so the calls are
    judged as if they were made again under today's rules, and a person agreed where one is asked. What did not run
    then has no result to go by; what comes after it is conditional.
    """
    run = today.stage(recording)
    calls = {item.call.id: item for item in recording.calls}
    said: dict[str, Judgement] = {}
    conditional = False
    for fact in recording.facts:
        if isinstance(fact, CallFinished) and (judged := said.get(fact.record.call_id)) is not None:
            fact = fact.model_copy(update={"record": _as_judged(fact.record, judged)})
        run.state.apply(fact)
        if not isinstance(fact, MessageReceived) or run.state.turn is None:
            continue
        run.refresh()
        changed = False
        for call in fact.calls:
            refusal = run.planner.refusal(run, run.state.turn, call)
            judged = Judgement(refusal, asks=False, risk=None, grounding=None)
            if refusal is None:
                judged = await run.executor.judge(call, run.scope)
            said[call.id] = judged
            tool = run.offer.tools.get(call.tool_name)
            verdict = _verdict(recording, calls[call.id], tool, judged, run.policy, conditional=conditional)
            changed = changed or verdict.change != "same"
            yield verdict
        conditional = conditional or changed


def _as_judged(record: ToolCallRecord, judged: Judgement) -> ToolCallRecord:
    """The record as it would be today: what is refused has no result, what was refused then an unknown one."""
    changes: dict[str, Any] = {"grounding": judged.grounding, "flow": judged.flow, "risk": judged.risk}
    if judged.refusal is not None:
        changes |= {"status": judged.refusal.status, "error": judged.refusal.error, "attempts": 0}
        changes |= {"result": None, "artifact": None, "label": None, "cached": False}
    elif record.error is not None and not record.attempts:
        changes |= {"status": CallStatus.SUCCESS, "error": None, "attempts": 1}
    return record.model_copy(update=changes)


def _verdict(
    recording: Recording,
    item: RecordedCall,
    tool: AnyTool | None,
    judged: Judgement,
    policy: Policy,
    *,
    conditional: bool,
) -> CallVerdict:
    code = None if judged.refusal is None else judged.refusal.error.code
    now: Decided | None = "denied" if code is not None else "asked" if judged.asks else "free"
    if judged.refusal is not None:
        rule = f"{code}: {judged.refusal.error.message}"
    else:
        assert tool is not None
        rule = why(item.call, tool, judged, policy)
    if code == "UNKNOWN_TOOL" and item.gate != "denied" and tool is None:
        now, rule = None, f"no specification of {item.call.tool_name!r} is here or in the recording"
    return CallVerdict(
        run_id=recording.run_id,
        call_id=item.call.id,
        tool_name=item.call.tool_name,
        before=item.gate,
        now=now,
        rule=rule,
        code=code,
        conditional=conditional,
    )


def why(call: ToolCall, tool: AnyTool, judged: Judgement, policy: Policy) -> str:
    """The rule by which a call that is not refused is asked about, or is free."""
    if judged.flow is not None and judged.flow.decision == "asked":
        return f"flow is 'ask': {judged.flow.reason}"
    missing = ungrounded(judged.grounding)
    risk = judged.risk or policy.default_risk
    graded = f"{risk.value} ({_graded(tool, risk, policy)})"
    if risk is RiskLevel.REVERSIBLE_WITH_DELAY:
        sure = "none" if call.confidence is None else f"{call.confidence:g}"
        graded += f", confidence {sure} against {policy.approval_confidence:g}"
    if judged.asks and risk is RiskLevel.REVERSIBLE:
        return f"grounding is 'ask' and nobody said {', '.join(missing)}"
    return graded


def _graded(tool: AnyTool, risk: RiskLevel, policy: Policy) -> str:
    """Where the risk of a call comes from, in the order of ``base_risk``."""
    specification, name = tool.specification, tool.name
    base = base_risk(specification, policy)
    if risk.rank > base.rank:
        return "its arguments raise the risk"
    if (least := for_tool(policy.least_risks, name)) is not None and least is base:
        fitting = [key for key in policy.least_risks if for_tool({key: least}, name) is not None]
        return f"the policy says at least this of {name if name in fitting else max(fitting, key=len)!r}"
    if name in policy.risks:
        return f"the policy says so of {name!r}"
    if specification.risk is not None:
        return "the tool declares it"
    if specification.read_only:
        return "the tool only reads"
    return "its name is known" if name in KNOWN_RISKS else "the default of the policy"


# --- many runs


async def replay_policy(
    recordings: AsyncIterable[Recording],
    today: Today,
    *,
    progress: Callable[[int], None] | None = None,
) -> ReplayReport:
    """Every call of these runs through today's gate. One run is held at a time."""
    counts: Counter[str] = Counter()
    tally, gone, unreadable = Tally(), set[str](), list[str]()
    async for recording in recordings:
        counts["runs"] += 1
        changes: set[str] = set()
        try:
            async for verdict in judge(recording, today):
                counts["calls"] += 1
                counts[verdict.change] += 1
                counts["conditional"] += verdict.conditional
                changes.add(verdict.change)
                if verdict.change != "same":
                    tally.add(
                        verdict.change,
                        verdict.tool_name,
                        verdict.code or verdict.rule,
                        verdict.rule,
                        run_id=verdict.run_id,
                        call_id=verdict.call_id,
                    )
            gone |= today.bind(recording.started.agent).recorded
        except (JourneymanError, ValueError, LookupError) as error:
            unreadable.append(f"{recording.run_id}: {error}")
        counts["changed_runs"] += not changes.isdisjoint(CHANGES)
        if progress is not None:
            progress(counts["runs"])
    return _report(counts, tally, gone, unreadable)


def _report(counts: Counter[str], tally: Tally, gone: set[str], unreadable: list[str]) -> ReplayReport:
    runs, calls = counts["runs"], counts["calls"]
    changed = sum(counts[change] for change in CHANGES)
    notes = []
    if counts["conditional"]:
        notes.append(
            f"{counts['conditional']:,} of {calls:,} calls come after one that is decided otherwise today: the model "
            "might have gone on differently. All others are evidence."
        )
    if counts["unknown"]:
        notes.append(f"{counts['unknown']:,} calls are of tools that neither this program nor the recording describes.")
    if gone:
        notes.append(f"Not here, judged by their recorded specifications: {', '.join(sorted(gone))}.")
    if unreadable:
        notes.append(f"{len(unreadable):,} runs could not be replayed, e.g. {unreadable[0]}")
    if changed:
        details = ", ".join(f"{counts[change]:,} {change.replace('_', ' ')}" for change in CHANGES if counts[change])
        verdict = f"{changed:,} of {calls:,} calls would be decided otherwise: {details}."
    else:
        verdict = f"All {calls:,} calls would be decided as they were."
    kept = ("runs", "calls", "same", *CHANGES, "unknown", "conditional")
    return ReplayReport(
        kind="policy",
        name="Recorded calls under today's policy",
        verdict=verdict,
        counts={key: counts[key] for key in kept},
        shares={"runs_that_change": Share.of(counts["changed_runs"], runs)},
        findings=tally.findings(),
        notes=tuple(notes),
    )


# --- tools


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
                for change, rule in _otherwise(item, outcome):
                    tally.add(change, tool.name, rule, rule, **where)
                    counts["differing_values"] += 1
                    if change == "failed":
                        counts["failed"] += 1
        except (JourneymanError, ValueError, LookupError) as error:
            tally.add("failed", "", type(error).__name__, str(error), run_id=recording.run_id)
        if progress is not None:
            progress(counts["runs"])
    return _report_of_tools(counts, tally)


def _otherwise(item: RecordedCall, outcome: Any) -> Iterator[tuple[str, str]]:
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


def _report_of_tools(counts: Counter[str], tally: Tally) -> ReplayReport:
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
