"""The crash benchmark works, and sees what it is there to see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.crash.findings import Findings
from benchmarks.crash.workload import CALLS, Ledger
from journeyman.core.approvals import ApprovalStatus
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.data import moment
from journeyman.core.errors import ErrorInfo
from journeyman.core.events import ApprovalDecided, CallFinished, CallStarted, Fact, RunFinished
from journeyman.core.runs import RunStatus


def journal(*, unknown: str | None = None) -> list[Fact]:
    """A run in which all went well, but for one call that was unknown for a while."""
    facts: list[Fact] = []
    for call_id, tool_name in CALLS.items():
        if tool_name == "pay":
            facts.append(ApprovalDecided(approval_id=call_id, call_id=call_id, status=ApprovalStatus.APPROVED))
        facts.append(
            CallStarted(call_id=call_id, execution_id=f"r.{call_id}", tool_name=tool_name, attempt=1, arguments={})
        )
        if call_id == unknown:
            facts.append(finished(call_id, tool_name, CallStatus.UNKNOWN))
        facts.append(finished(call_id, tool_name, CallStatus.SUCCESS))
    facts.append(RunFinished(status=RunStatus.COMPLETED))
    for seq, fact in enumerate(facts, start=1):
        fact.stamp("r", seq, 0.0)
    return facts


def finished(call_id: str, tool_name: str, status: CallStatus) -> CallFinished:
    error = None if status is CallStatus.SUCCESS else ErrorInfo(code="X", message="x")
    record = ToolCallRecord(
        execution_id=f"r.{call_id}",
        call_id=call_id,
        tool_name=tool_name,
        arguments={},
        status=status,
        error=error,
        start_time=moment(0),
        end_time=moment(0),
        attempts=1,
    )
    return CallFinished(record=record)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    kept = Ledger(str(tmp_path / "ledger"))
    for call_id, tool_name in CALLS.items():
        kept.write(tool_name, f"r.{call_id}")
    return kept


def found(facts: list[Fact], ledger: Ledger, expected: set[tuple[str, int]] | None = None) -> Findings:
    findings = Findings("none")
    findings.conclude({"r": facts}, ledger, expected or set())
    return findings


def test_a_run_in_which_all_went_well_passes(ledger: Ledger) -> None:
    assert found(journal(), ledger).passed


def test_an_effect_that_happened_twice_is_seen(ledger: Ledger) -> None:
    ledger.write("note", "r.call_3_1")
    findings = found(journal(), ledger)
    assert (findings.duplicates, findings.passed) == (1, False)


def test_an_approved_call_that_ran_twice_is_seen(ledger: Ledger) -> None:
    ledger.write("pay", "r.call_4_1")
    findings = found(journal(), ledger)
    assert (findings.approved_calls_not_run_once, findings.passed) == (1, False)


def test_a_repeated_read_is_no_fault(ledger: Ledger) -> None:
    ledger.write("look", "r.call_1_1")
    findings = found(journal(), ledger)
    assert (findings.safe_repeats, findings.passed) == (1, True)


def test_an_effect_that_is_missing_is_seen(tmp_path: Path) -> None:
    findings = found(journal(), Ledger(str(tmp_path / "empty")))
    assert (findings.missing, findings.passed) == (8, False)


def test_a_run_without_an_end_is_lost(ledger: Ledger) -> None:
    findings = found(journal()[:-1], ledger)
    assert (findings.runs_lost, findings.passed) == (1, False)


def test_unknown_calls_must_be_those_that_a_kill_left_open(ledger: Ledger) -> None:
    facts = journal(unknown="call_3_1")
    [start] = [
        (fact.run_id, fact.seq or 0) for fact in facts if isinstance(fact, CallStarted) and fact.call_id == "call_3_1"
    ]
    assert found(facts, ledger, {start}).passed
    assert found(facts, ledger).unknown_without_a_kill == 1
    assert found(journal(), ledger, {start}).open_but_not_unknown == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_quick_campaign_loses_and_doubles_nothing() -> None:
    told = campaign("--no-disturbances")
    assert told["kills"] >= 20


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_quick_campaign_of_stops_outages_and_wrong_clocks_loses_and_doubles_nothing() -> None:
    campaign("--no-kills")


def campaign(*options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.crash", "--quick", "--json", *options]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=800)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-2000:]
    told: dict[str, Any] = json.loads(ended.stdout)
    assert [document["passed"] for document in told["databases"]] == [True, True]
    return told
