"""A door from outside the package: mail in, mail out. What every door needs it takes from the app and its desk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from journeyman import Agent, Journeyman, Model, Principal, tool
from journeyman.app.desk import DECIDE, Desk, NotPermittedError
from journeyman.testing import ScriptedModel, call, say


@tool(risk="irreversible")
def delete_order(order_id: str) -> str:
    """Delete an order."""
    DELETED.append(order_id)
    return f"{order_id} is deleted"


DELETED: list[str] = []
AGENT = Agent(name="clerk", instruction="Help with orders.", tools=[delete_order])


@dataclass(frozen=True)
class Mail:
    id: str
    sender: str
    text: str


class MailDoor:
    """Everything a door is: a principal, a run for each message, an answer in the door's own words."""

    def __init__(self, app: Journeyman, *, deciders: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._deciders = deciders

    async def receive(self, mail: Mail) -> str:
        permissions = {DECIDE} if mail.sender in self._deciders else set()
        desk = Desk(self._app, Principal(mail.sender, permissions=permissions))
        if mail.text.startswith("approve "):
            return (await desk.approve(mail.text.removeprefix("approve "))).status
        handle = await self._app.start(
            AGENT,
            mail.text,
            principal=desk.principal,
            session_id=f"mail-{mail.sender}",
            run_id=desk.run_id_for("mail", mail.id),  # a message that is delivered twice is one run
        )
        outcome = await desk.outcome(handle, session_id=f"mail-{mail.sender}")
        if outcome.kind == "waiting":
            return " ".join(f"needs approval: {approval.id}" for approval in outcome.blockers.approvals)
        return outcome.response.answer if outcome.response is not None else outcome.status


def opened(tmp_path: Path, model: Model) -> Journeyman:
    DELETED.clear()
    return Journeyman(store=f"sqlite:///{tmp_path / 'store.db'}", model=model, poll_seconds=0.05)


async def test_a_message_is_answered_and_one_that_comes_twice_is_one_run(tmp_path: Path) -> None:
    model = ScriptedModel([say("Hello, ada.")])
    async with opened(tmp_path, model) as app:
        door, mail = MailDoor(app), Mail("m1", "ada", "Hello")
        assert [await door.receive(mail), await door.receive(mail)] == ["Hello, ada."] * 2
        assert len(await app.store.runs.list()) == 1


async def test_who_may_not_decide_is_refused_and_who_may_lets_the_run_go_on(tmp_path: Path) -> None:
    model = ScriptedModel([call("delete_order", order_id="W-17"), say("Deleted.")])
    async with opened(tmp_path, model) as app:
        door = MailDoor(app, deciders=frozenset({"grace"}))
        mail = Mail("m1", "ada", "Delete W-17")
        asked = await door.receive(mail)
        approval_id = asked.removeprefix("needs approval: ")
        with pytest.raises(NotPermittedError, match="'ada' lacks the permission 'approvals:decide'"):
            await door.receive(Mail("m2", "ada", f"approve {approval_id}"))
        assert await door.receive(Mail("m3", "grace", f"approve {approval_id}")) == "approved"
        assert await door.receive(mail) == "Deleted."
    assert DELETED == ["W-17"]
