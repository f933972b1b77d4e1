"""What people say: one question, bound to one exact call, with the closed set of answers; and labels of whole runs.

Also the judge of a run that needs nobody to say it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from pydantic import Field

from journeyman.core.calls import ArgumentSource, ToolCallRecord, ungrounded
from journeyman.core.data import Derived, Entity, Moment, canonical_json, derived, exact_json
from journeyman.core.policy import Principal, RiskLevel
from journeyman.core.words import WordLists, words

NOBODY = "nobody could be asked"
"""How the reason begins of a denial that nobody has pronounced."""
CURE = "pass approver=…, or declare what it does: @tool(read_only=True) or @tool(risk='reversible')"
"""For the developer whose tools nobody can agree to; the model is not told."""


class ApprovalStatus(StrEnum):
    """Pending, or one of four ends."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"

    @property
    def final(self) -> bool:
        return self is not ApprovalStatus.PENDING


class GrantTerms(Entity):
    """How far a standing grant would go: whoever gives it is told before, and it ends at whichever comes first."""

    uses: int = Field(gt=0)
    seconds: float = Field(gt=0)


class Question(Entity):
    """What a tool, or the server behind it, asks a person while its call runs; the ``arguments`` are the answer."""

    message: str
    """Foreign text."""
    form: dict[str, Any]
    """What is to be filled in: an object of texts, numbers, choices and yes or no, as a JSON Schema."""
    held: bool = Field(default=False, exclude_if=lambda held: not held)
    """Whether the call waits in its process. Otherwise its function is left, and begun again with the answer."""

    def blank(self) -> dict[str, Any]:
        """The form as it is put to people: with what stands in it already."""
        fields = self.form.get("properties") or {}
        return {
            name: each.get("default", "" if each.get("type") == "string" else None) for name, each in fields.items()
        }


class Approval(Derived):
    """May this tool run with exactly these arguments, for this principal? Or else: its ``question``."""

    id: str = Field(min_length=1)
    run_id: str
    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    """The frozen arguments, defaults included: what runs is this and nothing else."""
    digest: str
    """Fingerprint of the tool, frozen arguments and principal: what the answer is bound to."""
    tool_digest: str = ""
    """Fingerprint of the tool alone, its whole specification and implementation: what a grant is bound to."""
    not_bound_to: str = ""
    """What may still change after the answer, because nobody here can look at it."""
    about: str = ""
    """What the call refers to, in the words of the tool's ``describe``: foreign text, on one line."""
    grounding: tuple[ArgumentSource, ...] | None = None
    """Where each argument came from; None where no model wrote the call."""
    question: Question | None = Field(default=None, exclude_if=lambda asked: asked is None)
    """What the call asks, where it is not asked about: approved is answered, denied is declined."""
    flow: str = Field(default="", exclude_if=lambda why: not why)
    """Why the flow of values asks, in one line: which words come from where. Empty where the risk alone asks."""
    risk: RiskLevel
    risk_raised: bool = False
    """Whether the arguments themselves raise the risk: then no grant covers the call."""
    grant: GrantTerms | None = None
    """How far a grant for the session would go; None where none can be given."""
    four_eyes: bool = False
    """Whether somebody else than the principal must approve."""
    confidence: float | None = None
    principal: Principal | None = None
    status: ApprovalStatus = ApprovalStatus.PENDING
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None

    @derived
    def arguments_json(self) -> str:
        """The arguments as JSON text: every digit as it is, every character to be seen."""
        return exact_json(self.arguments)

    @derived
    def ungrounded(self) -> tuple[str, ...]:
        """The arguments whose values are identifiers that stand in nothing said before: they may be invented."""
        return ungrounded(self.grounding)

    def not_to_be_approved_by(self, by: str | None) -> str | None:
        """Why an approval by this person does not count under four eyes; None where it does."""
        if not self.four_eyes:
            return None
        if not by:
            return "four eyes are asked for, and nobody says who approved"
        own = None if self.principal is None else self.principal.id
        if own is not None and (by == own or by.startswith(f"{own} (")):  # e.g. "ada (--yes)"
            return f"four eyes are asked for: {own!r} cannot approve a call of their own run"
        return None


class Approve(Entity):
    """Yes; with ``arguments``, yes to these instead (they are validated and graded again)."""

    arguments: dict[str, Any] | None = None
    by: str | None = None


class Deny(Entity):
    """No. The model sees the reason."""

    reason: str = ""
    by: str | None = None


class Expired(Entity):
    """Nobody answered in time: the call is denied and the run goes on."""


Decision: TypeAlias = Approve | Deny | Expired
Approver: TypeAlias = Callable[[Approval], Awaitable[Approve | Deny] | Approve | Deny]
"""Given to ``run()``: takes an ``Approval``, returns ``Approve`` or ``Deny``. Anything else denies."""


class Grant(Entity):
    """A person's word that one tool may run without asking, for one principal in one chat session.

    Good for a number of uses and a time, for calls of no higher risk whose arguments do not raise it, and for the tool
    as it was; until revoked.
    """

    id: str
    session_id: str
    tool_name: str
    granted_by: str
    granted_at: Moment
    revoked_at: Moment | None = None
    revoked_by: str | None = None
    principal_id: str | None = None
    """On whose behalf; None is nobody in particular, not everybody."""
    # None in what older versions gave, without limits: that covers nothing any more.
    tool_digest: str | None = None
    risk: RiskLevel | None = None
    """The highest risk it covers."""
    expires_at: Moment | None = None
    uses: int | None = None
    uses_left: int | None = None

    def in_force(self, now: float) -> bool:
        """Whether it can still be used."""
        return (
            self.revoked_at is None and bool(self.uses_left) and self.expires_at is not None and now < self.expires_at
        )


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
    added = [call for call in made if _listed.same_again.isdisjoint(words(call.tool_name))]
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
    return not _listed.failure.isdisjoint(result.lower().translate(_APART).split())


_listed = WordLists("journeyman.core", "judging.txt")
LONGEST_REPORT = 200
_APART = str.maketrans(dict.fromkeys('.,:;!?()[]{}"', " "))
