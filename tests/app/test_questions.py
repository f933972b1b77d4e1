"""What a tool asks while its call runs, in a stored run: that waits like an approval, and goes on with the answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from journeyman import Agent, Approve, Deny, Journeyman, Policy, Principal, ToolContext, ToolLibrary, run, tool
from journeyman.app.desk import Desk
from journeyman.core.approvals import Approval, ApprovalStatus, LabelSource
from journeyman.core.errors import ApprovalError, EditedArgumentsError, JourneymanError
from journeyman.core.runs import RunStatus
from journeyman.sources import McpServer
from journeyman.testing import ScriptedModel, call, say
from tests.waiting import until

NODDED = Policy(default_risk="reversible")
ADA, BOB = Principal("ada"), Principal("bob")
DONE: list[str] = []


class Wish(BaseModel):
    size: Literal["small", "large"]
    count: int = 1
    note: str | None = None


@tool(risk="reversible")
async def order(what: str, context: ToolContext) -> str:
    """Order something.

    Args:
        what: What.
    """
    DONE.append("asked")
    wish = await context.ask(f"How do you want the {what}?", Wish)
    if wish is None:
        return "nothing ordered"
    gift = await context.ask("Is it a gift?", {"type": "object", "properties": {"gift": {"type": "boolean"}}})
    DONE.append(f"{wish.count} {wish.size} {what} {gift}")
    return DONE[-1]


@tool(risk="irreversible")
async def burn(context: ToolContext) -> str:
    """Burn it, once a person has named it."""
    named = await context.ask("Which one?", {"type": "object", "properties": {"name": {"type": "string"}}})
    DONE.append(f"burnt {named}")
    return "burnt"


AGENT = Agent(name="shop", instruction="Help.", tools=[order, burn])


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


@asynccontextmanager
async def app(tmp_path: Path, *steps: Any, **options: Any) -> AsyncIterator[Journeyman]:
    model = ScriptedModel([*steps, say("Done.")])
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with Journeyman(store=store, library=ToolLibrary([order, burn]), model=model, **options) as opened:
        yield opened


async def asked(app: Journeyman, run_id: str) -> Approval:
    found: list[Approval] = []

    async def there() -> bool:
        found[:] = await app.approvals.pending(run_id=run_id)
        return bool(found)

    await until(there)
    return found[0]


async def test_a_run_waits_for_answers_and_goes_on_with_them(tmp_path: Path) -> None:
    async with app(tmp_path, call("order", what="tea")) as shop:
        handle = await shop.start(AGENT, "order tea")
        first = await asked(shop, handle.run_id)

        async def suspended() -> bool:
            return await handle.status() is RunStatus.AWAITING_APPROVAL

        await until(suspended)
        assert first.question is not None
        assert (first.question.message, first.tool_name) == ("How do you want the tea?", "order")
        assert first.arguments == {"size": "", "count": 1, "note": None}
        with pytest.raises(EditedArgumentsError, match="size"):
            await shop.approvals.approve(first.id, by="ada", arguments={"size": "huge"})
        await shop.approvals.approve(first.id, by="ada", arguments={"size": "large", "count": 2, "note": ""})
        second = await asked(shop, handle.run_id)
        await shop.approvals.approve(second.id, by="ada", arguments={"gift": True})
        response = await handle.result()
        assert [item.result for item in response.tool_calls] == ["2 large tea {'gift': True}"]
        # The function is left at each question: what stands before the first is done once for each time it is begun.
        assert DONE == ["asked", "asked", "asked", "2 large tea {'gift': True}"]
        assert not [label for label in response.labels if label.source is LabelSource.DECISION]


async def test_who_declines_says_nothing(tmp_path: Path) -> None:
    async with app(tmp_path, call("order", what="tea")) as shop:
        handle = await shop.start(AGENT, "order tea")
        await shop.approvals.deny((await asked(shop, handle.run_id)).id, by="ada")
        assert (await handle.result()).tool_calls[0].result == "nothing ordered"


async def test_without_an_answer_in_time_the_call_fails_and_the_run_goes_on(tmp_path: Path) -> None:
    async with app(tmp_path, call("order", what="tea"), policy=Policy(stored_approval_seconds=1)) as shop:
        handle = await shop.start(AGENT, "order tea")
        await asked(shop, handle.run_id)

        async def expired() -> bool:
            return not await shop.approvals.pending(run_id=handle.run_id)

        await until(expired)
        await shop.resume(handle.run_id)
        (record,) = (await handle.result()).tool_calls
        assert record.error is not None
        assert record.error.code == "NO_ANSWER"


async def test_whether_it_may_run_is_asked_once_and_what_it_asks_after_that(tmp_path: Path) -> None:
    async with app(tmp_path, call("burn")) as shop:
        handle = await shop.start(AGENT, "burn it")
        permission = await asked(shop, handle.run_id)
        assert permission.question is None
        await shop.approvals.approve(permission.id, by="ada")
        question = await asked(shop, handle.run_id)
        assert question.question is not None
        await shop.approvals.approve(question.id, by="ada", arguments={"name": "x"})
        (record,) = (await handle.result()).tool_calls
        assert (record.result, record.approval_id, DONE) == ("burnt", permission.id, ["burnt {'name': 'x'}"])


async def test_a_question_outlives_its_process_and_a_call_is_not_doubled(tmp_path: Path) -> None:
    async with app(tmp_path, call("order", what="tea")) as shop:
        run_id = (await shop.start(AGENT, "order tea")).run_id
        first = await asked(shop, run_id)
    async with app(tmp_path) as again:
        assert (await asked(again, run_id)).id == first.id
        await again.approvals.approve(first.id, by="ada", arguments={"size": "small"})
        handle = await again.handle(run_id)
        await again.resume(run_id)
        await again.approvals.approve((await asked(again, run_id)).id, by="ada", arguments={"gift": False})
        assert (await handle.result()).tool_calls[0].result == "1 small tea {'gift': False}"
        assert [item for item in DONE if item != "asked"] == ["1 small tea {'gift': False}"]


async def test_whoever_it_is_for_may_answer_and_a_stranger_may_not(tmp_path: Path) -> None:
    async with app(tmp_path, call("order", what="tea")) as shop:
        handle = await shop.start(AGENT, "order tea", principal=ADA)
        question = await asked(shop, handle.run_id)
        with pytest.raises(JourneymanError, match="approval"):
            await Desk(shop, BOB).approve(question.id, arguments={"size": "small"})
        decided = await Desk(shop, ADA).approve(question.id, arguments={"size": "small"})
        assert decided.status is ApprovalStatus.APPROVED
        with pytest.raises(ApprovalError, match="already"):
            await Desk(shop, ADA).approve(question.id, arguments={"size": "large"})


async def test_a_cancelled_run_withdraws_its_question(tmp_path: Path) -> None:
    async with app(tmp_path, call("order", what="tea")) as shop:
        handle = await shop.start(AGENT, "order tea")
        question = await asked(shop, handle.run_id)
        await shop.cancel(handle.run_id)
        await handle.result()
        found = await shop.approvals.get(question.id)
        assert found is not None
        assert found.status is ApprovalStatus.SUPERSEDED


async def test_an_approver_in_the_process_answers_while_the_function_waits() -> None:
    def answers(approval: Approval) -> Approve | Deny:
        if approval.question is None:
            return Deny()
        return Approve(arguments={"size": "small"} if "size" in approval.arguments else {"gift": False})

    steps: list[Any] = [call("order", what="tea"), say("Done.")]
    response = await run(AGENT, "order tea", model=ScriptedModel(steps), approver=answers)
    assert response.tool_calls[0].result == "1 small tea {'gift': False}"
    assert DONE[:-1] == ["asked"]


@pytest.mark.parametrize(("approver", "code"), [(None, "NOBODY_TO_ASK"), (lambda _: Approve(), "WRONG_ANSWER")])
async def test_nobody_and_whoever_only_nods_give_no_answer(approver: Any, code: str) -> None:
    steps: list[Any] = [call("order", what="tea"), say("Done.")]
    response = await run(AGENT, "order tea", model=ScriptedModel(steps), approver=approver)
    (record,) = response.tool_calls
    assert record.error is not None
    assert (record.error.code, DONE) == (code, ["asked"])


DEADLY = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[2])
from tests.app.test_questions import AGENT, Journeyman, ScriptedModel, ToolLibrary, asked, burn, call, order

async def main():
    library = ToolLibrary([order, burn])
    async with Journeyman(store=sys.argv[1], library=library, model=ScriptedModel([call("order", what="tea")])) as shop:
        handle = await shop.start(AGENT, "order tea")
        await asked(shop, handle.run_id)
        print(handle.run_id, flush=True)
        os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_a_question_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    arguments = (sys.executable, "-c", DEADLY, f"sqlite:///{tmp_path / 'store.db'}", root)
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE, cwd=tmp_path)
    said, _ = await process.communicate()
    run_id = said.decode().strip()
    assert process.returncode == -9
    async with app(tmp_path) as again:
        await again.approvals.approve((await asked(again, run_id)).id, by="ada", arguments={"size": "small"})
        await again.resume(run_id)
        await again.approvals.approve((await asked(again, run_id)).id, by="ada", arguments={})
        handle = await again.handle(run_id)
        assert (await handle.result()).tool_calls[0].result == "1 small tea {}"
        assert [item for item in DONE if item != "asked"] == ["1 small tea {}"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "protocol"), [("order_now", "2025-11-25"), ("order_later", "2026-07-28")])
async def test_what_an_mcp_server_asks_is_asked_in_its_name(tmp_path: Path, name: str, protocol: str) -> None:
    program = Path(__file__).parents[1] / "doors" / "mcp" / "whole_server.py"
    source = McpServer(
        name="whole",
        command=[sys.executable, str(program), str(tmp_path / "notes")],
        protocol=protocol,
        start_seconds=60,
    )
    library, store = ToolLibrary(sources=[source]), f"sqlite:///{tmp_path / 'store.db'}"
    model = ScriptedModel([call(f"whole.{name}"), say("Done.")])
    async with library, Journeyman(store=store, library=library, model=model, policy=NODDED) as shop:
        handle = await shop.start(Agent(name="shop", instruction="Help.", tools=library.specifications()), "order")
        question = await asked(shop, handle.run_id)
        assert question.question is not None
        assert question.question.message == "The MCP server 'whole' asks: Which size?"
        # A server of the older protocol waits in the middle of its work; the newer one is asked again.
        assert question.question.held is (name == "order_now")
        await shop.approvals.approve(question.id, by="ada", arguments={"size": "large"})

        async def ended() -> bool:
            return (await handle.status()).ended

        await until(ended)
        (record,) = (await handle.result()).tool_calls
        assert "ordered large" in str(record.result)
