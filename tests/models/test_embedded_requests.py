"""The requests that the embedded model is measured with: every label is possible, and the halves are fair."""

from __future__ import annotations

from collections import Counter

from benchmarks.embedded.judging import judge, load
from benchmarks.embedded.toolbox import TOOLS
from journeyman.core.runs import ToolCall

CASES = load()


def test_every_label_is_a_call_that_its_tool_takes() -> None:
    known = {tool.name: tool.parameters for tool in TOOLS}
    for case in CASES:
        for call in (call for accepted in case.accepted for call in accepted):
            parameters = known[call["tool"]]
            assert call["arguments"].keys() <= parameters["properties"].keys(), case.id
            assert set(parameters.get("required", ())) <= call["arguments"].keys(), case.id


def test_the_halves_have_as_many_of_each_kind_and_no_request_twice() -> None:
    second = [case for case in CASES if not case.id.startswith("r")]
    counts = Counter((case.kind, case.half) for case in second)
    for kind in ("direct", "indirect", "multi", "out_of_scope"):
        assert abs(counts[kind, "tuning"] - counts[kind, "held_out"]) <= len(TOOLS)
    assert len({case.request.casefold() for case in CASES}) == len(CASES) >= 100
    assert {case.half for case in CASES if case.id.startswith("r")} == {"tuning"}


def test_an_invented_argument_is_wrong_and_a_default_is_not() -> None:
    case = next(case for case in CASES if case.id == "r001")
    title = {"title": "Buy milk"}
    assert judge(case, [ToolCall(tool_name="create_task", arguments=title)]).arguments
    assert judge(case, [ToolCall(tool_name="create_task", arguments={**title, "priority": "medium"})]).arguments
    invented = judge(case, [ToolCall(tool_name="create_task", arguments={**title, "priority": "high"})])
    assert (invented.tool, invented.arguments) == (True, False)
