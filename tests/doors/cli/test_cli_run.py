"""``journeyman run``: what goes to stdout, what to stderr, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from journeyman.core.lazy import install_command
from journeyman.core.runs import AgentResponse
from journeyman.testing import call, hang, http, say, together
from tests.doors.cli.box_shop import PROGRAM, program
from tests.doors.cli.driving import Cli, Serve
from tests.waiting import WAIT_SECONDS

SHOP = """
from journeyman import Agent, RiskLevel, ToolContext, ToolLibrary, tool

print("hello from the module")

@tool(risk=RiskLevel.REVERSIBLE, read_only=True)
def count_boxes(shelf: str, context: ToolContext) -> int:
    '''Count the boxes on a shelf. Use when the user asks for a number of boxes.'''
    print("hello from the tool")
    context.progress("counting", 0.5)
    return 3

@tool(risk=RiskLevel.IRREVERSIBLE, permissions={"shelves:write"})
def burn_shelf(shelf: str) -> str:
    '''Burn a shelf. Use when the user is cold.'''
    return "ashes"

library = ToolLibrary([count_boxes, burn_shelf])
agent = Agent(name="keeper", instruction="Keep the shelves.", tools=(count_boxes, burn_shelf))
"""


@pytest.fixture
def shop(tmp_path: Path) -> None:
    (tmp_path / "boxshop.py").write_text(SHOP)


def test_the_answer_goes_to_stdout_and_the_trace_to_stderr(cli: Cli, serve: Serve, shop: None) -> None:
    with serve(call("count_boxes", shelf="a"), say("Three boxes.")) as server:
        ended = cli("run", "How many boxes?", "--agent", "boxshop:agent", "--model", f"{server.url}#any")
    assert (ended.code, ended.out) == (0, "Three boxes.\n")
    assert '→ count_boxes(shelf="a")' in ended.err
    assert "… count_boxes: counting (50%)" in ended.err
    assert re.search(r'✓ count_boxes\(shelf="a"\) · reversible · [\d.]+ ms', ended.err)
    assert "completed · 2 steps · 1 call" in ended.err


def test_json_is_the_whole_response_and_nothing_else_whatever_tools_print(cli: Cli, serve: Serve, shop: None) -> None:
    with serve(call("count_boxes", shelf="a"), say("Three.")) as server:
        ended = cli("run", "Count.", "--agent", "boxshop:agent", "--model", f"{server.url}#any", "--json")
    response = AgentResponse.model_validate_json(ended.out)
    assert (response.answer, [record.result for record in response.tool_calls]) == ("Three.", [3])
    assert "hello from the module" in ended.err
    assert "hello from the tool" in ended.err


def test_a_log_has_no_control_characters_and_no_colours(cli: Cli, serve: Serve, shop: None) -> None:
    rude = "\x1b[31mred\x1b[0m \x07 \u202eright to left"
    turn = together(call("count_boxes", shelf=rude), call("no_such_tool", text=rude)).model_copy(update={"text": rude})
    with serve(turn, say("Done.")) as server:
        ended = cli("run", "Count.", "--agent", "boxshop:agent", "--model", f"{server.url}#any")
    assert ended.code == 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", ended.err)
    assert "\\u001b[31mred" in ended.err


def test_with_nobody_to_ask_a_risky_call_is_denied_and_the_run_goes_on(cli: Cli, serve: Serve, shop: None) -> None:
    with serve(call("burn_shelf", shelf="a"), say("I was not allowed.")) as server:
        ended = cli(
            "run", "Burn it.", "--agent", "boxshop:agent", "--model", f"{server.url}#any",
            "--permission", "shelves:write",
        )  # fmt: skip
        told = server.requests[1]["messages"][-1]["content"]
    assert (ended.code, ended.out) == (1, "I was not allowed.\n")
    assert "nothing of what was asked was done" in ended.err
    assert "--yes" in ended.err
    assert "APPROVAL_DENIED" in told


def test_yes_approves_but_gives_no_permission(cli: Cli, serve: Serve, shop: None) -> None:
    arguments = ("run", "Burn it.", "--agent", "boxshop:agent", "--yes", "--json")
    with serve(call("burn_shelf", shelf="a"), say("Cold still.")) as server:
        ended = cli(*arguments, "--model", f"{server.url}#any")
    [record] = AgentResponse.model_validate_json(ended.out).tool_calls
    assert record.error is not None
    assert record.error.code == "NOT_PERMITTED"
    with serve(call("burn_shelf", shelf="a"), say("Warm.")) as server:
        ended = cli(*arguments, "--model", f"{server.url}#any", "--permission", "shelves:write")
    [record] = AgentResponse.model_validate_json(ended.out).tool_calls
    assert record.result == "ashes"


def test_without_an_agent_an_assistant_works_with_the_library(cli: Cli, serve: Serve, shop: None) -> None:
    with serve(say("Hello."), say("Hello.")) as server:
        arguments = ("run", "Hi", "--library", "boxshop:library", "--model", f"{server.url}#any")
        without, permitted = cli(*arguments), cli(*arguments, "--permission", "shelves:write")
        offered = [[tool["function"]["name"] for tool in asked["tools"]] for asked in server.requests]
    assert (without.code, permitted.code) == (0, 0)
    assert offered == [["count_boxes"], ["count_boxes", "burn_shelf"]]  # what is not permitted is not offered


def test_the_local_library_works_in_the_current_folder(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("forty-two")
    with serve(call("read_file", path="a.txt"), say("It says forty-two.")) as server:
        ended = cli("run", "What is in a.txt?", "--library", "local", "--model", f"{server.url}#any")
        told = server.requests[1]["messages"][-1]["content"]
    assert ended.code == 0
    assert "forty-two" in told
    assert not (tmp_path / "journeyman.db").exists()


@pytest.mark.parametrize("durable", [[], ["--durable"]], ids=["plain", "durable"])
def test_without_a_library_the_assistant_keeps_tasks_in_the_store(cli: Cli, serve: Serve, durable: list[str]) -> None:
    with serve(call("create_task", title="Buy milk"), say("Noted."), call("query_tasks"), say("Milk.")) as server:
        assert cli("run", "Remind me of milk.", *durable, "--model", f"{server.url}#any").code == 0
        assert cli("run", "What is to be done?", *durable, "--model", f"{server.url}#any").code == 0
        assert "Buy milk" in server.requests[3]["messages"][-1]["content"]


def test_a_failing_model_gives_exit_code_1_and_says_why(cli: Cli, serve: Serve) -> None:
    with serve(http(401, message="wrong key")) as server:
        ended = cli("run", "Hi", "--model", f"{server.url}#any")
    assert (ended.code, ended.out) == (1, "")
    assert "journeyman: " in ended.err
    assert "Traceback" not in ended.err


def test_a_run_at_its_limit_gives_exit_code_1_and_what_it_has(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "limited.py").write_text(
        "from journeyman import Agent\nagent = Agent(name='a', instruction='b', max_iterations=1)"
    )
    turn = call("nothing")
    with serve(turn) as server:
        ended = cli("run", "Hi", "--agent", "limited:agent", "--model", f"{server.url}#any", "--json")
    assert ended.code == 1
    assert json.loads(ended.out)["status"] == "limit_reached"
    assert "limit of 1 iterations" in ended.err


@pytest.mark.usefixtures("no_engine")
def test_without_any_model_it_says_what_to_install_or_to_set(cli: Cli) -> None:
    ended = cli("run", "Hi")
    assert (ended.code, ended.out) == (1, "")
    for expected in ("journeyman: no model: ", install_command("embedded"), "OPENAI_API_KEY"):
        assert expected in ended.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "  "], "is blank"),
        (["run", "Hi", "--agent", "nowhere:agent"], "names no module"),
        (["run", "Hi", "--agent", "boxshop"], "write MODULE:NAME"),
        (["run", "Hi", "--agent", "boxshop:agnet"], "did you mean 'boxshop:agent'?"),
        (["run", "Hi", "--agent", "boxshop:library"], "not an Agent; did you mean 'boxshop:agent'?"),
        (["run", "Hi", "--agent", "boxshop.py"], "write MODULE:NAME"),
        (["run", "Hi", "--agent", "boxshop.py:agnet"], "did you mean 'boxshop.py:agent'?"),
        (["run", "Hi", "--agent", "nowhere.py:agent"], "names no file: 'nowhere.py' is not there"),
        (["run", "Hi", "--library", "boxshop:agent"], "not a ToolLibrary; did you mean 'boxshop:library'?"),
        (["run", "Hi", "--library", "json"], "holds no tools"),
        (
            ["run", "Hi", "--library", "broken"],
            "cannot be imported: ZeroDivisionError: division by zero (broken.py, line 1)",
        ),
        (["run", "Hi", "--permission", "a b"], "not well-formed"),
        (["run"], "Missing argument"),
        (["frobnicate"], "No such command"),
    ],
)
def test_wrong_usage_gives_exit_code_2_and_says_what_to_write(
    cli: Cli, shop: None, tmp_path: Path, arguments: list[str], told: str
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert told in " ".join(ended.err.split())
    assert "Traceback" not in ended.err


def test_logs_are_json_lines_on_stderr_without_content(serve: Serve, shop: None) -> None:
    with serve(call("count_boxes", shelf="secret shelf"), say("Three.")) as server:
        command = ["run", "Count.", "--agent", "boxshop:agent", "--model", f"{server.url}#any", "--log-level", "info"]
        ended = program(*command)
    assert (ended.returncode, ended.stdout) == (0, "Three.\n")
    lines = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines] == ["run started", "call finished", "run finished"]
    assert "secret shelf" not in json.dumps(lines)


def test_ctrl_c_cancels_cleanly(serve: Serve) -> None:
    with serve(hang()) as server:
        command = [sys.executable, "-c", PROGRAM, "run", "Hi", "--model", f"{server.url}#any"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
            while not server.requests:
                assert started.poll() is None
                time.sleep(0.02)
            started.send_signal(signal.SIGINT)
            out, err = started.communicate(timeout=WAIT_SECONDS)
    assert (started.returncode, out) == (130, "")
    assert "cancelled" in err
    assert "Traceback" not in err


FAILING = """
from journeyman import tool

@tool(read_only=True)
def fail(what: str) -> str:
    '''Fail.'''
    raise ValueError("canary " + what)
"""


def test_debug_shows_a_failing_tools_whole_traceback_and_the_model_its_class(
    cli: Cli, serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    for debug in (False, True):
        with serve(call("fail", what="x"), say("It failed.")) as server:
            words = ("run", "Go", "--library", "failing", "--model", f"{server.url}#any", "--json")
            ended = cli(*words, *(("--debug",) if debug else ()))
        [record] = json.loads(ended.out)["tool_calls"]
        assert record["error"]["message"] == "Unexpected tool error: ValueError"
        assert ("Traceback" in ended.err and "ValueError: canary x" in ended.err) is debug
        assert "canary" not in ended.out
        # The first frame is the tool's own, with its line.
        assert bool(re.search(r'Traceback .*\n  File ".*/failing.py", line 7, in fail\n', ended.err)) is debug
