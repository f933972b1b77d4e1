"""The configuration file on the command line: init, config check, show, schema, and what commands make of it."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

from journeyman.app import json_schema
from tests.doors.cli.driving import Cli

TOOLS = '''
from journeyman import tool

@tool(read_only=True)
def look(order_id: str) -> str:
    """Look at an order. Use when one is named."""
    return f"{order_id} is shipped"

@tool(risk="reversible", permissions={"orders:write"})
def pay(order_id: str) -> str:
    """Pay an order. Use when it is due."""
    return "paid"
'''
FILE = """\
version: 1
store: sqlite:///kept.db
tools:
  look: {import: "shop_tools:look", timeout_seconds: 4, permissions: [orders:read]}
  pay: {import: "shop_tools:pay"}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop_tools.py").write_text(TOOLS)
    (tmp_path / "journeyman.yaml").write_text(FILE)
    return tmp_path


def test_init_writes_a_file_a_tool_and_a_test_that_passes(cli: Cli, tmp_path: Path) -> None:
    ended = cli("init", "new")
    assert ended.code == 0
    folder = tmp_path / "new"
    written = sorted(item.name for item in folder.iterdir())
    assert written == ["journeyman.schema.json", "journeyman.yaml", "my_tools.py", "test_my_tools.py"]
    assert (folder / "journeyman.yaml").read_text().startswith("# yaml-language-server: $schema=journeyman.schema.json")
    assert cli("--help").code == 0
    checked = cli("config", "check", "--config", "new/journeyman.yaml")
    assert (checked.code, checked.out) == (0, "new/journeyman.yaml: right; 1 tool, environment development\n")
    again = cli("init", "new")
    assert again.code == 2
    assert "would be overwritten" in again.err
    sys.path.insert(0, str(folder))
    test = runpy.run_path(str(folder / "test_my_tools.py"))
    test["test_greet"]()
    test["test_a_run_with_the_configured_tools"](tmp_path)


def test_check_tells_everything_that_is_wrong_and_show_where_values_come_from(
    cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("config", "check").out == "journeyman.yaml: right; 2 tools, environment development\n"
    shown = cli("config", "show", "--changed", "--model", "ollama:small").out
    assert 'store: "sqlite:///kept.db"  # journeyman.yaml:2\n' in shown
    assert 'model: "ollama:small"  # option model\n' in shown
    monkeypatch.setenv("JOURNEYMAN_STORE", "postgresql://ada:hunter22@db/x")
    values = {item["key"]: item for item in json.loads(cli("config", "show", "--json").out)}
    assert values["store"]["value"] == "postgresql://ada:***@db/x"
    assert values["store"]["origin"] == "environment variable JOURNEYMAN_STORE"
    assert values["doors.http.port"] == {"key": "doors.http.port", "value": 8000, "origin": "default"}
    monkeypatch.delenv("JOURNEYMAN_STORE")
    (shop / "journeyman.yaml").write_text(FILE.replace("timeout_seconds", "timout").replace(":pay", ":py") + "x: 1\n")
    ended = cli("config", "check")
    assert ended.code == 2
    assert ended.err.splitlines() == [
        "journeyman.yaml:4:37: tools.look.timout: unknown key; did you mean 'timeout_seconds'?",
        "journeyman.yaml:5:9: tools.pay.import: 'shop_tools:py' names nothing: module 'shop_tools' has no 'py'; did "
        "you mean 'shop_tools:pay'?",
        "journeyman.yaml:6:1: x: unknown key; there are version, environment, store, model, agent, toolkits, tools, "
        "categories, mcp, limits, policy, approvals, runs, doors",
        "journeyman: 3 problems",
    ]
    assert [item["key"] for item in json.loads(cli("config", "check", "--json").out)] == [
        "tools.look.timout",
        "tools.pay.import",
        "x",
    ]
    for command in (["tools", "list"], ["runs", "list"], ["config", "show"]):
        refused = cli(*command)
        assert refused.code == 2
        assert "journeyman.yaml:4:37: tools.look.timout: unknown key" in refused.err
    doctor = cli("doctor", "--json")
    assert doctor.code == 0
    assert len(json.loads(doctor.out)["config"]["problems"]) == 3


def test_without_a_file_config_says_how_to_get_one(cli: Cli) -> None:
    ended = cli("config", "check")
    assert ended.code == 2
    assert "'journeyman init' writes one" in ended.err


def test_the_schema_is_printed(cli: Cli) -> None:
    assert json.loads(cli("config", "schema").out) == json_schema()


def test_commands_go_by_the_file_and_options_win(
    cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert [item["name"] for item in json.loads(cli("tools", "list", "--json").out)] == ["look", "pay"]
    shown = json.loads(cli("tools", "show", "look", "--json").out)
    assert (shown["timeout_seconds"], shown["permissions"]) == (4, ["orders:read"])
    denied = cli("tools", "call", "look", "--args", '{"order_id": "W-1"}', "--json")
    assert json.loads(denied.out)["error"]["code"] == "NOT_PERMITTED"
    order = ["tools", "call", "look", "--args", '{"order_id": "W-1"}', "--permission", "orders:read", "--json"]
    assert json.loads(cli(*order).out)["result"] == "W-1 is shipped"
    assert (shop / "kept.db").exists()  # the store that the file names
    cli("runs", "list", "--store", "sqlite:///other.db")
    other = tmp_path / "elsewhere.yaml"
    other.write_text("version: 1\ntoolkits: [hello]\n")
    assert [item["name"] for item in json.loads(cli("tools", "list", "--json", "--config", str(other)).out)] == [
        "sayHello"
    ]
    monkeypatch.setenv("JOURNEYMAN_CONFIG", str(other))
    assert [item["name"] for item in json.loads(cli("tools", "list", "--json").out)] == ["sayHello"]
    missing = cli("tools", "list", "--config", "nowhere.yaml")
    assert missing.code == 2
    assert "nowhere.yaml: cannot be read: No such file or directory" in missing.err
