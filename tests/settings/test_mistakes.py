"""``journeyman config check`` over mistakes that people make: each is found, at the line that must be mended."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from journeyman.doors.cli import main

MISTAKES = Path(__file__).with_name("mistakes.txt")
TAKEN = {"yes as text"}
"""What is understood as it was meant, and so is let pass."""
SHOP = """
from journeyman import Agent, RiskLevel, ToolLibrary, tool

SHELVES = ("a", "b")

@tool(read_only=True)
def count_boxes(shelf: str) -> int:
    '''Count the boxes on a shelf. Use when the user asks for a number of boxes.'''
    return 3

@tool(risk=RiskLevel.IRREVERSIBLE)
def burn_shelf(shelf: str) -> str:
    '''Burn a shelf. Use when the user is cold.'''
    return "ashes"

@tool(risk=RiskLevel.REVERSIBLE)
def ring_bell(times: int) -> str:
    '''Ring the bell. Use when the user wants noise.'''
    return "dong"

library = ToolLibrary([count_boxes, burn_shelf, ring_bell])
keeper = Agent(name="keeper", instruction="Keep the shelves.", tools=(count_boxes, burn_shelf, ring_bell))
"""
SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("files")

def _add(name):
    def work(path: str) -> str:
        return path
    server.tool(name=name, description=f"{name} at a path.")(work)

for name in ("read_file", "write_file", "edit_file", "move_file", "list_files"):
    _add(name)

server.run()
"""
PETS = {
    "openapi": "3.0.0",
    "info": {"title": "Pets", "version": "1"},
    "paths": {
        "/pets": {"get": {"operationId": "listPets", "responses": {"200": {"description": "them"}}}},
        "/pets/{id}": {
            "delete": {
                "operationId": "deletePet",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "gone"}},
            }
        },
    },
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "security": [{"key": []}],
}
LONELY = """
[lonely:Agent {description: "Sails.", instruction: "Sail.", model: "embedded"} |
  [sail_away:Tool {description: "Sail away on a boat"} | (name::String)==>(::String)]]
"""
BESIDE = {
    "shop.py": SHOP,
    "files_server.py": SERVER,
    "petstore.json": json.dumps(PETS),
    "broken.gram": '[a:Agent {instruction: "x" | ',
    "lonely.gram": LONELY,
}


def _mistakes() -> list[tuple[str, str]]:
    _, *blocks = re.split(r"^=== ", MISTAKES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [(name, text) for name, _, text in (block.partition("\n") for block in blocks)]


def _found(name: str, text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str | None:
    """What is wrong with how a mistake is found; None where nothing is."""
    [line] = [number for number, each in enumerate(text.splitlines(), 1) if each.endswith("#!")]
    file = folder / "journeyman.yaml"
    file.write_text(re.sub(r"\[python\b", f"[{json.dumps(sys.executable)}", text), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main()
    written = capsys.readouterr()
    if ended.value.code != 2:
        return f"{name}: exit code {ended.value.code}"
    places = [item["place"] for item in json.loads(written.out)]
    if not any(re.search(rf"journeyman\.yaml:{line}(:|$)", place) for place in places):
        return f"{name}: line {line}, but found at {places}"
    return None


@pytest.mark.slow
def test_mistakes_are_found_at_the_right_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".state"))
    monkeypatch.setattr(sys, "argv", ["journeyman", "config", "check", "--config", "journeyman.yaml", "--json"])
    for name, text in BESIDE.items():
        (tmp_path / name).write_text(text)
    try:
        missed = [why for name, text in _mistakes() if (why := _found(name, text, tmp_path, capsys)) is not None]
    finally:
        sys.modules.pop("shop", None)
    missed = [why for why in missed if why.partition(":")[0] not in TAKEN]
    assert not missed, "\n".join(missed)
