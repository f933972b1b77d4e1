"""``journeyman chat``: through a pipe, and in a real terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from journeyman.testing import call, http, say, together
from tests.doors.cli.box_shop import AGENT, PROGRAM, effects
from tests.doors.cli.driving import Cli, Open, Piped, Serve
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.usefixtures("shop")


def piped_to_another(lines: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Through a pipe to a process of its own."""
    command = [sys.executable, "-c", PROGRAM, "chat", *arguments]
    return subprocess.run(command, input=lines, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)


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
    with serve(call("count_boxes", shelf="a"), say("There are **three** boxes.")) as server:
        arguments = ("chat", *AGENT, "--model", f"{server.url}#any")
        program = terminal(*arguments, "--session", "monday")
        lines = ("/help", "/tools", "/tools burn_shelf", "/tools x", "How many?", "/history", "/frobnicate", "/quit")
        for line in lines:
            program.answer(f"{line}\n")
        assert program.end() == 0
        again = terminal(*arguments)
        again.answer("\x1b[A\x1b[A\x1b[A\x1b[A")
        again.wait_for("you › How many?")
        again.type("\x03\x04")
        assert again.end() == 0
    shown = program.screen.text
    expected = (
        "keeper · model any · 3 tools",
        "Ctrl-C",
        "(shelf::String)",
        "no tool 'x'",
        "keeper: There are **",
    )
    for text in (*expected, "\nThere are three boxes.", "there is no '/frobnicate'"):
        assert text in shown, shown
    assert "journeyman chat --session monday" in shown
    assert "chat --session" not in again.screen.text  # nothing was said, there is nothing to go on with
    assert len(server.requests) == 2


@pytest.mark.slow
def test_the_last_answer_is_rated(serve: Serve, terminal: Open) -> None:
    with serve(call("count_boxes", shelf="a"), say("There are three boxes.")) as server:
        program = terminal("chat", *AGENT, "--model", f"{server.url}#any")
        for line in ("/rate good", "How many?", "/rate", "/rate bad there are four", "/quit"):
            program.answer(f"{line}\n")
        assert program.end() == 0
    shown = program.screen.text
    for text in ("no answer yet", "say /rate good or /rate bad", "· rated bad: run_"):
        assert text in shown, shown


@pytest.mark.slow
def test_sessions_are_changed_within_a_conversation(serve: Serve, terminal: Open) -> None:
    with serve(say("One."), say("Two."), say("Three.")) as server:
        program = terminal("chat", *AGENT, "--model", f"{server.url}#any", "--session", "monday")
        for line in ("Hi", "/new", "Hello", "/session nowhere", "/sessions"):
            program.answer(f"{line}\n")
        program.answer("/sess")
        program.wait_for("go on with another session")  # the menu, while it is typed
        program.type("ion m")
        program.wait_for("monday  Hi")
        program.type("\t")
        program.wait_for("/session monday")
        program.type("\n")
        program.answer("And now?\n")
        program.answer("/quit\n")
        assert program.end() == 0
        said = [[m["content"] for m in request["messages"] if m["role"] == "user"] for request in server.requests]
    assert said == [["Hi"], ["Hello"], ["Hi", "And now?"]]
    assert "there is no session 'nowhere'; /sessions shows" in program.screen.text
    assert program.screen.text.endswith("go on: journeyman chat --session monday\n")


@pytest.mark.slow
def test_always_allows_a_tool_for_the_rest_of_the_session(serve: Serve, terminal: Open, tmp_path: Path) -> None:
    turns = (call("burn_shelf", shelf="a"), say("Warm."), call("burn_shelf", shelf="b"), say("Warmer."))
    with serve(*turns) as server:
        program = terminal("chat", *AGENT, "--model", f"{server.url}#any")
        for line in ("Burn a", "a", "Burn b", "/quit"):
            program.answer(f"{line}\n")
        assert program.end() == 0
    assert effects(tmp_path) == ["burnt a", "burnt b"]
    assert "lways in this session" in " ".join(program.screen.text.split())


