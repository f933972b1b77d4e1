"""``journeyman chat``: through a pipe, and in a real terminal."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from journeyman.testing import call, hang, http, say
from tests.doors.cli.box_shop import AGENT, PROGRAM, effects
from tests.doors.cli.driving import Cli, Open, Piped, Serve
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.usefixtures("shop")


def piped_to_another(lines: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Through a pipe to a process of its own."""
    command = [sys.executable, "-c", PROGRAM, "chat", *arguments]
    return subprocess.run(command, input=lines, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)


def plain(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)


# --- through a pipe


def test_a_line_is_a_message_and_the_conversation_goes_on(serve: Serve, piped: Piped) -> None:
    with serve(call("count_boxes", shelf="a"), say("Three."), say("Still three.")) as server:
        ended = piped("How many?\n\n  And now?", *AGENT, "--model", f"{server.url}#any")
        last = [message["content"] for message in server.requests[2]["messages"] if message["role"] == "user"]
    assert (ended.code, ended.out) == (0, "Three.\nStill three.\n")
    assert last == ["How many?", "And now?"]
    assert "✓ count_boxes" in ended.err
    assert "\x1b" not in ended.out + ended.err


def test_a_session_is_gone_on_with_in_another_process(serve: Serve, piped: Piped) -> None:
    with serve(say("Hello."), say("As I said.")) as server:
        arguments = (*AGENT, "--model", f"{server.url}#any", "--session", "monday")
        assert piped("Hi", *arguments).code == 0
        assert piped_to_another("What did you say?", *arguments).returncode == 0
        said = [message["content"] for message in server.requests[1]["messages"][-3:]]
    assert said == ["Hi", "Hello.", "What did you say?"]


def test_the_exit_code_is_that_of_the_last_run(serve: Serve, piped: Piped) -> None:
    with serve(http(401, message="wrong key"), say("Hello.")) as server:
        ended = piped("Hi\nHi again\n", *AGENT, "--model", f"{server.url}#any")
    assert (ended.code, ended.out) == (0, "Hello.\n")
    with serve(say("Hello."), http(401, message="wrong key")) as server:
        ended = piped("Hi\nHi again\n", *AGENT, "--model", f"{server.url}#any")
    assert (ended.code, ended.out) == (1, "Hello.\n")


def test_a_message_that_is_too_long_is_not_sent(serve: Serve, piped: Piped) -> None:
    with serve() as server:
        ended = piped("x" * 2_001, *AGENT, "--model", f"{server.url}#any")
        assert server.requests == []
    assert ended.code == 1
    assert "at most 2,000 characters" in ended.err


def test_a_risky_call_ends_the_conversation_until_somebody_decides(
    cli: Cli, serve: Serve, piped: Piped, tmp_path: Path
) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Burnt."), say("Bye.")) as server:
        arguments = (*AGENT, "--model", f"{server.url}#any", "--session", "monday")
        ended = piped("Burn it\nBye\n", *arguments)
        assert (ended.code, ended.out, effects(tmp_path)) == (3, "", []), ended.err
        [approval] = json.loads(cli("approvals", "list", "--json").out)
        assert f"approvals approve {approval['id']}" in ended.err
        assert cli("approvals", "approve", approval["id"]).code == 0
        ended = piped("Bye\n", *arguments)
    assert (ended.code, ended.out, effects(tmp_path)) == (0, "Burnt.\nBye.\n", ["burnt a"])


def test_without_an_agent_the_assistant_keeps_tasks(serve: Serve, piped: Piped) -> None:
    with serve(call("create_task", title="Buy milk"), say("Noted."), call("query_tasks"), say("Milk.")) as server:
        ended = piped("Remind me of milk\nWhat is to be done?\n", "--model", f"{server.url}#any")
        assert "Buy milk" in server.requests[3]["messages"][-1]["content"]
    assert (ended.code, ended.out) == (0, "Noted.\nMilk.\n")


def test_a_file_is_read_like_a_pipe(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text("Hi\nHi again")
    with serve(say("One."), say("Two.")) as server, (tmp_path / "said.txt").open() as said:
        command = [sys.executable, "-c", PROGRAM, "chat", *AGENT, "--model", f"{server.url}#any"]
        ended = subprocess.run(command, stdin=said, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
    assert (ended.returncode, ended.stdout) == (0, "One.\nTwo.\n")


# --- in a terminal


@pytest.mark.slow
def test_a_conversation_in_the_terminal(serve: Serve, terminal: Open) -> None:
    with serve(call("count_boxes", shelf="a"), say("Three boxes.")) as server:
        program = terminal("chat", *AGENT, "--model", f"{server.url}#any", "--session", "monday")
        for line in ("/help", "/tools", "How many?", "/history", "/frobnicate", "/quit"):
            program.answer(f"{line}\n")
        assert program.end() == 0
    shown = plain(program.shown)
    for expected in ("keeper · model any · 3 tools", "Ctrl-C", "burn_shelf", "Three boxes.", "keeper: Three boxes."):
        assert expected in shown
    assert "there is no '/frobnicate'" in shown
    assert "journeyman chat --session monday" in shown
    assert len(server.requests) == 2


@pytest.mark.slow
def test_always_allows_a_tool_for_the_rest_of_the_session(serve: Serve, terminal: Open, tmp_path: Path) -> None:
    turns = (call("burn_shelf", shelf="a"), say("Warm."), call("burn_shelf", shelf="b"), say("Warmer."))
    with serve(*turns) as server:
        program = terminal("chat", *AGENT, "--model", f"{server.url}#any")
        for line in ("Burn a", "a", "Burn b", "/quit"):
            program.answer(f"{line}\n")
        assert program.end() == 0
    assert effects(tmp_path) == ["burnt a", "burnt b"]
    assert "lways in this session" in plain(program.shown)


@pytest.mark.slow
def test_ctrl_c_cancels_what_is_under_way_and_the_conversation_goes_on(serve: Serve, terminal: Open) -> None:
    with serve(hang(), say("Here I am.")) as server:
        program = terminal("chat", *AGENT, "--model", f"{server.url}#any")
        program.answer("Hi\n")
        while not server.requests:
            time.sleep(0.02)
        program.type("\x03")
        program.answer("Are you there?\n")
        program.answer("\x04")
        assert program.end() == 0
    shown = plain(program.shown)
    assert "cancelled" in shown
    assert "Here I am." in shown
    assert "Traceback" not in shown


@pytest.mark.slow
def test_ctrl_c_at_a_question_cancels_the_run_and_runs_nothing(serve: Serve, terminal: Open, tmp_path: Path) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Never said.")) as server:
        program = terminal("chat", *AGENT, "--model", f"{server.url}#any")
        program.answer("Burn a\n")
        program.answer("\x03")
        program.answer("/quit\n")
        assert program.end() == 0
    assert ("cancelled" in program.shown, effects(tmp_path)) == (True, [])


@pytest.mark.slow
def test_ctrl_c_while_nothing_is_under_way_leaves(serve: Serve, terminal: Open) -> None:
    with serve() as server:
        program = terminal("chat", *AGENT, "--model", f"{server.url}#any")
        program.answer("\x03")
        assert program.end() == 128 + signal.SIGINT
    assert "Traceback" not in program.shown
