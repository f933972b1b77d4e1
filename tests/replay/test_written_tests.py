"""A run becomes a test: it passes as it is, fails when something that matters changes, and holds no secret."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from journeyman import Approve, Deny, Policy, RiskLevel, ToolLibrary, run, tool
from journeyman.execution.recorder import MemoryJournal
from journeyman.replay.playing import Played, Strictness, outline, play
from journeyman.replay.recording import Recording
from journeyman.replay.stage import Today
from journeyman.replay.written import Redaction, written_test
from journeyman.testing import ScriptedModel, call, say, together
from tests.replay.shop import AGENT, EFFECTS, LIBRARY
from tests.waiting import WAIT_SECONDS

CANARY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
REFUND = [
    together(call("find_order", customer="Ada"), call("find_order", customer="Grace")),
    call("refund_order", order_id="ORD-00003"),
    call("write_mail", to="ada@example.org", text="Refunded").with_confidence(0.99),
    say("Refunded ORD-00003."),
]


async def recorded(turns: list[Any], *, deny: bool = False, task: str = "Refund Ada, ada@example.org") -> Recording:
    journal = MemoryJournal()
    await run(
        AGENT,
        task,
        library=LIBRARY,
        model=ScriptedModel(turns),
        approver=lambda approval: Deny(reason="no", by="grace") if deny else Approve(by="grace"),
        journal=journal,
    )
    [run_id] = journal.runs()
    EFFECTS.clear()
    return Recording(run_id, await journal.read(run_id))


def expected(played: Played) -> dict[str, Any]:
    return {
        "calls": [outline(item) for item in played.made],
        "answer": played.again.answer,
        "status": played.again.status.value,
    }


@pytest.mark.parametrize("library", [LIBRARY, ToolLibrary()], ids=["here", "gone"])
@pytest.mark.parametrize("deny", [False, True])
async def test_a_recorded_run_goes_as_it_went_and_runs_nothing(library: ToolLibrary, deny: bool) -> None:
    recording = await recorded(REFUND, deny=deny)
    played = await play(recording, Today(library))
    assert [outline(item) for item in played.again.calls] == [outline(item) for item in recording.calls]
    assert (played.again.answer, played.again.status) == (recording.answer, recording.status)
    assert [item.approval is not None for item in played.made] == [False, False, True, False]
    assert not EFFECTS
    played.check(**expected(await play(recording, Today(library))))


def _other_result(data: dict[str, Any]) -> None:
    [fact] = [fact for fact in data["facts"] if fact.get("record", {}).get("tool_name") == "refund_order"]
    fact["record"]["result"]["refunded"] = 11


def _other_answer(data: dict[str, Any]) -> None:
    [fact] = [fact for fact in data["facts"] if fact["type"] == "message" and not fact["calls"]]
    fact["text"] = "Nothing was done."


def _other_arguments(data: dict[str, Any]) -> None:
    fact = next(fact for fact in data["facts"] if fact["type"] == "message" and len(fact["calls"]) == 1)
    fact["calls"][0]["arguments"]["order_id"] = "ORD-99999"


def _one_call_less(data: dict[str, Any]) -> None:
    fact = next(fact for fact in data["facts"] if fact["type"] == "message")
    fact["calls"] = fact["calls"][:1]


def _nobody_agreed(data: dict[str, Any]) -> None:
    [fact] = [fact for fact in data["facts"] if fact["type"] == "approval_decided"]
    fact["status"] = "denied"


@pytest.mark.parametrize("change", [_other_result, _other_answer, _other_arguments, _one_call_less, _nobody_agreed])
@pytest.mark.parametrize("strictness", ["exact", "subset", "contains"])
async def test_a_changed_recording_fails(change: Callable[[dict[str, Any]], None], strictness: Strictness) -> None:
    recording = await recorded(REFUND)
    wanted = expected(await play(recording, Today(LIBRARY)))
    data = json.loads(recording.to_json())
    change(data)
    played = await play(Recording.read(json.dumps(data)), Today(LIBRARY))
    with pytest.raises(AssertionError, match="does not go as it was recorded"):
        played.check(**wanted, strictness=strictness)


@pytest.mark.parametrize(
    "policy",
    [
        Policy(risks={"refund_order": RiskLevel.REVERSIBLE}),
        Policy(least_risks={"find_order": RiskLevel.IRREVERSIBLE}),
        Policy(approval_confidence=1.0),
        Policy(max_argument_bytes=20),
    ],
)
async def test_another_policy_fails(policy: Policy) -> None:
    recording = await recorded(REFUND)
    wanted = expected(await play(recording, Today(LIBRARY)))
    with pytest.raises(AssertionError):
        (await play(recording, Today(LIBRARY, policy))).check(**wanted)


async def test_another_schema_and_another_instruction_fail() -> None:
    @tool(read_only=True)
    def find_order(name: str) -> str:
        """Find the latest order of a customer. Use when an order is needed and its number is not known."""
        raise AssertionError("a replay runs nothing")

    recording = await recorded(REFUND)
    wanted = expected(await play(recording, Today(LIBRARY)))
    with pytest.raises(AssertionError, match="INVALID_ARGUMENTS"):
        (await play(recording, Today(ToolLibrary([find_order])))).check(**wanted)
    with pytest.raises(AssertionError, match="instruction is not the recorded one"):
        (await play(recording, Today(LIBRARY, instruction="Refund everybody."))).check(**wanted)


async def test_what_a_test_leaves_open_may_be_otherwise() -> None:
    played = await play(await recorded(REFUND), Today(LIBRARY))
    refunded = {"tool": "refund_order", "arguments": {"order_id": "ORD-00003"}, "asked": True}
    played.check(calls=[refunded], answer="ORD-00003", strictness="contains")
    with pytest.raises(AssertionError, match="4 calls were made"):
        played.check(calls=[refunded], strictness="subset")
    with pytest.raises(AssertionError, match="no call, in this order"):
        played.check(calls=[refunded, {"tool": "find_order"}], strictness="contains")


async def test_secrets_and_private_values_are_replaced_and_calls_still_match() -> None:
    turns = [
        call("write_mail", to="ada@example.org", text=f"Use {CANARY}").with_confidence(0.99),
        say(f"Sent {CANARY}"),
    ]
    recording = await recorded(turns, task=f"Send {CANARY} to ada@example.org")
    redaction = Redaction(["ada@example.org"])
    clean = redaction.recording(recording)
    assert CANARY in recording.to_json()
    assert CANARY not in clean.to_json()
    assert "ada@example.org" not in clean.to_json()
    assert len(redaction.replaced) == 2
    played = await play(clean, Today(LIBRARY))
    [sent] = played.made
    assert sent.record is not None
    assert sent.record.arguments["to"] == "private-1"
    assert (sent.record.success, played.not_recorded) == (True, ())


@pytest.mark.slow
async def test_the_written_test_runs_with_the_plugin_and_a_recording_is_made_in_one_pass(tmp_path: Path) -> None:
    recording = await recorded(REFUND)
    (tmp_path / "refund.json").write_text(recording.to_json())
    (tmp_path / "test_refund.py").write_text(written_test(await play(recording, Today()), "refund.json"))
    (tmp_path / "test_record.py").write_text(
        "from journeyman.testing import ScriptedModel, call, say\n"
        "from tests.replay.shop import AGENT, LIBRARY\n"
        "def test_find(recorded_run):\n"
        "    model = ScriptedModel([call('find_order', customer='Ada'), say('Found.')])\n"
        "    run = recorded_run('made.json', agent=AGENT, library=LIBRARY, task='Find Ada', model=model)\n"
        "    run.check(calls=[{'tool': 'find_order', 'arguments': {'customer': 'Ada'}}], answer='Found.',"
        " strictness='subset')\n"
    )

    def ended(*options: str) -> subprocess.CompletedProcess[str]:
        plugin = ("-p", "journeyman.doors.pytest_plugin", "-p", "no:cacheprovider", "-q", "--rootdir", str(tmp_path))
        return subprocess.run(
            [sys.executable, "-m", "pytest", *plugin, *options, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )

    first = await asyncio.to_thread(ended, "--record")
    assert "2 passed" in first.stdout, first.stdout + first.stderr
    assert (tmp_path / "made.json").exists()
    assert "2 passed" in (await asyncio.to_thread(ended)).stdout


async def test_a_conversation_of_another_program_is_played(tmp_path: Path) -> None:
    asked = {"id": "x1", "type": "function", "function": {"name": "find_order", "arguments": '{"customer": "Ada"}'}}
    broken = {"id": "x2", "type": "function", "function": {"name": "find_order", "arguments": "{"}}
    conversation = [
        {"role": "system", "content": "Help with orders."},
        {"role": "user", "content": [{"type": "text", "text": "Where is the order of Ada?"}]},
        {"role": "assistant", "content": None, "tool_calls": [asked, broken]},
        {"role": "tool", "tool_call_id": "x1", "content": "ORD-00003"},
        {"role": "tool", "tool_call_id": "x2", "content": "not understood"},
        {"role": "assistant", "content": "It is ORD-00003."},
    ]
    played = await play(Recording.read(json.dumps(conversation)), Today(LIBRARY))
    found = {"tool": "find_order", "arguments": {"customer": "Ada"}, "result": "ORD-00003"}
    played.check(calls=[found], answer="It is ORD-00003.", strictness="contains")
    assert [item.gate for item in played.made] == ["free", "denied"]
    assert not EFFECTS
