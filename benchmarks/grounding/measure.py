"""What grounding says of every call of an episode, and what follows from it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.grounding.workloads import Call, Episode
from journeyman.core.approvals import judge
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.data import moment, unchecked
from journeyman.core.errors import ErrorCategory, ErrorInfo
from journeyman.core.runs import Message, ReasoningStep, Role
from journeyman.provenance.ledger import Ledger

_NO_SUCH_CALL = ErrorInfo(code="INVALID_ARGUMENTS", message="no such call", category=ErrorCategory.INVALID_INPUT)


@dataclass
class Said:
    """A conversation as a run has it."""

    messages: list[Message] = field(default_factory=list)
    task_at: int = 0
    steps: list[ReasoningStep] = field(default_factory=list)


def traced(episode: Episode) -> Iterator[tuple[Call, ToolCallRecord]]:
    """Every call with its record. An earlier turn of the user is part of the request."""
    said = Said()
    ledger = Ledger(said)
    at = 0
    for turn, (request, calls) in enumerate(episode.turns):
        if turn:
            said.messages.append(Message(role=Role.FUNCTION, content=request, name="user", call_id=f"user_{turn}"))
        else:
            said.messages.append(Message.user(request))
        for call in calls:
            at += 1
            record = unchecked(
                ToolCallRecord,
                {
                    "execution_id": f"call_{at}",
                    "call_id": f"call_{at}",
                    "tool_name": call.tool.name,
                    "arguments": call.arguments,
                    "status": CallStatus.ERROR if call.error else CallStatus.SUCCESS,
                    "error": _NO_SUCH_CALL if call.error else None,
                    "start_time": moment(0),
                    "end_time": moment(0),
                    "read_only": None if call.error else not call.effect,
                    "result": None if call.error else call.result,
                    "attempts": 0 if call.error else 1,
                    "grounding": ledger.trace(call.tool, call.arguments),
                },
            )
            said.messages.append(
                unchecked(
                    Message,
                    {"role": Role.FUNCTION, "content": call.result, "name": call.tool.name, "call_id": f"call_{at}"},
                )
            )
            said.steps.append(
                unchecked(
                    ReasoningStep,
                    {
                        "iteration": at,
                        "thought": "…",
                        "action": "call_tool",
                        "calls": (record,),
                        "timestamp": 0.0,
                        "duration_ms": 0.0,
                    },
                )
            )
            yield call, record


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    part: int
    of: int

    @property
    def rate(self) -> float:
        return self.part / self.of if self.of else 0.0


@dataclass(frozen=True)
class Alarms:
    """What was flagged in calls that were right."""

    calls: int
    flagged: int
    unsaid: int
    """Of these: the identifier was said nowhere, and only a lookup that was left out could have told it."""
    failed: int
    """Of these: the call itself was wrong, and its tool said so, before the run did it right."""
    cut: int
    """Of these: an earlier result is not kept whole in the data, so that nobody can tell."""
    examples: tuple[str, ...]
    """The others, which are false alarms."""

    @property
    def false(self) -> Share:
        return Share(self.flagged - self.unsaid - self.failed - self.cut, self.calls)


def alarms(episodes: list[Episode]) -> Alarms:
    calls = flagged = unsaid = failed = cut = 0
    examples: dict[str, None] = {}
    for episode in episodes:
        said = " ".join(request for request, _ in episode.turns).lower()
        incomplete = False
        for call, record in traced(episode):
            after_cut, incomplete = incomplete, incomplete or call.cut
            earlier, said = said, f"{said} {call.result.lower()}"
            if not call.counts:
                continue
            calls += 1
            if not record.ungrounded:
                continue
            flagged += 1
            if call.failed:
                failed += 1
            elif all(_unsaid(str(value).lower(), earlier, episode.hidden) for value in record.ungrounded_values):
                unsaid += 1
            elif after_cut:
                cut += 1
            else:
                examples[f"{call.tool.name} {record.ungrounded[0]} = {record.ungrounded_values[0]!r}"] = None
    return Alarms(calls, flagged, unsaid, failed, cut, tuple(examples)[:10])


def _unsaid(value: str, said: str, hidden: str) -> bool:
    return value in hidden and value not in said


def caught(episodes: list[Episode]) -> Share:
    """Of the wrong runs that invented an identifier of WorkBench (this file knows what those look like), how many."""
    invented = flagged = 0
    for episode in episodes:
        if episode.right:
            continue
        said, made_up, alarmed = episode.turns[0][0].lower(), False, False
        for call, record in traced(episode):
            values = [str(value).lower() for value in call.arguments.values() if isinstance(value, str | int)]
            made_up = made_up or any(_identifier(value) and value not in said for value in values)
            alarmed = alarmed or bool(record.ungrounded)
            said += " " + call.result.lower()
        invented += made_up
        flagged += made_up and alarmed
    return Share(flagged, invented)


_identifier = re.compile(r"\d{8}|[^\s@]+@[^\s@]+\.[^\s@]+").fullmatch


@dataclass(frozen=True)
class Judged:
    precision: Share
    recall: Share
    naive: Share
    """How many are right of those that ended by themselves."""


def judged(episodes: list[Episode]) -> Judged:
    good = [episode for episode in episodes if episode.changed and _good(episode)]
    ended = [episode for episode in episodes if episode.ended]
    right = sum(episode.right for episode in good)
    return Judged(
        precision=Share(right, len(good)),
        recall=Share(right, sum(episode.right for episode in episodes)),
        naive=Share(sum(episode.right for episode in ended), len(ended)),
    )


def _good(episode: Episode) -> bool:
    label = judge([record for _, record in traced(episode)], ended=episode.ended)
    return label is not None and label.value == "good"
