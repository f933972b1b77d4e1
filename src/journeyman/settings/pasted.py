"""MCP servers as other programs' files have them: Claude Desktop and Cursor (``mcpServers``), VS Code (``servers``).

An entry there has a ``command`` with ``args``, or a ``url``; what only those programs know is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from journeyman.core.data import with_texts

PASTED = "mcpServers"
LONGEST_NAME = 32
_VARIABLE = re.compile(r"\$\{(?:env|input):([^{}]+)\}")
_EDITOR = re.compile(r"\$\{(?:workspaceFolder|userHome|pathSeparator|/)\}")
_THEIRS = ("args", "type", "transport", "disabled", "serverUrl", "autoApprove", "alwaysAllow", "envFile", "gallery")


def with_pasted(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a configuration file, with a pasted block ``mcpServers`` under ``mcp``."""
    block, own = values.get(PASTED, {}), values.get("mcp", {})
    if not isinstance(block, dict) or not isinstance(own, dict):
        return values
    mine = {name: entry_of(item) if isinstance(item, dict) and "args" in item else item for name, item in own.items()}
    made = {**{name: entry_of(item) for name, item in block.items()}, **mine}
    rest = {key: value for key, value in values.items() if key != PASTED}
    return {**rest, "mcp": made} if made else rest


def servers_in(document: Any, workspace: str = "${workspaceFolder}") -> dict[str, Any]:
    """The servers of another program's file, as entries of ours; empty where it has none."""
    meant = {"${workspaceFolder}": workspace, "${userHome}": "${HOME}", "${pathSeparator}": "/", "${/}": "/"}
    for *path, name in (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp", "mcpServers")):
        place = document
        for step in path:
            place = place.get(step) if isinstance(place, Mapping) else None
        if isinstance(place, Mapping) and isinstance(servers := place.get(name), Mapping):
            named = partial(_EDITOR.sub, lambda found: meant[found[0]])
            called = {
                re.sub(r"[^A-Za-z0-9_-]+", "_", str(server))[:LONGEST_NAME]: item for server, item in servers.items()
            }
            return {name: with_texts(entry_of(item), named) for name, item in called.items()}
    return {}


def entry_of(given: Any) -> Any:
    """One entry as ours: the arguments beside the command, variables by their names."""
    if not isinstance(given, Mapping):
        return given
    made = {key: value for key, value in given.items() if key not in _THEIRS}
    command, args = made.get("command"), given.get("args")
    if isinstance(command, str | list):
        made["command"] = [
            *([command] if isinstance(command, str) else command),
            *(args if isinstance(args, list) else ()),
        ]
    if "url" not in made and "serverUrl" in given:
        made["url"] = given["serverUrl"]
    if given.get("disabled") is True:
        made["enabled"] = False
    named = partial(_VARIABLE.sub, lambda found: "${" + re.sub(r"\W", "_", found[1]).upper() + "}")
    return with_texts(made, named)
