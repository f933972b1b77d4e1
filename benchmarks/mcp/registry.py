"""What others publish: two MCP servers and several clients, installed from their registries, and a gateway before them.

The versions are pinned: ``requirements.txt`` has Node and the server for times, ``node`` the rest.
Everything is installed into `.bench`, once.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from benchmarks import packages

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NODE = HERE / "node"


def python_packages() -> Path:
    return packages.install("mcp", HERE / "requirements.txt")


def node() -> Path:
    """Node 24, whatever this machine has."""
    return packages.node_binary(python_packages())


def npm_packages(name: str) -> Path:
    """The folder ``node_modules`` of ``servers`` or ``clients``."""
    return packages.install_npm(f"mcp-{name}", NODE / name, node=python_packages())


def configuration(data: Path) -> str:
    """A journeyman.yaml with both servers: the one for files works on the folder ``data``.

    The one for files is trusted about what only reads, and its reads are kept for an hour. The other is not, so that
    the operator says of its tools what they are.
    """
    script = npm_packages("servers") / "@modelcontextprotocol/server-filesystem/dist/index.js"
    files = {"command": [str(node()), str(script), str(data)], "trust_annotations": True, "cache": "1h", "start": "60s"}
    time = {
        "command": [sys.executable, "-m", "mcp_server_time", "--local-timezone", "Etc/UTC"],
        "env": {"PYTHONPATH": str(python_packages())},
        "start": "60s",
    }
    tools = {f"time.{name}": {"risk": "reversible"} for name in ("get_current_time", "convert_time")}
    # JSON is YAML, too.
    return "version: 1\n" + "".join(
        f"{key}: {json.dumps(value)}\n" for key, value in (("mcp", {"files": files, "time": time}), ("tools", tools))
    )


def gateway_command(*options: str) -> list[str]:
    """Starts `journeyman mcp serve`; in the folder where journeyman.yaml is."""
    return journeyman("mcp", "serve", "--config", "journeyman.yaml", *options)


def journeyman(*words: str) -> list[str]:
    return [sys.executable, "-c", "from journeyman.doors.cli import main; main()", *words]


def environment() -> dict[str, str]:
    """In which our programs run."""
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
