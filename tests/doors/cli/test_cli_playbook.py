"""The playbook from the command line: learned, listed, shown, rolled back, written to files and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.doors.cli.driving import Cli

pytestmark = pytest.mark.slow  # each command is a process, or loads an embedder


def said(name: str, order: str) -> list[dict[str, Any]]:
    """A conversation as other programs keep it."""

    def calls(key: str, tool: str, **arguments: str) -> dict[str, Any]:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        return {"role": "assistant", "tool_calls": [{"id": key, "type": "function", "function": function}]}

    return [
        {"role": "user", "content": f"Cancel the order of {name}, please"},
        calls("1", "search_orders", customer=name),
        {"role": "tool", "tool_call_id": "1", "content": json.dumps([{"order_id": order}])},
        calls("2", "cancel_order", order_id=order),
        {"role": "tool", "tool_call_id": "2", "content": "cancelled"},
        {"role": "assistant", "content": f"I cancelled {order}."},
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "master.jsonl"
    lines = [
        {"model": "master-1", "messages": said(name, f"W-{number}77")} for number, name in ((1, "Anna"), (2, "Bert"))
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_conversations_teach_and_can_be_taken_back(cli: Cli, file: Path, tmp_path: Path) -> None:
    ended = cli("playbook", "learn", "--from", str(file), "--domain", "shop")
    assert (ended.code, "learned from 2 runs" in ended.out) == (0, True)
    [strategy] = json.loads(cli("playbook", "list", "--json").out)
    assert strategy["tool_sequence"] == ["search_orders", "cancel_order"]
    assert (strategy["state"], strategy["helpful_count"], strategy["models"]) == ("active", 2, ["master-1"])
    assert "Anna" not in json.dumps(strategy)
    assert "search_orders" in cli("playbook", "list").out

    shown = cli("playbook", "show", strategy["id"])
    assert "Cancel the order of ⟦customer⟧, please" in shown.out
    assert "not known yet" in shown.out
    assert cli("playbook", "quarantine", strategy["id"], "--reason", "wrong").code == 0
    assert json.loads(cli("playbook", "list", "--state", "active", "--json").out) == []

    versions = json.loads(cli("playbook", "history", "--domain", "shop", "--json").out)
    assert [item["reason"] for item in versions] == [f"{strategy['id']}: wrong", "learned from 2 runs"]
    assert "wrong" in cli("playbook", "history", "--domain", "shop").out
    shown = cli("playbook", "diff", "--since", "1", "--domain", "shop")
    assert "~ search_orders → cancel_order" in shown.out
    assert "state: active → quarantined" in shown.out
    assert "+ search_orders" in cli("playbook", "diff", "--since", "0", "--to", "1", "--domain", "shop").out
    assert "has no version 7" in cli("playbook", "diff", "--since", "7", "--domain", "shop").err
    assert cli("playbook", "rollback", "--to", "1", "--domain", "shop").code == 0
    assert "say the same" in cli("playbook", "diff", "--since", "1", "--domain", "shop").err
    assert json.loads(cli("playbook", "list", "--json").out) == [strategy]

    assert cli("playbook", "export", str(tmp_path / "out")).code == 0
    assert (tmp_path / "out" / "tool-calling" / "shop" / "strategies.jsonl").exists()
    other = ("--store", f"sqlite:///{tmp_path / 'other.db'}")
    assert cli("playbook", "import", str(tmp_path / "out"), *other).code == 0
    assert json.loads(cli("playbook", "list", "--json", *other).out) == [strategy]


def test_bad_input_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"messages": [{"content": "x"}]}')
    ended = cli("playbook", "learn", "--from", str(tmp_path / "bad.json"))
    assert (ended.code, "message 0 is not an object with a 'role'" in ended.err) == (1, True)
    assert "there is no strategy 'nobody'" in cli("playbook", "show", "nobody").err
    assert "there is no playbook 'general'" in cli("playbook", "rollback", "--to", "7").err
    assert cli("playbook", "learn", "run_nowhere").code == 1
    assert "nothing was learned so far" in cli("playbook", "list").err


def test_what_refused_calls_taught_is_listed(cli: Cli, tmp_path: Path) -> None:
    refused = {"id": "1", "function": {"name": "close_account", "arguments": '{"account_id": "Ada"}'}}
    said = [
        {"role": "user", "content": "Close the account of Ada"},
        {"role": "assistant", "tool_calls": [refused]},
        {"role": "tool", "tool_call_id": "1", "content": '{"error": "there is no account Ada"}'},
        {"role": "assistant", "content": "There is no such account."},
    ]
    (tmp_path / "said.json").write_text(json.dumps({"messages": said, "good": False}))
    cli("playbook", "learn", "--from", str(tmp_path / "said.json"))
    listed = cli("playbook", "list")
    assert "close_account: look account_id up first; do not guess it." in listed.out
    assert cli("playbook", "list", "--state", "active").out == ""


DESK = """
from journeyman import Agent, tool

@tool(read_only=True)
def find_person(name: str) -> list[str]:
    "Find a person by name."
    return [name]

@tool
def fire(name: str) -> str:
    "Fire a person."
    raise SystemExit("never")

agent = Agent(name="desk", instruction="Help.", model="embedded", tools=[find_person, fire])
"""


def test_practice_has_only_the_tools_that_read(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(DESK)
    assert cli("playbook", "practise", "--agent", "desk.py:agent").code == 2  # there is no store yet
    done = cli("playbook", "practise", "Find the person Anna", "--agent", "desk.py:agent", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["requests"] == 1
    assert json.loads(done.out)["sandbox"] is False
    nothing = cli("playbook", "practise", "--agent", "desk.py:agent")
    assert "nothing was asked in 'general' yet" in nothing.err
    sandboxed = cli("playbook", "practise", "Fire the person Anna", "--agent", "desk.py:agent", "--sandbox", "local")
    assert sandboxed.code == 1
    assert "the sandbox lacks tools of the agent: find_person, fire" in sandboxed.err
