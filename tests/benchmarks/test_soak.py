"""The soak works, and sees what it is there to see."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.soak.findings import Findings
from benchmarks.soak.observed import Observed
from benchmarks.soak.processes import Sample, growth
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.data import moment
from journeyman.core.errors import ErrorInfo
from journeyman.core.events import CallFinished, CallStarted, Fact, RunFailed, RunFinished, RunStarted
from journeyman.core.runs import RunStatus, TaskInput

KEY = ("note", "run_1.call_1_1")


def journal(*outcomes: CallStatus, end: Fact | None = None, tool_name: str = "note") -> list[Fact]:
    """A run of one call: started at 2, with one outcome a second after the other."""
    started = CallStarted(
        call_id="call_1_1", execution_id="run_1.call_1_1", tool_name=tool_name, attempt=1, arguments={}
    )
    facts: list[Fact] = [RunStarted(agent={}, task=TaskInput(description="Order 1: note")), started]
    for status in outcomes:
        record = ToolCallRecord(
            execution_id="run_1.call_1_1",
            call_id="call_1_1",
            tool_name=tool_name,
            status=status,
            error=None if status is CallStatus.SUCCESS else ErrorInfo(code="X", message="x"),
            start_time=moment(0),
            end_time=moment(0),
            attempts=1,
        )
        facts.append(CallFinished(record=record))
    facts.append(end or RunFinished(status=RunStatus.COMPLETED))
    for seq, fact in enumerate(facts, start=1):
        fact.stamp("run_1", seq, float(seq))
    return facts


def found(
    facts: list[Fact], *, effects: int = 1, tool_name: str = "note", kills: list[float] | None = None
) -> Findings:
    findings = Findings()
    findings.run("run_1", facts, Counter({(tool_name, KEY[1]): effects}), kills or [])
    return findings


def test_a_run_in_which_all_went_well_passes() -> None:
    findings = found(journal(CallStatus.SUCCESS))
    assert findings.passed(Observed())
    assert findings.runs_by_status == {"completed": 1}


@pytest.mark.parametrize(("effects", "wrong"), [(2, "doubled"), (0, "missing")])
def test_a_success_has_its_effect_exactly_once(effects: int, wrong: str) -> None:
    findings = found(journal(CallStatus.SUCCESS), effects=effects)
    assert (len(getattr(findings, wrong)), findings.passed(Observed())) == (1, False)


def test_a_repeated_read_is_no_fault() -> None:
    findings = found(journal(CallStatus.SUCCESS, tool_name="look"), effects=2, tool_name="look")
    assert (findings.safe_repeats, findings.passed(Observed())) == (1, True)


def test_a_denied_call_has_no_effect() -> None:
    assert found(journal(CallStatus.DENIED), effects=0).passed(Observed())
    assert found(journal(CallStatus.DENIED)).denied_and_done


def test_unknown_calls_are_those_in_which_a_worker_was_killed() -> None:
    facts = journal(CallStatus.UNKNOWN, CallStatus.SUCCESS)
    assert found(facts, kills=[2.5]).passed(Observed())
    assert found(facts, kills=[1.0, 3.5]).unknown_without_a_kill


def test_a_run_without_an_end_is_lost() -> None:
    assert found(journal(CallStatus.SUCCESS)[:-1]).lost


def test_only_a_model_may_fail_a_run() -> None:
    def failed(code: str) -> Fact:
        return RunFailed(error=ErrorInfo(code=code, message="x"))

    assert found(journal(CallStatus.SUCCESS, end=failed("MODEL_UNAVAILABLE"))).passed(Observed())
    assert found(journal(CallStatus.SUCCESS, end=failed("STORE_AWAY"))).wrong_failures


def test_what_clients_saw_is_compared_with_what_is_stored() -> None:
    observed = Observed(begun={"run_1": "page", "run_2": "sdk"}, ended={"run_1"}, seen={"run_1": 3})
    findings = Findings()
    findings.compare(observed, {"run_1": 4, "run_3": 4}, {"run_1": "Order 1: note", "run_3": "Order 1: note"})
    assert findings.lost == ["run_2: begun by the sdk, not stored"]
    assert findings.cut_short == ["run_1: saw 3 of 4"]
    assert findings.begun_twice == ["Order 1: note"]


def test_gaps_and_repeats_in_a_stream_are_seen() -> None:
    observed = Observed()
    for seq in (1, 2, 2, 4):
        observed.heard("run_1", seq)
    assert (observed.repeats, observed.gaps) == (["run_1: 2 after 2"], ["run_1: 4 after 2"])
    assert not Findings().passed(observed)


def test_a_process_is_compared_with_its_own_first_five_minutes() -> None:
    taken = [Sample(age=float(age), rss_mib=100 + age / 60, files=9) for age in range(0, 1801, 5)]
    found = growth(taken)
    assert (found["rss_mib_early"], found["rss_mib_late"]) == (103.0, 128.8)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_quick_soak_loses_and_doubles_nothing() -> None:
    command = [sys.executable, "-m", "benchmarks.soak", "--quick", "--json"]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=800)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-2000:]
    told = json.loads(ended.stdout)
    assert told["passed"]
    assert told["faults"]["worker stopped past its lease"] >= 1
    assert {"page", "reader", "sdk", "program"} <= told["begun_by"].keys()
