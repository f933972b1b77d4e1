"""The labelled requests of the choice of tools: every label names a tool that is there, and values that it takes."""

from __future__ import annotations

from itertools import combinations

import pytest

from benchmarks.choosing.cases import SETS, toolbox, written
from journeyman.choosing.parameters import fitting_values

NAMES = sorted(folder.name for folder in SETS.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_labels_name_tools_and_values_that_are_possible(name: str) -> None:
    tools = {tool.name: tool for tool in toolbox(name)}
    cases = written(name)
    assert len(cases) >= 100
    assert len({case.request for case in cases}) == len(cases)
    for case in cases:
        assert case.right
        assert case.right <= tools.keys()
    wrong = [
        case.id
        for case in cases
        if not any(fitting_values(case.parameters, tools[name]) == dict(case.parameters) for name in case.right)
    ]
    assert not wrong


def test_the_sets_share_no_request() -> None:
    assert "heldout" in NAMES
    for one, other in combinations(NAMES, 2):
        assert not {case.request for case in written(one)} & {case.request for case in written(other)}
