"""The labelled requests of the choice of tools: every label names a tool that is there, and values that it takes."""

from __future__ import annotations

import pytest

from benchmarks.choosing.cases import Half, toolbox, written
from journeyman.memory.parameters import fitting_values


@pytest.mark.parametrize("half", ["tune", "heldout"])
def test_labels_name_tools_and_values_that_are_possible(half: Half) -> None:
    tools = {tool.name: tool for tool in toolbox(half)}
    cases = written(half)
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


def test_the_halves_share_no_request() -> None:
    assert not {case.request for case in written("tune")} & {case.request for case in written("heldout")}
