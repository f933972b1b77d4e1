"""What people allowed for a whole session: for one tool as it was, one principal, a number of uses and a time."""

from __future__ import annotations

import asyncio
from typing import Any

from journeyman import Principal, RiskLevel
from journeyman.core.approvals import Approval, ApprovalStatus, Grant
from journeyman.stores.store import SqlStore
from journeyman.testing import FakeClock
from tests.stores.samples import NOW, question

TOOL = "digest of pay"


def grant(grant_id: str, **changes: Any) -> Grant:
    fields = {
        "session_id": "s",
        "tool_name": "pay",
        "granted_by": "grace",
        "granted_at": NOW,
        "tool_digest": TOOL,
        "risk": RiskLevel.IRREVERSIBLE,
        "expires_at": NOW + 100,
        "uses": 2,
        "uses_left": 2,
    }
    return Grant(id=grant_id, **{**fields, **changes})


def asked(name: str, **changes: Any) -> Approval:
    fields = {"tool_name": "pay", "tool_digest": TOOL, "principal": None, "risk": RiskLevel.IRREVERSIBLE}
    return question(name).model_copy(update={**fields, **changes})


async def used(store: SqlStore, name: str, *, session: str = "s", **changes: Any) -> str | None:
    """Who a question is approved by under a grant; None where nobody has allowed it."""
    approval = await store.approvals.ask(asked(name, **changes))
    decided = await store.grants.use(approval, session_id=session)
    return None if decided is None else decided.decided_by


async def test_a_grant_is_good_for_one_principal(store: SqlStore) -> None:
    await store.grants.grant(grant("g-1", principal_id="ada"))
    assert await used(store, "a-1", principal=Principal("mallory")) is None
    assert await used(store, "a-2") is None
    assert await used(store, "a-3", principal=Principal("ada")) == "grace (grant g-1)"


async def test_a_grant_allows_one_tool_in_one_session_until_revoked(store: SqlStore) -> None:
    await store.grants.grant(grant("g-1"))
    await store.grants.grant(grant("g-1"))
    assert await used(store, "a-1", tool_name="delete") is None
    assert await used(store, "a-2", session="t") is None
    assert await used(store, "a-3") == "grace (grant g-1)"
    assert await store.grants.revoke("g-1", by="ada", now=NOW + 5)
    assert not await store.grants.revoke("g-1", by="ada", now=NOW + 6)
    assert await used(store, "a-4") is None
    assert [(row.kind, row.actor, row.subject) for row in await store.audit.list()] == [
        ("grant_given", "grace", "g-1"),
        ("approval_approved", "grace (grant g-1)", "a-3"),
        ("grant_revoked", "ada", "g-1"),
    ]


async def test_a_grant_ends_with_its_uses(store: SqlStore) -> None:
    await store.grants.grant(grant("g-1", uses=2, uses_left=2))
    assert [await used(store, f"a-{number}") is not None for number in range(4)] == [True, True, False, False]
    [spent] = await store.grants.list()
    assert (spent.uses, spent.uses_left, spent.in_force(NOW)) == (2, 0, False)


async def test_a_grant_ends_with_its_time(store: SqlStore, clock: FakeClock) -> None:
    await store.grants.grant(grant("g-1", expires_at=NOW + 10))
    clock.advance(9)
    assert await used(store, "a-1")
    clock.advance(1)
    assert await used(store, "a-2") is None


async def test_a_grant_covers_no_higher_risk_than_it_was_given_for(store: SqlStore) -> None:
    await store.grants.grant(grant("g-1", risk=RiskLevel.REVERSIBLE_WITH_DELAY))
    assert await used(store, "a-1", risk=RiskLevel.IRREVERSIBLE) is None
    assert await used(store, "a-2", risk=RiskLevel.REVERSIBLE_WITH_DELAY)


async def test_a_grant_covers_no_call_whose_arguments_raise_the_risk(store: SqlStore) -> None:
    await store.grants.grant(grant("g-1"))
    assert await used(store, "a-1", risk_raised=True) is None


async def test_a_grant_is_bound_to_the_tool_as_it_was(store: SqlStore) -> None:
    await store.grants.grant(grant("g-1"))
    assert await used(store, "a-1", tool_digest="digest of another pay") is None


async def test_a_grant_of_an_older_version_covers_nothing(store: SqlStore) -> None:
    old = Grant(id="g-1", session_id="s", tool_name="pay", granted_by="grace", granted_at=NOW)
    await store.grants.grant(old)
    assert await used(store, "a-1", tool_digest="") is None
    [kept] = await store.grants.list()
    assert not kept.in_force(NOW)


async def test_under_four_eyes_nobody_uses_a_grant_of_their_own(store: SqlStore) -> None:
    await store.grants.grant(grant("g-1", granted_by="ada", principal_id="ada"))
    assert await used(store, "a-1", principal=Principal("ada"), four_eyes=True) is None
    assert await used(store, "a-2", principal=Principal("ada"))


async def test_processes_that_use_a_grant_at_once_share_its_uses(store: SqlStore, other: SqlStore) -> None:
    await store.grants.grant(grant("g-1", uses=5, uses_left=5))
    names = [f"a-{number}" for number in range(12)]
    both = [(store, other)[number % 2] for number in range(12)]
    found = await asyncio.gather(*(used(each, name) for each, name in zip(both, names, strict=True)))
    assert sum(by is not None for by in found) == 5
    [spent] = await store.grants.list()
    assert spent.uses_left == 0


async def test_a_question_that_is_decided_already_costs_no_use(store: SqlStore) -> None:
    await store.grants.grant(grant("g-1"))
    approval = await store.approvals.ask(asked("a-1"))
    await store.approvals.decide("a-1", ApprovalStatus.DENIED, by="grace")
    assert await store.grants.use(approval, session_id="s") is None
    assert (await store.grants.list())[0].uses_left == 2


async def test_grants_are_listed_and_revoked_ones_only_on_demand(store: SqlStore) -> None:
    await store.grants.grant(grant("g-1"))
    await store.grants.grant(grant("g-2", tool_name="delete"))
    await store.grants.grant(grant("g-3", session_id="t"))
    await store.grants.revoke("g-1", by="ada", now=NOW + 5)
    assert [given.id for given in await store.grants.list()] == ["g-2", "g-3"]
    assert [given.id for given in await store.grants.list(session_id="s")] == ["g-2"]
    [revoked, _] = await store.grants.list(session_id="s", active_only=False)
    assert (revoked.revoked_at, revoked.revoked_by) == (NOW + 5, "ada")
