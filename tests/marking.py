"""Tests that repeat something: a few times every day, often at night."""

from __future__ import annotations

from typing import Any

import pytest


def daily(few: int, *, nightly: int) -> list[Any]:
    """Values for ``parametrize``: the second one is for `make nightly` alone."""
    return [few, pytest.param(nightly, marks=[pytest.mark.nightly, pytest.mark.slow, pytest.mark.timeout(3600)])]
