"""Whether a run was right, and who says so; the judge that needs nobody to say it; and where labels are kept."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import Field

from journeyman.core.calls import ToolCallRecord
from journeyman.core.data import Entity, canonical_json
from journeyman.core.words import words

Rating: TypeAlias = Literal["good", "bad"]
LONGEST_NOTE = 2_000
"""Characters of what somebody writes beside a rating."""


class LabelSource(StrEnum):
    """Who says so, the most reliable first."""

    RATING = "rating"
    """A person who has seen what came out."""
    VERIFIER = "verifier"
    """The ``verify`` function of the agent or the run."""
    DECISION = "decision"
    """A person's answer to an approval: the call was right as it was, or was not."""
    JUDGE = "judge"
    """The grounded judge: nobody said anything, and the calls are all there is to go by."""

    @property
    def rank(self) -> int:
        return list(LabelSource).index(self)


class Label(Entity):
    """One statement about a run, or about one of its calls."""

    source: LabelSource
    value: Rating
    by: str | None = None
    """Who: a person's name, or the verifier's."""
    note: str = Field(default="", max_length=LONGEST_NOTE)
    call_id: str | None = None
    """The call that a person decided on."""
    decision: Literal["approved", "edited", "denied"] | None = None
    """What they decided. Of an edited call the arguments in its record are the lesson."""
    time: float = 0.0


DECISIVE = frozenset({LabelSource.RATING, LabelSource.VERIFIER})
"""Sources that have looked at the whole run: what they say is its outcome."""


def best_label(labels: Sequence[Label]) -> Label | None:
    """What counts: the most reliable source, and of one source the latest, where a bad one is not outvoted."""
    if not labels:
        return None
    rank = min(label.source.rank for label in labels)
    best = [label for label in labels if label.source.rank == rank]
    if best[0].source is LabelSource.DECISION:
        # People decide on single calls: the run is as good as the worst of them.
        return next((label for label in best if label.value == "bad"), best[-1])
    return max(best, key=lambda label: label.time)


def judge(calls: Sequence[ToolCallRecord], *, ended: bool, time: float = 0.0) -> Label | None:
    """The label that a run's calls speak for; None where nothing was to be changed, so that they say nothing.

    Good is a run that ended by itself and changed something, in which every identifier of every call with an effect
    stands in the request or an earlier result, no change failed for good, nothing was created or sent twice, what it
    looked up it looked up before, and no call failed after the last change.
    """
    wanted = [call for call in calls if call.read_only is False]
    if not wanted:
        return None
    why = _against(calls, wanted) if ended else "the run did not end by itself"
    return Label(source=LabelSource.JUDGE, value="bad" if why else "good", note=why, time=time)


def _against(calls: Sequence[ToolCallRecord], wanted: Sequence[ToolCallRecord]) -> str:
    """What speaks against a run in which something was to be changed; empty where nothing does."""
    made = [call for call in wanted if call.success and not says_failure(call.result)]
    for call in made:
        if call.ungrounded:
            return f"{call.ungrounded[0]} of {call.tool_name} was found nowhere"
    if lost := {call.tool_name for call in wanted} - {call.tool_name for call in made}:
        return f"{min(lost)} had no effect"
    added = [call for call in made if _SAME_AGAIN.isdisjoint(words(call.tool_name))]
    done = [(call.tool_name, canonical_json(call.arguments)) for call in added]
    if len(set(done)) < len(done):
        return "the same thing was done twice"
    at = {id(call): place for place, call in enumerate(calls)}
    looked_up = [place for place, call in enumerate(calls) if call.read_only]
    if looked_up and looked_up[0] > at[id(made[0])]:
        return "something was changed before anything was looked up"
    failed = [call.tool_name for call in calls[at[id(made[-1])] :] if not call.success]
    return f"{failed[0]} failed after the last change" if failed else ""


def says_failure(result: Any) -> bool:
    """Whether a result is a short text that reports a failure, as tools give that raise no errors."""
    if not isinstance(result, str) or len(result) > LONGEST_REPORT:
        return False
    return not _WORDS_OF_FAILURE.isdisjoint(result.lower().translate(_APART).split())


_SAME_AGAIN = frozenset(
    {"update", "set", "delete", "remove", "cancel", "move", "rename", "mark", "assign", "edit", "change", "modify"}
)
"""Verbs in the names of tools that, called twice, leave what calling them once leaves."""
LONGEST_REPORT = 200
_APART = str.maketrans(dict.fromkeys('.,:;!?()[]{}"', " "))
_WORDS_OF_FAILURE = frozenset(
    {"not", "no", "invalid", "failed", "failure", "error", "cannot", "can't", "couldn't", "unable", "denied"}
    | {"refused", "missing", "must", "unknown", "unexpected"}
)


class LabelStore(Protocol):
    """Labels by run. One of each person, verifier or call: a later one replaces it."""

    async def put(self, run_id: str, label: Label) -> bool:
        """Keep a label, and leave an audit row for a rating; False where the very same was there already."""

    async def of(self, run_id: str) -> Sequence[Label]:
        """The most reliable first."""

    async def of_runs(self, run_ids: Sequence[str]) -> dict[str, Sequence[Label]]:
        """The same for several runs; those without labels are left out."""
