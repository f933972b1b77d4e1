"""Which arm a unit (a user, a session) belongs to: the same one every time, in any process."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from journeyman.core.errors import ConfigurationError


def assign(unit: str, arms: Sequence[str] | Mapping[str, float], *, experiment: str = "") -> str:
    """The unit's arm. With weights, arms get their shares; raising one arm's share moves only units into it.

    The order of the arms matters: a unit's place on a line from 0 to 1 is fixed, and arms lie along it in order.
    """
    weights = dict(arms) if isinstance(arms, Mapping) else dict.fromkeys(arms, 1.0)
    total = sum(weights.values())
    if not weights or total <= 0 or any(weight < 0 for weight in weights.values()):
        raise ConfigurationError(f"arms need weights that are not negative and not all zero, got {weights}")
    digest = hashlib.sha256(f"{experiment}\x1f{unit}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64 * total
    for name, weight in weights.items():
        if place < weight:
            return name
        place -= weight
    return next(name for name in reversed(weights) if weights[name] > 0)
