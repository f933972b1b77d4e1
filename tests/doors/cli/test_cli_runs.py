"""Runs kept in a store, from the command line: waiting, going on elsewhere, dying, being settled and cancelled."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.protocols import ModelResponse
from journeyman.testing import call, hang, say, together
from tests.doors.cli.box_shop import AGENT, LIBRARY, PROGRAM, effects, program
from tests.doors.cli.driving import Cli, Serve
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.usefixtures("shop")


def listed(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    ended = cli(*arguments, "--json")
    assert ended.code == 0, ended.err
    found: list[dict[str, Any]] = json.loads(ended.out)
    return found


def test_a_run_waits_for_a_person_and_goes_on_after_their_word(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    turns = (together(call("count_boxes", shelf="a"), call("burn_shelf", shelf="a")), say("Warm now."))
    with serve(*turns) as server:
        waiting = cli("run", "Burn it.", "--durable", *AGENT, "--model", f"{server.url}#any")
        [approval] = listed(cli, "approvals", "list")
        [run] = listed(cli, "runs", "list")
        assert (waiting.code, waiting.out, effects(tmp_path)) == (3, "", [])
        assert f"journeyman approvals approve {approval['id']}" in waiting.err
        assert f"journeyman runs resume {run['id']}\n" in waiting.err
        assert (run["status"], run["request"]) == ("awaiting_approval", "Burn it.")

        assert cli("approvals", "approve", approval["id"], "--by", "grace").code == 0
        done = cli("runs", "resume", run["id"])
    assert (done.code, done.out, effects(tmp_path)) == (0, "Warm now.\n", ["burnt a"])
    assert "burn_shelf: approved by grace" in done.err
    assert "count_boxes" not in done.err, "what was seen before is not shown again"
    assert [run["status"] for run in listed(cli, "runs", "list", "--status", "completed")] == ["completed"]
    again = cli("runs", "resume", run["id"], *LIBRARY)
    assert (again.code, again.out, effects(tmp_path)) == (0, "Warm now.\n", ["burnt a"])


def test_json_of_a_waiting_run_is_its_response_and_exit_code_3(cli: Cli, serve: Serve) -> None:
    with serve(call("burn_shelf", shelf="a")) as server:
        ended = cli("run", "Burn it.", "--store", "sqlite:///own.db", *AGENT, "--model", f"{server.url}#any", "--json")
    response = json.loads(ended.out)
    assert (ended.code, response["status"]) == (3, "awaiting_approval")
    assert f"runs resume {response['run_id']} --store sqlite:///own.db\n" in ended.err
    assert [run["id"] for run in listed(cli, "runs", "list", "--store", "sqlite:///own.db")] == [response["run_id"]]


def test_yes_approves_and_the_audit_says_so(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Done.")) as server:
        ended = cli("run", "Burn it.", "--durable", "--yes", *AGENT, "--model", f"{server.url}#any")
    assert (ended.code, ended.out, effects(tmp_path)) == (0, "Done.\n", ["burnt a"])
    decision, effect = sorted(listed(cli, "audit", "list"), key=lambda row: row["seq"])
    assert (decision["kind"], decision["actor"].endswith(" (--yes)")) == ("approval_approved", True)
    assert (effect["kind"], effect["subject"]) == ("call_started", "call_1_1")


def test_a_denial_reaches_the_model_with_its_reason(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Then not.")) as server:
        cli("run", "Burn it.", "--durable", *AGENT, "--model", f"{server.url}#any")
        [approval] = listed(cli, "approvals", "list")
        assert cli("approvals", "deny", approval["id"], "--reason", "too wet").code == 0
        done = cli("runs", "resume", *LIBRARY)
        assert "too wet" in server.requests[1]["messages"][-1]["content"]
    assert (done.code, effects(tmp_path)) == (1, []), "nothing of what was asked was done"
    assert "Then not." in done.out
    assert [run["status"] for run in listed(cli, "runs", "list")] == ["completed"]
    assert cli("runs", "list").out.splitlines()[1].split()[1:3] == ["not", "done"]


def test_a_killed_run_is_taken_up_and_safe_calls_run_again(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "deadly").touch()
    with serve(call("count_boxes", shelf="a"), say("Three.")) as server:
        killed = program("run", "Count.", "--durable", *AGENT, "--model", f"{server.url}#any")
        assert killed.returncode == -signal.SIGKILL
        assert [run["status"] for run in listed(cli, "runs", "list")] == ["running"]
        done = cli("runs", "resume", *LIBRARY)
    assert done.code == 0
    assert "completed  Three." in done.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "told", "happened"),
    [
        (("rerun",), "dong", ["rang 2", "rang 2"]),
        (("done", "--result", '"it rang"', "--by", "ada"), "it rang", ["rang 2"]),
        (("skip",), "error", ["rang 2"]),
    ],
    ids=["rerun", "done", "skip"],
)
def test_a_call_that_may_have_happened_is_settled_by_a_person(
    cli: Cli, serve: Serve, tmp_path: Path, action: tuple[str, ...], told: str, happened: list[str]
) -> None:
    (tmp_path / "deadly").touch()
    with serve(call("ring_bell", times=2), say("Rung.")) as server:
        killed = program("run", "Ring.", "--durable", *AGENT, "--model", f"{server.url}#any")
        assert killed.returncode == -signal.SIGKILL
        [run] = listed(cli, "runs", "list")
        stuck = cli("runs", "resume", run["id"], *LIBRARY)
        assert (stuck.code, effects(tmp_path)) == (3, ["rang 2"])
        shown = json.loads(cli("runs", "show", run["id"], "--json").out)
        [need] = shown["needs"]
        call_id = need["commands"][0].split()[4]
        for choice in ("rerun", "done", "skip"):
            assert f"journeyman runs resolve {run['id']} {call_id} {choice}\n" in stuck.err
        assert cli("runs", "resolve", run["id"], call_id, *action).code == 0
        done = cli("runs", "resume", run["id"], *LIBRARY)
        assert told in server.requests[1]["messages"][-1]["content"]
    assert (done.code, done.out, effects(tmp_path)) == (int(action == ("skip",)), "Rung.\n", happened)
    [audited] = listed(cli, "audit", "list", "--kind", "resolved")
    assert audited["details"] == {"action": action[0]}


def test_a_call_that_is_not_in_doubt_cannot_be_settled(cli: Cli, serve: Serve) -> None:
    with serve(call("burn_shelf", shelf="a")) as server:
        cli("run", "Burn it.", "--durable", *AGENT, "--model", f"{server.url}#any")
    [run] = listed(cli, "runs", "list")
    ended = cli("runs", "resolve", run["id"], "call_9", "skip")
    assert ended.code == 1
    assert "'call_9'" in ended.err
    assert "Traceback" not in ended.err


def test_runs_of_a_session_go_one_after_another_and_know_what_was_said(cli: Cli, serve: Serve) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Burnt."), say("One shelf.")) as server:
        options = ("--session", "tuesday", *AGENT, "--model", f"{server.url}#any")
        first = cli("run", "Burn it.", *options)
        second = cli("run", "How many?", *options)
        assert (first.code, second.code, len(server.requests)) == (3, 3, 1)
        later, earlier = listed(cli, "runs", "list", "--session", "tuesday")
        assert f"run {later['id']} waits for an earlier one of its session, {earlier['id']}" in second.err
        assert cli("runs", "resume", later["id"], *LIBRARY).code == 3
        [approval] = listed(cli, "approvals", "list")
        assert cli("approvals", "approve", approval["id"]).code == 0
        done = cli("runs", "resume", *LIBRARY)
        said = [message["content"] for message in server.requests[2]["messages"]]
    assert done.code == 0
    assert [line.split()[:2] for line in done.out.splitlines()] == [
        [earlier["id"], "completed"],
        [later["id"], "completed"],
    ]
    assert "Burnt." in said


def test_a_waiting_run_is_cancelled_and_its_question_with_it(cli: Cli, serve: Serve) -> None:
    with serve(call("burn_shelf", shelf="a")) as server:
        cli("run", "Burn it.", "--durable", *AGENT, "--model", f"{server.url}#any")
    [run] = listed(cli, "runs", "list")
    [approval] = listed(cli, "approvals", "list")
    assert cli("runs", "cancel", run["id"]).code == 0
    assert [run["status"] for run in listed(cli, "runs", "list")] == ["cancelled"]
    assert listed(cli, "approvals", "list") == []
    late = cli("approvals", "approve", approval["id"])
    assert (late.code, "superseded already" in late.err) == (1, True)
    again = cli("runs", "cancel", run["id"])
    assert (again.code, "has ended already: cancelled" in again.err) == (1, True)
    assert cli("runs", "resume", run["id"]).code == 1


def test_a_run_is_shown_exported_and_purged(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    with serve(call("count_boxes", shelf="a"), say("Three.")) as server:
        cli("run", "Count.", "--durable", *AGENT, "--model", f"{server.url}#any")
    [run] = listed(cli, "runs", "list")
    shown = cli("runs", "show", run["id"])
    for expected in ("completed", "Count.", '✓ count_boxes(shelf="a")', "Three."):
        assert expected in shown.out
    assert "→" not in shown.out
    facts = listed(cli, "runs", "show", run["id"], "--events")
    assert [fact["seq"] for fact in facts] == list(range(1, len(facts) + 1))
    assert facts[-1]["type"] == "run_finished"
    assert len(cli("runs", "show", run["id"], "--events").out.splitlines()) == len(facts)

    whole = json.loads(cli("runs", "export", run["id"]).out)
    assert (whole["order"]["task"]["description"], whole["response"]["answer"]) == ("Count.", "Three.")
    assert whole["facts"] == facts
    assert cli("runs", "export", run["id"], "--output", "run.json").out == ""
    assert json.loads((tmp_path / "run.json").read_text()) == whole
    assert cli("runs", "export", run["id"], "--output", "no/such/folder.json").code == 2

    assert "no run ended" in cli("runs", "purge", "--older-than", "1h").out
    assert "1 run forgotten" in cli("runs", "purge", "--older-than", "0s").out
    assert listed(cli, "runs", "list") == []
    assert cli("runs", "show", run["id"]).code == 1


def test_tools_that_are_not_there_are_asked_for_and_the_run_is_not_harmed(cli: Cli, serve: Serve) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Done.")) as server:
        cli("run", "Burn it.", "--durable", *AGENT, "--model", f"{server.url}#any")
        [approval] = listed(cli, "approvals", "list")
        cli("approvals", "approve", approval["id"])
        for which in (["--library", "local"], [approval["run_id"], "--library", "local"]):
            lost = cli("runs", "resume", *which)
            assert lost.code == 1
            assert "burn_shelf: no implementation is registered" in lost.err
            assert "--library MODULE" in lost.err
        assert cli("runs", "resume", *LIBRARY).code == 0


@pytest.mark.usefixtures("no_engine")
def test_a_run_for_which_there_is_no_model_is_not_kept(cli: Cli) -> None:
    ended = cli("run", "Hi", "--durable")
    assert (ended.code, ended.err.startswith("journeyman: no model: ")) == (1, True)
    blank = cli("run", "Hi", "--durable", "--model", " ")
    assert (blank.code, blank.err.startswith("journeyman: model ' ' is unknown; known are")) == (1, True)
    assert listed(cli, "runs", "list") == []


def test_resuming_where_nothing_is_left_to_do_says_so(cli: Cli) -> None:
    assert cli("db", "upgrade").code == 0
    ended = cli("runs", "resume")
    assert (ended.code, ended.out, "no run to take up" in ended.err) == (0, "", True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["runs", "list", "--status", "asleep"], "'asleep' is not one of 'queued', 'running'"),
        (["runs", "purge", "--older-than", "a week"], "write e.g. 90s, 30m, 12h, 7d or 2w"),
        (["runs", "resolve", "r", "c", "maybe"], "'rerun', 'done', 'skip'"),
        (["runs", "resolve", "r", "c", "skip", "--result", "1"], "does not go with 'skip'"),
        (["runs", "resolve", "r", "c", "done", "--result", "sent"], "a text needs its quotes"),
        (["runs", "list", "--store", "mysql://x"], "write 'sqlite:///FILE'"),
        (["runs", "list", "--store", "sqlite://x"], "is no SQLite URL"),
        (["runs", "list", "--store", "sqlite:///typo.db"], "there is no store 'sqlite:///typo.db'"),
    ],
)
def test_wrong_usage_of_runs_gives_exit_code_2(cli: Cli, tmp_path: Path, arguments: list[str], told: str) -> None:
    cli("db", "upgrade")
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.slow
def test_ctrl_c_leaves_a_durable_run_for_later(cli: Cli, serve: Serve) -> None:
    with serve(hang(), say("Hello.")) as server:
        command = [sys.executable, "-c", PROGRAM, "run", "Hi", "--durable", "--model", f"{server.url}#any"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
            while not server.requests:
                assert started.poll() is None
                time.sleep(0.02)
            started.send_signal(signal.SIGINT)
            out, err = started.communicate(timeout=WAIT_SECONDS)
        assert (started.returncode, out) == (130, "")
        [run] = listed(cli, "runs", "list")
        assert f"journeyman runs resume {run['id']}" in err
        assert "Traceback" not in err
        done = cli("runs", "resume", run["id"])
    assert (done.code, done.out) == (0, "Hello.\n")


INTERRUPTED_EARLY = """
import asyncio, os, signal
from journeyman.doors.cli import main, run