SLOW_TOOL = '''
import threading, time
from pathlib import Path
from journeyman import Agent, tool

@tool(read_only=True)
def count_boxes(shelf: str) -> int:
    """Count the boxes on a shelf. Use when the user asks for a number."""
    return 3

@tool(read_only=True)
def wait_long(shelf: str) -> str:
    """Wait. Use when the user has time."""
    print("waiting")
    time.sleep(300)
    return "late"

@tool(read_only=True)
def speak_later(shelf: str) -> str:
    """Speak later. Use when the user is to be interrupted."""
    def speak():
        while not Path("speak").exists():
            time.sleep(0.02)
        print("out of the blue \\x1b[2J")
    threading.Thread(target=speak, daemon=True).start()
    return "soon"

agent = Agent(name="keeper", instruction="Wait.", tools=(count_boxes, wait_long, speak_later))
'''


@pytest.fixture
def slow_agent(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "slowshop.py").write_text(SLOW_TOOL)
    return ("--agent", "slowshop:agent")


@pytest.mark.slow
def test_ctrl_c_cancels_the_step_tells_what_happened_and_the_conversation_goes_on(
    serve: Serve, terminal: Open, slow_agent: tuple[str, str]
) -> None:
    with serve(together(call("count_boxes", shelf="a"), call("wait_long", shelf="a")), say("Here I am.")) as server:
        program = terminal("chat", *slow_agent, "--model", f"{server.url}#any")
        program.answer("Hi\n")
        program.wait_for("waiting")
        program.type("\x03")
        program.answer("\x03")
        program.wait_for("/quit or Ctrl-D leaves")
        program.answer("Are you there?\n")
        program.answer("\x04")
        assert program.end() == 0
    shown = program.screen.text
    for expected in ("✓ count_boxes", "◌ wait_long", "run was cancelled", "Here I am."):
        assert expected in shown, shown
    assert "Traceback" not in shown


@pytest.mark.slow
def test_ctrl_c_at_a_question_cancels_the_run_and_runs_nothing(serve: Serve, terminal: Open, tmp_path: Path) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Never said.")) as server:
        program = terminal("chat", *AGENT, "--model", f"{server.url}#any")
        program.answer("Burn a\n")
        program.answer("\x03")
        program.answer("/quit\n")
        assert program.end() == 0
    assert ("cancelled" in program.screen.text, effects(tmp_path)) == (True, [])


@pytest.mark.slow
def test_what_is_typed_is_not_torn_by_what_is_printed_nor_by_another_width(
    serve: Serve, terminal: Open, slow_agent: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    with serve(call("speak_later", shelf="a"), say("Done."), say("I see.")) as server:
        program = terminal("chat", *slow_agent, "--model", f"{server.url}#any", "--log-level", "error")
        program.answer("Speak\n")
        program.answer("日本語 is half a li")
        program.wait_for("you › 日本語 is half a li")
        (tmp_path / "speak").touch()
        program.wait_for("out of the blue \\u001b[2J\nyou › 日本語 is half a li")
        program.resize(16, 40)
        program.wait_for(lambda: program.screen.text.endswith("you › 日本語 is\nhalf a li"))
        program.type(f"ne\x1b[200~{PASTED}\x1b[201~\n")
        program.answer("/quit\n")
        assert program.end() == 0
        assert server.requests[2]["messages"][-1]["content"] == f"日本語 is half a line{PASTED}"


PASTED = ", and so\non it goes\nfor three lines"


def test_through_a_pipe_a_command_is_carried_out_and_not_sent(serve: Serve, piped: Piped) -> None:
    with serve(say("Hello."), say("Never.")) as server:
        ended = piped("/help\nHi\n/tools\n/quit\nHi again\n", *AGENT, "--model", f"{server.url}#any")
        assert len(server.requests) == 1
    assert (ended.code, "Hello." in ended.out, "Never." in ended.out) == (0, True, False)
    assert "/sessions" in ended.err


def test_a_command_does_not_change_the_exit_code_of_the_last_run(serve: Serve, piped: Piped) -> None:
    with serve(http(400)) as server:
        assert piped("Hi\n/help\n", *AGENT, "--model", f"{server.url}#any").code == 1


def test_a_session_that_is_not_there_yet_is_said_to_begin(piped: Piped) -> None:
    ended = piped("", *AGENT, "--model", "http://127.0.0.1:9/v1#any", "--session", "nope")
    assert ended.code == 0
    assert "no session 'nope' yet" in ended.err
