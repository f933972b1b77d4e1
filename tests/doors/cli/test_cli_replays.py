"""The time machine from the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from journeyman import Journeyman
from journeyman.testing import ScriptedModel, call, say
from tests.doors.cli.box_shop import AGENT as BOXES
from tests.doors.cli.driving import Cli, Serve
from tests.replay.shop import AGENT, EFFECTS, LIBRARY

STRICTER = 'version: 1\ntools: {find_order: {import: "tests.replay.shop:find_order", risk: irreversible}}\n'


@pytest.fixture
def run_id(tmp_path: Path) -> str:
    """A run that found and refunded an order, in the store of this folder."""

    async def made() -> str:
        model = ScriptedModel(
            [call("find_order", customer="Ada"), call("refund_order", order_id="ORD-00003"), say("Refunded ORD-00003.")]
        )
        async with Journeyman(library=LIBRARY, store="sqlite:///journeyman.db", model=model) as app:
            handle = await app.start(AGENT, "Refund the order of Ada")
            await handle.result()
            [asked] = await app.approvals.pending()
            await app.approvals.approve(asked.id, by="grace")
            await handle.result()
            return handle.run_id

    found = asyncio.run(made())
    EFFECTS.clear()
    return found


def test_a_policy_is_tried_on_recorded_runs(cli: Cli, run_id: str, tmp_path: Path) -> None:
    same = cli("runs", "replay")
    assert (same.code, "All 2 calls would be decided as they were." in same.out) == (0, True)
    (tmp_path / "new.yaml").write_text(STRICTER)
    ended = cli("runs", "replay", run_id, "--policy", "new.yaml")
    assert "1 of 2 calls would be decided otherwise: 1 now asked." in ended.out
    report = json.loads(cli("runs", "replay", "--since", "7d", "--policy", "new.yaml", "--json").out)
    assert [(item["change"], item["tool"]) for item in report["findings"]] == [("now_asked", "find_order")]
    assert cli("runs", "replay", "--policy", "new.yaml", "--html", "page.html").code == 0
    assert "now asked" in (tmp_path / "page.html").read_text()
    assert not EFFECTS


def test_a_check_fails_where_something_changes_that_nobody_accepts(cli: Cli, run_id: str, tmp_path: Path) -> None:
    (tmp_path / "main.yaml").write_text(STRICTER)
    assert cli("runs", "check", "--since", "30d").code == 0
    failed = cli("runs", "check", "--since", "30d", "--config", "main.yaml")
    assert (failed.code, failed.out.startswith("# Recorded calls under today's policy")) == (1, True)
    assert cli("runs", "check", "--config", "main.yaml", "--accept", "now_asked").code == 0
    assert cli("runs", "check", "--accept", "nothing").code == 2
    assert cli("runs", "check", run_id, "--since", "1d").code == 2
    assert cli("runs", "replay", "run_none").code == 1
    assert not EFFECTS


def test_a_run_is_made_into_a_test_and_updated(cli: Cli, run_id: str, tmp_path: Path) -> None:
    ended = cli("runs", "test", run_id)
    assert ended.code == 0
    assert "def test_refund_the_order_of_ada(recorded_run):" in ended.out
    assert "{'tool': 'find_order'" in ended.out
    assert "'asked': True" in ended.out
    kept = tmp_path / "recordings" / f"{run_id}.json"
    assert "look through it before you share it" in ended.err
    again = cli("runs", "test", run_id, "--output", "test_x.py")
    assert (again.code, "--update" in again.err) == (2, True)
    kept.write_text(kept.read_text().replace("ORD-00003", "ORD-00004"))
    updated = cli("runs", "test", run_id, "--output", "test_x.py", "--update", "--private", "Ada")
    assert (updated.code, "-" in updated.err, "ORD-00004" in updated.err) == (0, True, True)
    assert "Ada" not in kept.read_text()
    assert "private-1" in (tmp_path / "test_x.py").read_text()
    assert cli("runs", "test", run_id, "--strictness", "loose").code == 2
    assert not EFFECTS


def test_a_run_is_forked_compared_and_shown_as_a_tree(cli: Cli, serve: Serve, shop: Path) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Warm."), say("Cold."), say("Never mind.")) as server:
        cli("run", "Burn it.", "--durable", "--yes", *BOXES, "--model", f"{server.url}#any")
        [parent] = [row["id"] for row in json.loads(cli("runs", "list", "--json").out)]
        forked = cli("runs", "fork", parent, "--at", "1", "--result", '"no fire"')
        said = cli("runs", "fork", parent, "--at", "3", "--say", "Thank you", "--json")
        assert "no fire" in server.requests[2]["messages"][-1]["content"]
        assert server.requests[3]["messages"][-1]["content"] == "Thank you"
    assert (forked.out, (shop / "effects.txt").read_text()) == ("Cold.\n", "burnt a\n")
    other = json.loads(said.out)["run_id"]
    shown = cli("runs", "show", parent).out
    assert shown.index(f"{parent} completed ←") < shown.index(f"  {other} completed")
    apart = cli("runs", "diff", parent, other)
    assert (apart.code, "they part at step 3" in apart.out, "+ Never mind." in apart.out) == (0, True, True)
    [first] = [row["run"] for row in json.loads(cli("runs", "show", parent, "--json").out)["forks"]][1:2]
    told = json.loads(cli("runs", "diff", parent, first, "--json").out)
    assert (told["first"], {item["what"]: item["b"] for item in told["differences"]}["result"]) == (1, "no fire")
    assert "they do not differ" in cli("runs", "diff", parent, parent).out
    assert cli("runs", "fork", parent, "--at", "7").code == 1


def test_another_model_and_other_tools_are_tried_on_a_run(cli: Cli, serve: Serve, run_id: str, tmp_path: Path) -> None:
    with serve(call("find_order", customer="Ada"), say("I will not."), say("Refunded.")) as server:
        (tmp_path / "brief.txt").write_text("Be brief.")
        asked = ("runs", "replay", run_id, "--model", f"{server.url}#any", "--instruction", "brief.txt")
        ended = cli(*asked)
        assert server.requests[0]["messages"][0]["content"] == "Be brief."
    assert (ended.code, "At 2 of 3 steps it does what was recorded." in ended.out) == (0, True)
    assert "3 questions in 1 runs" in ended.err
    tools = tmp_path / "new_shop.py"
    tools.write_text(
        "from journeyman import tool\n"
        "@tool(read_only=True)\n"
        "def find_order(name: str) -> str:\n"
        '    """Find an order. Use when one is needed."""\n'
        "    raise SystemExit('called')\n"
    )
    compared = cli("runs", "replay", run_id, "--tools", "new_shop.py")
    assert (compared.code, "Recorded calls would be refused." in compared.out) == (0, True)
    assert cli("runs", "replay", run_id, "--free").code == 2
    assert cli("runs", "replay", run_id, "--reads", "all").code == 2
    assert not EFFECTS