async def interrupted(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(60)

run.Desk.blocking = interrupted
main()
"""


def test_ctrl_c_before_anything_is_shown_says_how_to_go_on(cli: Cli, serve: Serve) -> None:
    with serve(say("Hello.")) as server:
        command = [sys.executable, "-c", INTERRUPTED_EARLY, "run", "Hi", "--durable", "--model", f"{server.url}#any"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS)
    [run] = listed(cli, "runs", "list")
    assert (ended.returncode, ended.stdout) == (130, "")
    assert f"journeyman runs resume {run['id']}" in ended.stderr


@pytest.mark.slow
def test_a_locked_store_makes_the_run_pause_and_say_so(serve: Serve, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "journeyman.db", isolation_level=None, check_same_thread=False)

    def locked(request: dict[str, Any]) -> ModelResponse:
        other.execute("BEGIN IMMEDIATE")
        return say("Hello.")

    with serve(locked) as server:
        impatient = (
            "from journeyman.doors.cli import loading, run;"
            f"run.open_at = lambda url: loading.open_at(url, retry_seconds=1); {PROGRAM}"
        )
        command = [sys.executable, "-c", impatient, "run", "Hi", "--durable", "--model", f"{server.url}#any"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
            assert started.stderr is not None
            told = started.stderr.readline()
            other.execute("ROLLBACK")
            out, err = started.communicate(timeout=WAIT_SECONDS)
    other.close()
    assert told.startswith("journeyman: the run pauses: SQLite database")
    assert "another process holds its lock" in told
    assert (started.returncode, out) == (0, "Hello.\n"), err


def test_a_run_is_rated_and_shown_with_what_people_say(cli: Cli, serve: Serve) -> None:
    with serve(call("count_boxes", shelf="a"), say("Three.")) as server:
        assert cli("run", "How many?", "--durable", *AGENT, "--model", f"{server.url}#any").code == 0
    [run] = listed(cli, "runs", "list")
    wrong = cli("runs", "rate", run["id"], "fine")
    assert (wrong.code, "'good', 'bad'" in wrong.err) == (2, True)
    assert cli("runs", "rate", run["id"], "bad", "--by", "ada", "--note", "there are four").code == 0
    assert cli("runs", "rate", "run_none", "bad").code != 0
    shown = cli("runs", "show", run["id"])
    assert "bad · rating by ada: there are four" in shown.out + shown.err
    response = json.loads(cli("runs", "show", run["id"], "--json").out)["response"]
    assert (response["outcome"], response["outcome_source"]) == ("not", "rating")


MANY = """
from journeyman import ToolLibrary, tool

@tool(read_only=True)
def look(at: str) -> str:
    \"\"\"Look at something.\"\"\"
    return "seen"

library = ToolLibrary(
    look.with_changes(name=f"look_{number}", description=f"Look at shelf {number}.") for number in range(40)
)
"""


def test_which_of_many_tools_were_offered_is_shown(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY)
    turns = (call("find_tools", query="shelf 39", k=1), call("look_99", at="x"), call("look_39", at="x"), say("Seen."))
    with serve(*turns) as server:
        model = ("--model", f"{server.url}#any")
        ended = cli("run", "Look at shelf 7", "--durable", "--library", "many.py:library", *model)
    assert (ended.code, ended.out) == (0, "Seen.\n")
    [run] = listed(cli, "runs", "list")
    shown = cli("runs", "show", run["id"]).out
    assert "19 tools offered, as they fit the request: look_7, " in shown
    assert "1 tool offered, as the model found: look_39" in shown
    assert "3 tools offered, instead of look_99: " in shown
    assert "tools_offered" in cli("runs", "show", run["id"], "--events").out
