"""Approvals, grants, the audit log and the schema, from the command line; and what the doctor says of the store."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from journeyman.testing import call, say
from tests.doors.cli.box_shop import AGENT, LIBRARY, effects, shop  # noqa: F401
from tests.doors.cli.driving import Cli, Serve

pytestmark = pytest.mark.usefixtures("shop")


@pytest.fixture
def approval(cli: Cli, serve: Serve) -> dict[str, Any]:
    """A run of the session 'tuesday' that waits for a word about burning shelf a."""
    with serve(call("burn_shelf", shelf="a")) as server:
        ended = cli("run", "Burn it.", "--session", "tuesday", *AGENT, "--model", f"{server.url}#any")
    assert ended.code == 3
    found: dict[str, Any] = json.loads(cli("approvals", "list", "--json").out)[0]
    return found


def test_what_waits_is_listed_and_shown_in_full(cli: Cli, approval: dict[str, Any]) -> None:
    for ended in (cli("approvals", "list"), cli("approvals", "show", approval["id"])):
        for expected in (approval["id"], "burn_shelf", "irreversible"):
            assert expected in ended.out
    shown = json.loads(cli("approvals", "show", approval["id"], "--json").out)
    assert (shown["arguments"], shown["status"], shown["edited_arguments"]) == ({"shelf": "a"}, "pending", None)
    assert cli("approvals", "show", "appr_none").code == 1


def test_the_second_decision_is_told_who_was_first_and_changes_nothing(cli: Cli, approval: dict[str, Any]) -> None:
    assert cli("approvals", "approve", approval["id"], "--by", "grace").code == 0
    late = cli("approvals", "deny", approval["id"], "--reason", "no")
    assert (late.code, "is approved already by 'grace'; nothing was changed" in late.err) == (1, True)
    [decided] = json.loads(cli("approvals", "list", "--all", "--json").out)
    assert (decided["status"], decided["decided_by"], decided["reason"]) == ("approved", "grace", None)
    nothing = cli("approvals", "list")
    assert (nothing.code, "nothing waits" in nothing.err) == (0, True)


def test_edited_arguments_are_checked_and_then_run_instead(
    cli: Cli, serve: Serve, approval: dict[str, Any], tmp_path: Any
) -> None:
    for arguments, code in (("{no", 2), ('["b"]', 2), ('{"shelf": 3}', 1)):
        ended = cli("approvals", "approve", approval["id"], "--args", arguments, *LIBRARY)
        assert (ended.code, ended.out) == (code, "")
    assert cli("approvals", "approve", approval["id"], "--args", '{"shelf": "b"}', *LIBRARY).code == 0
    assert '"b"' in cli("approvals", "show", approval["id"]).out
    with serve(say("Burnt b.")) as server:
        assert cli("runs", "resume", *LIBRARY, "--model", f"{server.url}#any").code == 0
    assert effects(tmp_path) == ["burnt b"]


def test_edits_for_tools_of_our_own_are_checked_without_naming_a_library(cli: Cli, serve: Serve) -> None:
    with serve(call("delete_task", task_id="a")) as server:
        assert cli("run", "Delete it.", "--durable", "--model", f"{server.url}#any").code == 3
    [waiting] = json.loads(cli("approvals", "list", "--json").out)
    ended = cli("approvals", "approve", waiting["id"], "--args", '{"taks_id": "b"}')
    assert (ended.code, "'delete_task' are not valid" in ended.err) == (1, True)


def test_a_tool_is_allowed_for_a_session_until_that_is_revoked(
    cli: Cli, serve: Serve, approval: dict[str, Any], tmp_path: Any
) -> None:
    assert cli("approvals", "approve", approval["id"], "--for-session", "--by", "grace").code == 0
    [grant] = json.loads(cli("approvals", "grants", "--session", "tuesday", "--json").out)
    assert (grant["tool_name"], grant["granted_by"]) == ("burn_shelf", "grace")
    assert grant["id"] in cli("approvals", "grants").out
    turns = (say("One."), call("burn_shelf", shelf="b"), say("Two."), call("burn_shelf", shelf="c"))
    with serve(*turns) as server:
        model = ("--model", f"{server.url}#any")
        assert cli("runs", "resume", *LIBRARY, *model).code == 0
        assert cli("run", "And b.", "--session", "tuesday", *AGENT, *model).code == 0
        assert cli("approvals", "revoke", grant["id"]).code == 0
        assert cli("run", "And c.", "--session", "tuesday", *AGENT, *model).code == 3
    assert effects(tmp_path) == ["burnt a", "burnt b"]
    again = cli("approvals", "revoke", grant["id"])
    assert (again.code, "in force" in again.err) == (1, True)


def test_a_run_without_a_session_has_nothing_to_be_allowed_for(cli: Cli, serve: Serve) -> None:
    with serve(call("burn_shelf", shelf="a")) as server:
        cli("run", "Burn it.", "--durable", *AGENT, "--model", f"{server.url}#any")
    [waiting] = json.loads(cli("approvals", "list", "--json").out)
    ended = cli("approvals", "approve", waiting["id"], "--for-session")
    assert (ended.code, "belongs to no chat session" in ended.err) == (1, True)
    assert json.loads(cli("approvals", "show", waiting["id"], "--json").out)["status"] == "pending"


def test_tampering_with_the_audit_log_is_found_out(cli: Cli, approval: dict[str, Any]) -> None:
    cli("approvals", "approve", approval["id"], "--for-session", "--by", "grace")
    assert cli("audit", "verify").out == "2 rows, the chain holds\n"
    assert "grant_given" in cli("audit", "list").out
    assert [row["seq"] for row in json.loads(cli("audit", "list", "--after", "1", "--json").out)] == [2]
    with sqlite3.connect("journeyman.db") as database:
        database.execute("UPDATE audit SET actor = 'mallory' WHERE seq = 2")
    database.close()
    ended = cli("audit", "verify")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "journeyman: audit row 2 was changed: its content does not fit its hash\n"


def test_the_schema_goes_up_and_down_and_never_loses_anything_unasked(cli: Cli) -> None:
    assert cli("db", "version").code == 2
    assert cli("db", "upgrade").out.endswith(", was 0\n")
    latest = int(cli("db", "version").out.split()[-1])
    assert cli("db", "upgrade").out == f"schema version {latest}, as before\n"
    refused = cli("db", "downgrade", "2")
    assert (refused.code, "say --yes" in refused.err) == (2, True)
    assert cli("db", "version").out == f"schema version {latest}\n"
    assert cli("db", "downgrade", "2", "--yes").out == f"schema version 2, was {latest}\n"
    assert f"this program works with {latest}: journeyman db upgrade" in cli("db", "version").out
    assert cli("db", "downgrade", "9", "--yes").code == 1
    assert cli("db", "upgrade").out == f"schema version {latest}, was 2\n"


def test_the_doctor_counts_what_waits_in_the_store(cli: Cli, approval: dict[str, Any]) -> None:
    found = json.loads(cli("doctor", "--json").out)["store"]
    assert (found["healthy"], found["unfinished_runs"], found["pending_approvals"]) == (True, 1, 1)
    assert "1 unfinished, 1 waiting" in " ".join(cli("doctor").out.split())


def test_the_doctor_finds_a_sick_store_and_never_makes_one(cli: Cli, tmp_path: Any) -> None:
    found = json.loads(cli("doctor", "--json").out)["store"]
    assert (found["found"], list(tmp_path.glob("*.db"))) == (False, [])
    (tmp_path / "journeyman.db").write_text("this is no database, and long enough to be seen as none" * 20)
    found = json.loads(cli("doctor", "--json").out)["store"]
    assert (found["healthy"], "damaged or no database" in found["told"]) == (False, True)
    (tmp_path / "journeyman.db").unlink()
    cli("db", "upgrade")
    cli("db", "downgrade", "1", "--yes")
    assert "journeyman db upgrade" in json.loads(cli("doctor", "--json").out)["store"]["told"]


def test_the_doctor_says_that_a_server_cannot_be_reached_and_shows_no_password(cli: Cli) -> None:
    ended = cli("doctor", "--json", "--store", "postgresql://ada:canary@127.0.0.1:1/shop")
    found = json.loads(ended.out)["store"]
    assert (ended.code, found["healthy"]) == (0, False)
    assert "no connection" in found["told"]
    assert "canary" not in ended.out + ended.err
