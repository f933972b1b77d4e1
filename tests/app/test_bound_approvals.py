"""What an approval in a store is bound to: the tool as it was, its principal as they are now, its time, its decider."""

from __future__ import annotations

import asyncio
import importlib
import logging
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Policy, Principal, RiskLevel, ToolLibrary, tool
from journeyman.app.journeyman import Journeyman
from journeyman.core import ApprovalStatus
from journeyman.core.approvals import Approval
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ApprovalError
from journeyman.core.events import ApprovalDecided
from journeyman.testing import FakeClock, ScriptedModel, call, say
from tests.app.conftest import Opens
from tests.app.shop import ADA, Ledger, deletes

DAY = 86_400


async def waiting_for_one(app: Journeyman, agent: Agent) -> str:
    handle = await app.start(agent, "Delete W-1", principal=ADA)
    assert await handle.wait() == "awaiting_approval"
    [approval] = await app.approvals.pending()
    return approval.id


def library_whose_code_is(code: str, ledger: Ledger) -> ToolLibrary:
    """The same tool to a model, and another one to whoever must answer for it."""

    def delete_order(order_id: str) -> str:
        """Delete an order."""
        ledger.write("delete_order", code, order_id)
        return code

    return ToolLibrary([tool(delete_order, risk=RiskLevel.IRREVERSIBLE)])


def agent_of(library: ToolLibrary) -> Agent:
    return Agent(name="clerk", instruction="Help.", tools=library.specifications())


@pytest.mark.parametrize("when", ["before", "after"])
async def test_code_that_changed_since_the_question_does_not_run_under_the_old_answer(
    opens: Opens, ledger: Ledger, when: str
) -> None:
    old, new = library_whose_code_is("good", ledger), library_whose_code_is("evil", ledger)
    async with opens(deletes("W-1"), library=old) as app:
        asked = await waiting_for_one(app, agent_of(old))
    if when == "before":
        async with opens(deletes("W-1"), library=ToolLibrary()) as desk:
            await desk.approvals.approve(asked, by="grace")
    async with opens(deletes("W-1"), library=new) as app:
        [handle] = await app.resume()
        if when == "after":
            await app.approvals.approve(asked, by="grace")
        assert await handle.wait() == "awaiting_approval"
        assert ledger.lines() == []
        superseded = await app.approvals.get(asked)
        assert superseded is not None
        assert superseded.status is ApprovalStatus.SUPERSEDED
        assert "approval_superseded" in [row.kind for row in await app.store.audit.list()]
        [fact] = [fact for fact in await app.store.runs.facts(handle.run_id) if isinstance(fact, ApprovalDecided)]
        assert "has changed since it was asked about" in (fact.reason or "")
        [again] = await app.approvals.pending()
        await app.approvals.approve(again.id, by="grace")
        assert (await handle.result()).status == "completed"
    assert ledger.lines() == [("delete_order", "evil", "W-1")]


