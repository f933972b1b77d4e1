"""The design of the researcher on MCP tools: its models literally, risk of its own tools, and citations over MCP."""

# mypy: disable-error-code="call-arg"
# The designs' names are read when a program runs; type checkers know ours.
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from journeyman import AgentResponse, Approve, CallStatus, Journeyman, RiskLevel, ToolCallRecord, ToolLibrary, tool
from journeyman.app import Researcher, ResearcherAgent
from journeyman.choosing import ToolGapReport
from journeyman.core import InvalidDataError
from journeyman.execution import categorize_action_risk, requires_approval
from journeyman.sources import McpServer
from journeyman.testing import ScriptedModel, call, say

RECORD: dict[str, Any] = {
    "tool_name": "web_search",
    "parameters": {"query": "capital of France", "max_results": 5},
    "result": [{"title": "Paris - Wikipedia", "url": "https://…", "snippet": "Paris is the capital…"}],
    "duration_ms": 1234,
    "status": "SUCCESS",
}
RESPONSE: dict[str, Any] = {
    "answer": "Paris",
    "reasoning": "Used web_search to find 'capital of France'.",
    "tool_calls": [RECORD],
    "confidence": 0.95,
}


def test_the_examples_of_a_response_are_read() -> None:
    for response in (AgentResponse(**RESPONSE), AgentResponse.model_validate_json(json.dumps(RESPONSE))):
        [record] = response.tool_calls
        assert (record.parameters, record.result, record.duration_ms) == (RECORD["parameters"], RECORD["result"], 1234)
        assert (response.status, response.tools_used) == ("completed", ["web_search"])
        assert len(response.structured_trace) == response.total_iterations == 2
        assert AgentResponse.model_validate_json(response.model_dump_json()) == response
    assert AgentResponse(answer="Paris", reasoning="Found", tool_calls=[], confidence=0.95).tool_calls == ()


def test_a_wrong_response_names_every_field() -> None:
    with pytest.raises(InvalidDataError) as caught:
        AgentResponse(answer="Paris", reasoning="", tool_calls=[], confidence=1.5, confidense=1)
    assert [path for path, _ in caught.value.problems] == ["reasoning", "confidence", "confidense"]
    for missing in ("answer", "reasoning", "confidence"):
        with pytest.raises(InvalidDataError, match=missing):
            AgentResponse(**{name: value for name, value in RESPONSE.items() if name != missing})


@pytest.mark.parametrize(("given", "status"), [("FAILED", "error"), ("failed", "error"), ("timeout", "timeout")])
def test_a_record_says_failed_in_either_word(given: str, status: str) -> None:
    record = ToolCallRecord(**{**RECORD, "result": None, "status": given})
    assert record.status is CallStatus(given) is CallStatus(status)
    assert (record.result, record.error_category) == (None, "timeout" if status == "timeout" else "tool_error")


@pytest.mark.parametrize(
    "wrong", [{"duration_ms": -1}, {"status": "done"}, {"tool_name": ""}, {"result_dta": 1}, {"result_data": 1}]
)
def test_a_wrong_record_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidDataError, match=next(iter(wrong))):
        ToolCallRecord(**RECORD | wrong)


def test_a_gap_report_has_at_least_one_missing_tool() -> None:
    task = "Retrieve my stock portfolio performance for Q3 2024"
    report = ToolGapReport(missing_tools=["account_access"], attempted_task=task, existing_tools_checked=["web_search"])
    assert report.attempted_task == task
    with pytest.raises(InvalidDataError, match="missing_tools"):
        ToolGapReport(missing_tools=[], attempted_task=task, existing_tools_checked=[])


def test_the_known_tools_are_graded_as_listed() -> None:
    for name in ("web_search", "read_file", "get_current_time", "memory_search", "search_memory"):
        assert categorize_action_risk(name, {"query": "x"}) is RiskLevel.REVERSIBLE
    risk = categorize_action_risk("delete_file", {"path": "/data/important.txt"})
    assert risk is RiskLevel.IRREVERSIBLE
    assert requires_approval(risk, confidence=0.95) is True


async def test_storing_a_document_gives_its_id(tmp_path: Path) -> None:
    async with Journeyman(store=f"sqlite:///{tmp_path / 'm.db'}") as app:
        key = await app.memory.store_document("The toll is 4 pounds.", metadata={})
        [hit] = await app.memory.semantic_search("toll", top_k=5)
    assert isinstance(key, str)
    assert hit.document.id == key


async def test_what_an_mcp_tool_found_can_be_cited() -> None:
    command = [sys.executable, str(Path(__file__).parent / "search_server.py")]
    library = ToolLibrary(sources=[McpServer(command=command, name="web")])
    model = ScriptedModel(
        [
            call("web.search", query="bridge"),
            call("web.toll", bridge="harbour bridge"),
            say("It is 1,149 metres long [1]. The toll is 4 pounds [2]. It opened in 1932 [1]. It is pink [3]."),
        ]
    )
    researcher = Researcher(model=model, library=library, approver=lambda _: Approve())
    answer = await researcher.ask("How long is the bridge?")
    assert [source.address for source in answer.sources] == ["https://bridge.example/facts", "web.toll"]
    assert answer.text.startswith(
        "It is 1,149 metres long [1]. The toll is 4 pounds [2]. It opened in 1932 [1]. [1932 "
    )
    assert len(answer.problems) == 2  # the year, and a source that nobody has read


async def test_run_gives_a_response_over_any_tool_of_ones_own() -> None:
    @tool(read_only=True)
    def look_up(topic: str) -> dict[str, str]:
        """Look a topic up. Use for facts."""
        return {"link": "https://a.example/1", "content": f"{topic} is 40 metres high."}

    model = ScriptedModel([call("look_up", topic="The tower"), say("The tower is 40 metres high [1].")])
    response = await ResearcherAgent(model=model, tools=[look_up]).run("How high is the tower?")
    assert isinstance(response, AgentResponse)
    assert response.answer.endswith("Sources:\n- [1] <https://a.example/1>")
    assert response.metadata["citation_problems"] == []
    assert response.tool_calls[0].result["source"] == 1
