"""A stage from outside the package: one function, given to the executor in one line."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman import Approve, CallStatus, Principal, RiskLevel, tool
from journeyman.core import ErrorCategory
from journeyman.execution.executor import CallScope
from journeyman.execution.outcome import Refusal, refuse
from journeyman.testing import call
from journeyman.tools.library import AnyTool
from journeyman.tools.tool import FrozenArguments
from tests.execution.pathway import Answers, Path

ADA = Principal("ada")


@tool
def pay(account: str, amount: int = 1) -> str:
    """Pay into an account."""
    return f"{amount} to {account}"


async def known_account(tool: AnyTool, frozen: FrozenArguments, scope: CallScope) -> Refusal | None:
    """A toy check of where an argument came from."""
    account = frozen.arguments["account"]
    if account == "A-1":
        return None
    return refuse(
        CallStatus.DENIED,
        "NOT_GROUNDED",
        f"nobody has mentioned the account {account!r}",
        category=ErrorCategory.INVALID_INPUT,
        recover="Ask the user for the account",
    )


async def test_a_check_passes_a_call_on_or_ends_it_before_it_starts() -> None:
    path = Path([pay], checks=[known_account])
    assert (await path.call(call("pay", account="A-1"))).result == "1 to A-1"
    record = await path.call(call("pay", account="A-2"))
    assert record.error is not None
    assert (record.status, record.error.code, record.attempts) == ("denied", "NOT_GROUNDED", 0)
    assert record.arguments == {"account": "A-2", "amount": 1}
    assert [kind for kind, _ in path.journal.log] == ["call_started", "call_finished", "call_finished"]


async def test_checks_see_valid_arguments_and_the_scope_and_run_in_order_until_one_refuses() -> None:
    seen: list[tuple[str, Any]] = []

    async def first(tool: AnyTool, frozen: FrozenArguments, scope: CallScope) -> None:
        seen.append((tool.name, frozen.arguments))

    async def last(tool: AnyTool, frozen: FrozenArguments, scope: CallScope) -> None:
        seen.append((scope.run_id, scope.principal))

    path = Path([pay], checks=[first, known_account, last])
    await path.call(call("pay", account=3), ADA)
    assert seen == []
    await path.call(call("pay", account="A-2"), ADA)
    assert seen == [("pay", {"account": "A-2", "amount": 1})]
    await path.call(call("pay", account="A-1"), ADA)
    assert seen[2:] == [("run", ADA)]


async def test_checks_come_before_the_approval_and_again_after_a_person_has_edited_the_arguments() -> None:
    gate = Answers(Approve(arguments={"account": "A-2"}))
    path = Path([pay], gate=gate, checks=[known_account], default_risk=RiskLevel.IRREVERSIBLE)
    assert (await path.error(call("pay", account="A-2"))).code == "NOT_GROUNDED"
    assert gate.questions == []
    record = await path.call(call("pay", account="A-1"))
    assert record.error is not None
    assert (record.error.code, record.arguments["account"], record.attempts) == ("NOT_GROUNDED", "A-2", 0)
    assert len(gate.questions) == 1


async def test_a_check_that_raises_keeps_the_tool_from_running() -> None:
    async def broken(tool: AnyTool, frozen: FrozenArguments, scope: CallScope) -> Refusal | None:
        raise ConnectionError("the policy service is down")

    path = Path([pay], checks=[broken])
    with pytest.raises(ConnectionError, match="policy service"):
        await path.call(call("pay", account="A-1"))
    assert path.journal.log == []
