"""``journeyman mcp add`` and ``list``: an entry in the configuration file, which otherwise stays as it is."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from journeyman.app.config_tools import look_at_server
from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli.mcp import write_server
from journeyman.settings.reading import read_settings
from tests.doors.cli.driving import Cli
from tests.sources.mcp_servers import HOSTILE

FILE = """# ours
version: 1
mcp:  # other people's
  time: {command: ["uvx", "mcp-server-time"]}
environment: production
"""


def test_a_server_is_added_and_nothing_else_changes(tmp_path: Path) -> None:
    path = tmp_path / "journeyman.yaml"
    write_server(path, "files", {"command": ["npx", "it's", "ü"], "trust_annotations": True})
    assert read_settings(path).settings.mcp["files"].command == ["npx", "it's", "ü"]
    path.write_text(FILE, encoding="utf-8")
    write_server(path, "crm", {"url": "https://crm.example/mcp"})
    text = path.read_text(encoding="utf-8")
    assert list(read_settings(path).settings.mcp) == ["crm", "time"]
    assert text.replace('  "crm": {"url": "https://crm.example/mcp"}\n', "") == FILE
    assert [found.name for found in tmp_path.iterdir()] == ["journeyman.yaml"]


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        (FILE, "time", "there is a server 'time' already"),
        ("version: 1\nmcp: {}\n", "files", "write it as a block"),
        ("version: 1\nnonsense: 1\n", "files", "would not be right any more"),
    ],
)
def test_a_file_that_cannot_take_it_is_left_as_it_is(tmp_path: Path, text: str, name: str, told: str) -> None:
    path = tmp_path / "journeyman.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=told):
        write_server(path, name, {"command": ["x"]})
    assert path.read_text(encoding="utf-8") == text
    assert [found.name for found in tmp_path.iterdir()] == ["journeyman.yaml"]


def test_a_server_is_looked_at_before_it_is_taken_in() -> None:
    command = [sys.executable, str(HOSTILE / "instructs_models.py")]
    report = asyncio.run(look_at_server("bad", command=command))
    assert ("bad.add", "irreversible") in [(item.name, risk) for item, risk in report.tools]
    assert {finding.tool for finding in report.findings} == {"bad.add", "bad.sum", "bad.total"}


LIBRARY = """
import sys
from journeyman import ToolLibrary
from journeyman.sources import McpServer

library = ToolLibrary(sources=[McpServer(command=[sys.executable, {server!r}], name="bad", start_seconds=60)])
"""


@pytest.mark.slow
def test_tools_of_a_librarys_own_servers_are_listed_and_looked_through(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(LIBRARY.format(server=str(HOSTILE / "instructs_models.py")))
    listed = json.loads(cli("tools", "list", "--library", "served:library", "--json").out)
    assert {item["name"] for item in listed} == {"bad.add", "bad.sum", "bad.total"}
    found = json.loads(cli("tools", "lint", "--library", "served:library", "--json").out)
    assert {item["tool"] for item in found if item["rule"] == "description-instructs"} == {
        "bad.add",
        "bad.sum",
        "bad.total",
    }
