"""The time machine's benchmark, small: tests made of runs notice what matters, and forks repeat nothing."""

from __future__ import annotations

import pytest

from benchmarks.replay import forks, written


@pytest.mark.slow
async def test_tests_made_of_runs_pass_fail_when_broken_and_hold_no_secret() -> None:
    assert await written.measure(quick=True, packages=False) == 0


@pytest.mark.slow
async def test_forks_of_six_kinds_repeat_nothing() -> None:
    assert await forks.measure(quick=True) == 0
