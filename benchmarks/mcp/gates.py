"""How well tools of published servers are graded when they are added: reads that are asked about, changes that are not.

The packages are pinned (``node/gates``), the servers run without an account, and ``gates.json`` has the labels.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.mcp import registry
from journeyman.app.config_tools import ServerReport, look_at
from journeyman.sources import McpServer

LABELS: dict[str, dict[str, Any]] = json.loads((registry.HERE / "gates.json").read_text())["servers"]


@dataclass
class Graded:
    """What was suggested for the tools of a server, by name and with the reason."""

    tools: int = 0
    reads: int = 0
    false_gates: dict[str, str] = field(default_factory=dict)
    """Reads that would be asked about."""
    false_passes: dict[str, str] = field(default_factory=dict)
    """Changes that would be taken for reads."""


def label(server: str, tool: str) -> bool | None:
    """Whether a tool only reads; None where either may be said."""
    said = LABELS[server]

    def named(kind: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in said.get(kind, ()))

    return None if named("either") else named("reads") and not named("changes")


async def looked_at(server: str, folder: Path) -> ServerReport:
    """What is said of a server that is to be added, from what it lists without an account."""
    said, packages = LABELS[server], registry.npm_packages("gates")
    for name, content in said.get("files", {}).items():
        (folder / name).write_text(json.dumps(content))
    source = McpServer(
        name=server,
        command=[str(registry.node()), str(packages / said["run"][0]), *said["run"][1:]],
        env={name: value.replace("{folder}", str(folder)) for name, value in said.get("env", {}).items()},
        start_seconds=60,
    )
    return await look_at(source)


async def graded(server: str) -> Graded:
    with TemporaryDirectory() as folder:
        report = await looked_at(server, Path(folder))
    found = Graded()
    for item, _ in report.tools:
        if "content" in item.metadata.get("mcp", {}):
            continue  # the protocol's own reads
        name = item.name.partition(".")[2]
        reads, (suggested, why) = label(server, name), report.grades[item.name]
        found.tools += 1
        found.reads += reads is True
        if reads is True and not suggested:
            found.false_gates[name] = why
        if reads is False and suggested:
            found.false_passes[name] = why
    return found


async def gates() -> dict[str, Any]:
    """The figures of all servers, and what was graded wrongly."""
    logging.getLogger("journeyman.mcp").setLevel(logging.CRITICAL)
    found = {server: await graded(server) for server in LABELS}
    each = found.values()
    wrong = {
        kind: {f"{server}.{name}": why for server, item in found.items() for name, why in getattr(item, kind).items()}
        for kind in ("false_gates", "false_passes")
    }
    return {"tools": sum(item.tools for item in each), "reads": sum(item.reads for item in each), **wrong}
