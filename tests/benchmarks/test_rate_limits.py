"""Rate limits of a configuration file hold over two worker processes on one PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rate_limits import LIMITS, measure, most_over, report


def test_what_exceeds_a_limit_is_found() -> None:
    even = [number / 3 for number in range(60)]
    assert most_over(even, calls=3, seconds=1) <= 0
    assert most_over([0.0] * 3 + even[1:], calls=3, seconds=1) <= 1e-9  # the calls of a second may come at once
    assert most_over([5.0] * 9, calls=3, seconds=1) == pytest.approx(6)
    assert most_over([number / 6 for number in range(600)], calls=3, seconds=1) > 200


@pytest.mark.slow
def test_limits_hold_over_two_processes(postgres_url: str, tmp_path: Path) -> None:
    found = report(measure(postgres_url, tmp_path, processes=2, seconds=5))
    print(found)
    assert found["processes"] == 2
    assert found["calls"] > 10
    assert [name for name in LIMITS if not found[name]["held"]] == []
