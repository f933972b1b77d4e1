"""``journeyman approvals``: what waits, decisions, edited arguments, and grants for a session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from journeyman.testing import call, say
from tests.doors.cli.box_shop import AGENT, LIBRARY, effects
from tests.doors.cli.driving import Cli, Serve

pytestmark = pytest.mark.usefixtures("shop")


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