@pytest.mark.parametrize("isolation", ["thread", "process"])
@pytest.mark.parametrize("lazily", [False, True])
async def test_a_helper_that_changed_since_the_question_does_not_run_under_the_old_answer(
    opens: Opens, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str, lazily: bool
) -> None:
    name = f"bound_{isolation}_{lazily}".lower()
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "words.py").write_text("said = ['good']\n")
    (package / "helper.py").write_text("from . import words\n\ndef does():\n    return words.said[0]\n")
    importing = "from .helper import does"
    (package / "tools.py").write_text(
        "from pathlib import Path\nfrom journeyman import tool\n"
        f"{'' if lazily else importing}\n"
        f"@tool(risk='irreversible', isolation={isolation!r})\n"
        "def delete_order(order_id: str) -> str:\n    'Delete an order.'\n"
        f"    {importing if lazily else 'pass'}\n    return does()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    library = ToolLibrary([importlib.import_module(f"{name}.tools").delete_order])
    async with opens(deletes("W-1"), library=library) as app:
        asked = await waiting_for_one(app, agent_of(library))
        (package / "unrelated.py").write_text("x = 1\n")
        (package / "helper.py").write_text(f"# the same\n{(package / 'helper.py').read_text()}")
        (package / "words.py").write_text("said = ['EVIL']\n")
        await app.approvals.approve(asked, by="grace")
        [again] = [await pending_other_than(app, asked)]
        (package / "words.py").write_text("said = ['good']  # again\n")
        await app.approvals.deny(again.id, by="grace")
    assert again.not_bound_to == ""


async def pending_other_than(app: Journeyman, asked: str) -> Approval:
    while True:
        for approval in await app.approvals.pending():
            if approval.id != asked:
                return approval
        await asyncio.sleep(0.01)


async def test_code_that_changes_back_asks_once_more(opens: Opens, ledger: Ledger) -> None:
    good, evil = library_whose_code_is("good", ledger), library_whose_code_is("evil", ledger)
    async with opens(deletes("W-1"), library=good) as app:
        first = await waiting_for_one(app, agent_of(good))
        await app.approvals.pending()
    seen = {first}
    for library in (evil, good):
        async with opens(deletes("W-1"), library=library) as app:
            [pending] = await app.approvals.pending()
            await app.approvals.approve(pending.id, by="grace")
            [handle] = await app.resume()
            assert await handle.wait() == "awaiting_approval"
            [asked] = await app.approvals.pending()
            assert asked.id not in seen
            seen.add(asked.id)
    async with opens(deletes("W-1"), library=good) as app:
        await app.approvals.approve(asked.id, by="grace")
        [handle] = await app.resume()
        assert (await handle.result()).status == "completed"
    assert ledger.lines() == [("delete_order", "good", "W-1")]


@pytest.mark.parametrize("now", [Principal("ada"), None])
async def test_a_principal_who_lost_the_permission_since_runs_nothing(
    opens: Opens, agent: Agent, ledger: Ledger, now: Principal | None
) -> None:
    async with opens(deletes("W-1")) as app:
        asked = await waiting_for_one(app, agent)
    async with opens(deletes("W-1"), principals=lambda principal: now) as app:
        await app.approvals.approve(asked, by="grace")
        [handle] = await app.resume()
        [record] = (await handle.result()).tool_calls
    assert record.error is not None
    assert (record.status, record.error.code) == ("denied", "NOT_PERMITTED")
    assert ledger.lines() == []


async def test_a_principal_who_still_has_the_permission_goes_on(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(deletes("W-1"), principals=lambda principal: principal) as app:
        asked = await waiting_for_one(app, agent)
        decided = await app.approvals.approve(asked, by="grace")
        assert (await (await app.handle(decided.run_id)).result()).tool_calls[0].success


async def test_in_a_store_a_question_stays_open_for_a_day_and_then_is_denied_and_logged(
    opens: Opens, agent: Agent, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    async with opens(deletes("W-1"), clock=clock) as app:
        handle = await app.start(agent, "Delete W-1", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
        [approval] = await app.approvals.pending()
        assert (approval.expires_at - approval.requested_at).total_seconds() == DAY
        clock.advance(DAY - 10)
        assert await app.approvals.pending()
        with caplog.at_level(logging.INFO, logger="journeyman"):
            clock.advance(20)
            response = await handle.result()
    assert [record.error and record.error.code for record in response.tool_calls] == ["APPROVAL_EXPIRED"]
    assert response.status == "completed"
    said = [getattr(record, LOG_FIELDS, {}) for record in caplog.records]
    assert any("expired" in map(str, fields.values()) for fields in said)


async def test_under_four_eyes_the_principal_cannot_decide_for_themselves(
    opens: Opens, agent: Agent, ledger: Ledger
) -> None:
    async with opens(deletes("W-1"), policy=Policy(four_eyes=True)) as app:
        asked = await waiting_for_one(app, agent)
        # The desk may be another program, with another policy: the question itself says what is asked for.
        async with opens(deletes("W-1")) as desk:
            with pytest.raises(ApprovalError, match="four eyes"):
                await desk.approvals.approve(asked, by="ada")
        decided = await app.approvals.approve(asked, by="grace")
        assert (await (await app.handle(decided.run_id)).result()).tool_calls[0].success
    assert len(ledger.lines()) == 1


async def test_whoever_asked_may_always_say_no(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(deletes("W-1"), policy=Policy(four_eyes=True)) as app:
        asked = await waiting_for_one(app, agent)
        assert (await app.approvals.deny(asked, by="ada")).status is ApprovalStatus.DENIED


# --- grants


def writer(ledger: Ledger, *, code: str = "one") -> ToolLibrary:
    def write_file(path: str) -> str:
        """Write a file."""
        ledger.write("write_file", code, path)
        return code

    return ToolLibrary([tool(write_file, risk=RiskLevel.IRREVERSIBLE)])


async def allowed_once(app: Journeyman, agent: Agent) -> Any:
    """A session in which a person has allowed the tool."""
    session = app.session("s")
    handle = await session.send(agent, "Write", principal=ADA)
    assert await handle.wait() == "awaiting_approval"
    [approval] = await app.approvals.pending()
    await app.approvals.approve(approval.id, by="grace", for_session=True)
    assert await handle.wait() == "completed"
    return session


def writes(path: str) -> ScriptedModel:
    return ScriptedModel([call("write_file", path=path), say("Done.")])


async def test_a_grant_ends_after_its_uses_and_after_its_time(opens: Opens, ledger: Ledger) -> None:
    library, clock = writer(ledger), FakeClock()
    policy = Policy(grant_uses=2, grant_seconds=60)
    async with opens(writes("a.txt"), library=library, policy=policy, clock=clock) as app:
        session = await allowed_once(app, agent_of(library))
        [grant] = await app.approvals.grants()
        assert (grant.uses, grant.uses_left, grant.expires_at) == (2, 2, grant.granted_at + 60)
        statuses = []
        for _ in range(3):
            handle = await session.send(agent_of(library), "Again", principal=ADA)
            statuses.append(await handle.wait())
        assert statuses == ["completed", "completed", "awaiting_approval"]
        assert await app.approvals.grants() == ()
        await handle.cancel()
        await handle.wait()
        await allowed_once(app, agent_of(library))
        clock.advance(61)
        assert await app.approvals.grants() == ()
        handle = await session.send(agent_of(library), "Later", principal=ADA)
        assert await handle.wait() == "awaiting_approval"


async def test_a_grant_covers_no_arguments_that_raise_the_risk(opens: Opens, ledger: Ledger) -> None:
    library = writer(ledger)
    async with opens(writes("a.txt"), library=library) as app:
        await allowed_once(app, agent_of(library))
    async with opens(writes("/etc/shadow"), library=library) as app:
        handle = await app.session("s").send(agent_of(library), "Write", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
        [asked] = await app.approvals.pending()
        with pytest.raises(ApprovalError, match="arguments raise the risk"):
            await app.approvals.approve(asked.id, by="grace", for_session=True)


async def test_a_grant_does_not_cover_a_tool_that_changed(opens: Opens, ledger: Ledger) -> None:
    one, two = writer(ledger), writer(ledger, code="two")
    async with opens(writes("a.txt"), library=one) as app:
        await allowed_once(app, agent_of(one))
    async with opens(writes("a.txt"), library=two) as app:
        handle = await app.session("s").send(agent_of(two), "Write", principal=ADA)
        assert await handle.wait() == "awaiting_approval"


async def test_a_tool_may_be_allowed_ahead_of_any_question_within_the_policy(opens: Opens, ledger: Ledger) -> None:
    library = writer(ledger)
    async with opens(writes("a.txt"), library=library) as app:
        grant = await app.approvals.grant("s", "write_file", by="grace", principal=ADA, uses=1, seconds=5)
        assert (grant.uses_left, grant.risk) == (1, RiskLevel.IRREVERSIBLE)
        first = await app.session("s").send(agent_of(library), "Write", principal=ADA)
        assert await first.wait() == "completed"
        second = await app.session("s").send(agent_of(library), "Write", principal=ADA)
        assert await second.wait() == "awaiting_approval"
        with pytest.raises(ApprovalError, match="no tool 'ghost'"):
            await app.approvals.grant("s", "ghost", by="grace")
    async with opens(writes("a.txt"), library=library, policy=Policy(grant_risk="reversible_with_delay")) as app:
        with pytest.raises(ApprovalError, match="policy"):
            await app.approvals.grant("s", "write_file", by="grace")


async def test_what_a_task_call_is_about_is_on_the_approval(tmp_path: Path) -> None:
    from journeyman.app.service import open_service

    model = ScriptedModel([call("delete_task", task_id="milk"), say("Done.")])
    async with open_service(store=f"sqlite:///{tmp_path / 'store.db'}", model=model) as service:
        await service.tasks.create("Buy milk\u202e https://example.org/milk")
        handle = await service.app.start(service.default_agent, "Delete milk")
        assert await handle.wait() == "awaiting_approval"
        [approval] = await service.app.approvals.pending()
    assert approval.about.startswith("Delete the task “Buy milk")
    assert "1 attachment" in approval.about
    assert "\u202e" not in approval.about
