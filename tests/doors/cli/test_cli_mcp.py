"""``journeyman mcp add`` and ``list``: an entry in the configuration file, which otherwise stays as it is."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from journeyman import RiskLevel, ToolSpecification, tool
from journeyman.app.config_tools import configured, judged, look_at, shared_words, tool_digest
from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli.mcp import write_entries
from journeyman.settings.pasted import servers_in
from journeyman.settings.reading import read_settings
from journeyman.settings.schema import Category
from journeyman.settings.schema import Tool as ToolSettings
from journeyman.sources import McpServer
from tests.doors.cli.driving import Cli
from tests.sources.mcp_servers import HOSTILE

WHOLE = Path(__file__).parents[1] / "mcp" / "whole_server.py"
FILE = """# ours
version: 1
mcp:  # other people's
  time: {command: ["uvx", "mcp-server-time"]}
environment: production
"""


def test_a_server_is_added_and_nothing_else_changes(tmp_path: Path) -> None:
    path = tmp_path / "journeyman.yaml"
    write_entries(path, "mcp", {"files": {"command": ["npx", "it's", "ü"], "trust_annotations": True}})
    assert read_settings(path).settings.mcp["files"].command == ["npx", "it's", "ü"]
    path.write_text(FILE, encoding="utf-8")
    write_entries(path, "mcp", {"crm": {"url": "https://crm.example/mcp"}})
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
        write_entries(path, "mcp", {name: {"command": ["x"]}})
    assert path.read_text(encoding="utf-8") == text
    assert [found.name for found in tmp_path.iterdir()] == ["journeyman.yaml"]


CLAUDE = {
    "mcpServers": {"files": {"command": "npx", "args": ["-y", "files", "/data"], "env": {"LEVEL": "${env:LEVEL}"}}}
}
VS_CODE = {"servers": {"crm": {"type": "http", "url": "https://crm.example/mcp", "disabled": True}}, "inputs": []}


@pytest.mark.parametrize("pasted", ["block", "entry"])
def test_a_block_pasted_from_another_programs_file_is_taken(tmp_path: Path, pasted: str) -> None:
    path = tmp_path / "journeyman.yaml"
    block = CLAUDE if pasted == "block" else {"mcp": CLAUDE["mcpServers"]}
    path.write_text(f"version: 1\n{json.dumps(block)[1:-1]}\n")
    [(name, server)] = read_settings(path, environ={"LEVEL": "1"}).settings.mcp.items()
    assert (name, server.command, server.env) == ("files", ["npx", "-y", "files", "/data"], {"LEVEL": "${LEVEL}"})
    path.write_text(f"version: 1\n{json.dumps(CLAUDE)[1:-1]}\n".replace('"npx"', "7"))
    with pytest.raises(ConfigurationError, match=r"yaml:2:\d+: .*mcp.files.command"):
        read_settings(path)


def test_servers_are_found_in_the_files_of_other_programs() -> None:
    editor = {"servers": {"x y": {"command": "${workspaceFolder}${/}x", "cwd": "${userHome}"}}}
    assert servers_in(editor, "/projects/shop") == {"x_y": {"command": ["/projects/shop/x"], "cwd": "${HOME}"}}
    assert servers_in(CLAUDE)["files"]["command"] == ["npx", "-y", "files", "/data"]
    crm = {"url": "https://crm.example/mcp", "enabled": False}
    assert servers_in(VS_CODE) == servers_in({"mcp": VS_CODE}) == {"crm": crm}
    assert servers_in({"editor.fontSize": 12}) == {}


@pytest.mark.slow
def test_an_import_reports_the_broken_server_keeps_secrets_apart_and_takes_the_others(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    good = {
        "command": sys.executable,
        "args": [str(WHOLE), str(tmp_path / "notes")],
        "env": {"API_KEY": "s3cret-value"},
    }
    # As VS Code has it: with comments, commas at the end, and its own words for places.
    text = f"""// servers of "ours"
    {{"servers": {{
        "broken": {{"command": "no-such-command", /* was "//" */ "args": ["http://127.0.0.1"]}}, // "}}"
        "whole": {json.dumps(good).replace(str(tmp_path), "${workspaceFolder}")},
    }}}}"""
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "mcp.json").write_text(text)
    ended = cli("mcp", "import", ".vscode/mcp.json", "--accept-reads", "--yes")
    assert ended.code == 1
    assert "broken is left out: " in ended.out
    settings = read_settings(tmp_path / "journeyman.yaml").settings
    assert list(settings.mcp) == ["whole"]
    assert settings.mcp["whole"].command == [sys.executable, str(WHOLE), str(tmp_path / "notes")]
    kept = tmp_path / ".journeyman-secrets" / "whole.API_KEY"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("s3cret-value", 0o600)
    assert "s3cret-value" not in (tmp_path / "journeyman.yaml").read_text()
    assert "whole.read_resource" in settings.tools
    assert "whole.order_now" not in settings.tools


def test_every_command_says_which_server_is_away_and_has_the_other_tools(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "journeyman.yaml").write_text("version: 1\ntoolkits: [hello]\nmcp:\n  gone: {command: [/no/such]}\n")
    cli("trust", "journeyman.yaml")
    ended = cli("tools", "list")
    assert (ended.code, "sayHello" in ended.out) == (0, True)
    assert ended.err.count("journeyman: a source of tools cannot be opened: gone\n") == 1
    assert "journeyman config check" in ended.err


@pytest.mark.parametrize(
    ("name", "description", "more", "reads"),
    [
        ("get_issue", "Get an issue.", {}, True),
        ("read_file", "Read a file.", {}, True),
        ("listPullRequests", "List pull requests.", {}, True),
        ("get_or_create_issue", "Get an issue, or create it.", {}, False),
        ("delete_issue", "Delete an issue.", {}, False),
        ("query", "Query the database.", {"parameters": {"type": "object", "properties": {"sql": {}}}}, False),
        ("get_issue", "Deletes an issue.", {}, False),
        ("summary", "Sums up.", {"annotations": {"readOnlyHint": True}}, True),
        ("delete_all", "Get rid of all.", {"annotations": {"readOnlyHint": True}}, False),
        ("get_issue", "Get an issue.", {"annotations": {"readOnlyHint": False}}, False),
        ("acme_list_commits", "Lists commits of a branch.", {}, True),
        ("acme_elevation", "Get the elevation of a place.", {}, True),
        ("web_search", "Performs a web search.", {}, True),
        ("get_session", "Get a session. Creates one if there is none.", {}, False),
        ("checkout", "Buys what is in the cart.", {}, False),
        ("list_builds", "This tool lists builds.", {}, True),
        ("verify_task", "Verify a task and mark it as done.", {}, False),
        ("research", "When somebody wants to know more.", {}, False),
        ("get_merge_request", "Get it.", {"annotations": {"readOnlyHint": True}}, True),
        ("get_or_create_page", "Get it.", {"annotations": {"readOnlyHint": True}}, False),
        (
            "get_attachment",
            "Get a file.",
            {
                "annotations": {"readOnlyHint": True},
                "parameters": {"type": "object", "properties": {"local_path": {}}},
            },
            False,
        ),
        ("report", "Get a report.", {"parameters": {"type": "object", "properties": {"output_path": {}}}}, False),
        ("file-share-list", "List shares.", {"annotations": {"readOnlyHint": True}}, True),
        ("file-share-list", "Share a list.", {"annotations": {"readOnlyHint": True}}, False),
        ("file-share", "List and share.", {"annotations": {"readOnlyHint": True}}, False),
        ("get_pipeline_run", "Get a pipeline run.", {}, True),
        ("get_and_run_pipeline", "Get a pipeline and run it.", {}, False),
        ("run_pipeline", "Get a pipeline going.", {}, False),
        ("convert_time", "Convert a time.", {"parameters": {"type": "object", "properties": {"time": {}}}}, True),
        ("convert_draft", "Convert it.", {"parameters": {"type": "object", "properties": {"requestId": {}}}}, False),
        ("get_logs", "Get logs.", {"parameters": {"type": "object", "properties": {"saveLogs": {}}}}, False),
        (
            "list_runs",
            "List runs.",
            {"parameters": {"type": "object", "properties": {"trigger": {"enum": ["push", "manual"]}}}},
            True,
        ),
        (
            "list_runs",
            "List runs.",
            {"parameters": {"type": "object", "properties": {"action": {"enum": ["push", "manual"]}}}},
            False,
        ),
        (
            "context",
            "Manage contexts.",
            {
                "annotations": {"readOnlyHint": True},
                "parameters": {"type": "object", "properties": {"operation": {"enum": ["list", "set"]}}},
            },
            False,
        ),
    ],
)
def test_a_tool_seems_only_to_read_where_nothing_speaks_against_it(
    name: str, description: str, more: dict[str, Any], reads: bool
) -> None:
    item = ToolSpecification(
        name=f"tracker.{name}",
        description=description,
        parameters=more.get("parameters", {"type": "object", "properties": {}}),
        metadata={"mcp": {"annotations": more.get("annotations", {})}},
    )
    assert judged(item, {"acme"})[0] is reads


def test_words_that_all_names_begin_with_say_nothing() -> None:
    items = [ToolSpecification(name=f"maps.maps_{name}", description="Get it.") for name in ("places", "directions")]
    assert shared_words(items) == {"maps"}
    assert shared_words([ToolSpecification(name="web.get_page", description="Get it.")]) == {"web"}


def test_a_grade_holds_as_long_as_the_tool_is_what_it_was_graded_as() -> None:
    @tool(name="files.read", description="Read a file.")
    def read(path: str) -> str:
        return path

    said = ToolSettings(risk=RiskLevel.REVERSIBLE, digest=tool_digest(read.specification))
    assert configured(read, said, "general", Category()).specification.risk is RiskLevel.REVERSIBLE
    other = read.with_changes(description="Read a file, and send it away.")
    assert configured(other, said, "general", Category()).specification.risk is None


def test_a_server_is_looked_at_before_it_is_taken_in() -> None:
    command = [sys.executable, str(HOSTILE / "instructs_models.py")]
    report = asyncio.run(look_at(McpServer(name="bad", command=command)))
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


def test_an_api_whose_reads_are_all_declared_is_added_with_accept_reads(cli: Cli, tmp_path: Path) -> None:
    said = {"get": {"operationId": "listPets", "responses": {}}, "post": {"operationId": "createPet", "responses": {}}}
    document = {"openapi": "3.1.0", "info": {"title": "Pets"}, "paths": {"/pets": said}}
    (tmp_path / "pets.json").write_text(json.dumps(document))
    added = cli("openapi", "add", "pets", "pets.json", "--base-url", "https://pets.example", "--accept-reads", "--yes")
    assert (added.code, added.err) == (0, "")
    assert "tools" not in (tmp_path / "journeyman.yaml").read_text()
    assert "pets.create_pet" in cli("tools", "list").out


def test_an_api_is_added_with_where_it_is_called_and_its_changes_are_asked_about(cli: Cli, tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://shop.example/v1"}],
        "paths": {
            "/pets": {"get": {"operationId": "listPets"}, "post": {"operationId": "createPet", "summary": "Make one."}},
            "/search": {"post": {"operationId": "searchPets", "summary": "Search for pets."}},
        },
    }
    (tmp_path / "shop.json").write_text(json.dumps(document))
    refused = cli("openapi", "add", "shop", "nowhere.json", "--yes")
    assert "cannot be read" in refused.err
    added = cli("openapi", "add", "shop", "shop.json", "--auth", "${SHOP_TOKEN}", "--accept-reads", "--yes")
    assert "SHOP_TOKEN is not set" in added.err
    added = cli("openapi", "add", "shop", "shop.json", "--accept-reads", "--yes")
    assert "shop.list_pets  reversible" in added.out
    assert "shop.create_pet  irreversible" in added.out
    assert "asks before each call: its name says 'create'" in added.out
    loaded = read_settings(tmp_path / "journeyman.yaml").settings
    assert loaded.openapi["shop"].base_url == "https://shop.example/v1"
    assert loaded.tools["shop.search_pets"].read_only
    assert "shop.create_pet" not in loaded.tools
    again = cli("openapi", "add", "shop", "shop.json", "--yes")
    assert "there is a server 'shop' already" in again.err
    listed = {item["name"]: item for item in json.loads(cli("tools", "list", "--json").out)}
    assert listed["shop.search_pets"]["read_only"]
    assert not listed["shop.create_pet"]["read_only"]
    document["paths"]["/search"]["post"]["summary"] = "Search for pets, and buy them."
    (tmp_path / "shop.json").write_text(json.dumps(document))
    listed = {item["name"]: item for item in json.loads(cli("tools", "list", "--json").out)}
    assert not listed["shop.search_pets"]["read_only"], "it is not what was agreed to"
