"""A policy's times are times that clocks and calendars can count."""

from __future__ import annotations

import math
from typing import Any

import pytest

from journeyman import Policy
from journeyman.core.errors import InvalidDataError
from journeyman.core.policy import MOST_SECONDS, BreakerRule, RateLimit


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e12])
@pytest.mark.parametrize(
    ("kind", "field", "others"),
    [
        (Policy, "approval_seconds", {}),
        (Policy, "wait_seconds", {}),
        (Policy, "retry_backoff_seconds", {}),
        (RateLimit, "seconds", {"calls": 1}),
        (BreakerRule, "rest_seconds", {}),
    ],
)
def test_a_time_beyond_all_bounds_is_refused(kind: Any, field: str, others: dict[str, Any], value: float) -> None:
    with pytest.raises(InvalidDataError, match=rf"{field}: must be (less than or equal to 3153|a finite)"):
        kind(**others, **{field: value})
    assert getattr(kind(**others, **{field: MOST_SECONDS}), field) == MOST_SECONDS
