"""What a person is asked, what their answer is bound to, and who may give it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from journeyman import Approve, Principal, RiskLevel, ToolContext, tool
from journeyman.core.approvals import Approval, Deny
from journeyman.core.errors import ToolDefinitionError
from journeyman.doors.cli.trace import question as panel
from journeyman.doors.slack.posts import approval_post
from journeyman.execution import approval as question_module
from journeyman.execution.executor import CallPast
from journeyman.execution.outcome import Suspended
from journeyman.testing import call
from journeyman.testing.scripted import ScriptedCall
from journeyman.tools.tool import Tool
from tests.execution.pathway import Answers, Path

ADA = Principal("ada", permissions={"orders:write"})


def erasing(describe: Any = None, *, code: int = 1, **options: Any) -> Tool[..., Any]:
    def erase(number: int) -> str:
        """Erase an order."""
        return f"{number} {code}"

    return tool(erase, risk=RiskLevel.IRREVERSIBLE, describe=describe, **options)


async def asked(item: Tool[..., Any], made: ScriptedCall, **policy: Any) -> Approval:
    gate = Answers(Deny())
    await Path([item], gate=gate, **policy).call(made, ADA)
    return gate.questions[0]


def rendered(approval: Approval) -> Any:
    return panel(approval).renderable


# --- what the call is about


async def title(arguments: dict[str, Any], context: ToolContext) -> str:
    await asyncio.sleep(0)
    assert context.principal == ADA
    return f"the order {arguments['number']} of\nACME \u202e"


def plain_title(arguments: dict[str, Any], context: ToolContext) -> str:
    assert threading.current_thread() is not threading.main_thread()
    return f"order {arguments.pop('number')}"


async def test_a_tool_says_what_its_call_is_about_as_one_line_without_anything_hidden() -> None:
    approval = await asked(erasing(title), call("erase", number=7))
    assert approval.about == "the order 7 of ACME \\u202e"


async def test_a_question_says_what_no_answer_is_bound_to() -> None:
    far = replace(erasing(), runs_elsewhere="the MCP server 'box'")
    approval = await asked(far, call("erase", number=7))
    assert approval.not_bound_to == "what the MCP server 'box' does with it"
    shown = [str(rendered(approval)), json.dumps(approval_post(approval, None).blocks)]
    assert all("not bound to what the MCP server 'box' does with it" in text for text in shown)
    assert (await asked(erasing(), call("erase", number=7))).not_bound_to == ""


async def test_a_blocking_description_gets_a_thread_and_a_copy_of_the_arguments() -> None:
    approval = await asked(erasing(plain_title), call("erase", number=7))
    assert (approval.about, approval.arguments) == ("order 7", {"number": 7})


def raising(arguments: dict[str, Any], context: ToolContext) -> str:
    raise SystemExit("no")


def numbering(arguments: dict[str, Any], context: ToolContext) -> Any:
    return 7


def hanging(arguments: dict[str, Any], context: ToolContext) -> str:
    while True:
        time.sleep(0.01)


async def stubborn(arguments: dict[str, Any], context: ToolContext) -> str:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if arguments:  # clings to life once
                arguments.clear()
            else:
                raise


@pytest.mark.parametrize("describe", [raising, numbering, hanging, stubborn])
async def test_a_description_that_fails_or_hangs_does_not_hold_up_the_question(
    describe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_module, "DESCRIBE_SECONDS", 0.05)
    approval = await asked(erasing(describe), call("erase", number=7))
    assert (approval.about, approval.arguments) == ("", {"number": 7})


async def test_secrets_that_a_description_reads_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEYMAN_SECRET_SHOP", "s3cr3t-s3cr3t")
    approval = await asked(
        erasing(lambda arguments, context: f"with {context.secrets['SHOP']}"), call("erase", number=7)
    )
    assert approval.about == "with •••"


@pytest.mark.parametrize("describe", [7, "a text", lambda: "", lambda arguments: ""])
def test_a_description_that_cannot_be_called_is_refused_at_once(describe: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="describe"):
        erasing(describe)


async def test_a_method_describes_with_its_instance() -> None:
    class Shop:
        names = ("zero", "one")

        def _about(self, arguments: dict[str, Any], context: ToolContext) -> str:
            return self.names[arguments["number"]]

        @tool(risk=RiskLevel.IRREVERSIBLE, describe=_about)
        def erase(self, number: int) -> str:
            """Erase an order."""
            return "done"

    assert (await asked(Shop().erase, call("erase", number=1))).about == "one"


# --- every digit, every character


async def test_arguments_are_also_given_as_exact_text() -> None:
    approval = await asked(erasing(), call("erase", number=2**53 + 1))
    assert approval.arguments_json == '{"number":9007199254740993}'
    assert '"arguments_json":"{\\"number\\":9007199254740993}"' in approval.model_dump_json()
    assert Approval.stored(approval.model_dump_json()) == approval


# --- what the answer is bound to


@pytest.mark.parametrize(
    "changed", [erasing(code=2), erasing(version="2"), erasing(description="Erase an order at once.")]
)
async def test_a_tool_that_changed_since_the_question_asks_again(changed: Tool[..., Any]) -> None:
    gate = Answers(None, None)
    path = Path([erasing()], gate=gate)
    made = call("erase", number=7)
    assert isinstance(await path.outcome(made, ADA), Suspended)
    path.tools["erase"] = changed
    past = CallPast(approval=gate.questions[0], decision=Approve(by="grace"))
    assert isinstance(await path.outcome(made, ADA, past), Suspended)
    first, second = gate.questions
    assert (first.id != second.id, first.tool_digest != second.tool_digest) == (True, True)
    facts = [(fact.type, getattr(fact, "status", None)) for fact in await path.facts()]
    assert facts == [("approval_requested", None), ("approval_decided", "superseded"), ("approval_requested", None)]


async def test_a_tool_that_did_not_change_is_not_asked_about_again() -> None:
    gate = Answers(None)
    path = Path([erasing()], gate=gate)
    made = call("erase", number=7)
    await path.outcome(made, ADA)
    path.tools["erase"] = erasing()
    past = CallPast(approval=gate.questions[0], decision=Approve(by="grace"))
    record = await path.outcome(made, ADA, past)
    assert not isinstance(record, Suspended)
    assert record.status == "success"


async def test_edited_arguments_are_held_to_the_limit_of_size() -> None:
    @tool(risk=RiskLevel.IRREVERSIBLE)
    def send(text: str) -> str:
        """Send a text."""
        return "sent"

    gate = Answers(Approve(arguments={"text": "x" * 2_000}, by="grace"))
    error = await Path([send], gate=gate, max_argument_bytes=1_000).error(call("send", text="hello"))
    assert (error.code, "at most 1,000" in error.message) == ("APPROVAL_INVALID", True)


# --- who may answer


@pytest.mark.parametrize(
    ("by", "status"), [("ada", "denied"), (None, "denied"), ("grace", "success"), ("ada (--yes)", "denied")]
)
async def test_under_four_eyes_somebody_else_must_approve(by: str | None, status: str) -> None:
    gate = Answers(Approve(by=by))
    record = await Path([erasing()], gate=gate, four_eyes=True).call(call("erase", number=7), ADA)
    assert (record.status, gate.questions[0].four_eyes) == (status, True)


async def test_without_four_eyes_one_may_approve_for_oneself() -> None:
    record = await Path([erasing()], gate=Answers(Approve(by="ada"))).call(call("erase", number=7), ADA)
    assert record.status == "success"


# --- how far a grant would go


async def test_the_person_is_told_how_far_a_grant_would_go() -> None:
    approval = await asked(erasing(), call("erase", number=7), grant_uses=3, grant_seconds=60)
    assert approval.grant is not None
    assert (approval.grant.uses, approval.grant.seconds) == (3, 60)


async def test_no_grant_is_offered_where_arguments_raise_the_risk_or_the_policy_has_none() -> None:
    @tool(risk=RiskLevel.IRREVERSIBLE)
    def read(path: str) -> str:
        """Read a file."""
        return path

    raised = await asked(read, call("read", path="/etc/shadow"))
    assert (raised.risk_raised, raised.grant) == (True, None)
    assert (await asked(read, call("read", path="notes.txt"), grant_risk=None)).grant is None
    assert (await asked(read, call("read", path="notes.txt"), grant_risk="reversible_with_delay")).grant is None
    assert (await asked(read, call("read", path="notes.txt"))).grant is not None
