"""How bad a call can be, in three grades, and the question whether a person must agree first."""

from __future__ import annotations

from enum import StrEnum

APPROVAL_CONFIDENCE = 0.85
"""Below this confidence (or without any) a call that is hard to undo needs a person."""


class RiskLevel(StrEnum):
    """What it takes to undo a call."""

    REVERSIBLE = "reversible"
    """A read, or anything undone by an ordinary later call."""
    REVERSIBLE_WITH_DELAY = "reversible_with_delay"
    """Can be undone for a while, or with somebody's help."""
    IRREVERSIBLE = "irreversible"
    """Cannot be undone."""

    @property
    def rank(self) -> int:
        return _RANK[self]


_RANK = {RiskLevel.REVERSIBLE: 0, RiskLevel.REVERSIBLE_WITH_DELAY: 1, RiskLevel.IRREVERSIBLE: 2}


def requires_approval(
    risk: RiskLevel | str, confidence: float | None, *, threshold: float = APPROVAL_CONFIDENCE
) -> bool:
    """Whether a person must agree: irreversible always, with delay when unsure, reversible never."""
    match RiskLevel(risk):
        case RiskLevel.IRREVERSIBLE:
            return True
        case RiskLevel.REVERSIBLE_WITH_DELAY:
            return confidence is None or not confidence >= threshold
        case RiskLevel.REVERSIBLE:
            return False
