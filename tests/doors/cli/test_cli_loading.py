"""Gram on the command line: tools exported as a document, agents run from one."""

from __future__ import annotations

import json
from pathlib import Path

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
    assert json.loads(ended.out)["tool_calls"][0]["result"] == "Hello, Ada! It is nice to meet you."


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
