"""What --agent and --library name: gram documents, modules and Python files."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from journeyman.gram import load_tools
from journeyman.testing import call, say
from tests.doors.cli.driving import Cli, Serve

HELLO = Path(__file__).parents[3] / "examples" / "hello_world_agent.gram"
TOOLS = """
from journeyman import tool

@tool(name="sayHello", read_only=True)
def hello(name: str) -> str:
    '''Returns a friendly greeting message for the given name'''
    return f"Hi {name}"
"""


def test_exported_tools_are_a_document_that_reads_back(cli: Cli) -> None:
    ended = cli("tools", "export", "--gram")
    listed = json.loads(cli("tools", "list", "--json").out)
    assert ended.code == 0
    assert [item.model_dump(mode="json") for item in load_tools(ended.out)] == listed


def test_some_tools_can_be_exported_by_name(cli: Cli) -> None:
    assert [item.name for item in load_tools(cli("tools", "export", "create_task").out)] == ["create_task"]
    assert [item["name"] for item in json.loads(cli("tools", "export", "create_task", "--json").out)] == ["create_task"]
    wrong = cli("tools", "export", "creat_task")
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean 'create_task'" in wrong.err
    assert cli("tools", "export", "--gram", "--json").code == 2


def test_an_agent_from_a_file_runs_with_the_tools_that_come_along(cli: Cli, serve: Serve) -> None:
    with serve(call("sayHello", name="Ada"), say("Greeted.")) as server:
        ended = cli("run", "I am Ada.", "--agent", str(HELLO), "--model", f"{server.url}#any", "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["tool_calls"][0]["result"] == "Hello, Ada! Nice to meet you."


def test_an_agent_from_a_file_runs_with_any_library_that_fits(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hellotools.py").write_text(TOOLS)
    both = HELLO.read_text(encoding="utf-8") + '[other:Agent {instruction: "Greet."} | sayHello]'
    (tmp_path / "both.gram").write_text(both, encoding="utf-8")
    chosen = ("--agent", "both.gram:other", "--library", "hellotools")
    with serve(call("sayHello", name="Ada"), say("Greeted.")) as server:
        ended = cli("run", "I am Ada.", *chosen, "--model", f"{server.url}#any", "--json")
    assert json.loads(ended.out)["tool_calls"][0]["result"] == "Hi Ada"
    unnamed = cli("run", "I am Ada.", "--agent", "both.gram", "--model", "http://127.0.0.1:1/v1#any")
    assert unnamed.code == 1
    assert "describes the agents 'hello_world_agent', 'other'; name one of them" in unnamed.err


def test_a_wrong_document_is_shown_with_its_place(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "wrong.gram").write_text("[a:Agent {instruction: } | b", encoding="utf-8")
    ended = cli("run", "Go", "--agent", "wrong.gram")
    assert ended.code == 1
    assert "wrong.gram:1:23: " in ended.err
    assert "^" in ended.err
    missing = cli("run", "Go", "--agent", "none.gram")
    assert (missing.code, "cannot read 'none.gram'" in missing.err) == (1, True)


# --- Python files

AGENTS = """
import os
from shelf_data import SHELVES
from journeyman import Agent, ToolLibrary, tool

with open("imports.txt", "a") as file:
    print("imported", file=file)

@tool(read_only=True, isolation="process")
def count_boxes(shelf: str) -> list[int]:
    '''Count the boxes on a shelf. Use when the user asks for a number of boxes.'''
    return [SHELVES[shelf], os.getpid()]

def burn_shelf(shelf: str) -> str:
    '''Burn a shelf. Use when the user is cold.'''
    return "ashes"

library = ToolLibrary([count_boxes])
counter = Agent(name="counter", instruction="Count.", tools=[count_boxes])
keeper = Agent(name="keeper", instruction="Keep the shelves.", tools=[count_boxes, burn_shelf])
"""


@pytest.fixture
def agents(tmp_path: Path) -> str:
    """A file in a folder that is not on the Python path; its keeper has a tool of its own, a plain function."""
    folder = tmp_path / "my agents"
    folder.mkdir()
    (folder / "shelf_agents.py").write_text(AGENTS)
    (folder / "shelf_data.py").write_text("SHELVES = {'a': 3}")
    return "my agents/shelf_agents.py"


def test_an_agent_of_a_file_brings_its_tools_and_runs_them_in_processes(
    cli: Cli, serve: Serve, agents: str, tmp_path: Path
) -> None:
    with serve(call("count_boxes", shelf="a"), say("Three.")) as server:
        ended = cli("run", "Count.", "--agent", f"{agents}:counter", "--model", f"{server.url}#any", "--json")
    [record] = json.loads(ended.out)["tool_calls"]
    assert record["error"] is None
    assert (ended.code, record["result"][0], record["result"][1] == os.getpid()) == (0, 3, False)
    # Once here, once by the process of the call.
    assert (tmp_path / "imports.txt").read_text().splitlines() == ["imported", "imported"]


def test_what_is_printed_to_resume_a_run_works_as_printed(cli: Cli, serve: Serve, agents: str) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Warm.")) as server:
        options = ("--agent", f"{agents}:keeper", "--model", f"{server.url}#any")
        waiting = cli("run", "Burn it.", "--durable", *options)
        assert waiting.code == 3, waiting.err
        commands = re.findall(r"journeyman (approvals approve .*|runs resume .*)", waiting.err)
        assert "--library" not in commands[1]
        for command in commands:
            ended = cli(*shlex.split(command))
            assert ended.code == 0, ended.err
    assert ended.out == "Warm.\n"


def test_a_library_may_be_a_file_or_something_in_one(cli: Cli, agents: str) -> None:
    for library, names in ((agents, ["count_boxes", "burn_shelf"]), (f"{agents}:library", ["count_boxes"])):
        listed = json.loads(cli("tools", "list", "--library", library, "--json").out)
        assert [item["name"] for item in listed] == names
    wrong = cli("tools", "list", "--library", f"{agents}:keeper")
    assert (wrong.code, "not a ToolLibrary; did you mean" in wrong.err) == (2, True)
