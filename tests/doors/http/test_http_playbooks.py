"""Playbooks over HTTP: seen by those they belong to, changed by those who may."""

from __future__ import annotations

from pathlib import Path

from journeyman import Principal
from journeyman.doors.http import Tokens
from journeyman.learning import PlaybookBullet, ToolCallingStrategy
from tests.doors.http.serving import served

TOKENS = Tokens(
    {
        "ada-token-0123456789": Principal("ada"),
        "chief-token-0123456789": Principal("chief", permissions={"playbooks:write", "runs:read"}),
    }
)


def strategy(name: str, owner: str | None = None) -> ToolCallingStrategy:
    return ToolCallingStrategy(
        id=name, content=f"Do {name}.", tool_sequence=("look",), state="active", principal_id=owner, helpful_count=3
    )


async def test_a_playbook_is_seen_changed_and_rolled_back(tmp_path: Path) -> None:
    async with served(tmp_path, tokens=TOKENS) as server:
        playbook = server.service.app.playbooks["shop"]
        await playbook.put([strategy("everybodys"), strategy("adas", "ada"), strategy("bobs", "bob")])
        ada = server.client(headers={"Authorization": "Bearer ada-token-0123456789"})
        chief = server.client(headers={"Authorization": "Bearer chief-token-0123456789"})
        async with ada, chief:
            assert (await ada.get("/api/v1/playbooks")).json()["domains"] == ["shop"]
            found = (await ada.get("/api/v1/playbooks/shop")).json()
            assert {item["strategy"]["id"] for item in found["strategies"]} == {"everybodys", "adas"}
            assert (found["version"], found["can_change"], found["strategies"][0]["effect"]) == (1, False, None)
            assert (await ada.get("/api/v1/playbooks/nowhere")).status_code == 404

            path, wanted = "/api/v1/playbooks/shop/strategies/bobs", {"state": "quarantined", "reason": "wrong"}
            assert (await ada.patch(path, json=wanted)).status_code == 403
            changed = (await chief.patch(path, json=wanted)).json()["strategy"]
            assert (changed["state"], changed["state_reason"]) == ("quarantined", "wrong")
            assert (await chief.patch(f"{path}x", json=wanted)).status_code == 404

            assert (await chief.patch("/api/v1/playbooks/%1D/strategies/bobs", json=wanted)).status_code == 404

            diff = "/api/v1/playbooks/shop/diff"
            [bobs] = (await chief.get(f"{diff}?since=1")).json()["bullets"]
            assert (bobs["kind"], bobs["id"], bobs["fields"][0]["after"]) == ("changed", "bobs", "quarantined")
            assert (await ada.get(f"{diff}?since=1")).json()["bullets"] == []  # another's
            assert {item["id"] for item in (await ada.get(f"{diff}?since=0")).json()["bullets"]} == {
                "everybodys",
                "adas",
            }
            assert (await ada.get(f"{diff}?since=1&to=9")).json()["code"] == "VERSION_NOT_FOUND"
            assert (await ada.get("/api/v1/playbooks/nowhere/diff?since=0")).status_code == 404

            rollback = "/api/v1/playbooks/shop/rollback"
            assert (await ada.post(rollback, json={"to": 1})).status_code == 403
            assert (await chief.post(rollback, json={"to": 9})).status_code == 422
            found = (await chief.post(rollback, json={"to": 1})).json()
            assert {item["strategy"]["state"] for item in found["strategies"]} == {"active"}
            assert found["history"][0]["reason"] == "rolled back to version 1"


async def test_pitfalls_are_shown_with_a_playbook_and_anothers_are_not(tmp_path: Path) -> None:
    def pitfall(name: str, owner: str | None = None) -> PlaybookBullet:
        return PlaybookBullet(
            id=name,
            content=f"look: beware of {name}.",
            section="Pitfalls",
            tool_name="look",
            principal_id=owner,
            provenance=("run_1",),
        )

    async with served(tmp_path, tokens=TOKENS) as server:
        await server.service.app.playbooks["shop"].put([strategy("one"), pitfall("all"), pitfall("bobs", "bob")])
        async with server.client(headers={"Authorization": "Bearer ada-token-0123456789"}) as ada:
            [shown] = (await ada.get("/api/v1/playbooks/shop")).json()["pitfalls"]
        assert (shown["content"], shown["provenance"]) == ("look: beware of all.", ["run_1"])
