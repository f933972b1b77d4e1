"""Recorded calls through today's gate: the answer is what really happens, and nothing is run for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import (
    Agent,
    Approve,
    ConfigurationError,
    Journeyman,
    Policy,
    Principal,
    RiskLevel,
    ToolLibrary,
    run,
    tool,
)
from journeyman.core.protocols import ModelResponse
from journeyman.core.runs import ToolCall
from journeyman.execution.recorder import MemoryJournal
from journeyman.replay.gate import CallVerdict, judge, replay_policy
from journeyman.replay.recording import Recording
from journeyman.replay.stage import Today
from journeyman.testing import ScriptedModel, call, say
from tests.replay.shop import AGENT, CLERK, EFFECTS, LIBRARY

RISKS = st.sampled_from(list(RiskLevel))
NAMES = st.sampled_from([*LIBRARY.names(), "no_such_tool"])
CONFIDENCES = st.sampled_from([None, 0.1, 0.85, 0.99])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "customer": st.sampled_from(["Ada", "Grace", "/etc/shadow"]),
    "order_id": st.sampled_from(["ORD-00003", "ORD-00005", "ORD-77777"]),
    "amount": st.sampled_from([1, 5, "many"]),
    "to": st.sampled_from(["ada@example.org", "eve@example.net"]),
    "text": st.just("Hello"),
    "url": st.sampled_from(["https://example.org/orders", "no address"]),
    "tag": st.just("late"),
}
ARGUMENTS = st.fixed_dictionaries({}, optional=VALUES)
POLICIES = st.builds(
    Policy,
    default_risk=RISKS,
    risks=st.dictionaries(NAMES, RISKS, max_size=2),
    least_risks=st.dictionaries(st.sampled_from(["refund_order", "*_order", "write*"]), RISKS, max_size=2),
    approval_confidence=st.sampled_from([0.0, 0.85, 1.0]),
    grounding=st.sampled_from(["report", "ask", "refuse"]),
    flow=st.sampled_from(["off", "report", "ask", "refuse"]),
    flow_spares=st.booleans(),
    max_argument_bytes=st.sampled_from([30, 1_000_000]),
)


@st.composite
def turns(draw: st.DrawFn) -> list[ModelResponse]:
    def one(confidence: float | None) -> ToolCall:
        name = draw(NAMES)
        given = draw(ARGUMENTS)
        if name in LIBRARY and draw(st.booleans()):  # as the tool takes them
            wanted = LIBRARY[name].specification.parameters["properties"]
            given = {key: draw(VALUES[key]) for key in wanted}
        return ToolCall(tool_name=name, arguments=given, confidence=confidence)

    sizes = draw(st.lists(st.integers(1, 2), min_size=1, max_size=4))
    return [ModelResponse(calls=tuple(one(draw(CONFIDENCES)) for _ in range(size))) for size in sizes]


async def recorded(
    script: Sequence[ModelResponse], policy: Policy, *, principal: Principal | None, agent: Agent = AGENT
) -> Recording:
    """Really run these calls, where a person agrees to everything."""
    journal = MemoryJournal()
    await run(
        agent,
        "Refund order ORD-00003 of Ada, ada@example.org",
        library=LIBRARY,
        model=ScriptedModel([*script, say("done")]),
        policy=policy,
        approver=lambda approval: Approve(by="grace"),
        principal=principal,
        journal=journal,
    )
    [run_id] = journal.runs()
    return Recording(run_id, await journal.read(run_id))


async def verdicts(recording: Recording, policy: Policy) -> list[CallVerdict]:
    return [verdict async for verdict in judge(recording, Today(LIBRARY, policy))]


@given(turns(), POLICIES, POLICIES, st.sampled_from([CLERK, None]))
def test_the_answer_is_what_happens_when_the_same_calls_run_under_that_policy(
    script: list[ModelResponse], then: Policy, now: Policy, principal: Principal | None
) -> None:
    async def both() -> None:
        recording = await recorded(script, then, principal=principal)
        EFFECTS.clear()
        predicted = await verdicts(recording, now)
        assert not EFFECTS
        really = await recorded(script, now, principal=principal)
        told, happened = ([item.now for item in predicted], [item.gate for item in really.calls])
        # What did not run then has no result: whatever comes in a step after it is not known.
        unknown = [
            step.message.iteration
            for step in recording.steps
            for item, verdict in zip(step.calls.values(), _of(step.message.iteration, predicted), strict=True)
            if verdict.now != "denied" and not item.ran
        ]
        known = [
            at for at, item in enumerate(really.calls) if not unknown or int(item.call.id.split("_")[1]) <= unknown[0]
        ]
        assert [told[at] for at in known] == [happened[at] for at in known]
        assert [item.before for item in predicted] == [item.gate for item in recording.calls]

    asyncio.run(both())


def _of(iteration: int, verdicts: Sequence[CallVerdict]) -> list[CallVerdict]:
    return [verdict for verdict in verdicts if verdict.call_id.startswith(f"call_{iteration}_")]


async def test_what_the_policy_changes_is_told_with_the_rule_that_decides() -> None:
    script = [
        ModelResponse(calls=(call("find_order", customer="Ada").tool_call,)),
        ModelResponse(calls=(call("refund_order", order_id="ORD-00003").tool_call,)),
        ModelResponse(calls=(call("tag_order", order_id="ORD-00003", tag="late").tool_call,)),
    ]
    recording = await recorded(script, Policy(), principal=None)
    policy = Policy(risks={"refund_order": RiskLevel.REVERSIBLE}, least_risks={"find_*": RiskLevel.IRREVERSIBLE})
    found, refunded, tagged = await verdicts(recording, policy)
    assert (found.change, found.rule) == ("now_asked", "irreversible (the policy says at least this of 'find_*')")
    assert (refunded.change, refunded.rule) == ("now_free", "reversible (the policy says so of 'refund_order')")
    assert (tagged.change, tagged.rule) == ("same", "irreversible (the default of the policy)")
    assert [item.conditional for item in (found, refunded, tagged)] == [False, True, True]


async def test_a_tool_that_is_gone_is_judged_by_what_it_was() -> None:
    script = [ModelResponse(calls=(call("refund_order", order_id="ORD-00003").tool_call,))]
    recording = await recorded(script, Policy(), principal=None)
    [verdict] = [item async for item in judge(recording, Today(ToolLibrary(), Policy()))]
    assert (verdict.change, verdict.now) == ("same", "asked")


async def test_a_schema_that_refuses_recorded_calls_is_told() -> None:
    @tool(risk=RiskLevel.IRREVERSIBLE)
    def refund_order(order_id: str, reason: str) -> str:
        """Refund an order. Use when a customer gets money back."""
        raise AssertionError("a replay runs nothing")

    script = [ModelResponse(calls=(call("refund_order", order_id="ORD-00003").tool_call,))]
    recording = await recorded(script, Policy(), principal=None)
    report = await replay_policy(_each(recording), Today(ToolLibrary([refund_order]), Policy()))
    [finding] = report.findings
    assert finding.change == "now_denied"
    assert "INVALID_ARGUMENTS" in finding.rule
    assert "reason" in finding.rule


async def test_a_report_prints_itself_and_says_what_is_evidence() -> None:
    script = [
        ModelResponse(calls=(call("refund_order", order_id="ORD-00003").tool_call,)),
        ModelResponse(calls=(call("tag_order", order_id="ORD-00003", tag="<b>|").tool_call,)),
    ]
    recording = await recorded(script, Policy(), principal=None)
    policy = Policy(risks={"refund_order": RiskLevel.REVERSIBLE})
    report = await replay_policy(_each(recording, recording), Today(LIBRARY, policy))
    assert report.counts["now_free"] == 2
    assert report.counts["conditional"] == 2
    assert str(report.shares["runs_that_change"]).startswith("2 of 2 (100.0%, 95 % interval 34.2% to 100.0%")
    assert "| now free | refund_order |" in report.to_markdown()
    assert "2 of 4 calls would be decided otherwise: 2 now free." in report.to_html()
    assert type(report).model_validate_json(report.to_json()) == report


async def test_an_app_replays_the_runs_of_its_store(tmp_path: Path) -> None:
    async with Journeyman(library=LIBRARY, store=f"sqlite:///{tmp_path}/runs.db") as app:
        for _ in range(3):
            app._shared.model = ScriptedModel([call("find_order", customer="Ada"), say("done")])
            await (await app.start(AGENT, "Find Ada's order")).result()
        EFFECTS.clear()
        same = await app.replay()
        asked = await app.replay(policy=Policy(least_risks={"find_order": RiskLevel.IRREVERSIBLE}))
        none = await app.replay(since=0.0)
    assert (same.counts["runs"], same.counts["same"]) == (3, 3)
    assert asked.counts["now_asked"] == 3
    assert none.counts["runs"] == 0
    assert not EFFECTS


async def _each(*recordings: Recording) -> AsyncIterator[Recording]:
    for recording in recordings:
        yield recording


@pytest.mark.parametrize("data", ["", "[]", "{}", '{"facts": [1]}', '{"facts": []}', "[" * 100_000, '[{"role": 3}]'])
def test_what_is_no_recording_is_refused(data: str) -> None:
    with pytest.raises(ConfigurationError, match=r"no recording|has not begun"):
        Recording.read(data)
