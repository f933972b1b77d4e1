"""A slice of a public corpus of stateful tools, replayed through the governed path."""

import pytest

from benchmarks.bfcl import corpus
from benchmarks.bfcl.replay import replay


@pytest.mark.slow
async def test_results_of_governed_calls_equal_those_of_direct_calls() -> None:
    corpus.install()
    scenarios = [scenario for category in corpus.CATEGORIES for scenario in corpus.load([category])[::8]]

    outcome = await replay(scenarios)

    assert outcome.tools == 128
    assert outcome.calls > 400
    assert outcome.differences == []
    assert outcome.states == []
    # What is refused violates the function's own annotations; nothing else is.
    assert all("INVALID_ARGUMENTS" in reason for _, reason in outcome.refusals)
    assert outcome.equal + sum(map(len, outcome.refusals.values())) == outcome.calls
